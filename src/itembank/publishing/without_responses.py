"""Banks without past models' responses, with what these taught of estimates; and how well models left out were met."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenSelection, as_bank, as_selection
from itembank.bank.bank_factors import fitted_factor_model, measured_discrepancy
from itembank.bank.bank_views import history_of_view
from itembank.bank.banks import BEYOND, Bank, Published, PublishedSubset, bank_fingerprint
from itembank.bank.selections import Selection
from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import choose_method, sample_of, try_methods
from itembank.estimation.past_errors import stacked_methods
from itembank.estimation.response_summary import noise_ratio
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix


@one_blas_thread()
def without_responses(
    bank: GivenBank, *, selection: GivenSelection | None = None, progress: ProgressCallback = silent
) -> Bank:
    """Return the bank without its models: no responses, ids, abilities or scores of any.

    Parameters
    ----------
    bank : Bank or path
    selection : Selection or path, optional
        The items that are to be run. `estimate` takes them where it is given no other, and gives the very estimates
        and intervals that the whole bank gives from them: the weights of its methods and the errors made on past
        models left out stay, the latter in an order of their own for each score.
    progress : ProgressCallback

    Returns
    -------
    Bank
        Of another id. What learns from responses refuses it.

    Raises
    ------
    ParameterError
        When the bank has no responses.
    """
    bank, selection = as_bank(bank), as_selection(selection)
    if not bank.n_models:
        raise ParameterError(
            f"the bank must have past models' responses to be published without, bank {bank.bank_id}"
            " has none. Push it as it is."
        )
    published = Published(
        bank.n_models,
        bank.bank_id,
        noise_ratio(bank),
        fitted_factor_model(bank),
        measured_discrepancy(bank),
        newest=bank.newest,
    )
    models = pl.DataFrame({"model_id": []}, schema={"model_id": pl.String})
    responses = ResponseMatrix(np.zeros((0, bank.n_items)), models, bank.responses.items)
    prior, model = bank.calibration.prior, published.factor_model
    numbers = (
        prior.mean,
        prior.covariance,
        bank.item_model_bias,
        bank.response_variance,
        published.noise_ratio,
        model.mean,
        model.loadings,
        model.noise,
    )
    bank_id = bank_fingerprint(responses, bank.parameters, bank.targets, *numbers)
    if selection is not None:
        published = dataclasses.replace(published, subset=_subset(bank, selection, bank_id, progress))
    return dataclasses.replace(
        bank,
        bank_id=bank_id,
        responses=responses,
        calibration=dataclasses.replace(
            bank.calibration,
            abilities=bank.calibration.abilities[:0],
            ability_covariance=bank.calibration.ability_covariance[:0],
        ),
        published=published,
        history=history_of_view(bank, bank_id),
        whole=None,
    )


def _subset(bank: Bank, selection: Selection, bank_id: str, progress: ProgressCallback) -> PublishedSubset:
    """Try the stacked estimate on past models left out, and keep its weights and errors."""
    moved, sample, stacked = dataclasses.replace(selection, bank=bank_id), sample_of(bank, selection), Stacked()
    explanation = choose_method(bank, sample, selection, progress=progress).explanation
    if not folds(bank):
        none = np.empty((0, bank.targets.n_scenarios + 1))
        return PublishedSubset(moved, none, none, none, none, np.empty(0), {}, explanation, ())
    trials = try_methods(bank, sample, selection, stacked.members)
    past = trials.past(stacked)
    weights, far = trials.weights(stacked), past.estimates.beyond
    errors, standard_errors, scales = _shuffled(
        past.estimates.error, past.estimates.standard_error, past.estimates.scale
    )
    beyond = {}
    if far is not None and past.place is not None and weights.beyond is not None:
        place = np.array([past.place.best, past.place.middle, *past.place.line])
        of_better = (weights.beyond, *_shuffled(far.error, far.standard_error, far.scale), place)
        beyond = dict(zip(BEYOND, of_better, strict=True))
    return PublishedSubset(
        moved,
        weights.usual,
        errors,
        standard_errors,
        scales,
        np.sort(past.misfit[~np.isnan(past.misfit)]),
        beyond,
        explanation,
        stacked_methods(),
    )


def _shuffled(errors: FloatArray, *sizes: FloatArray) -> list[FloatArray]:
    """Sort each column by the error, with its expected sizes, so that rows are models no more."""
    order = np.argsort(errors, axis=0, kind="stable")
    return [np.take_along_axis(array, order, axis=0) for array in (errors, *sizes)]


LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Overall scores of past models, each estimated by a bank that was calibrated without it."""

    n_items: int  # That were answered
    # (n_models,): In [0, 1]; models without a full score are left out. Intervals are of 95 %, as wide as the errors for
    # models of the other folds ask for.
    true: FloatArray
    estimate: FloatArray  # (n_models,)
    low: FloatArray  # (n_models,)
    high: FloatArray  # (n_models,)

    @property
    def error(self) -> float:
        """Mean absolute error."""
        return float(np.abs(self.estimate - self.true).mean())

    @property
    def coverage(self) -> float:
        """Fraction of the intervals that hold the true score."""
        return float(((self.low <= self.true) & (self.true <= self.high)).mean())


@one_blas_thread()
def held_out_scores(bank: Bank, selection: Selection, *, progress: ProgressCallback = silent) -> HeldOutScores | None:
    """Estimate each past model's overall score as if it were new; every fold chooses its items anew."""
    if not folds(bank, progress=progress):
        return None
    trials = try_methods(bank, sample_of(bank, selection), selection, Stacked().members, progress=progress)
    past = trials.by(Stacked())
    half = past.half_widths_out_of_fold(trials.fold, level=LEVEL)
    true, value, half = past.truth[:, -1], past.value[:, -1], half[:, -1]
    known = ~(np.isnan(true) | np.isnan(value) | np.isnan(half))
    true, value, half = true[known], value[known], half[known]
    low, high = np.clip(value - half, 0.0, 1.0), np.clip(value + half, 0.0, 1.0)
    return HeldOutScores(selection.n_items, true, value, low, high) if true.size else None
