"""One ability for one set of items: an item model fitted to these items alone."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank, Calibration
from itembank.calibration.calibration_specs import CalibrationSpec, Variational
from itembank.calibration.fit_item_model import fit_item_model
from itembank.errors import DataError, DataWarning, ParameterError, warn, warned_once
from itembank.irt.family_names import Family
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets


@dataclass(frozen=True, slots=True)
class ItemSetFit:
    """The item model of some items, and the ability that they alone give each model."""

    name: str
    columns: IntArray  # (n_set_items,): Places of the answered items in the responses
    rows: IntArray  # (n_calibration_models,): Models that answered at least one of the items
    calibration: Calibration  # Of these models and items
    theta: FloatArray  # (n_models,): Of all models of the responses; NaN for those that answered none of the items
    standard_errors: FloatArray  # (n_models,)


def default_spec(responses: ResponseMatrix) -> CalibrationSpec:
    """Return the item model for these responses: two parameters an item, and the family that they are of.

    Right and wrong are Bernoulli and probabilities Beta. Counts of repeated samples are beta-binomial: samples of one
    cell are more alike than chance makes them, and a binomial would take each for news. Slopes are kept above zero:
    with both signs the ability can follow what siblings guess alike, and counts of few models give steep slopes.
    """
    family: Family = "bernoulli" if responses.is_binary else "beta"
    if responses.n_trials is not None and bool(np.any(responses.n_trials > 1)):
        family = "beta-binomial"
    return Variational("2pl", family=family, positive_discrimination=True)


def responses_and_spec(
    source: Bank | ResponseMatrix, spec: CalibrationSpec | None
) -> tuple[ResponseMatrix, CalibrationSpec]:
    """Return the responses of a bank, or these themselves, and the item model of one ability for them."""
    responses = source.responses if isinstance(source, Bank) else source
    chosen = default_spec(responses) if spec is None else spec
    if chosen.n_dims != 1 or chosen.item_model == "nested":
        raise ParameterError(
            "abilities of single scenarios need an item model with one dimension, got "
            f"{chosen.item_model!r} with {chosen.n_dims}. Take '1pl' or '2pl'."
        )
    return responses, chosen


def fit_items(name: str, responses: ResponseMatrix, columns: IntArray, spec: CalibrationSpec) -> ItemSetFit:
    """Fit the item model of the items at `columns`, leaving out items and models without responses."""
    part = responses.take(items=columns)
    rows, has_item = np.flatnonzero(part.observed.any(axis=1)), part.observed.any(axis=0)
    calibration = fit_item_model(part.take(models=rows, items=np.flatnonzero(has_item)), spec)
    theta, errors = np.full(responses.n_models, np.nan), np.full(responses.n_models, np.nan)
    theta[rows] = calibration.abilities[:, 0]
    errors[rows] = np.sqrt(calibration.ability_covariance[:, 0, 0])
    return ItemSetFit(name, columns[has_item], rows, calibration, theta, errors)


def fit_scenarios(
    responses: ResponseMatrix, spec: CalibrationSpec, *, progress: ProgressCallback = silent
) -> tuple[ItemSetFit, ...]:
    """Fit every scenario by itself; those that cannot be fitted are left out with a `DataWarning`."""
    targets = ScoreTargets.create(responses.items)
    fits = []
    with warned_once():
        for number, name in enumerate(targets.scenarios):
            progress(f"scenario {name}", number / targets.n_scenarios)
            try:
                fits.append(fit_items(name, responses, np.flatnonzero(targets.scenario_index == number), spec))
            except DataError as error:
                warn(f"scenario {name!r} is left out: {error}", DataWarning)
    progress("scenarios", 1.0)
    return tuple(fits)
