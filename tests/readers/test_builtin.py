"""The built-in data: what is promised of it, and that files and scripts belong together."""

import importlib
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn import datasets

from itembank.errors import ParameterError
from itembank.readers.builtin import IN_CHECKOUT_ONLY, builtin_choices, from_errors, load_builtin, read_builtin_numbers
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import training_compute
from itembank_scaling.inputs import builtin_bits_per_byte, builtin_sample_probabilities
from tests.readers.reading import refuses
from tests.scripts.bytelms import load

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = REPOSITORY / "src" / "itembank" / "readers" / "builtin_files"


@pytest.fixture(scope="module")
def correct() -> ResponseMatrix:
    return load_builtin("classifiers")


@pytest.fixture(scope="module")
def probability() -> ResponseMatrix:
    return load_builtin("classifiers", response="probability")


def test_responses_are_complete_binary_and_of_the_same_models_and_items(correct, probability):
    assert correct.is_complete
    assert correct.is_binary
    assert len(np.unique(correct.responses, axis=0)) == correct.n_models
    assert correct.models.equals(probability.models)
    assert correct.items.equals(probability.items)
    # Nearest centroid predicts by distance and has its own kind of probability.
    rows = np.flatnonzero(correct.models["family"].to_numpy() != "centroid")
    right, share = correct.responses[rows], probability.responses[rows]
    chance = 1.0 / correct.items["n_options"].to_numpy()
    assert not np.any((share > 0.5005) & (right == 0.0))  # thousandths, and exactly one half is a tie
    assert not np.any((share < chance - 0.0005) & (right == 1.0))


def test_a_dummy_is_right_on_its_class_and_every_prediction_has_a_cost(correct):
    row = correct.responses[correct.model_indices(["dummy/strategy=prior/share=1"])[0]]
    items = correct.items
    for scenario, commonest in (("breast_cancer", "benign"), ("wine", "class_1")):
        inside = (items["scenario"] == scenario).to_numpy()
        np.testing.assert_array_equal(row[inside], (items["true_class"] == commonest).to_numpy()[inside])
    assert np.all(correct.costs["seconds"] > 0.0)
    inside = (correct.items["scenario"] == "wine").to_numpy()
    expected = correct.models["wine_prediction_seconds"].to_numpy()
    np.testing.assert_array_equal(correct.costs["seconds"][:, inside][:, 0], expected)


@pytest.mark.parametrize(("scenario", "load"), [
    ("digits", datasets.load_digits), ("breast_cancer", datasets.load_breast_cancer), ("wine", datasets.load_wine),
    ("iris", datasets.load_iris),
])  # fmt: skip
def test_true_classes_are_those_of_scikit_learn(correct, scenario, load):
    content = load()
    items = correct.items.filter(scenario=scenario)
    expected = content.target_names[content.target[items["example"].to_numpy()]]
    assert items["true_class"].to_list() == [str(name) for name in expected]


def test_data_can_be_calibrated(correct):
    """Abilities are spread, items tell models apart, and more than one dimension is there."""
    scores = correct.responses.mean(axis=1)
    assert np.percentile(scores, 90) - np.percentile(scores, 10) > 0.2
    rest = scores[:, None] - correct.responses / correct.n_items
    varied = correct.responses.std(axis=0) > 0.0
    assert varied.mean() > 0.99
    left, right = correct.responses[:, varied], rest[:, varied]
    left, right = left - left.mean(axis=0), right - right.mean(axis=0)
    item_rest = (left * right).sum(axis=0) / np.sqrt((left**2).sum(axis=0) * (right**2).sum(axis=0))
    assert np.mean(item_rest > 0.0) > 0.85


def test_files_hold_what_the_script_makes(correct, probability, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    script = importlib.import_module("make_classifiers")
    data = script.tabular("wine", datasets.load_wine)
    name = "knn/n_neighbors=5/share=0.3"
    answers = script.answer(next(one for one in script.classifiers() if one.model_id == name), data)
    inside = (correct.items["scenario"] == "wine").to_numpy()
    row = correct.model_indices([name])[0]
    np.testing.assert_array_equal(correct.responses[row, inside], answers.correct)
    np.testing.assert_allclose(probability.responses[row, inside], answers.probability, atol=0.0005 + 1e-9)


@pytest.mark.parametrize(
    ("name", "response"), [("classifier", "correct"), ("classifiers", "score"), ("bytelms-samples", "probability")]
)
def test_unknown_names_are_refused(name, response):
    refuses("must be one of", load_builtin, name, response=response, error=ParameterError)


def test_what_the_wheel_leaves_out_or_python_lacks_is_said(monkeypatch, tmp_path):
    wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = [file.name for file in FILES.iterdir()]
    left_out = {name for name in files if any(fnmatch(name, pattern) for pattern in wheel["exclude"])}
    assert left_out == {name for name in files if name.startswith(IN_CHECKOUT_ONLY)}
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    refuses(r"classifiers_models.parquet must be .* the wheel leaves it out", load_builtin, "classifiers")
    refuses(r"bytelms_samples_exact.xz must be", read_builtin_numbers, "bytelms", "samples_exact", "<f4", 280)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "lzma", None)
    refuses("built without it", load_builtin, "bytelms")


def test_numbers_come_back_from_their_bytes(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    (tmp_path / "builtin_files").mkdir()
    log_likelihoods = rng.integers(-3000, 3000, (6, 7)).astype(np.int16)
    choices = ["no", "b", "yes", "b", "no", "a", "no"]
    packing, exact = load("bytelms_packing"), rng.normal(size=(6, 4))
    errors, terms = packing.as_errors(log_likelihoods, 3, choices)
    assert np.count_nonzero(terms) > 6  # predictions there are
    kept = {"choices": (errors, "<i2"), "choices_terms": (terms, "<i2"), "exact": (exact, "<f4")}
    for part, (numbers, dtype) in kept.items():
        (tmp_path / "builtin_files" / f"toy_{part}.xz").write_bytes(packing.packed_numbers(numbers, dtype))
    read = [read_builtin_numbers("toy", *part) for part in (("choices", "<i2", 3), ("choices_terms", "<i2", 6))]
    np.testing.assert_array_equal(from_errors(*read, 3, choices), log_likelihoods)
    np.testing.assert_array_equal(read_builtin_numbers("toy", "exact", "<f4", 6), exact.astype("<f4"))


@pytest.fixture(scope="module")
def language_models():
    return load_builtin("bytelms")


@pytest.fixture(scope="module")
def choices():
    return builtin_choices()


def test_compute_parameters_and_checkpoints_are_those_of_the_runs(language_models):
    models = language_models.models
    expected = 6.0 * models["params"].to_numpy() * models["train_tokens"].to_numpy()
    np.testing.assert_array_equal(models["flops"].to_numpy(), expected)
    compute = training_compute(models, language_models.model_ids)
    np.testing.assert_array_equal(compute.flops, expected)
    np.testing.assert_array_equal(compute.is_final, models["share_of_run"].to_numpy() == 1.0)
    assert set(compute.recipes) == set(models["mixture"])
    models = language_models.models
    width, layers = models["width"].to_numpy(), models["n_layers"].to_numpy()
    np.testing.assert_array_equal(models["params_non_embedding"].to_numpy(), 12 * width**2 * layers)
    np.testing.assert_array_equal((models["params"] - models["params_non_embedding"]).to_numpy(), 96 * width)
    runs = language_models.models.group_by("mixture", "size").agg(n=pl.len(), ends=pl.col("is_final").sum())
    assert (runs["n"].to_list(), runs["ends"].to_list()) == ([5] * runs.height, [1] * runs.height)


def test_the_answer_is_the_choice_of_highest_likelihood_per_byte(language_models, choices):
    texts = choices.items["choices"].to_list()
    for row in range(0, language_models.n_models, 97):
        for column in range(0, language_models.n_items, 41):
            per_byte = [
                total / len(text)
                for total, text in zip(choices.log_likelihoods[row, column], texts[column], strict=False)
            ]
            assert language_models.responses[row, column] == float(int(np.argmax(per_byte)) == choices.correct[column])


def test_likelihoods_are_those_of_texts_and_probabilities_their_shares(choices):
    known = ~np.isnan(choices.log_likelihoods)
    np.testing.assert_array_equal(known, np.broadcast_to(~np.isnan(choices.n_bytes), known.shape))
    np.testing.assert_array_equal(known[0].sum(axis=1), choices.items["n_options"].to_numpy())
    assert np.all(choices.log_likelihoods[known] <= 0.0)
    lengths = [len(text) for texts in choices.items["choices"].to_list() for text in texts]
    np.testing.assert_array_equal(choices.n_bytes[known[0]], lengths)
    probability = load_builtin("bytelms", response="probability").responses
    weights = np.exp(np.nan_to_num(choices.log_likelihoods, nan=-np.inf))
    shares = weights / weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(shares.sum(axis=-1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(probability, shares[:, np.arange(len(choices.correct)), choices.correct], atol=1e-12)
    per_byte = load_builtin("bytelms", response="probability_per_byte").responses
    bits = builtin_bits_per_byte()
    certain = bits <= 1e-3  # kept above zero for logarithms
    np.testing.assert_allclose(per_byte[~certain], 2.0 ** -bits[~certain], rtol=1e-9)
    assert np.all(per_byte[certain] > 0.99)


def test_accuracy_rises_with_compute_loss_falls_and_mixtures_are_good_at_what_they_are_made_of(language_models):
    final = np.flatnonzero(language_models.models["is_final"].to_numpy())
    flops = language_models.models["flops"].to_numpy()[final]
    scenarios = language_models.items["scenario"].to_numpy()
    rises = []
    for name in dict.fromkeys(scenarios):
        scores = language_models.responses[np.ix_(final, np.flatnonzero(scenarios == name))].mean(axis=1)
        rises.append(spearmanr(flops, scores).statistic)
    assert np.sum(np.array(rises) > 0.4) >= 10
    assert np.median(rises) > 0.5
    final = language_models.models.filter("is_final").sort("flops")
    for (mixture,), one in final.group_by("mixture"):
        loss = one["validation_bits_per_byte"].to_numpy()
        if mixture != "repeated":
            assert np.all(np.diff(loss) < 0.0)
    repeated = final.filter(pl.col("mixture") == "repeated")[-1]
    gap = repeated["validation_bits_per_byte"] - repeated["train_bits_per_byte"]
    assert gap[0] > 0.5  # learned by heart
    final = language_models.models["is_final"].to_numpy()
    scenarios = language_models.items["scenario"].to_numpy()
    mixtures = language_models.models["mixture"].to_numpy()

    def score(mixture, scenario):
        rows = np.flatnonzero(final & (mixtures == mixture))
        return language_models.responses[np.ix_(rows, np.flatnonzero(scenarios == scenario))].mean()

    assert score("symbols", "sorting") > score("code", "sorting") + 0.1
    assert score("code", "code") > score("symbols", "code") + 0.05
    assert score("english", "prose") > score("arithmetic", "prose") + 0.05


def test_samples_are_draws_with_the_probability_of_the_answer_from_hopeless_to_mastered():
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
    responses = load_builtin("bytelms-samples")
    largest = responses.responses[np.argsort(responses.models["flops"].to_numpy())[-8:]]
    assert np.mean(largest < 0.01) > 0.1
    assert np.mean(largest > 0.5) > 0.02
    assert responses.models["model_id"].to_list() == load_builtin("bytelms").model_ids
