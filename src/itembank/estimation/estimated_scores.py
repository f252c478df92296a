"""Estimates with intervals for models that answered the same items."""

import numpy as np

from itembank.bank.selections import Selection
from itembank.estimation.calibrated_scores import calibrated, model_based
from itembank.estimation.covariates import with_forecast
from itembank.estimation.estimator_specs import PointSpec, Stacked
from itembank.estimation.expectations import Expectations
from itembank.estimation.folds import folds
from itembank.estimation.headlines import learnt_by
from itembank.estimation.members_out_of_fold import Past
from itembank.estimation.method_trials import try_methods
from itembank.estimation.point import Known, learnt_score, point_scores, stacked_scores
from itembank.estimation.published_errors import published_past, published_subset
from itembank.estimation.scores import Scores
from itembank.estimation.typicality import Typicality
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback


def estimated_scores(
    known: Known,
    selection: Selection | None,
    spec: PointSpec | Stacked,
    *,
    level: float,
    is_calibrated: bool,
    progress: ProgressCallback,
) -> tuple[Scores, Typicality]:
    """Estimate by a method, give each estimate its interval, and say how typical each model's answers are.

    Parameters
    ----------
    known, selection
    spec : PointSpec or Stacked
    level : float
    is_calibrated : bool
        Whether the calibration models' own errors decide the width; else the item model alone does.
    progress : ProgressCallback
    """
    past = _past(known, selection, spec, needed=is_calibrated, progress=progress)
    bank, value = known.bank, _value(known, spec, None if past is None else past.weights)
    if not is_calibrated or past is None:
        estimated = model_based(bank.targets, known.summary, value, level=level)
        return estimated, Typicality.unknown(value.shape[0])
    expected = Expectations.of(known)
    value, scale = past.read(expected, value, _learnt(known, spec))
    estimated = calibrated(
        bank.targets, known.summary, value, past.estimates, scale=scale, level=level, headline=bank.headline
    )
    return estimated, past.misfit.typicality_of(expected.misfit[:, -1])


def _learnt(known: Known, spec: PointSpec | Stacked) -> FloatArray | None:
    """Estimate a headline score by the method that learns it from the answers, (n_models,), where one does."""
    headline = known.bank.headline
    learner = None if headline is None else learnt_by(headline, spec.members)
    return None if headline is None or learner is None else learnt_score(known, learner, headline.past)


def _past(
    known: Known,
    selection: Selection | None,
    spec: PointSpec | Stacked,
    *,
    needed: bool,
    progress: ProgressCallback,
) -> Past | None:
    """Say how the method did on calibration models left out, where that is needed and can be known."""
    kept = published_subset(known.bank, selection, spec)
    if kept is not None:
        return published_past(kept)
    if not (needed or isinstance(spec, Stacked)) or not folds(known.bank, progress=progress):
        return None
    members = try_methods(known.bank, known.observations, selection, spec.members, progress=progress)
    if known.forecast is not None and isinstance(spec, Stacked):
        members = with_forecast(members, known.forecast, spec)
    return members.past(spec)


def _value(known: Known, spec: PointSpec | Stacked, weights: FloatArray | None) -> FloatArray:
    """Estimates of every target, (n_models, n_targets)."""
    if not isinstance(spec, Stacked):
        return point_scores(known, spec)
    values = np.stack([point_scores(known, member) for member in spec.members])
    if weights is None:  # too few models to learn weights from
        weights = np.full((len(spec.members), values.shape[2]), 1.0 / len(spec.members))
    if known.forecast is not None and weights.shape[0] > values.shape[0]:  # it served past models
        values = np.concatenate([values, known.forecast.new[None]])
    return stacked_scores(known.bank.targets, known.summary, values, weights)
