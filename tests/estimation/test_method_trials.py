import dataclasses
import json

import numpy as np
import pytest

from itembank.bank.banks import CONTENT_ORDER
from itembank.bank.selections import Selection
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import PIRT, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import SEED, items_of_fold, try_methods
from itembank.estimation.point_methods import Known, point_scores
from itembank.estimation.response_summary import summarise_responses
from itembank.selection.select import select
from tests.estimation.simulated import new_models, shared_bank, small_bank

pytestmark = pytest.mark.usefixtures("few_folds")

SPECS = (PIRT(), Weighted())
CHOSEN = ["anchor-irt", "anchor-correctness", "v-optimal"]


@pytest.fixture(scope="module")
def bank():
    return shared_bank(n_models=14, n_items=36)


@pytest.mark.parametrize("method", CHOSEN)
def test_each_fold_chooses_its_own_items(bank, method):
    selection = select(bank, 12, method=method, rng=SEED)
    found = try_methods(Asked.of_past(bank, selection), SPECS)
    others = 0
    for fold in folds(bank):
        own = select(fold.bank, 12, method=method, rng=SEED)
        others += own.item_ids != selection.item_ids
        sample = Asked.of_past(fold.bank, own).observations
        held_out = sample.answered_by_calibration_models(bank, fold.held_out)
        summary = summarise_responses(fold.bank, held_out)
        for number, spec in enumerate(SPECS):
            expected = point_scores(Known(Asked(fold.bank, held_out), summary), spec)
            np.testing.assert_allclose(found.values[number, fold.held_out], expected, atol=1e-12)
    assert others > 0  # or the test would say nothing


@pytest.mark.parametrize("method", ["random", "stratified"])
def test_items_that_chance_chose_are_kept(bank, method):
    selection = select(bank, 12, method=method, rng=0)
    asked = Asked.of_past(bank, selection)
    as_they_are = Asked(bank, asked.observations)
    np.testing.assert_array_equal(try_methods(asked, SPECS).values, try_methods(as_they_are, SPECS).values)


@pytest.mark.parametrize("recipe", [None, {"n_items": 12, "options": {"from": "a later release"}}])
def test_items_of_which_nothing_is_known_are_taken_as_they_are(bank, recipe):
    selection = dataclasses.replace(select(bank, 12, method="anchor-irt", rng=0), recipe=recipe)
    asked = Asked.of_past(bank, selection)
    as_they_are = Asked(bank, asked.observations)
    np.testing.assert_array_equal(try_methods(asked, SPECS).values, try_methods(as_they_are, SPECS).values)


def test_a_selection_from_a_file_is_tried_as_the_one_that_was_written(bank):
    selection = select(bank, 12, method="v-optimal", rng=0)
    read = Selection.from_dict(json.loads(json.dumps(selection.to_dict())))
    np.testing.assert_array_equal(
        try_methods(Asked.of_past(bank, read), SPECS).values,
        try_methods(Asked.of_past(dataclasses.replace(bank), selection), SPECS).values,
    )


def test_folds_leave_out_as_many_items_of_each_scenario_as_were_not_answered(bank):
    selection = select(bank, 18, method="v-optimal", rng=0)
    whole = Asked.of_past(bank, selection)
    scenario, items = bank.targets.scenario_index, whole.observations.positions
    keep = np.concatenate([np.flatnonzero(scenario[items] == j)[: 1 + j] for j in range(3)])
    partial = whole.take(models=np.arange(bank.n_models), columns=np.sort(keep))
    answered, selected = (np.bincount(scenario[each], minlength=3) for each in (partial.observations.positions, items))
    for fold in folds(bank):
        own = items_of_fold(whole, fold)
        thinned = items_of_fold(partial, fold)
        assert set(thinned.positions) < set(own.positions)
        counts = np.bincount(scenario[own.positions], minlength=3)
        expected = np.rint(answered / selected * counts)
        np.testing.assert_array_equal(np.bincount(scenario[thinned.positions], minlength=3), expected)
        weight = dict(zip(own.positions.tolist(), own.weights.tolist(), strict=True))
        np.testing.assert_array_equal(thinned.weights, [weight[position] for position in thinned.positions.tolist()])
    values = [try_methods(each, SPECS).values for each in (partial, whole)]
    assert not np.array_equal(*values)


def test_at_least_one_item_is_left(bank):
    selection = select(bank, 18, method="anchor-irt", rng=0)
    nothing = Asked.of_past(bank, selection).take(models=np.arange(bank.n_models), columns=np.arange(0))
    assert items_of_fold(nothing, folds(bank)[0]).positions.size == 1


def test_where_folds_have_too_few_items_to_choose_from_the_items_are_taken_as_they_are(bank):
    """All items that tell the calibration models apart: without some of these fewer do."""
    calibration = dataclasses.replace(bank.calibration, is_degenerate=bank.responses.responses.std(axis=0) == 0.0)
    bank = dataclasses.replace(bank, calibration=calibration)
    n_items = int(np.sum(~calibration.is_degenerate))
    selection = select(bank, n_items, method="anchor-irt", rng=0)
    sizes = [int(np.sum(~fold.bank.calibration.is_degenerate)) for fold in folds(bank)]
    assert min(sizes) < n_items
    found = estimate(bank, new_models(bank), selection=selection)
    assert found.interval_kind == "calibrated"


def test_a_selection_of_another_bank_whose_excluded_items_are_unknown_is_taken_as_it_is(bank):
    selection = select(bank, 12, method="anchor-irt", rng=0)
    foreign = dataclasses.replace(selection, recipe={**selection.recipe, "excluded": ["else/1"]})
    asked = Asked.of_past(bank, foreign)
    as_they_are = Asked(bank, asked.observations)
    np.testing.assert_array_equal(try_methods(asked, SPECS).values, try_methods(as_they_are, SPECS).values)


def test_what_a_left_out_model_did_elsewhere_does_not_change_its_own_trial(bank):
    """Selection, fits and weights of a fold have not seen it; the order of its own responses is all that changes.

    The order of content, by which chance decides, is kept.
    """
    selection = select(bank, 12, method="v-optimal", rng=0)
    model = 3
    fold = next(fold for fold in folds(bank) if model in fold.held_out)
    own = Asked.of_past(fold.bank, select(fold.bank, 12, method="v-optimal", rng=SEED)).observations.positions
    hidden = np.setdiff1d(np.arange(36), own)
    responses = bank.responses.responses.copy()
    responses[model, hidden] = np.roll(responses[model, hidden], 7)
    changed = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=responses))
    changed.cache.remember(CONTENT_ORDER, lambda: bank.content_order)
    before = try_methods(Asked.of_past(bank, selection), SPECS)
    after = try_methods(Asked.of_past(changed, selection), SPECS)
    np.testing.assert_allclose(after.values[:, model], before.values[:, model], atol=1e-12)
    assert not np.allclose(after.truth[model], before.truth[model])


def test_stacked_without_a_trial_weighs_all_alike():
    bank = small_bank(n_models=9)
    responses = new_models(bank).take(items=np.arange(12))
    members = (PIRT(), Weighted())
    found = estimate(bank, responses, method=Stacked(members))
    each = [estimate(bank, responses, method=member).value for member in members]
    np.testing.assert_allclose(found.value, np.mean(each, axis=0))
    assert found.interval_kind == "model-based"
