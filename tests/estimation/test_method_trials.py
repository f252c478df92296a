import dataclasses
import json
import re

import numpy as np
import polars as pl
import pytest

from itembank.bank.banks import CONTENT_ORDER
from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.estimation import method_trials
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import DEFAULT_MEMBERS, GPIRT, METHODS, PIRT, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import (
    SEED,
    answered_in_stages,
    choose_method,
    items_of_fold,
    try_methods,
    try_stages,
)
from itembank.estimation.point_methods import Known, point_scores
from itembank.estimation.response_summary import summarise_responses
from itembank.estimation.trials import Expectations, Trial
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.auto import first_of_stages
from itembank.planning.select import next_stage
from itembank.planning.select import select as planned
from itembank.responses.responses import ResponseMatrix
from itembank.selection.recipes import Recipe
from itembank.selection.select import select, select_by_recipe
from itembank.selection.selector_specs import Stratified, VOptimal
from tests.estimation.simulated import full_scores, having, new_models, shared_bank, small_bank

pytestmark = pytest.mark.usefixtures("few_folds")

SPECS = (PIRT(), Weighted())
CHOSEN = ["anchor-irt", "anchor-correctness", "v-optimal"]


@pytest.fixture(scope="module")
def bank():
    return shared_bank(n_models=14, n_items=36)


@pytest.mark.parametrize("method", CHOSEN)
def test_each_fold_chooses_its_own_items(bank, method):
    selection = select(bank, 12, method=method, rng=SEED)
    found, others = try_methods(Asked.of_past(bank, selection), SPECS), 0
    for fold in folds(bank):
        own = select(fold.bank, 12, method=method, rng=SEED)
        others += own.item_ids != selection.item_ids
        held_out = Asked.of_past(fold.bank, own).observations.answered_by_calibration_models(bank, fold.held_out)
        known = Known(Asked(fold.bank, held_out), summarise_responses(fold.bank, held_out))
        for number, spec in enumerate(SPECS):
            np.testing.assert_allclose(found.values[number, fold.held_out], point_scores(known, spec), atol=1e-12)
    assert others > 0  # or the test would say nothing


@pytest.mark.parametrize(
    ("method", "known"),
    [
        pytest.param("random", lambda recipe: recipe, id="chosen by chance"),
        pytest.param("stratified", lambda recipe: recipe, id="chosen by chance in scenarios"),
        pytest.param("anchor-irt", lambda _: None, id="nothing is known"),
        pytest.param("anchor-irt", lambda _: {"n_items": 12, "options": {"from": "a later release"}}, id="newer"),
        pytest.param("anchor-irt", lambda recipe: {**recipe, "excluded": ["else/1"]}, id="without unknown items"),
    ],
)
def test_items_that_no_fold_can_choose_are_taken_as_they_are(bank, method, known):
    selection = select(bank, 12, method=method, rng=0)
    asked = Asked.of_past(bank, dataclasses.replace(selection, recipe=known(selection.recipe)))
    as_they_are = Asked(bank, asked.observations)
    np.testing.assert_array_equal(try_methods(asked, SPECS).values, try_methods(as_they_are, SPECS).values)


def test_a_selection_from_a_file_is_tried_as_the_one_that_was_written_and_one_item_is_left(bank):
    selection = select(bank, 12, method="v-optimal", rng=0)
    read = Selection.from_dict(json.loads(json.dumps(selection.to_dict())))
    np.testing.assert_array_equal(
        try_methods(Asked.of_past(bank, read), SPECS).values,
        try_methods(Asked.of_past(dataclasses.replace(bank), selection), SPECS).values,
    )
    selection = select(bank, 18, method="anchor-irt", rng=0)
    nothing = Asked.of_past(bank, selection).take(models=np.arange(bank.n_models), columns=np.arange(0))
    assert items_of_fold(nothing, folds(bank)[0]).positions.size == 1


def test_folds_leave_out_as_many_items_of_each_scenario_as_were_not_answered(bank):
    whole = Asked.of_past(bank, select(bank, 18, method="v-optimal", rng=0))
    scenario, items = bank.targets.scenario_index, whole.observations.positions
    keep = np.concatenate([np.flatnonzero(scenario[items] == j)[: 1 + j] for j in range(3)])
    partial = whole.take(models=np.arange(bank.n_models), columns=np.sort(keep))
    answered, selected = (np.bincount(scenario[each], minlength=3) for each in (partial.observations.positions, items))
    for fold in folds(bank):
        own, thinned = items_of_fold(whole, fold), items_of_fold(partial, fold)
        assert set(thinned.positions) < set(own.positions)
        expected = np.rint(answered / selected * np.bincount(scenario[own.positions], minlength=3))
        np.testing.assert_array_equal(np.bincount(scenario[thinned.positions], minlength=3), expected)
        weight = dict(zip(own.positions.tolist(), own.weights.tolist(), strict=True))
        np.testing.assert_array_equal(thinned.weights, [weight[position] for position in thinned.positions.tolist()])
    values = [try_methods(each, SPECS).values for each in (partial, whole)]
    assert not np.array_equal(*values)


def test_where_folds_have_too_few_items_to_choose_from_the_items_are_taken_as_they_are(bank):
    calibration = dataclasses.replace(bank.calibration, is_degenerate=bank.responses.responses.std(axis=0) == 0.0)
    bank, n_items = dataclasses.replace(bank, calibration=calibration), int(np.sum(~calibration.is_degenerate))
    selection = select(bank, n_items, method="anchor-irt", rng=0)
    sizes = [int(np.sum(~fold.bank.calibration.is_degenerate)) for fold in folds(bank)]
    assert min(sizes) < n_items
    assert estimate(bank, new_models(bank), selection=selection).interval_kind == "calibrated"


def rolled(bank, model, asked):
    """The bank where what a model did on other items than these is in another order; that of content is kept."""
    hidden = np.setdiff1d(np.arange(bank.n_items), asked)
    changed = having(bank, (model, hidden), np.roll(bank.responses.responses[model, hidden], 7))
    changed.cache.remember(CONTENT_ORDER, lambda: bank.content_order)  # by which chance decides
    return changed


def check_unseen(before, after, model):
    """Its own trial is the same, though its score is another."""
    np.testing.assert_allclose(after.values[:, model], before.values[:, model], atol=1e-12)
    assert not np.allclose(after.truth[model], before.truth[model])


def test_what_a_left_out_model_did_elsewhere_does_not_change_its_own_trial(bank):
    """Selection, fits and weights of a fold have not seen it; the order of its own responses is all that changes."""
    selection = select(bank, 12, method="v-optimal", rng=0)
    fold = next(fold for fold in folds(bank) if 3 in fold.held_out)
    own = Asked.of_past(fold.bank, select(fold.bank, 12, method="v-optimal", rng=SEED)).observations.positions
    check_unseen(*(try_methods(Asked.of_past(one, selection), SPECS) for one in (bank, rolled(bank, 3, own))), 3)


def planted(errors):
    """A trial in which methods made these errors (n_members, n_models), in two folds."""
    n_models = errors.shape[1]
    truth = np.full((n_models, 4), 0.5)
    values, small = truth + np.repeat(errors[:, :, None], 4, axis=2), np.full(truth.shape, 1e-4)
    expected = Expectations(truth, small, truth, small, truth, np.ones(truth.shape))
    return Trial(truth, values, expected, np.arange(n_models) % 2, np.full(3, 1 / 3))


def with_one_better(member, rng, n_models=60):
    """Errors of methods that are all somewhat off, but one: exact for most, far off for one in 60.

    Squared errors, which make the weights, fall for the others.
    """
    errors = 0.03 * np.sign(rng.standard_normal(n_models)) * np.ones((len(DEFAULT_MEMBERS), 1))
    errors += 0.002 * rng.standard_normal(errors.shape)
    errors[member] = np.where(np.arange(n_models) == 0, 0.4, 0.0)
    return errors


def test_the_explanation_says_the_errors_it_was_chosen_by(bank):
    selection = select(bank, 12, method="anchor-irt", rng=0)
    asked = Asked.of(bank, new_models(bank), selection)
    chosen, found = choose_method(asked), try_methods(asked, DEFAULT_MEMBERS)
    errors = {METHODS.label(spec): found.single(number).error for number, spec in enumerate(DEFAULT_MEMBERS)}
    errors["stacked"] = found.by(Stacked()).error
    said = dict(re.findall(r"((?:[a-z-]+)(?: \(discrepancy [\d.]+\))?) (\d+\.\d)\b", chosen.explanation))
    assert said == {name: f"{100.0 * np.mean(np.abs(error[:, -1])):.1f}" for name, error in errors.items()}
    label = METHODS.label(chosen.spec)
    assert chosen.explanation.startswith(f"{label}. Cross-validated mean errors of the overall score")
    assert f"of {bank.n_models} past models, in points" in chosen.explanation
    # an estimate takes the choice, and hands the reason on
    estimates = [estimate(bank, new_models(bank), selection=selection, method=each) for each in ("auto", chosen.spec)]
    assert (estimates[0].method, estimates[0].explanation) == (label, chosen.explanation)
    assert estimates[1].explanation == ""
    np.testing.assert_array_equal(*(one.scores for one in estimates))


@pytest.mark.parametrize("member", [*range(len(DEFAULT_MEMBERS)), None])
def test_a_single_method_is_not_taken_for_looking_best(bank, rng, monkeypatch, member):
    errors = 0.03 * rng.standard_normal((len(DEFAULT_MEMBERS), 60)) if member is None else with_one_better(member, rng)
    monkeypatch.setattr(method_trials, "try_methods", lambda *_, **__: planted(errors))
    chosen = choose_method(Asked.of(bank, new_models(bank), None))
    assert chosen.spec == Stacked()
    assert chosen.explanation.startswith("stacked. Cross-validated mean errors of the overall score")


def test_methods_without_an_estimate_do_not_stand_in_the_way(bank, rng, monkeypatch):
    errors = with_one_better(0, rng)
    errors[2] = np.nan
    monkeypatch.setattr(method_trials, "try_methods", lambda *_, **__: planted(errors))
    chosen = choose_method(Asked.of(bank, new_models(bank), None))
    assert (chosen.spec, "nan" in chosen.explanation) == (Stacked(), False)
    assert METHODS.label(DEFAULT_MEMBERS[2]) not in chosen.explanation.replace("gp-irt", "").split()
    monkeypatch.setattr(method_trials, "try_methods", lambda *_, **__: planted(np.full(errors.shape, np.nan)))
    nothing = choose_method(Asked.of(bank, new_models(bank), None))
    assert nothing.spec == Stacked()
    assert "no past model has both a score and a cross-validated estimate" in nothing.explanation


def test_few_models_fall_back_on_gp_irt_and_stacked_weighs_all_alike():
    bank = small_bank(n_models=9)
    responses = new_models(bank).take(items=np.arange(12))
    found = estimate(bank, responses)
    assert (found.method, found.interval_kind) == ("gp-irt", "model-based")
    assert found.explanation.startswith("gp-irt, since 9 past models are too few")
    expected = estimate(bank, responses, method=GPIRT(), interval="model-based")
    np.testing.assert_array_equal(found.scores, expected.scores)
    members = (PIRT(), Weighted())
    found = estimate(bank, responses, method=Stacked(members))
    each = [estimate(bank, responses, method=member).value for member in members]
    np.testing.assert_allclose(found.value, np.mean(each, axis=0))
    assert found.interval_kind == "model-based"


def test_models_that_cannot_be_left_out_are_not_called_too_few():
    bank = small_bank()
    values = np.ones(bank.responses.responses.shape)
    values[0, ::2] = 0.0
    found = estimate(having(bank, ..., values), new_models(bank).take(items=np.arange(12)))
    assert (found.method, found.interval_kind) == ("gp-irt", "model-based")
    assert "12 past models are too unlike in what they answered" in found.explanation


@pytest.mark.parametrize("method", ["gp-irt", "p-irt", "ridge", "stacked"])
def test_the_error_of_a_method_that_is_named_is_told_too(bank, method):
    selection, new = select(bank, 12, method="anchor-irt", rng=0), new_models(bank)
    found = estimate(bank, new, selection=selection, method=method)
    asked, spec = Asked.of(bank, new, selection), METHODS.resolve(method)
    expected = np.abs(try_methods(asked, spec.members).by(spec).error[:, -1])
    assert found.cross_validated_error == pytest.approx(expected.mean())
    plain = estimate(bank, new, selection=selection, method=method, interval="model-based")
    assert np.isnan(plain.cross_validated_error)


SIZES = (6, 5, 4)
RECIPE = Recipe(VOptimal(), 6, False, (), (), SIZES)


@pytest.mark.parametrize("spec", [VOptimal(target="overall"), Stratified()])
def test_a_trial_is_what_the_verbs_give_with_the_bank_of_a_fold(bank, spec):
    recipe = dataclasses.replace(RECIPE, spec=spec)
    found, fold = try_stages(dataclasses.replace(bank), recipe, SPECS), folds(bank)[1]
    routing, modules = first_of_stages(select_by_recipe(fold.bank, recipe, SEED), SIZES), set()
    for row in fold.held_out.tolist():
        model = bank.responses.take(models=np.array([row]))
        second = next_stage(fold.bank, routing, model)
        third = next_stage(fold.bank, second, model)
        assert (second.n_items, third.n_items, third.whole.n_items) == (5, 4, 15)
        modules.add((second.item_ids, third.item_ids))
        for number, method in enumerate(SPECS):
            expected = estimate(fold.bank, model, selection=third, method=method, interval="model-based")
            np.testing.assert_allclose(found.values[number, row], expected.value[0], atol=1e-12)
    assert len(modules) > 1  # or items would not depend on answers


def test_what_a_left_out_model_did_on_items_it_is_not_asked_changes_nothing(bank):
    fold = next(fold for fold in folds(bank) if 3 in fold.held_out)
    asked = list(answered_in_stages(bank, fold, RECIPE))[fold.held_out.tolist().index(3)].positions
    check_unseen(*(try_stages(one, RECIPE, SPECS) for one in (bank, rolled(bank, 3, asked))), 3)


def test_as_many_items_are_left_out_as_new_models_left_unanswered_and_nothing_is_taken_of_other_stages(bank):
    n_full = [one.positions.size for fold in folds(bank) for one in answered_in_stages(bank, fold, RECIPE)]
    assert set(n_full) == {sum(SIZES)}
    whole, thinned = (try_stages(bank, RECIPE, SPECS, **how) for how in ({}, {"answered": np.array([0.4, 0.4, 0.4])}))
    assert np.mean(np.abs(thinned.single(0).error[:, -1])) > np.mean(np.abs(whole.single(0).error[:, -1]))
    unknown, two = (dataclasses.replace(RECIPE, **one) for one in ({"excluded": ("elsewhere",)}, {"stages": (6, 9)}))
    assert np.isnan(try_stages(bank, unknown, SPECS).values).all()
    assert not np.allclose(try_stages(bank, two, SPECS).values, whole.values)


N_PAST, N_NEW, N_ITEMS, N_CHOSEN, SEEDS = 80, 60, 240, 36, range(5)


@one_blas_thread()
def tried(seed):
    """Errors and coverage of new models by one batch and in two stages.

    One ability rules, items are sharp and abilities far apart: an item that tells much of one model tells nothing of
    most others.
    """
    rng = np.random.default_rng([seed, 9])
    theta, difficulty = 1.5 * rng.normal(size=N_PAST + N_NEW), 1.8 * rng.normal(size=N_ITEMS)
    p = 1.0 / (1.0 + np.exp(-rng.lognormal(0.8, 0.2, N_ITEMS) * (theta[:, None] - difficulty)))
    responses = (rng.random(p.shape) < p).astype(float)
    items = pl.DataFrame({"item_id": [f"i{i}" for i in range(N_ITEMS)], "scenario": ["all"] * N_ITEMS})
    past, new = (
        ResponseMatrix.create(rows, model_ids=[f"{kind} {row}" for row in range(len(rows))], items=items)
        for kind, rows in (("past", responses[:N_PAST]), ("new", responses[N_PAST:]))
    )
    bank = calibrate(past, Variational(item_model="2pl", n_dims=1), rng=0)
    batch, routing = (planned(bank, N_CHOSEN, method="v-optimal", stages=stages, rng=0) for stages in (1, 2))
    truth = full_scores(bank, new)[:, -1]
    of_batch = estimate(bank, new.take(items=new.item_indices(batch.item_ids)), selection=batch)
    found, rows = [], [new.take(models=np.array([row])) for row in range(N_NEW)]
    found = [estimate(bank, model, selection=next_stage(bank, routing, model)) for model in rows]
    value, low, high = (np.array([getattr(one, name)[0, -1] for one in found]) for name in ("value", "low", "high"))
    return np.abs([of_batch.value[:, -1] - truth, value - truth]), (low <= truth) & (truth <= high)


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
def test_two_stages_come_closer_than_one_batch_where_one_ability_rules_and_intervals_hold_as_often_as_they_say():
    errors, covered = zip(*(tried(seed) for seed in SEEDS), strict=True)
    of_batch, in_stages = np.concatenate(errors, axis=1).mean(axis=1)
    assert in_stages < 0.85 * of_batch
    assert 0.92 < np.concatenate(covered).mean() < 0.998
