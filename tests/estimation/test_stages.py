import dataclasses
import functools

import numpy as np
import polars as pl
import pytest

from itembank.bank.banks import CONTENT_ORDER
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import PIRT, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import SEED, answered_in_stages, try_stages
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.auto import first_of_stages
from itembank.planning.select import next_stage, select
from itembank.responses.responses import ResponseMatrix
from itembank.selection.recipes import Recipe
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import Stratified, VOptimal
from tests.estimation.simulated import full_scores, shared_bank

pytestmark = pytest.mark.usefixtures("few_folds")

SIZES = (6, 5, 4)
RECIPE = Recipe(VOptimal(), 6, False, (), (), SIZES)
SPECS = (PIRT(), Weighted())


@pytest.fixture(scope="module")
def bank():
    return shared_bank(n_models=14, n_items=36)


@pytest.mark.parametrize("spec", [VOptimal(target="overall"), Stratified()])
def test_a_trial_is_what_the_verbs_give_with_the_bank_of_a_fold(bank, spec):
    recipe = dataclasses.replace(RECIPE, spec=spec)
    found = try_stages(dataclasses.replace(bank), recipe, SPECS)
    fold = folds(bank)[1]
    routing = first_of_stages(select_by_recipe(fold.bank, recipe, SEED), SIZES)
    modules = set()
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
    model = 3
    fold = next(fold for fold in folds(bank) if model in fold.held_out)
    asked = list(answered_in_stages(bank, fold, RECIPE))[fold.held_out.tolist().index(model)].positions
    responses = bank.responses.responses.copy()
    hidden = np.setdiff1d(np.arange(36), asked)
    responses[model, hidden] = np.roll(responses[model, hidden], 7)
    changed = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=responses))
    changed.cache.remember(CONTENT_ORDER, lambda: bank.content_order)  # by which chance decides
    before, after = (try_stages(one, RECIPE, SPECS) for one in (bank, changed))
    np.testing.assert_allclose(after.values[:, model], before.values[:, model], atol=1e-12)
    assert not np.allclose(after.truth[model], before.truth[model])


def test_as_many_items_are_left_out_as_new_models_left_unanswered(bank):
    n_full = [one.positions.size for fold in folds(bank) for one in answered_in_stages(bank, fold, RECIPE)]
    assert set(n_full) == {sum(SIZES)}
    whole = try_stages(bank, RECIPE, SPECS)
    thinned = try_stages(bank, RECIPE, SPECS, answered=np.array([0.4, 0.4, 0.4]))
    assert np.mean(np.abs(thinned.single(0).error[:, -1])) > np.mean(np.abs(whole.single(0).error[:, -1]))


def test_what_folds_cannot_follow_or_was_found_for_other_stages_is_not_taken(bank):
    found = try_stages(bank, dataclasses.replace(RECIPE, excluded=("of another bank",)), SPECS)
    assert np.isnan(found.values).all()
    two = dataclasses.replace(RECIPE, stages=(6, 9))
    assert not np.allclose(try_stages(bank, two, SPECS).values, try_stages(bank, RECIPE, SPECS).values)


N_PAST, N_NEW, N_ITEMS, N_CHOSEN, SEEDS = 80, 60, 240, 36, range(5)


@functools.cache
@one_blas_thread()
def tried(seed):
    """Errors and coverage of new models by one batch and in two stages.

    One ability rules, items are sharp and abilities far apart: an item that tells much of one model tells nothing of
    most others.
    """
    rng = np.random.default_rng([seed, 9])
    theta, difficulty = 1.5 * rng.normal(size=N_PAST + N_NEW), 1.8 * rng.normal(size=N_ITEMS)
    slope = rng.lognormal(0.8, 0.2, N_ITEMS)
    p = 1.0 / (1.0 + np.exp(-slope * (theta[:, None] - difficulty)))
    responses = (rng.random(p.shape) < p).astype(float)
    items = pl.DataFrame({"item_id": [f"i{i}" for i in range(N_ITEMS)], "scenario": ["all"] * N_ITEMS})
    past, new = (
        ResponseMatrix.create(rows, model_ids=[f"{kind} {row}" for row in range(len(rows))], items=items)
        for kind, rows in (("past", responses[:N_PAST]), ("new", responses[N_PAST:]))
    )
    bank = calibrate(past, Variational(item_model="2pl", n_dims=1), rng=0)
    batch, routing = (select(bank, N_CHOSEN, method="v-optimal", stages=stages, rng=0) for stages in (1, 2))
    truth = full_scores(bank, new)[:, -1]
    of_batch = estimate(bank, new.take(items=new.item_indices(batch.item_ids)), selection=batch)
    errors, held = [np.abs(of_batch.value[:, -1] - truth)], []
    in_stages = np.zeros(N_NEW)
    for row in range(N_NEW):
        model = new.take(models=np.array([row]))
        found = estimate(bank, model, selection=next_stage(bank, routing, model))
        in_stages[row] = abs(found.value[0, -1] - truth[row])
        held.append(found.low[0, -1] <= truth[row] <= found.high[0, -1])
    return np.stack([*errors, in_stages]), np.array(held)


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
def test_two_stages_come_closer_than_one_batch_where_one_ability_rules():
    errors = np.concatenate([tried(seed)[0] for seed in SEEDS], axis=1).mean(axis=1)
    assert errors[1] < 0.85 * errors[0]


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
def test_intervals_after_two_stages_hold_as_often_as_they_say():
    held = np.concatenate([tried(seed)[1] for seed in SEEDS])
    assert 0.92 < held.mean() < 0.998
