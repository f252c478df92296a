import dataclasses
import functools

import numpy as np
import polars as pl
import pytest

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ModelWarning
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import PIRT, Stacked
from itembank.estimation.method_trials import choose_method, try_methods
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.estimation.simulated import full_scores, having, held, select_cells

N_COMPLETE, N_MORE, N_NEW, N_SCENARIOS, N_ITEMS = 24, 60, 40, 3, 120
SPEC = Variational(tolerance=1e-3)


@functools.cache
def simulated():
    """Responses with a common ability and one of each scenario: past models, complete, then new ones."""
    rng, scenario = np.random.default_rng(7), np.arange(N_ITEMS) % N_SCENARIOS
    n_models = N_COMPLETE + N_MORE + N_NEW
    ability = rng.normal(size=(n_models, 1)) + 0.5 * rng.normal(size=(n_models, N_SCENARIOS))[:, scenario]
    p = 1.0 / (1.0 + np.exp(-1.5 * (ability - rng.normal(size=N_ITEMS))))
    items = pl.DataFrame({"item_id": [f"{i:03d}" for i in range(N_ITEMS)], "scenario": [f"s{j}" for j in scenario]})
    models = pl.DataFrame({"model_id": [f"m{row:03d}" for row in range(n_models)]})
    return ResponseMatrix.create((rng.random(p.shape) < p).astype(float), models=models, items=items)


@functools.cache
def bank_of(n_answers):
    """Bank of the complete models, and of others that answered so many items; 0 without these."""
    whole = simulated().take(models=np.arange(N_COMPLETE + (N_MORE if n_answers else 0)))
    values, rng = whole.responses.copy(), np.random.default_rng(8)
    for row in range(N_COMPLETE, whole.n_models):
        values[row, rng.permutation(N_ITEMS)[n_answers:]] = np.nan
    return calibrate(dataclasses.replace(whole, responses=values), SPEC, rng=0)


def of_later():
    return simulated().take(models=np.arange(N_COMPLETE + N_MORE, N_COMPLETE + N_MORE + N_NEW))


def found_by(bank, selects=None, **choices):
    """Estimate from the items that the bank selects, or another one."""
    selection = dataclasses.replace(select(selects or bank, 36, method="stratified", rng=0), bank="")
    return estimate(bank, select_cells(of_later(), selection), selection=selection, **choices), selection


@pytest.mark.filterwarnings("ignore:.* models answered unlike")  # twelve of forty, by chance
@pytest.mark.usefixtures("few_folds")
@pytest.mark.parametrize("n_answers", [12, 30])
def test_adding_incomplete_models_makes_nothing_worse(n_answers):
    banks = bank_of(0), bank_of(n_answers)
    of_complete, selection = found_by(banks[0])
    of_all, _ = found_by(banks[1], banks[0])
    truth = full_scores(banks[0], of_later())
    widths = [(each.high - each.low).mean(axis=0) for each in (of_complete, of_all)]
    assert np.all(widths[1] < 1.25 * widths[0])
    errors = [np.abs(each.value - truth).mean(axis=0) for each in (of_complete, of_all)]
    assert np.all(errors[1] < 1.15 * errors[0])
    trials = [try_methods(Asked.of_past(bank, selection), Stacked().members).by(Stacked()) for bank in banks]
    said = [np.nanmean(np.abs(one.error[:, -1])) for one in trials]
    assert (said[1], said[1]) == (pytest.approx(said[0], rel=0.25), pytest.approx(errors[1][-1], rel=0.5))
    assert held(of_all, truth).mean() > 0.9
    # the item model's bias is that of models with a known score
    np.testing.assert_allclose(banks[1].item_model_bias, banks[0].item_model_bias, rtol=0.5)


def test_few_known_scores_take_estimates_from_how_items_were_drawn():
    whole, rest = simulated().take(models=np.arange(20)), (slice(6, None), slice(40, None))
    bank = calibrate(having(whole, rest), SPEC, rng=0)
    found, selection = found_by(bank)
    assert found.interval_kind == "design"
    by_design = estimate(bank, select_cells(of_later(), selection), selection=selection, interval="design")
    np.testing.assert_array_equal(found.low, by_design.low)
    truth, covered = full_scores(bank, of_later()), []
    for seed in range(8):  # all models of one selection share its draw
        drawn = select(bank, 36, method="stratified", rng=seed)
        covered.append(held(estimate(bank, select_cells(of_later(), drawn), selection=drawn), truth))
    assert np.all(np.mean(covered, axis=(0, 1)) > 0.9)


@pytest.mark.filterwarnings("ignore:items of .* are not skill")
def test_where_items_were_not_drawn_or_a_method_is_named_or_one_answer_is_left_there_is_the_item_model():
    bank = calibrate(simulated().take(models=np.arange(5)), SPEC, rng=0)
    telling, drawn = (select(bank, 30, method=method, rng=0) for method in ("v-optimal", "stratified"))
    kinds = [
        estimate(bank, select_cells(of_later(), selection), selection=selection, method=method).interval_kind
        for selection, method in ((telling, "auto"), (drawn, PIRT()), (drawn, "auto"))
    ]
    assert kinds == ["model-based", "model-based", "design"]
    nothing = choose_method(Asked.of_past(bank, telling)).explanation
    assert nothing.startswith("gp-irt, since 5 past models are too few to compare methods")
    selection = select(bank, 4, method="stratified", rng=0)
    cells = select_cells(of_later(), selection)
    assert estimate(bank, cells, selection=selection).interval_kind == "design"
    one = cells.take(items=np.arange(1))
    with pytest.warns(ModelWarning, match=r"by 40 of 40 models: 'm084' \(3\), .* and 35 more\. They"):
        assert estimate(bank, one, selection=selection).interval_kind == "model-based"


@pytest.mark.usefixtures("few_folds")
def test_scores_known_by_scenario_calibrate_that_scenario():
    """Half of the models ran two scenarios, the others the third: every scenario has errors, the overall score none."""
    values, scenario = simulated().responses[:40].copy(), np.arange(N_ITEMS) % N_SCENARIOS
    values[:20, scenario == 2] = values[20:30, scenario != 2] = np.nan
    bank = calibrate(having(simulated().take(models=np.arange(40)), ..., values), SPEC, rng=0)
    assert bank.known_scores.is_known.sum(axis=0).tolist() == [30, 30, 20, 10]
    found, selection = found_by(bank, method="stacked")
    assert found.interval_kind == "calibrated"
    trials = try_methods(Asked.of_past(bank, selection), Stacked().members)
    assert np.sum(~np.isnan(trials.by(Stacked()).error), axis=0).tolist() == [30, 30, 20, 10]
    assert np.all(np.isfinite(found.low))
