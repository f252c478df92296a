"""Scores forecast from what is known of models before they answer: size, date, organisation, other scores."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError
from itembank.estimation.calibrated_scores import ALLOWANCE
from itembank.estimation.estimates import Scores
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import folds
from itembank.estimation.past_errors import MembersOutOfFold
from itembank.estimation.point_methods import Forecast
from itembank.estimation.regressions import predict_ridge
from itembank.numerics.arrays import mean_where_known
from itembank.numerics.intervals import calibrated_half_widths
from itembank.progress import ProgressCallback, silent
from itembank.responses.model_features import ModelFeatures
from itembank.responses.responses import ResponseMatrix

LEAST = 1.0 - 1e-3
"""A smaller relative gain is none: rounding must not decide whether covariates count."""


def forecast_scores(
    bank: Bank,
    models: pl.DataFrame,  # The new models' table
    columns: Sequence[str],
    *,
    progress: ProgressCallback = silent,
) -> Forecast:
    """Forecast the scores of new models, and of each past model as if it were new, by ridge regression.

    Categories are pooled partially: the ridge penalty, which has the least squared error on models left out one at a
    time, draws what is particular to a category of few models to nothing. Columns that say nothing of scores so leave
    little but the mean.
    """
    bank.check_responses("Covariates need")
    past_models = bank.responses.models
    features = ModelFeatures.fit(past_models, columns)
    new = features.of(models, "the new models' table")
    past = np.full(bank.known_scores.value.shape, np.nan)
    parts = folds(bank, progress=progress)
    if not parts:
        raise DataError(
            "covariates need more past models for cross-validation, the bank has "
            f"{bank.distinct_models.size} whose full scores are known and that are no copies. Leave the covariates "
            "out, or add models to the bank."
        )
    for fold in parts:
        known = fold.bank.responses.models
        seen = ModelFeatures.fit(known, columns)
        scores = fold.bank.known_scores.value
        past[fold.held_out] = predict_ridge(seen.of(known), scores, seen.of(past_models[fold.held_out.tolist()]))
    return Forecast(tuple(columns), past, predict_ridge(features.of(past_models), bank.known_scores.value, new))


def with_forecast(members: MembersOutOfFold, forecast: Forecast, spec: Stacked) -> MembersOutOfFold:
    """Add the forecast to the members of 'stacked' where cross-validated errors are smaller with it.

    By however little: who names covariates expects them to tell something, and the weight of those that tell little is
    small.
    """
    more = beside(members, forecast)
    return more if _mean_error(more, spec) < LEAST * _mean_error(members, spec) else members


def beside(members: MembersOutOfFold, forecast: Forecast) -> MembersOutOfFold:
    """Add the forecast to the members of 'stacked'; what it is worth for better models than past ones is not known."""
    far = members.beyond
    if far is not None:
        nothing = np.full((1, *far.truth.shape), np.nan)
        far = replace(far, values=np.concatenate([far.values, nothing]))
    return replace(members, values=np.concatenate([members.values, forecast.past[None]]), beyond=far)


def explain_forecast(members: MembersOutOfFold, forecast: Forecast, spec: Stacked) -> str:
    """Say whether covariates count, and their cross-validated errors."""
    without, with_it = (100.0 * _mean_error(each, spec) for each in (members, beside(members, forecast)))
    names = " and ".join(forecast.columns)
    if with_it < LEAST * without:
        return f" Knowing {names} lowers errors from {without:.2f} to {with_it:.2f} points."
    return f" Knowing {names} does not count: errors would be {with_it:.2f} instead of {without:.2f} points."


def _mean_error(members: MembersOutOfFold, spec: Stacked) -> float:
    """Mean absolute error of the overall score by 'stacked', out of fold."""
    errors = np.abs(members.by(spec).error[:, -1])
    return float(errors[~np.isnan(errors)].mean()) if not np.isnan(errors).all() else np.inf


def forecast_alone(bank: Bank, forecast: Forecast, *, level: float) -> Scores:
    """Scores of new models that have not answered anything, (n_new, n_targets).

    Intervals are as wide as the forecasts' errors of past models ask for, the same for all models.
    """
    errors = forecast.past - bank.known_scores.value
    half = ALLOWANCE * calibrated_half_widths(errors, np.ones(errors.shape), np.ones(forecast.new.shape), level=level)
    size = np.broadcast_to(np.sqrt(mean_where_known(errors**2)), half.shape)
    value = forecast.new
    return Scores(value, size.copy(), np.clip(value - half, 0.0, 1.0), np.clip(value + half, 0.0, 1.0))


def unanswered(bank: Bank, models: pl.DataFrame) -> ResponseMatrix:
    """Return the responses of new models that have not answered anything yet, for `estimate` with covariates.

    Parameters
    ----------
    bank : Bank
    models : DataFrame
        With `model_id` and what is known of each model.
    """
    nothing = np.full((models.height, 1), np.nan)
    return ResponseMatrix.create(nothing, models=models, items=bank.responses.items[:1])
