"""The ways of fitting that are compared: the library's methods and the published objective."""

import time
import warnings
from typing import NamedTuple

import numpy as np

from benchmarks.published_simulation.measures import Found
from benchmarks.published_simulation.reference import fit_reference
from itembank.calibration.calibration_specs import CalibrationSpec, JointMAP, MarginalML, Variational
from itembank.calibration.fit_item_model import fit_item_model
from itembank.errors import ItembankWarning
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix

SPECS: dict[str, type[CalibrationSpec]] = {"variational": Variational, "map": JointMAP, "mml": MarginalML}
PUBLISHED = "published"


class Outcome(NamedTuple):
    """What was found, the mean precision of a Beta (else NaN), whether it converged, and CPU seconds."""

    found: Found
    precision: float
    converged: bool
    seconds: float


def fit(
    way: str,
    responses: FloatArray,
    *,
    item_model: str,
    family: str,
    n_trials: IntArray | None = None,
    **options: object,
) -> Outcome:
    """Fit responses (n_models, n_items) by a method of the library or by the published objective."""
    start = time.process_time()
    if way == PUBLISHED:
        reference = fit_reference(responses, family=family, has_slopes=item_model == "2pl")
        found = Found(reference.discrimination, reference.difficulty)
        return Outcome(found, np.nan, converged=True, seconds=time.process_time() - start)
    spec = SPECS[way](item_model, family=family, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        calibration = fit_item_model(ResponseMatrix.create(responses, n_trials=n_trials), spec)
    parameters = calibration.parameters
    precision = np.nan if parameters.precision is None else float(np.mean(parameters.precision))
    if item_model == "1pl":  # the logit is theta - b, whatever the slope on standardised abilities
        found = Found(np.ones(parameters.n_items), -parameters.intercept)
    else:
        found = Found(parameters.loadings[:, 0], calibration.difficulties.value)
    return Outcome(found, precision, calibration.converged, time.process_time() - start)
