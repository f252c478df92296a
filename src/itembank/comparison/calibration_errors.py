"""Errors of estimates on calibration models that the estimates have not seen."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.estimation.calibrated_scores import error_inflation
from itembank.estimation.estimator_specs import PointSpec, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import try_methods
from itembank.estimation.observations import Observations
from itembank.estimation.point import calibration_scores
from itembank.estimation.published_errors import published_subset
from itembank.estimation.sample_means import weighted_mean
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

MINIMUM_MODELS = 15
"""With fewer calibration models the classical standard error is more reliable than one learnt from their errors."""
MAXIMUM_MODELS = 500
"""At most this many calibration models are taken, spread evenly over the list. More of them give many more pairs but
hardly a better fit."""


@dataclass(frozen=True, slots=True)
class CalibrationErrors:
    """Estimates less truth of calibration models that neither the items nor the fits have seen."""

    # (n_models, n_columns): To the items that the new models answered; NaN where missing. None of a bank published
    # without them.
    responses: FloatArray | None
    errors: FloatArray  # (n_models, n_targets): NaN where the estimate or the truth is unknown
    # (n_models, n_targets): Expected size of each error, as `estimate` gives it: what is expected of the model's
    # answers, times what past errors were to it. The same for all models where raw means are compared.
    standard_errors: FloatArray


def calibration_errors(
    bank: Bank,
    observations: Observations,
    columns: BoolArray,
    selection: Selection | None,
    spec: PointSpec | Stacked | None,
) -> CalibrationErrors | None:
    """Find the errors of up to 500 calibration models, had they answered the items in `columns`, (n_columns,).

    Items that were chosen by looking at the calibration models suit these better than new ones. So where the selection
    says how it was made, every fold chooses its own items, as for the intervals of single models (`try_methods`). A
    bank that was published with the items to run keeps such errors.

    Parameters
    ----------
    bank : Bank
    observations : Observations
        Of the models to compare.
    columns : (n_columns,)
        Which of their items the calibration models are to answer.
    selection : Selection or None
    spec : PointSpec, Stacked or None
        Estimator, fitted without the model; None for the raw weighted mean.

    Returns
    -------
    CalibrationErrors or None
        None with fewer than 15 calibration models whose scores are known, or an estimator that cannot be fitted
        without some of them.
    """
    kept = None if spec is None else published_subset(bank, selection, spec)
    if kept is not None:
        size = error_inflation(kept.errors, kept.scales)
        return CalibrationErrors(None, kept.errors, kept.scales * size)
    known = bank.distinct_models
    if known.size < MINIMUM_MODELS:
        return None
    # evenly, not the first: models often stand in order of date or score
    places = np.linspace(0, known.size - 1, min(known.size, MAXIMUM_MODELS)).round().astype(np.int64)
    rows = known[np.unique(places)]
    items = observations.take(models=np.arange(0), columns=np.flatnonzero(columns))
    if spec is None:
        errors = _raw_errors(bank, items, selection, rows)
        size = error_inflation(errors, np.ones(errors.shape))
        scales = np.tile(size, (rows.size, 1))
    elif not folds(bank):
        return None
    else:
        past = try_methods(bank, items, selection, spec.members).past(spec).estimates
        errors, scale = past.error[rows], past.scale[rows]
        scales = scale * error_inflation(errors, scale)
    return CalibrationErrors(bank.responses.of_items(items.positions, models=rows), errors, scales)


def _raw_errors(bank: Bank, items: Observations, selection: Selection | None, rows: IntArray) -> FloatArray:
    """Errors of weighted means of the calibration models at these rows, (n_rows, n_targets)."""
    if selection is not None and not selection.is_random and folds(bank):
        return try_methods(bank, items, selection, Weighted().members).by(Weighted()).error[rows]
    answers = bank.responses.of_items(items.positions, models=rows)
    return raw_scores(bank, answers, items.positions, items.weights) - calibration_scores(bank)[rows]


def raw_scores(bank: Bank, responses: FloatArray, positions: IntArray, weights: FloatArray) -> FloatArray:
    """Weighted means and the overall score made of them, (n_models, n_targets); NaN where a scenario has no item."""
    targets = bank.targets
    means = weighted_mean(responses, weights, targets.scenario_index[positions], targets.n_scenarios)
    return targets.with_overall(means)
