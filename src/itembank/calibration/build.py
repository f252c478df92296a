"""The verb `build_bank`: from past results to a calibrated item bank."""

from dataclasses import replace

import numpy as np

from itembank.bank.arguments import GivenResponses, as_responses
from itembank.bank.banks import Bank, Calibration, bank_fingerprint
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import METHODS, CalibrationSpec
from itembank.calibration.dimensions import usual_spec
from itembank.calibration.families import sized
from itembank.calibration.item_model_bias import item_model_bias, response_variance
from itembank.errors import DataWarning, warn
from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix, without_silent
from itembank.responses.score_names import Across, Within
from itembank.responses.siblings import sibling_groups, siblings_in_words
from itembank.responses.targets import ScoreTargets

CHOICE_FRACTION, CALIBRATION_FRACTION = 0.2, 0.6
"""Progress when the number of dimensions is chosen, and when the calibration is done; after it half of the models are
fitted for the bias."""


def build_bank(
    responses: GivenResponses,
    spec: CalibrationSpec | str = "variational",
    *,
    within: Within = "micro",
    across: Across = "scenarios",
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Bank:
    """Calibrate the items and measure what estimation needs: the item model's bias and the responses' variance.

    Parameters
    ----------
    responses : ResponseMatrix, path or paths, table
        Past results: the answers of the past models.
    spec : CalibrationSpec or str
        The name of a method ('variational', 'map', 'mml'), for as many dimensions as suit the responses (`usual_spec`):
        the bank is then that of `itembank calibrate`. Or a spec, which is taken as it is:
        ``Variational("mirt", n_dims=5)``.
    within, across : str
        How items make scenario scores and scenarios the overall score, as for `ScoreTargets.create`.
    rng : Generator, int or None
        Splits the models for the item model's bias; nothing else is random.
    progress : ProgressCallback

    Raises
    ------
    DataError, ParameterError
        As `calibrate` and `ScoreTargets.create`.

    Examples
    --------
    >>> bank = build_bank(responses)  # doctest: +SKIP
    >>> selection = select(bank, 100, rng=0)  # doctest: +SKIP
    """
    responses = sized(_answered(as_responses(responses)), METHODS.resolve(spec))
    targets = ScoreTargets.create(responses.items, within=within, across=across)
    alike = siblings_in_words(responses.model_ids, sibling_groups(responses))
    if alike:
        warn(alike, DataWarning)
    chosen = 0.0
    if isinstance(spec, str) and spec in METHODS.kinds:
        chosen = CHOICE_FRACTION
        about = "choosing the number of dimensions: "
        spec, _ = usual_spec(responses, spec, progress=part_of(progress, 0.0, chosen, about))
    spec = METHODS.resolve(spec)
    calibration = calibrate(responses, spec, progress=part_of(progress, chosen, CALIBRATION_FRACTION))
    bias = item_model_bias(
        responses,
        replace(spec, family=calibration.parameters.family),
        targets,
        rng=as_generator(rng),
        progress=part_of(progress, CALIBRATION_FRACTION, 1.0, "measuring the item model's bias: "),
    )
    progress("measuring the item model's bias", 1.0)
    return bank_of(responses, calibration, targets, bias, response_variance(responses, targets))


def bank_of(
    responses: ResponseMatrix, calibration: Calibration, targets: ScoreTargets, bias: FloatArray, variance: FloatArray
) -> Bank:
    """Put a bank together, with the id that its content gives; bias and variance are (n_scenarios,)."""
    numbers = (calibration.prior.mean, calibration.prior.covariance, bias, variance)
    bank_id = bank_fingerprint(responses, calibration.parameters, targets, *numbers)
    return Bank(bank_id, responses, calibration, targets, bias, variance)


def _answered(responses: ResponseMatrix) -> ResponseMatrix:
    """Return what counts of the responses, without models and items that have no answer."""
    observed = responses.observed
    answered = without_silent(responses, np.asarray(observed.any(axis=1)), np.asarray(observed.any(axis=0)))
    return answered if answered.lost is None else replace(answered, lost=None)
