"""Predictions of held-out models by item models of several numbers of dimensions (tinyBenchmarks 4.4)."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.banks import Calibration
from itembank.calibration.calibrate import MINIMUM_MODELS, calibrate
from itembank.calibration.calibration_specs import CalibrationSpec, ItemModel, MarginalML
from itembank.calibration.families import without_repeated_warnings
from itembank.calibration.item_model_bias import score_errors
from itembank.errors import ConvergenceWarning, DataError, ParameterError, remedy
from itembank.irt.bernoulli import logit, probability
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.families import ResponseModel
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.splits import Split
from itembank.responses.responses import ResponseMatrix, check_enough_models
from itembank.responses.targets import ScoreTargets

MODELS_PER_DIMENSION = 4
"""Calibration models that a candidate needs for each of its dimensions."""
MOST_ITEMS = 6000
"""Of a longer benchmark every k-th item is used, which shows the same dimensions."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Some models to calibrate on, others to predict."""

    train: ResponseMatrix  # Of the calibration models, and the items one of them answered
    n_calibration: int  # Calibration models, those without a response included
    usable: IntArray  # (n_usable,): Which of all items those are
    responses: FloatArray  # (n_held_out, n_usable): Raw; NaN where missing
    is_even: BoolArray  # (n_usable,): Items of even place: abilities come from them, and the others are predicted
    targets: ScoreTargets  # Of all items
    n_trials: FloatArray | None  # (n_held_out, n_usable): Behind each response


@dataclass(frozen=True, slots=True)
class HiddenErrors:
    """How predictions of hidden items compare with the responses."""

    # (n_held_out, n_scenarios): Predicted minus actual mean response on the items of odd place; NaN where a model has
    # none.
    errors: FloatArray
    # (n_held_out,): Mean log-likelihood of a response to an item of odd place; NaN where a model has none.
    log_likelihoods: FloatArray
    mean_log_likelihood: float  # The same over all responses


def thinned(responses: ResponseMatrix) -> tuple[ResponseMatrix, int]:
    """Take every k-th item of a long benchmark; also return k."""
    stride = -(-responses.n_items // MOST_ITEMS)
    return (responses if stride == 1 else responses.take(items=np.arange(0, responses.n_items, stride))), stride


def feasible(candidates: tuple[int, ...], n_models: int, spec: CalibrationSpec) -> tuple[int, ...]:
    """Candidates that the method allows and the calibration models suffice for, rising.

    Raises
    ------
    ParameterError
        Without one.
    """
    most = 1 if isinstance(spec, MarginalML) else n_models
    tried = tuple(n for n in sorted(set(candidates)) if n == 1 or (n <= most and n * MODELS_PER_DIMENSION <= n_models))
    if not tried or tried[0] < 1:
        raise ParameterError(
            f"a candidate number of dimensions must be at least 1 and leave {MODELS_PER_DIMENSION} of the {n_models} "
            f"calibration models to each, got {candidates}."
        )
    return tried


def leave_out(responses: ResponseMatrix, split: Split) -> HeldOut:
    """Take the models to calibrate on, less those without a response, and the models to predict.

    Raises
    ------
    DataError
        With too few models, or where those to predict answered no item of odd place, as where there is one item.
    """
    rows = split.train[responses.observed[split.train].any(axis=1)]
    check_enough_models(rows.shape[0], MINIMUM_MODELS, "calibration on four fifths of the models")
    usable = np.flatnonzero(responses.observed[rows].any(axis=0))
    held_out = responses.take(models=split.test, items=usable)
    is_even = usable % 2 == 0
    if np.isnan(held_out.responses[:, ~is_even]).all():
        raise DataError(
            "comparing numbers of dimensions needs answers to predict: models left out must have answered one of the "
            f"second, fourth, ... items, got no such answer among {responses.n_items} items. A bank of one dimension "
            f"needs no comparison: {remedy('n_dims=1', '--dims 1')}."
        )
    return HeldOut(
        train=responses.take(models=rows, items=usable),
        n_calibration=split.train.size,
        usable=usable,
        responses=held_out.responses,
        is_even=is_even,
        targets=ScoreTargets.create(responses.items),
        n_trials=None if held_out.n_trials is None else held_out.n_trials.astype(np.float64),
    )


def fit_candidate(
    held_out: HeldOut, spec: CalibrationSpec, n_dims: int, *, item_model: ItemModel = "mirt"
) -> Calibration:
    """Calibrate with this number of dimensions; `item_model` applies to more than one."""
    chosen = replace(spec, item_model="2pl" if n_dims == 1 else item_model, n_dims=n_dims)
    with without_repeated_warnings(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a candidate that has not quite converged still predicts
        return calibrate(held_out.train, chosen)


def hidden_errors(held_out: HeldOut, fitted: Calibration, is_shown: BoolArray) -> HiddenErrors:
    """Find the held-out models' abilities from the shown items, and compare their predictions of the odd ones.

    Parameters
    ----------
    held_out : HeldOut
    fitted : Calibration
        Of `held_out.train`.
    is_shown : (n_usable,) or (n_held_out, n_usable)
        Among the items of even place.
    """
    by_scenario = item_thresholds(fitted.thresholds, held_out.targets.scenarios)
    binary = apply_thresholds(held_out.responses, by_scenario[held_out.targets.scenario_index[held_out.usable]])
    trials = held_out.n_trials
    if is_shown.ndim == 1:
        columns = np.flatnonzero(is_shown)
        shown_trials = None if trials is None else trials[:, columns]
        parameters = fitted.parameters.take(columns)
        abilities = map_abilities(parameters, binary[:, columns], fitted.prior, n_trials=shown_trials)
    else:
        shown = np.where(is_shown, binary, np.nan)
        abilities = map_abilities(fitted.parameters, shown, fitted.prior, n_trials=trials)
    predicted = probability(fitted.parameters, abilities.theta)
    is_hidden = ~held_out.is_even
    terms = _log_likelihoods(held_out, fitted.parameters, abilities.theta, binary)
    return HiddenErrors(
        score_errors(held_out.responses, predicted, is_hidden, held_out.targets, held_out.usable),
        mean_where_known(terms, axis=1),
        float(np.nanmean(terms)),
    )


def _log_likelihoods(
    held_out: HeldOut, parameters: ItemParameters, theta: FloatArray, responses: FloatArray
) -> FloatArray:
    """Log-likelihood of every hidden response, (n_held_out, n_hidden); probabilities are kept off zero and one."""
    hidden = np.flatnonzero(~held_out.is_even)
    some = parameters.take(hidden)
    if some.family == "bernoulli":
        # one answer against a certain prediction must not make the mean minus infinity
        values, probabilities = responses[:, hidden], np.clip(probability(some, theta), 1e-9, 1.0 - 1e-9)
        return values * np.log(probabilities) + (1.0 - values) * np.log1p(-probabilities)
    trials = None if held_out.n_trials is None else held_out.n_trials[:, hidden]
    return ResponseModel.of(some).log_likelihood_terms(logit(some, theta), responses[:, hidden], trials)
