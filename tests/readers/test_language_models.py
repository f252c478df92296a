"""The built-in language models: what the issue promises of them, and that their files agree with each other."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from itembank.readers.builtin import builtin_choices, load_builtin
from itembank_scaling.compute import training_compute
from itembank_scaling.inputs import builtin_bits_per_byte, builtin_sample_probabilities


@pytest.fixture(scope="module")
def correct():
    return load_builtin("bytelms")


@pytest.fixture(scope="module")
def choices():
    return builtin_choices()


def test_compute_is_six_times_parameters_times_tokens(correct):
    models = correct.models
    expected = 6.0 * models["params"].to_numpy() * models["train_tokens"].to_numpy()
    np.testing.assert_array_equal(models["flops"].to_numpy(), expected)
    compute = training_compute(models, correct.model_ids)
    np.testing.assert_array_equal(compute.flops, expected)
    np.testing.assert_array_equal(compute.is_final, models["share_of_run"].to_numpy() == 1.0)
    assert set(compute.recipes) == set(models["mixture"])


def test_parameters_are_those_of_the_shape(correct):
    models = correct.models
    width, layers = models["width"].to_numpy(), models["n_layers"].to_numpy()
    np.testing.assert_array_equal(models["params_non_embedding"].to_numpy(), 12 * width**2 * layers)
    np.testing.assert_array_equal((models["params"] - models["params_non_embedding"]).to_numpy(), 96 * width)


def test_every_run_has_five_checkpoints_and_one_end(correct):
    runs = correct.models.group_by("mixture", "size").agg(n=pl.len(), ends=pl.col("is_final").sum())
    assert runs["n"].to_list() == [5] * runs.height
    assert runs["ends"].to_list() == [1] * runs.height


def test_probabilities_of_the_choices_sum_to_one_and_the_right_one_is_the_response(choices):
    probability = load_builtin("bytelms", response="probability").responses
    weights = np.exp(np.nan_to_num(choices.log_likelihoods, nan=-np.inf))
    shares = weights / weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(shares.sum(axis=-1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(probability, shares[:, np.arange(len(choices.correct)), choices.correct], atol=1e-12)


def test_the_answer_is_the_choice_of_highest_likelihood_per_byte(correct, choices):
    texts = choices.items["choices"].to_list()
    for row in range(0, correct.n_models, 97):
        for column in range(0, correct.n_items, 41):
            per_byte = [
                total / len(text)
                for total, text in zip(choices.log_likelihoods[row, column], texts[column], strict=False)
            ]
            best = int(np.argmax(per_byte))
            assert correct.responses[row, column] == float(best == choices.correct[column])


def test_log_likelihoods_are_those_of_texts(choices):
    known = ~np.isnan(choices.log_likelihoods)
    np.testing.assert_array_equal(known, np.broadcast_to(~np.isnan(choices.n_bytes), known.shape))
    np.testing.assert_array_equal(known[0].sum(axis=1), choices.items["n_options"].to_numpy())
    assert np.all(choices.log_likelihoods[known] <= 0.0)
    lengths = [len(text) for texts in choices.items["choices"].to_list() for text in texts]
    np.testing.assert_array_equal(choices.n_bytes[known[0]], lengths)


def test_bits_per_byte_and_probability_per_byte_say_the_same():
    per_byte = load_builtin("bytelms", response="probability_per_byte").responses
    bits = builtin_bits_per_byte()
    certain = bits <= 1e-3  # kept above zero for logarithms
    np.testing.assert_allclose(per_byte[~certain], 2.0 ** -bits[~certain], rtol=1e-9)
    assert np.all(per_byte[certain] > 0.99)


def test_accuracy_rises_with_compute_in_most_tasks(correct):
    final = np.flatnonzero(correct.models["is_final"].to_numpy())
    flops = correct.models["flops"].to_numpy()[final]
    scenarios = correct.items["scenario"].to_numpy()
    rises = []
    for name in dict.fromkeys(scenarios):
        scores = correct.responses[np.ix_(final, np.flatnonzero(scenarios == name))].mean(axis=1)
        rises.append(spearmanr(flops, scores).statistic)
    assert np.sum(np.array(rises) > 0.4) >= 10
    assert np.median(rises) > 0.5


def test_loss_falls_with_compute_unless_the_text_is_repeated(correct):
    final = correct.models.filter("is_final").sort("flops")
    for (mixture,), one in final.group_by("mixture"):
        loss = one["validation_bits_per_byte"].to_numpy()
        if mixture != "repeated":
            assert np.all(np.diff(loss) < 0.0)
    repeated = final.filter(pl.col("mixture") == "repeated")[-1]
    gap = repeated["validation_bits_per_byte"] - repeated["train_bits_per_byte"]
    assert gap[0] > 0.5  # learned by heart


def test_mixtures_are_good_at_what_they_are_made_of(correct):
    final = correct.models["is_final"].to_numpy()
    scenarios = correct.items["scenario"].to_numpy()
    mixtures = correct.models["mixture"].to_numpy()

    def score(mixture, scenario):
        rows = np.flatnonzero(final & (mixtures == mixture))
        return correct.responses[np.ix_(rows, np.flatnonzero(scenarios == scenario))].mean()

    assert score("symbols", "sorting") > score("code", "sorting") + 0.1
    assert score("code", "code") > score("symbols", "code") + 0.05
    assert score("english", "prose") > score("arithmetic", "prose") + 0.05


def test_samples_are_draws_with_the_probability_of_the_answer():
    responses, probability = load_builtin("bytelms-samples"), builtin_sample_probabilities()
    trials = responses.n_trials
    assert np.all(trials == 10_000)
    spread = np.sqrt(trials * probability * (1.0 - probability))
    wide = spread > 3.0  # where the count is close to normal
    z = ((responses.responses - probability) * trials)[wide] / spread[wide]
    assert wide.sum() > 1000
    assert abs(z.mean()) < 4.0 / np.sqrt(z.size)
    assert z.std() == pytest.approx(1.0, abs=4.0 / np.sqrt(2.0 * z.size))
    assert np.abs(z).max() < 6.0


def test_sampled_tasks_range_from_hopeless_to_mastered():
    responses = load_builtin("bytelms-samples")
    largest = responses.responses[np.argsort(responses.models["flops"].to_numpy())[-8:]]
    assert np.mean(largest < 0.01) > 0.1
    assert np.mean(largest > 0.5) > 0.02
    assert responses.models["model_id"].to_list() == load_builtin("bytelms").model_ids
