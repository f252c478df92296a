import dataclasses

import numpy as np
import pytest

from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation import response_summary
from itembank.estimation.design_based import design_based_estimates
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select
from tests.bank.banks import make_bank

METHODS = pytest.mark.parametrize("method", ["random", "stratified"])


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
    items = bank.responses.items
    sizes = items.with_columns(scenario=np.where(np.arange(90) < 1, "one", "many"))
    targets = ScoreTargets.create(sizes)
    responses = dataclasses.replace(bank.responses, items=sizes)
    small = dataclasses.replace(bank, responses=responses, targets=targets)
    estimates = design_based_estimates(small, responses, select(small, 20, method="random", rng=0))
    np.testing.assert_allclose(estimates.high[:, 0] - estimates.low[:, 0], 0.0)
    np.testing.assert_allclose(estimates.standard_error[:, 2], estimates.standard_error[:, 1] / 2)


@METHODS
def test_order_of_models_and_items_does_not_matter(bank, method):
    selection = select(bank, 30, method=method, rng=1)
    rng = np.random.default_rng(0)
    models, items, order = rng.permutation(20), rng.permutation(90), rng.permutation(30)
    shuffled = Selection(
        tuple(selection.item_ids[i] for i in order),
        tuple(selection.scenarios[i] for i in order),
        selection.weights[order],
        selection.method,
        selection.bank,
        None,
        selection.inclusion_probabilities[order],
    )
    one = design_based_estimates(bank, bank.responses, selection)
    other = design_based_estimates(bank, bank.responses.take(models=models, items=items), shuffled)
    np.testing.assert_allclose(np.array(other), np.array(one)[:, models], rtol=1e-6)


def test_blocks_of_models_do_not_matter(bank, monkeypatch):
    selection = select(bank, 30, method="random", rng=1)
    whole = design_based_estimates(bank, bank.responses, selection)
    monkeypatch.setattr(response_summary, "CELLS_AT_ONCE", 90 * 7)
    np.testing.assert_allclose(
        np.array(design_based_estimates(bank, bank.responses, selection)), np.array(whole), rtol=1e-6
    )


def test_only_the_chosen_responses_count(bank):
    selection = select(bank, 30, method="random", rng=1)
    chosen = bank.responses.item_indices(selection.item_ids)
    one = design_based_estimates(bank, bank.responses, selection)
    np.testing.assert_array_equal(
        np.array(design_based_estimates(bank, bank.responses.take(items=chosen), selection)), np.array(one)
    )


def test_a_higher_level_is_wider(bank):
    selection = select(bank, 30, method="random", rng=1)
    narrow = design_based_estimates(bank, bank.responses, selection, level=0.8)
    wide = design_based_estimates(bank, bank.responses, selection, level=0.99)
    assert np.all(wide.high[:, 3] - wide.low[:, 3] > narrow.high[:, 3] - narrow.low[:, 3])
    np.testing.assert_array_equal(narrow.value, wide.value)


def test_missing_responses_are_a_warning_and_widen_the_interval(bank):
    selection = select(bank, 45, method="random", rng=1)
    whole = design_based_estimates(bank, bank.responses, selection)
    gappy = bank.responses.responses.copy()
    gappy[:, bank.responses.item_indices(selection.item_ids[::2])] = np.nan
    responses = ResponseMatrix.create(gappy, models=bank.responses.models, items=bank.responses.items)
    with pytest.warns(DataWarning, match=r"45 chosen items are missing: 'org/model-0 \(23\)'.*missing at random"):
        found = design_based_estimates(bank, responses, selection)
    assert not np.isnan(np.array(found)).any()
    assert np.mean(found.standard_error) > 1.2 * np.mean(whole.standard_error)
    kept = bank.responses.item_indices(selection.item_ids[1::2])
    with pytest.warns(DataWarning, match="missing at random"):
        absent = design_based_estimates(bank, bank.responses.take(items=kept), selection)
    np.testing.assert_allclose(np.array(absent), np.array(found))


def test_fewer_than_two_answers_in_a_scenario_are_an_error(bank):
    with pytest.raises(DataError, match=r"at least 2 .* 'org/model-0 in math \(1\)'.* and 55 more. Choose more"):
        design_based_estimates(bank, bank.responses, select(bank, 3, method="random", rng=0))


def test_a_scenario_without_chosen_items_is_an_error(bank):
    selection = select(bank, 30, method="random", rng=0)
    first = Selection(*(getattr(selection, name)[:10] for name in ("item_ids", "scenarios", "weights")), "random", "")
    first = dataclasses.replace(first, inclusion_probabilities=selection.inclusion_probabilities[:10])
    with pytest.raises(DataError, match="none in 'code', 'law'"):
        design_based_estimates(bank, bank.responses, first)


@pytest.mark.parametrize("method", ["anchor-irt", "anchor-correctness"])
def test_items_not_drawn_by_chance_are_an_error(bank, method):
    with pytest.raises(DataError, match="--method random or stratified"):
        design_based_estimates(bank, bank.responses, select(bank, 30, method=method, rng=0))


def test_a_selection_of_another_bank_is_an_error(bank):
    other = make_bank(n_models=20, n_items=90, seed=3)  # of the same items and weights
    selection = select(other, 30, method="random", rng=0)
    assert np.isfinite(design_based_estimates(bank, bank.responses, selection)[0]).all()
    smaller = make_bank(n_models=20, n_items=60, seed=3)
    with pytest.raises(DataError, match=f"drawn from, {smaller.bank_id}, not {bank.bank_id}"):
        design_based_estimates(bank, bank.responses, select(smaller, 30, method="random", rng=0))


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_outside_its_range_is_an_error(bank, level):
    with pytest.raises(ParameterError, match="level must be between 0 and 1"):
        design_based_estimates(bank, bank.responses, select(bank, 30, method="random", rng=0), level=level)


def simulated(*, wrong, n_items, seed=0, easiness=0.5, n_models=150):
    """Return a bank whose item model is right, or belongs to other items, and responses of new models."""
    rng = np.random.default_rng(seed)
    parameters = ItemParameters.create(rng.normal(0.6, 0.8, (n_items, 2)), rng.normal(easiness, 1.2, n_items))
    chances = probability(parameters, rng.normal(size=(n_models, 2)))
    base = make_bank(n_models=20, n_items=n_items)
    items = base.responses.items
    if wrong:
        parameters = parameters.take(rng.permutation(n_items))
    calibration = dataclasses.replace(
        base.calibration, parameters=parameters, is_degenerate=np.zeros(n_items, bool), thresholds={}
    )
    responses = ResponseMatrix.create((rng.random(chances.shape) < chances).astype(float), items=items)
    return dataclasses.replace(base, calibration=calibration), responses


def coverage(bank, responses, method, n_items, n_draws):
    """Share of covered (model, target, draw); value, error and truth."""
    truth = bank.targets.with_overall(bank.targets.scenario_means(responses.responses))
    covered, misses, widths = [], [], []
    for draw in range(n_draws):
        value, _, low, high = design_based_estimates(bank, responses, select(bank, n_items, method=method, rng=draw))
        covered.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
        misses.append(value - truth)
        widths.append(high - low)
    return np.mean(covered, axis=(0, 1)), np.array(misses), np.array(widths)


@METHODS
@pytest.mark.parametrize("wrong", [False, True])
def test_intervals_cover_whether_or_not_the_item_model_is_right(method, wrong):
    bank, responses = simulated(wrong=wrong, n_items=240)
    covered, misses, _ = coverage(bank, responses, method, 60, 12)
    assert covered[3] > 0.92
    assert np.all(covered[:3] > 0.91)
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
    assert np.all(covered > 0.93)
    if n_items == 300:
        assert np.all(covered < 0.98)


def test_a_right_item_model_narrows_the_intervals_and_a_wrong_one_hardly_widens_them():
    half = {}
    for wrong in (False, True):
        bank, responses = simulated(wrong=wrong, n_items=600)
        half[wrong] = coverage(bank, responses, "random", 150, 3)[2][:, :, 3].mean()
    scores = bank.targets.scenario_means(responses.responses)
    plain = 2 * 1.97 * np.mean(np.sqrt((scores * (1 - scores)).sum(axis=1) * 0.75 / 50) / 3)
    assert half[False] < 0.85 * plain
    assert half[True] < 1.06 * plain
