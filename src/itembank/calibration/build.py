"""The verb `calibrate`: from past results to a calibrated item bank."""

from dataclasses import replace

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenResponses, as_responses
from itembank.bank.banks import Bank, Calibration, bank_fingerprint
from itembank.bank.marks import without_links
from itembank.calibration.calibration_specs import METHODS, CalibrationSpec
from itembank.calibration.dimensions import usual_spec
from itembank.calibration.families import sized
from itembank.calibration.fit_item_model import MINIMUM_MODELS, fit_item_model
from itembank.calibration.item_model_bias import item_model_bias, response_variance
from itembank.errors import DataWarning, ParameterError, remedy, says_instead, warn
from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.how_read import LOST_AS
from itembank.responses.responses import ResponseMatrix, check_enough_models, without_silent
from itembank.responses.score_names import Across, Within
from itembank.responses.siblings import sibling_groups, siblings_in_words, warn_of_no_overlap
from itembank.responses.targets import ScoreTargets

CHOICE_FRACTION, CALIBRATION_FRACTION = 0.2, 0.6
"""Progress when the number of dimensions is chosen, and when the calibration is done; after it half of the models are
fitted for the bias."""

IN_SPEC = "method=ib.calibrations.Variational('mirt', n_dims=3), a spec with its choices"
WITH_MODEL = IN_SPEC.replace("'mirt', n_dims=3", "'2pl'")
MEANT = dict.fromkeys(("n_dims", "dims", "family"), IN_SPEC) | dict.fromkeys(("item_model", "model"), WITH_MODEL)


@says_instead(**MEANT, spec="method", seed="rng")
def calibrate(
    responses: GivenResponses,
    method: CalibrationSpec | str = "variational",
    *,
    within: Within = "micro",
    across: Across = "scenarios",
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Bank:
    """Calibrate a bank of items on the answers of past models, as `itembank calibrate` does.

    Beside the item model it measures what estimation needs: the item model's bias and the responses' variance.

    Parameters
    ----------
    responses : ResponseMatrix, path or paths, table
        Past results: the answers of the past models.
    method : spec or str
        The name of a method ('variational', 'map', 'mml'), for as many dimensions as suit the responses (`usual_spec`):
        the bank is then that of the command. Or a spec, which is taken as it is:
        ``Variational("mirt", n_dims=5)``.
    within, across : str
        How items make scenario scores and scenarios the overall score, as for `ScoreTargets.create`.
    rng : Generator, int or None
        Splits the models for the item model's bias; nothing else is random.
    progress : ProgressCallback

    Raises
    ------
    DataError, ParameterError
        As `calibrations.fit_item_model` and `ScoreTargets.create`; by a name also with two models of any responses.

    Examples
    --------
    >>> bank = calibrate(responses)  # doctest: +SKIP
    >>> selection = select(bank, 100, rng=0)  # doctest: +SKIP
    """
    responses = sized(_answered(as_responses(responses)), METHODS.resolve(method))
    warn_of_no_overlap(responses)
    targets = ScoreTargets.create(responses.items, within=within, across=across)
    alike = siblings_in_words(responses.model_ids, sibling_groups(responses))
    if alike:
        warn(alike, DataWarning)
    chosen = 0.0
    if isinstance(method, str) and method in METHODS.kinds:
        check_enough_models(responses.n_models, MINIMUM_MODELS, "calibration")  # as the command, of counts too
        chosen = CHOICE_FRACTION
        about = "choosing the number of dimensions: "
        method, _ = usual_spec(responses, method, progress=part_of(progress, 0.0, chosen, about))
    spec = METHODS.resolve(method)
    if not chosen and spec.n_dims > responses.n_models:
        ways = remedy("leave the method out", "take --dims auto")
        raise ParameterError(f"{responses.n_models} models show no more abilities, got n_dims={spec.n_dims}: {ways}.")
    calibration = fit_item_model(responses, spec, progress=part_of(progress, chosen, CALIBRATION_FRACTION))
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
    responses, observed = without_links(responses), responses.observed
    answered = without_silent(responses, np.asarray(observed.any(axis=1)), np.asarray(observed.any(axis=0)))
    if answered.lost is None:
        return answered
    policy, items = answered.lost.errors, answered.items
    if policy != "missing" and answered.lost.n.any():  # new results are to be read alike
        items = items.with_columns(pl.lit(policy).alias(LOST_AS))
    return replace(answered, lost=None, items=items)
