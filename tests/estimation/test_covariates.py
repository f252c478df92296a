"""What is known of models beforehand: forecasts without an answer, and beside the answers."""

import dataclasses
import functools

import numpy as np
import polars as pl
import pytest

from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, ParameterError
from itembank.estimation.covariates import explain_forecast, forecast_scores, unanswered, with_forecast
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.method_trials import try_methods
from itembank.estimation.observations import observe
from itembank.estimation.point_methods import Forecast
from itembank.responses.responses import ResponseMatrix
from tests.estimation.simulated import new_models, shared_bank

N_PAST, N_NEW, N_ITEMS = 60, 200, 120


@functools.cache
def world(luck):
    """A bank of models whose ability follows their date but for some luck, and new models' full responses."""
    rng = np.random.default_rng(8)
    days = rng.integers(0, 700, N_PAST + N_NEW)
    ability = (days - 350) / 200.0 + luck * rng.normal(size=days.size)
    slope, intercept = rng.lognormal(0.0, 0.3, N_ITEMS), rng.normal(size=N_ITEMS)
    p = 1.0 / (1.0 + np.exp(-(np.outer(ability, slope) + intercept)))
    models = pl.DataFrame(
        {
            "model_id": [f"m{k}" for k in range(days.size)],
            "date": [str(np.datetime64("2023-01-01") + int(day)) for day in days],
            "lucky_number": rng.normal(size=days.size),
        }
    )
    responses = ResponseMatrix.create((rng.random(p.shape) < p).astype(float), models=models)
    bank = build_bank(responses.take(models=np.arange(N_PAST)), Variational(n_dims=1, tolerance=1e-3))
    return bank, responses.take(models=np.arange(N_PAST, N_PAST + N_NEW))


def scores_of(new):
    return new.responses.mean(axis=1)


def test_without_an_answer_scores_are_forecast_and_intervals_hold():
    bank, new = world(0.4)
    found = estimate(bank, unanswered(bank, new.models), covariates=["date"])
    truth = scores_of(new)
    assert found.method == "covariates"
    assert np.all(found.n_items == 0)
    assert np.abs(found.value[:, -1] - truth).mean() < 0.5 * np.abs(truth - truth.mean()).mean()
    inside = (found.low[:, -1] <= truth) & (truth <= found.high[:, -1])
    assert inside.mean() > 0.89  # 60 past models: a standard error of 0.03 between banks
    # the forecast is linear in the date, as a regression on it is
    days = np.array([np.datetime64(day) for day in new.models["date"].to_list()]).astype(float)
    inner = (found.value[:, -1] > 0.01) & (found.value[:, -1] < 0.99)
    assert np.corrcoef(days[inner], found.value[inner, -1])[0, 1] == pytest.approx(1.0, abs=1e-9)


def test_a_few_answers_and_the_date_beat_either_alone():
    bank, new = world(0.4)
    few = new.take(items=np.arange(6))
    truth = scores_of(new)
    errors = {
        name: np.abs(found.value[:, -1] - truth).mean()
        for name, found in {
            "both": estimate(bank, few, covariates=["date"]),
            "answers": estimate(bank, few),
            "date": estimate(bank, unanswered(bank, new.models), covariates=["date"]),
        }.items()
    }
    assert errors["both"] < 0.95 * min(errors["answers"], errors["date"])


def test_what_says_nothing_changes_nothing():
    bank, new = world(0.4)
    few = new.take(items=np.arange(0, N_ITEMS, 2))
    plain, with_noise = estimate(bank, few), estimate(bank, few, covariates=["lucky_number"])
    assert np.abs(with_noise.value - plain.value).max() < 0.01  # a weight of next to nothing, or none
    assert np.abs(plain.value - estimate(bank, few, covariates=["date"]).value).max() < 0.03  # 60 answers say it all


def test_a_forecast_that_misleads_is_left_out():
    bank, new = world(0.4)
    few = new.take(items=np.arange(30))
    members = try_methods(bank, observe(bank, few, None), None, Stacked().members)
    truth = bank.targets.with_overall(bank.scenario_scores)
    errors = members.by(Stacked()).error
    misleading = Forecast(("x",), truth + 0.5 * np.sign(errors), truth[:1])  # off to the side of each estimate
    assert with_forecast(members, misleading, Stacked()) is members
    assert "does not count" in explain_forecast(members, misleading, Stacked())
    telling = Forecast(("x",), truth + 0.01, truth[:1])
    assert with_forecast(members, telling, Stacked()).values.shape[0] == members.values.shape[0] + 1


def test_models_without_answers_stand_beside_those_with_some():
    bank, new = world(0.4)
    few = new.take(models=np.arange(5), items=np.arange(30))
    values = few.responses.copy()
    values[2] = np.nan
    found = estimate(bank, dataclasses.replace(few, responses=values), covariates=["date"])
    alone = estimate(bank, unanswered(bank, new.models[[2]]), covariates=["date"])
    np.testing.assert_allclose(found.value[2], alone.value[0])
    np.testing.assert_allclose(found.high[2], alone.high[0])
    assert found.high[2, -1] - found.low[2, -1] > found.high[1, -1] - found.low[1, -1]


def test_a_past_models_forecast_has_not_seen_it():
    bank, new = world(0.4)
    before = forecast_scores(bank, new.models, ["date"]).past
    seen = np.abs(before - bank.scenario_scores).mean()
    in_sample = forecast_scores(bank, bank.responses.models, ["date"]).new
    assert np.abs(in_sample - bank.scenario_scores).mean() < seen


def test_wrong_covariates_are_refused():
    bank, new = world(0.4)
    with pytest.raises(DataError, match="column of the bank's model table"):
        estimate(bank, new, covariates=["size"])
    with pytest.raises(DataError, match="column of the new models' table"):
        estimate(bank, dataclasses.replace(new, models=new.models.select("model_id")), covariates=["date"])
    with pytest.raises(ParameterError, match="weighed with the methods of 'stacked'"):
        estimate(bank, new, covariates=["date"], method="p-irt")
    with pytest.raises(ParameterError, match="calibrated intervals"):
        estimate(bank, new, covariates=["date"], interval="model-based")
    with pytest.raises(ParameterError, match="in a sequence"):
        estimate(bank, new, covariates="date")


def test_too_few_past_models_are_refused():
    bank = shared_bank(8, 30)
    new = new_models(bank)
    with pytest.raises(DataError, match="more past models for cross-validation"):
        estimate(bank, new, covariates=["model_id"])
