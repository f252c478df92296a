import dataclasses
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

from itembank.calibration.build import calibrate
from itembank.errors import DataError, ModelWarning
from itembank.estimation.asked import Asked
from itembank.estimation.design_based import design_based_estimates, judged_by_design
from itembank.estimation.difference_estimator import (
    LEEWAY,
    PRIOR_FREEDOM,
    composite,
    difference_values,
    difference_variances,
    drawn,
    expected_variances,
    moderated,
)
from itembank.estimation.estimate import estimate
from itembank.estimation.observations import found_items
from itembank.estimation.own_means import own_means
from itembank.estimation.point_methods import Known
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select
from tests.bank.banks import make_bank
from tests.estimation.simulated import having, held, with_a_small_scenario

METHODS = pytest.mark.parametrize("method", ["drawn", "random", "stratified"])
LEAST = [0.91, 0.91, 0.91, 0.92]
"""The least coverages of scenarios and overall."""


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20, n_items=90)


@METHODS
@pytest.mark.parametrize("n_items", [6, 15, 60])
def test_every_random_method_gives_a_possible_interval(bank, method, n_items):
    selection = select(bank, n_items, method=method, rng=1)
    value, error, low, high = design_based_estimates(bank, bank.responses, selection)
    assert value.shape == error.shape == (20, 4)
    assert np.all((low <= value) & (value <= high) & (error > 0.0))
    chosen = bank.responses.item_indices(selection.item_ids)
    known = np.where(np.isin(np.arange(90), chosen), bank.responses.responses, 0.0)
    least = bank.targets.with_overall(bank.targets.scenario_means(known))
    most = least + bank.targets.with_overall(np.full((1, 3), 1 - n_items / 90))
    assert np.all((low >= least - 1e-12) & (high <= most + 1e-12))


@METHODS
def test_all_items_give_the_exact_score(bank, method):
    value, error, low, high = design_based_estimates(bank, bank.responses, select(bank, 90, method=method, rng=1))
    truth = bank.targets.with_overall(bank.scenario_scores)
    np.testing.assert_allclose([value, low, high], np.array([truth] * 3))
    np.testing.assert_allclose(error, 0.0, atol=1e-12)


def test_a_scenario_with_all_its_items_is_exact_beside_one_that_is_sampled(bank):
    items = bank.responses.items.with_columns(scenario=np.where(np.arange(90) < 1, "one", "many"))
    responses = dataclasses.replace(bank.responses, items=items)
    small = dataclasses.replace(bank, responses=responses, targets=ScoreTargets.create(items))
    found = design_based_estimates(small, responses, select(small, 20, method="random", rng=0))
    np.testing.assert_allclose(np.array(found)[[0, 2, 3], :, 0], [responses.responses[:, 0]] * 3)
    assert np.all(found.standard_error[:, 2] < found.standard_error[:, 1])


def test_a_higher_level_is_wider_and_blocks_of_models_and_what_was_not_chosen_do_not_matter(bank, monkeypatch):
    selection = select(bank, 30, method="random", rng=1)
    narrow, wide = (design_based_estimates(bank, bank.responses, selection, level=level) for level in (0.8, 0.99))
    assert np.all(wide.high[:, 3] - wide.low[:, 3] > narrow.high[:, 3] - narrow.low[:, 3])
    np.testing.assert_array_equal(narrow.value, wide.value)
    whole = np.array(design_based_estimates(bank, bank.responses, selection))
    chosen = bank.responses.take(items=bank.responses.item_indices(selection.item_ids))
    np.testing.assert_array_equal(np.array(design_based_estimates(bank, chosen, selection)), whole)
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 90 * 7 // 4)
    np.testing.assert_allclose(np.array(design_based_estimates(bank, bank.responses, selection)), whole, rtol=1e-6)


def without(responses, models, items):
    """Responses of which some are missing."""
    return having(responses, (models, responses.item_indices(items)))


def test_missing_responses_are_a_warning_and_widen_the_interval(bank):
    selection = select(bank, 45, method="random", rng=1)
    whole = design_based_estimates(bank, bank.responses, selection)
    responses = without(bank.responses, slice(None), selection.item_ids[::2])
    says = r"of the 45 items of the selection .*: 'org/model-0' \(23\).*missing at random"
    with pytest.warns(ModelWarning, match=says) as caught:
        by_name = estimate(bank, responses, selection=selection, interval="design")
    told = (len(caught), by_name.interval_kind, by_name.method, by_name.explanation)
    assert told == (1, "design", "design-based", "")
    kept = bank.responses.take(items=bank.responses.item_indices(selection.item_ids[1::2]))
    with pytest.warns(ModelWarning, match="missing at random"):
        found, absent = (design_based_estimates(bank, some, selection) for some in (responses, kept))
    assert np.mean(found.standard_error) > 1.2 * np.mean(whole.standard_error)
    np.testing.assert_allclose(np.array(absent), np.array(found), equal_nan=False)
    one = without(bank.responses, 4, selection.item_ids[1:])
    with pytest.raises(DataError, match=r"at least 2 of the chosen items, got fewer from 'org/model-4'\. Run"):
        design_based_estimates(bank, one, selection)


@pytest.fixture(scope="module")
def bank_with_a_small_scenario():
    answers, scenarios = with_a_small_scenario()
    past, new = (ResponseMatrix.create(some, scenarios=scenarios) for some in (answers[:30], answers[30:]))
    return calibrate(past), new


@pytest.mark.parametrize("n_missing", [1, 4, 5, 6])
def test_intervals_cover_if_answers_to_a_scenario_drawn_in_full_are_missing(bank_with_a_small_scenario, n_missing):
    bank, new = bank_with_a_small_scenario
    truth, covered = bank.targets.with_overall(bank.targets.scenario_means(new.responses)), []
    for seed in range(12):
        selection = select(bank, 20, method="drawn", rng=seed)
        some = having(new, (slice(None), 60 + (seed + np.arange(n_missing)) % 6))
        with pytest.warns(ModelWarning):
            found = design_based_estimates(bank, some, selection)
        covered.append(held(found, truth, 1e-9))
        np.testing.assert_allclose(found.value[:, :2] @ bank.targets.scenario_weights, found.value[:, 2])
    assert np.all(np.mean(covered, axis=(0, 1)) > 0.92)
    if n_missing == 6:
        np.testing.assert_allclose([found.low[:, 1], found.high[:, 1]], [np.zeros(40), np.ones(40)])


def test_a_model_with_one_answer_changes_no_other_models_estimate(bank):
    selection = select(bank, 45, method="random", rng=1)
    alone = estimate(bank, bank.responses.take(models=[0, 1]), selection)
    assert not [note for note in alone.notes if note.kind == "few-models"]
    responses = without(bank.responses.take(models=[0, 1, 4]), 2, selection.item_ids[1:])
    few = r"at least 2 of the chosen items, got fewer from 'org/model-4': no estimate"
    with pytest.warns(ModelWarning, match=r"'org/model-4' \(44\)\."), pytest.warns(ModelWarning, match=few):
        beside = estimate(bank, responses, selection)
    assert beside.interval_kind == "design"
    np.testing.assert_allclose(np.array(beside.scores)[[0, 2, 3], :2], np.array(alone.scores)[[0, 2, 3]])
    assert np.isnan(np.array(beside.scores)[[0, 2, 3], 2]).all()
    assert "too few answers to the items to be used" in beside.notes[-1].text


def test_a_scenario_of_which_nothing_was_drawn_is_predicted(bank):
    selection = select(bank, 2, method="drawn", rng=0)
    assert len(set(selection.scenarios)) < 3
    found = design_based_estimates(bank, bank.responses, selection)
    assert np.isfinite(np.array(found)).all()
    assert held(found, bank.targets.with_overall(bank.scenario_scores)).mean() > 0.9


def test_items_not_drawn_by_chance_and_selections_of_other_items_are_errors(bank):
    with pytest.raises(DataError, match="--method drawn, random or stratified"):
        design_based_estimates(bank, bank.responses, select(bank, 30, method="anchor-irt", rng=0))
    other = make_bank(n_models=20, n_items=90, seed=3)  # of the same items and weights
    found = design_based_estimates(bank, bank.responses, select(other, 30, method="random", rng=0))
    assert np.isfinite(found[0]).all()
    smaller = make_bank(n_models=20, n_items=60, seed=3)
    with pytest.raises(DataError, match=f"drawn from, {smaller.bank_id}, not {bank.bank_id}"):
        design_based_estimates(bank, bank.responses, select(smaller, 30, method="random", rng=0))


def simulated(*, wrong, n_items, seed=0, easiness=0.5, n_models=150):
    """Return a bank whose item model is right, or belongs to other items, and responses of new models."""
    rng = np.random.default_rng(seed)
    parameters = ItemParameters.create(rng.normal(0.6, 0.8, (n_items, 2)), rng.normal(easiness, 1.2, n_items))
    chances, base = probability(parameters, rng.normal(size=(n_models, 2))), make_bank(n_models=20, n_items=n_items)
    items = base.responses.items
    if wrong:
        parameters = parameters.take(rng.permutation(n_items))
    abilities = rng.normal(size=(20, 2))
    past = (rng.random((20, n_items)) < probability(parameters, abilities)).astype(float)
    calibration = dataclasses.replace(base.calibration, parameters=parameters, abilities=abilities, thresholds={})
    responses = ResponseMatrix.create((rng.random(chances.shape) < chances).astype(float), items=items)
    past = ResponseMatrix.create(past, models=base.responses.models, items=items)
    return dataclasses.replace(base, responses=past, calibration=calibration), responses


def coverage(bank, responses, method, n_items, n_draws):
    """Share of covered (model, target, draw); value, error and truth."""
    truth = bank.targets.with_overall(bank.targets.scenario_means(responses.responses))
    covered, misses, widths = [], [], []
    for draw in range(n_draws):
        found = design_based_estimates(bank, responses, select(bank, n_items, method=method, rng=draw))
        covered.append(held(found, truth, 1e-9))
        misses.append(found.value - truth)
        widths.append(found.high - found.low)
    return np.mean(covered, axis=(0, 1)), np.array(misses), np.array(widths)


@METHODS
@pytest.mark.parametrize("wrong", [False, True])
def test_intervals_cover_whether_or_not_the_item_model_is_right(method, wrong):
    bank, responses = simulated(wrong=wrong, n_items=240)
    covered, misses, _ = coverage(bank, responses, method, 60, 12)
    assert np.all(covered > LEAST)
    overall = misses[:, :, 3].mean(axis=1)  # a mean over models for each draw
    assert abs(overall.mean()) < 4 * overall.std() / np.sqrt(12) + 0.002


@pytest.mark.slow
@METHODS
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize(("n_items", "easiness"), [(6, 0.5), (15, 3.0), (30, 0.5), (90, 3.0), (300, 0.5)])
def test_coverage_at_many_sizes_and_scores(method, wrong, n_items, easiness):
    covered = np.zeros(4)
    for seed in range(4):
        bank, responses = simulated(wrong=wrong, n_items=600, seed=seed, easiness=easiness)
        covered += coverage(bank, responses, method, n_items, 25)[0] / 4
    assert np.all((covered > LEAST) & (covered < (0.98 if n_items == 300 else 1.01)))


@pytest.mark.parametrize("score", [0.0, 0.97, 1.0])
def test_models_that_fail_or_solve_nearly_all_items_are_not_judged_by_past_ones_that_do_neither(score):
    # past models' answers lie further from predictions than theirs: the widths were more than twice a plain sample's
    rng = np.random.default_rng(0)
    parameters = ItemParameters.create(np.exp(rng.normal(0.0, 0.3, (400, 1))), rng.normal(0.0, 1.3, 400))
    chances = probability(parameters, rng.normal(size=(60, 1)))
    bank = calibrate(ResponseMatrix.create((rng.random(chances.shape) < chances).astype(float)))
    responses = ResponseMatrix.create((rng.random((150, 400)) < score).astype(float), items=bank.responses.items)
    covered, _, widths = coverage(bank, responses, "drawn", 100, 4)
    random = select(bank, 100, method="random", rng=0)
    plain = own_means(bank, responses.take(items=responses.item_indices(random.item_ids)), level=0.95).scores
    assert covered[-1] > 0.93
    assert widths[:, :, -1].mean() < 1.5 * np.mean(plain.high - plain.low)


def test_a_right_item_model_narrows_the_intervals_and_a_wrong_one_widens_them_by_less_than_a_fifth():
    half = {}
    for wrong in (False, True):
        bank, responses = simulated(wrong=wrong, n_items=600)
        half[wrong] = coverage(bank, responses, "random", 150, 3)[2][:, :, 3].mean()
    scores = bank.targets.scenario_means(responses.responses)
    plain = 2 * 1.97 * np.mean(np.sqrt((scores * (1 - scores)).sum(axis=1) * 0.75 / 50) / 3)
    assert (half[False] < 0.9 * plain, half[True] < 1.2 * plain) == (True, True)


def test_scenarios_are_expected_to_vary_together_as_all_items_do():
    bank, responses = simulated(wrong=True, n_items=240, n_models=40)
    selection = select(bank, 60, method="drawn", rng=0)
    asked = Asked.of_observations(bank, found_items(bank, responses, selection), selection)
    found = judged_by_design(Known.of(asked))
    sums = found.parts.expected @ bank.targets.scenario_weights**2
    assert np.median(sums / found.whole.variance[:, 0]) == pytest.approx(1.0)  # less where nearly all is solved


POPULATION = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.3, 0.9, 1.0])
PREDICTED = np.array([0.2, 0.6, 0.9, 0.1, 0.4, 0.5, 0.7, 0.3])


def simple_samples(n):
    """Estimates and variances of every simple random sample of n with the predictions kept fixed."""
    size = POPULATION.shape[0]
    chosen = np.array(list(combinations(range(size), n)))
    unseen = (PREDICTED.sum() - PREDICTED[chosen].sum(axis=1)) / size
    return estimates(chosen, np.full(size, 1 / size), np.full(chosen.shape, n / size), unseen)


def estimates(chosen, omega, probabilities, unseen):
    """Run the kernels sample by sample: samples differ in their items, which the kernels share among models."""
    found = []
    for items, own, rest in zip(chosen, probabilities, unseen, strict=True):
        sample = drawn(POPULATION[items][None], omega[items], own, np.zeros(len(items), int), 1)
        value = difference_values(sample, PREDICTED[items][None], np.array([[rest]]))
        variance, freedom = difference_variances(sample, PREDICTED[items][None])
        found.append([value[0, 0], variance[0, 0], freedom[0, 0]])
    return np.array(found).T


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_simple_random_samples_are_unbiased_with_the_textbook_variance(n):
    """Over all of them; of each ``(1 - n/N) s_e^2 / n`` (Cochran 1977, 2.20)."""
    values, variances, freedom = simple_samples(n)
    np.testing.assert_allclose(values.mean(), POPULATION.mean(), atol=1e-12)
    np.testing.assert_allclose(variances.mean(), np.var(values), rtol=1e-10)
    np.testing.assert_allclose(freedom, n - 1)
    residuals = (POPULATION - PREDICTED)[np.array(list(combinations(range(8), n)))]
    np.testing.assert_allclose(variances, (1 - n / 8) * np.var(residuals, axis=1, ddof=1) / n, atol=1e-15)


def systematic_samples(probabilities):
    """Every sample of randomly ordered systematic sampling with its chance: all orders, all ranges of the start."""
    size, chance = len(probabilities), {}
    for order in permutations(range(size)):
        ends = np.cumsum(probabilities[list(order)])
        cuts = np.unique(np.round(np.concatenate([[0.0, 1.0], ends % 1.0]), 12))
        for low, high in pairwise(cuts):
            marks = np.floor(ends + 1.0 - (low + high) / 2)  # a mark falls on an item whose count rises
            items = tuple(sorted(np.array(order)[np.diff(marks, prepend=0.0) > 0]))
            chance[items] = chance.get(items, 0.0) + high - low
    return np.array(list(chance)), np.array(list(chance.values())) / sum(chance.values())


def test_over_all_unequal_samples_bias_is_small_and_variance_close():
    probabilities = np.array([0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6])
    omega, size = np.array([1.0, 1.0, 2.0, 1.0, 2.0, 1.0, 1.0]) / 9.0, 7
    chosen, chance = systematic_samples(probabilities)
    counted = np.array([chance[(chosen == item).any(axis=1)].sum() for item in range(size)])
    np.testing.assert_allclose(counted, probabilities, atol=1e-9)  # what the design promises
    unseen = np.array([omega @ PREDICTED[:size] - omega[items] @ PREDICTED[items] for items in chosen])
    values, variances, _ = estimates(chosen, omega, probabilities[chosen], unseen)
    truth = omega @ POPULATION[:size]
    error = np.sqrt(chance @ (values - truth) ** 2)
    assert abs(chance @ values - truth) < 0.1 * error
    assert 0.75 < chance @ variances / error**2 < 1.3


def test_right_predictions_give_the_score_and_a_constant_error_of_theirs_changes_nothing():
    rng = np.random.default_rng(0)
    omega, truth = rng.dirichlet(np.ones(20)), rng.random(20)
    items, pi = np.array([1, 5, 7, 8, 15]), rng.uniform(0.2, 0.9, 5)
    sample = drawn(truth[items][None], omega[items], pi, np.zeros(5, int), 1)
    unseen = np.array([[omega @ truth - omega[items] @ truth[items]]])
    np.testing.assert_allclose(difference_values(sample, truth[items][None], unseen), omega @ truth)
    variance, _ = difference_variances(sample, truth[items][None])
    np.testing.assert_allclose(variance, 0.0, atol=1e-20)
    sample, q, _ = one_scenario(share_of_noise=0.2)
    unseen = np.full((3, 1), 0.4)
    shifted = unseen + 0.1 * sample.unseen_weight
    np.testing.assert_allclose(difference_values(sample, q + 0.1, shifted), difference_values(sample, q, unseen))
    np.testing.assert_allclose(difference_variances(sample, q + 0.1), difference_variances(sample, q))


def one_scenario(n=40, size=200, seed=1, share_of_noise=1.0):
    rng = np.random.default_rng(seed)
    q = rng.random((3, n))
    y = (rng.random((3, n)) < (1 - share_of_noise) * q + share_of_noise * 0.5).astype(float)
    return drawn(y, np.full(n, 1 / size), np.full(n, n / size), np.zeros(n, int), 1), q, y


def test_gaps_make_a_smaller_sample_and_neither_scenarios_mix_nor_items_certain_to_come_count():
    _, q, y = one_scenario(n=40, size=200)
    gappy = np.where(np.arange(40) < 30, y, np.nan)
    with_gaps = drawn(gappy, np.full(40, 1 / 200), np.full(40, 0.2), np.zeros(40, int), 1)
    smaller = drawn(y[:, :30], np.full(30, 1 / 200), np.full(30, 0.15), np.zeros(30, int), 1)
    unseen = np.full((3, 1), 0.4)
    np.testing.assert_allclose(difference_values(with_gaps, q, unseen), difference_values(smaller, q[:, :30], unseen))
    np.testing.assert_allclose(difference_variances(with_gaps, q), difference_variances(smaller, q[:, :30]))
    sample, q, y = one_scenario(n=10, size=50)
    both = drawn(np.column_stack([y, 1 - y]), np.full(20, 1 / 50), np.full(20, 0.2), np.repeat([0, 1], 10), 2)
    value = difference_values(both, np.column_stack([q, q]), np.full((3, 2), 0.3))
    np.testing.assert_allclose(value[:, :1], difference_values(sample, q, np.full((3, 1), 0.3)))
    variance, freedom = difference_variances(both, np.column_stack([q, q]))
    np.testing.assert_allclose(variance[:, :1], difference_variances(sample, q)[0])
    np.testing.assert_allclose(freedom, 9.0)
    y, pi = np.array([[1.0, 0.0, 1.0, 1.0, 0.0]]), np.array([1.0, 1.0, 0.3, 0.3, 0.3])
    sample = drawn(y, np.full(5, 1 / 12), pi, np.zeros(5, int), 1)
    variance, freedom = difference_variances(sample, np.zeros(y.shape))
    part = drawn(y[:, 2:], np.full(3, 1 / 12), pi[2:], np.zeros(3, int), 1)
    np.testing.assert_allclose(variance, difference_variances(part, np.zeros((1, 3)))[0])
    np.testing.assert_allclose(freedom, 2.0)


def test_a_moderated_variance_is_by_hand_what_it_says():
    y = (np.arange(20) < 7).astype(float)[None]  # seven of twenty right
    sample = drawn(y, np.full(20, 1 / 200), np.full(20, 0.1), np.zeros(20, int), 1)
    shown, freedom = difference_variances(sample, np.full(y.shape, 0.35))
    expected = expected_variances(sample, np.full(y.shape, 0.5))
    np.testing.assert_allclose(expected, 20 * 0.9 * (10 / 200) ** 2 * 0.5)
    together = (19 * shown + PRIOR_FREEDOM * expected) / (19 + PRIOR_FREEDOM)
    np.testing.assert_allclose(moderated(sample, shown, freedom, expected), together)
    np.testing.assert_allclose(moderated(sample, shown, freedom, 0.0 * expected), shown)  # no less than what is seen


@pytest.mark.parametrize("right", [0, 1, 2])
def test_rare_outcomes_say_little_of_a_variance(right):
    """Degrees of freedom of the variance of n outcomes, by simulation of its relative variance."""
    n = 40
    y = (np.arange(n) < right).astype(float)[None]
    sample = drawn(y, np.full(n, 1e-6), np.full(n, n * 1e-6), np.zeros(n, int), 1)
    found = moderated(sample, np.zeros((1, 1)), np.full((1, 1), n - 1.0), np.full((1, 1), 3.0))[0, 0]
    worth = PRIOR_FREEDOM * (3.0 / found - 1.0)
    if right == 0:
        assert worth == 0.0
        return
    variances = np.var(np.random.default_rng(0).random((200_000, n)) < right / n, axis=1)
    assert worth == pytest.approx(2.0 / (variances.std() / variances.mean()) ** 2, rel=0.1)


def test_a_composite_leans_on_the_better_of_both():
    parts = drawn(np.ones((1, 2)), np.full(2, 0.1), np.full(2, 0.2), np.array([0, 1]), 3)
    synthetic, direct = np.array([[0.5, 0.5, 0.5]]), np.array([[0.54, 0.52, np.nan]])
    variance, apart = np.array([[0.01, 0.0001, 0.0]]), np.array([0.0025, 0.0025, 0.0025])
    beside = {"left": parts.unseen_weight[0], "by_draw": np.full((1, 3), 0.002)}  # less than past models wandered
    value, square = composite(synthetic, direct, variance, apart, parts, **beside)
    share = LEEWAY * 0.0025 / (LEEWAY * 0.0025 + variance[0, :2])
    np.testing.assert_allclose(value[0], [*(0.5 + share * np.array([0.04, 0.02])), 0.5])
    np.testing.assert_allclose(square[0, :2], share * variance[0, :2])  # what a normal posterior has
    np.testing.assert_allclose(square[0, 2], LEEWAY * 0.0025)
    far, _ = composite(synthetic, synthetic + np.array([0.5, 0.5, np.nan]), variance, apart, parts, **beside)
    assert np.all(far[0, :2] - 0.5 > share * 0.5)  # further apart than past models: their like counts less
    unknown, alone = composite(synthetic, direct, variance, np.full(3, np.nan), parts, **beside)
    np.testing.assert_allclose(unknown[0, :2], direct[0, :2], atol=1e-6)
    np.testing.assert_allclose(alone[0, :2], variance[0, :2], rtol=1e-3)
    # past models answered nearly all alike, and the draw says so little of this one that nothing is sure
    _, alike = composite(synthetic, direct, variance, 1e-6 * apart, parts, **beside)
    np.testing.assert_allclose(alike[0], [*(1.0 / (1.0 / 0.002 + 1.0 / variance[0, :2])), 0.002])
