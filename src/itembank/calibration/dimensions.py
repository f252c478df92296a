"""How many abilities: by held-out prediction (P1 4.4), and by parallel analysis (P2 B.1)."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from itembank.calibration.calibrate import MINIMUM_MODELS, calibrate
from itembank.calibration.item_model_bias import mean_absolute_error, predict_hidden
from itembank.calibration.specs import METHODS, CalibrationSpec, MarginalML
from itembank.data.responses import ResponseMatrix
from itembank.data.targets import ScoreTargets
from itembank.data.validation import check_enough_models
from itembank.errors import ConvergenceWarning, ParameterError
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.threads import one_blas_thread
from itembank.progress import ProgressCallback, silent

CANDIDATES = (1, 2, 5, 10, 15)
HELD_OUT_EVERY = 5
TOLERANCE = 0.0025
"""Of the mean absolute score error: an ability more must buy at least a quarter of a point."""
MODELS_PER_DIMENSION = 4
"""A dimension that fewer models than this have to tell of is not tried."""
MINIMUM_TO_CHOOSE = 2 * HELD_OUT_EVERY
MOST_ITEMS = 6000
"""Of a longer benchmark every k-th item is used: its dimensions show in a part of it."""


@dataclass(frozen=True, slots=True)
class DimensionChoice:
    """Held-out errors by number of dimensions, and the choice they lead to.

    Attributes
    ----------
    n_dims : int
        The smallest number within `TOLERANCE` of the best error.
    candidates : tuple of n_candidates numbers
    errors : (n_candidates,)
        Mean over scenarios and held-out models of |predicted - actual| score on the hidden items.
    log_likelihoods : (n_candidates,)
        Mean log-likelihood of a held-out response to a hidden item.
    message : str
    """

    n_dims: int
    candidates: tuple[int, ...]
    errors: FloatArray
    log_likelihoods: FloatArray
    message: str


@dataclass(frozen=True, slots=True)
class ParallelAnalysis:
    """Eigenvalues of the item correlation matrix against those of shuffled responses.

    Attributes
    ----------
    n_dims : int
        How many leading eigenvalues exceed their threshold.
    eigenvalues : (n_models - 1,) or shorter
        Of the data, falling.
    thresholds : as long
        The given percentile of each eigenvalue when every item's responses are shuffled over models.
    """

    n_dims: int
    eigenvalues: FloatArray
    thresholds: FloatArray


@one_blas_thread()
def choose_n_dims(
    responses: ResponseMatrix,
    spec: CalibrationSpec | str = "variational",
    *,
    candidates: tuple[int, ...] = CANDIDATES,
    progress: ProgressCallback = silent,
) -> DimensionChoice:
    """Choose the number of dimensions by predicting held-out models on hidden items (P1 4.4).

    Every fifth model is held out; the others calibrate each candidate; the held-out models' abilities come from the
    even items, and predict the odd ones. Of more than 6,000 items every k-th is used. The smallest candidate within
    0.0025 of the best mean absolute error of the scenarios' plain (micro) scores is chosen. A candidate that fewer
    than four calibration models a dimension would speak for is not tried, nor are more than two dimensions by
    marginal ML.

    Parameters
    ----------
    responses : ResponseMatrix
    spec : CalibrationSpec or str
        Every choice but the item model and number of dimensions.
    candidates : tuple of int
    progress : ProgressCallback

    Raises
    ------
    DataError
        With fewer than ten models.
    ParameterError
        Without a candidate that could be tried.
    """
    spec = METHODS.resolve(spec)
    check_enough_models(responses.n_models, MINIMUM_TO_CHOOSE, "choosing the number of dimensions")
    is_held_out = np.arange(responses.n_models) % HELD_OUT_EVERY == 0
    responses = _thinned(responses)
    tried = _feasible(candidates, int(np.sum(~is_held_out)), spec)
    train, usable = _training_part(responses, ~is_held_out)
    held_out = responses.responses[np.ix_(np.flatnonzero(is_held_out), usable)]
    targets = ScoreTargets.create(responses.items)
    is_shown = np.arange(responses.n_items)[usable] % 2 == 0
    measured = []
    for position, n_dims in enumerate(tried):
        progress(f"trying {n_dims}", position / len(tried))
        chosen = replace(spec, item_model="2pl" if n_dims == 1 else "mirt", n_dims=n_dims)
        with warnings.catch_warnings():  # a candidate that has not quite settled still predicts
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = calibrate(train, chosen)
        predicted = predict_hidden(fitted, held_out, is_shown, targets, usable)
        error = mean_absolute_error(held_out, predicted, ~is_shown, targets, usable)
        by_scenario = item_thresholds(fitted.thresholds, targets.scenarios)
        binary = apply_thresholds(held_out, by_scenario[targets.scenario_index[usable]])
        measured.append((float(np.nanmean(error)), _mean_log_likelihood(binary, predicted, ~is_shown)))
    errors, log_likelihoods = np.array(measured).T
    best = tried[int(np.flatnonzero(errors <= errors.min() + TOLERANCE)[0])]
    listed = ", ".join(f"{100 * error:.2f} with {n}" for error, n in zip(errors, tried, strict=True))
    message = f"mean error of held-out scores in points: {listed}; the smallest within {100 * TOLERANCE:g} of the best"
    return DimensionChoice(best, tried, errors, log_likelihoods, message)


def parallel_analysis(
    responses: FloatArray, rng: np.random.Generator, *, n_shuffles: int = 20, percentile: float = 95.0
) -> ParallelAnalysis:
    """Compare the eigenvalues of the item correlation matrix with those of shuffled data (Horn 1965; P2 B.1).

    Shuffling each item's responses over the models keeps its mean and removes every relation between items. The
    largest eigenvalues are found from the (n_models, n_models) matrix of products, which has the same ones.

    Parameters
    ----------
    responses : (n_models, n_items)
        NaN cells take the item's mean; items that do not vary are left out.
    rng : Generator
    n_shuffles : int
    percentile : float
        Of the shuffled eigenvalues.
    """
    standardised = _standardised(responses)
    eigenvalues = _correlation_eigenvalues(standardised)
    shuffled = np.array([_correlation_eigenvalues(rng.permuted(standardised, axis=0)) for _ in range(n_shuffles)])
    thresholds = np.percentile(shuffled, percentile, axis=0)
    below = np.flatnonzero(eigenvalues <= thresholds)
    n_dims = int(below[0]) if below.size else eigenvalues.shape[0]
    return ParallelAnalysis(n_dims, eigenvalues, thresholds)


def _thinned(responses: ResponseMatrix) -> ResponseMatrix:
    """Take every k-th item of a long benchmark."""
    stride = -(-responses.n_items // MOST_ITEMS)
    return responses if stride == 1 else responses.take(items=np.arange(0, responses.n_items, stride))


def _feasible(candidates: tuple[int, ...], n_models: int, spec: CalibrationSpec) -> tuple[int, ...]:
    """Candidates the data and the method can carry, rising."""
    most = 2 if isinstance(spec, MarginalML) else n_models
    tried = tuple(n for n in sorted(set(candidates)) if n == 1 or (n <= most and n * MODELS_PER_DIMENSION <= n_models))
    if not tried or tried[0] < 1:
        raise ParameterError(
            f"a candidate number of dimensions must be at least 1 and leave {MODELS_PER_DIMENSION} of the {n_models} "
            f"calibration models to each, got {candidates}."
        )
    return tried


def _training_part(responses: ResponseMatrix, is_training: BoolArray) -> tuple[ResponseMatrix, IntArray]:
    """Take the training models, and the items one of them answered."""
    rows = np.flatnonzero(is_training & responses.observed.any(axis=1))
    check_enough_models(rows.shape[0], MINIMUM_MODELS, "calibration on four fifths of the models")
    usable = np.flatnonzero(responses.observed[rows].any(axis=0))
    return responses.take(models=rows, items=usable), usable


def _mean_log_likelihood(responses: FloatArray, predicted: FloatArray, is_hidden: BoolArray) -> float:
    """Mean over the hidden cells of ``Y log p + (1 - Y) log(1 - p)``."""
    values, chances = responses[:, is_hidden], np.clip(predicted[:, is_hidden], 1e-9, 1.0 - 1e-9)
    terms = values * np.log(chances) + (1.0 - values) * np.log1p(-chances)
    return float(np.nanmean(terms))


def _standardised(responses: FloatArray) -> FloatArray:
    """Items with mean 0 and variance 1 over models; missing cells at the mean; constant items left out."""
    centred = responses - np.nanmean(responses, axis=0)
    filled = np.where(np.isnan(centred), 0.0, centred)
    spread = np.sqrt(np.mean(filled**2, axis=0))
    varies = spread > 1e-12
    result: FloatArray = filled[:, varies] / spread[varies]
    return result


def _correlation_eigenvalues(standardised: FloatArray) -> FloatArray:
    """Nonzero eigenvalues of the item correlation matrix, falling, for standardised items (n_models, n_items)."""
    n_models, n_items = standardised.shape
    products = (
        standardised @ standardised.T / n_models if n_items > n_models else standardised.T @ standardised / n_models
    )
    values: FloatArray = np.linalg.eigvalsh(products)[::-1]
    return values[: min(n_models - 1, n_items)]
