"""One transfer: who calibrates, which items are the source, and the target predicted for the others."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.errors import DataError, DataWarning, ParameterError, warn
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.scaling.scenario_fits import ItemSetFit, fit_items
from itembank.scaling.transfers.convergent import CorrelationInterval, correlate_abilities
from itembank.scaling.transfers.curves import (
    CurvePrediction,
    actual_curves,
)
from itembank.scaling.transfers.parts import ItemSets, Part
from itembank.scaling.transfers.transfer_methods import TransferData, score_items
from itembank.scaling.transfers.transfer_specs import METHODS, TransferSpec


@dataclass(frozen=True, slots=True)
class PairValidity:
    """Correlation, over calibration models, of the abilities that source and target give."""

    correlation: float
    lower: float
    upper: float
    disattenuated: float  # Of the abilities themselves, without the errors of their estimates
    source_reliability: float
    target_reliability: float
    n_models: int


@dataclass(frozen=True, slots=True)
class FoldTransfer:
    """What one part of the models gave."""

    sets: ItemSets
    validity: PairValidity
    places: IntArray  # (n_asked,)
    theta: FloatArray  # (n_asked,): From the source items alone
    standard_errors: FloatArray  # (n_asked,)
    actual: FloatArray  # (n_asked, n_k)
    uninformed: FloatArray  # (n_asked, n_k): The mean of the calibration models: what is predicted without any response
    predictions: Mapping[str, CurvePrediction]


@dataclass(frozen=True, slots=True)
class _Scored:
    """Abilities of calibration models and of those asked, by one item model, each with standard errors."""

    fit: ItemSetFit
    calibration: FloatArray
    calibration_errors: FloatArray
    asked: FloatArray
    asked_errors: FloatArray


def transfer_part(
    part: Part, sets: ItemSets, spec: TransferSpec, item_model: CalibrationSpec, rng: np.random.Generator
) -> FoldTransfer:
    """Calibrate, check the convergent validity, and only then predict."""
    source = _scored(part, sets.source, sets.source_name, item_model)
    target = _scored(part, sets.target, sets.target_name, item_model)
    validity = _validity(part, sets, (source, target), spec, rng)
    check_validity(validity, sets, spec)
    actual = actual_curves(part.asked, sets.target, spec.k)
    past = actual_curves(part.calibration, sets.target, spec.k)
    data = TransferData(part, sets, past, spec, item_model)
    methods = {name: METHODS.kernel(METHODS.resolve(name)) for name in spec.methods}
    return FoldTransfer(
        sets=sets,
        validity=validity,
        places=part.places,
        theta=source.asked,
        standard_errors=source.asked_errors,
        actual=actual,
        uninformed=np.broadcast_to(mean_where_known(past), actual.shape),
        predictions={name: kernel(data) for name, kernel in methods.items()},
    )


def check_validity(validity: PairValidity, sets: ItemSets, spec: TransferSpec) -> None:
    """Refuse a transfer between abilities that are not shown to be correlated."""
    if validity.lower > 0.0:
        return
    text = (
        f"abilities on {sets.source_name!r} and {sets.target_name!r} must be correlated for a transfer, got "
        f"{validity.correlation:.2f} ({spec.level:.0%} interval {validity.lower:.2f} to {validity.upper:.2f}, "
        f"{validity.n_models} calibration models)."
    )
    if not spec.is_forced:
        raise DataError(f"{text} They may measure different things, or models are too few to tell. Force it to see it "
                        "all the same.")  # fmt: skip
    warn(f"{text} The transfer was forced.", DataWarning)


def _scored(part: Part, columns: IntArray, name: str, item_model: CalibrationSpec) -> _Scored:
    """Fit some items on the calibration models, and score everybody in the same way."""
    try:
        fit = fit_items(name, part.calibration, columns, item_model)
    except DataError as error:
        raise DataError(f"items of {name!r}: {error}") from error
    if fit.calibration.thresholds:
        raise ParameterError(
            "a transfer predicts mean responses, so its item model must be of the responses as they are; this one "
            "makes them right or wrong by a threshold. Take the family 'beta' or 'binomial'."
        )
    theta, errors = score_items(fit, part.calibration)
    asked, asked_errors = score_items(fit, part.asked)
    return _Scored(fit, theta, errors, asked, asked_errors)


def _validity(
    part: Part, sets: ItemSets, scored: tuple[_Scored, _Scored], spec: TransferSpec, rng: np.random.Generator
) -> PairValidity:
    source, target = scored
    correlations = correlate_abilities(
        np.column_stack([source.calibration, target.calibration]),
        np.column_stack([source.calibration_errors, target.calibration_errors]),
        scenarios=(sets.source_name, sets.target_name),
        model_ids=tuple(part.calibration.model_ids),
        interval=CorrelationInterval(level=spec.level),
        groups=part.calibration_groups,
        rng=rng,
    )
    return PairValidity(
        correlation=float(correlations.observed.value[0, 1]),
        lower=float(correlations.observed.lower[0, 1]),
        upper=float(correlations.observed.upper[0, 1]),
        disattenuated=float(correlations.disattenuated.value[0, 1]),
        source_reliability=float(correlations.reliability[0]),
        target_reliability=float(correlations.reliability[1]),
        n_models=int(correlations.n_models_of_pair[0, 1]),
    )
