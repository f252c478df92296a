"""How many abilities: by held-out prediction (tinyBenchmarks 4.4), and by parallel analysis (WILD B.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from itembank.bank.arguments import GivenResponses, as_responses
from itembank.bank.banks import Calibration
from itembank.bank.known_scores import KnownScores
from itembank.calibration.calibration_specs import (
    METHODS,
    CalibrationSpec,
    ItemModel,
    MarginalML,
    Variational,
    loosened,
)
from itembank.calibration.families import without_repeated_warnings
from itembank.calibration.fit_item_model import MINIMUM_MODELS, fit_item_model
from itembank.calibration.item_model_bias import score_errors
from itembank.errors import ConvergenceWarning, DataError, ParameterError, remedy, unsaid
from itembank.irt.bernoulli import logit, probability
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.families import ResponseModel
from itembank.irt.family_names import Family
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.parallel import in_parallel, one_blas_thread
from itembank.numerics.splits import Split
from itembank.progress import ProgressCallback, silent
from itembank.responses.content_order import in_content_order
from itembank.responses.responses import ResponseMatrix, check_enough_models
from itembank.responses.siblings import one_of_each, sibling_groups
from itembank.responses.sizes import with_assumed_sizes
from itembank.responses.targets import ScoreTargets

CANDIDATES = (1, 2, 5, 10, 15)
"""Those that tinyBenchmarks tries (4.4), and one."""
NESTED_CANDIDATES = (2, 3, 4, 6)
"""Of nested item models, with the general ability."""
TOLERANCE = 0.0025
"""Of the mean absolute score error: more dimensions must lower it by at least a quarter of a point."""
MINIMUM_TO_CHOOSE = 10
"""Models, of which every fifth is held out: the errors of one alone would choose by chance."""

OWN_DIMS = {"1pl": 1, "2pl": 1, "nested": 4}
"""Dimensions of an item model where none are given.

Nested: WILD takes 3. One specific ability more is our choice: it gains if tasks differ, and else costs nothing
(`benchmarks/tables/tables.md`, "Predicting tasks that were never asked").
"""

MOST_ITEMS = 6000
"""Of a longer benchmark every k-th item is used, which shows the same dimensions."""


@dataclass(frozen=True, slots=True)
class DimensionChoice:
    """Held-out errors by number of dimensions, and the choice they lead to."""

    n_dims: int  # The smallest number within `TOLERANCE` of the best error
    candidates: tuple[int, ...]
    # (n_candidates,): Mean over scenarios and held-out models of |predicted - actual| score on the hidden items.
    errors: FloatArray
    log_likelihoods: FloatArray  # (n_candidates,): Mean log-likelihood of a held-out response to a hidden item
    message: str


@dataclass(frozen=True, slots=True)
class ParallelAnalysis:
    """Eigenvalues of the item correlation matrix against those of shuffled responses."""

    n_dims: int  # How many leading eigenvalues exceed their threshold
    eigenvalues: FloatArray  # (n_models - 1,) or shorter: Of the data, falling
    thresholds: FloatArray  # The 95th percentile of each when every item's responses are shuffled over models


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Some models to calibrate on, others to predict."""

    train: ResponseMatrix  # Of the past models, and the items one of them answered
    n_calibration: int  # Past models, those without a response included
    usable: IntArray  # (n_usable,): Which of all items those are
    responses: FloatArray  # (n_held_out, n_usable): Raw; NaN where missing
    is_even: BoolArray  # (n_usable,): Items of even place: abilities come from them, and the others are predicted
    targets: ScoreTargets  # Of all items
    n_trials: FloatArray | None  # (n_held_out, n_usable): Behind each response


def usual_spec(
    responses: ResponseMatrix,
    method: str,
    choices: Mapping[str, Any] | None = None,
    *,
    n_dims: int | Literal["auto"] | None = None,
    progress: ProgressCallback = silent,
) -> tuple[CalibrationSpec, str]:
    """Return the spec of a method by its name, with as many dimensions as suit the responses, and why so many.

    This is what `calibrate` takes of a name, and `itembank calibrate` of its options.

    Parameters
    ----------
    responses : ResponseMatrix
    method : str
    choices : mapping, optional
        Fields of the method's spec, but `n_dims`. An item model has `OWN_DIMS`.
    n_dims : int, 'auto' or None
        None takes one where models or items are too few to choose, for which 'auto' raises as `choose_n_dims`.
    """
    options = dict(choices or {})
    item_model = options.pop("item_model", None)
    kind = METHODS.kinds[method]
    if item_model is None and n_dims is None and options.get("positive_discrimination"):
        item_model = "2pl"
    if issubclass(kind, MarginalML):
        n_dims = 1
    if n_dims is None and item_model in OWN_DIMS:
        n_dims = OWN_DIMS[item_model]
    if n_dims is None or n_dims == "auto":
        base = kind(item_model="nested", n_dims=2, **options) if item_model == "nested" else kind(**options)
        return with_suitable_dims(responses, base, is_asked_for=n_dims == "auto", progress=progress)
    return kind(item_model=item_model or ("2pl" if n_dims == 1 else "mirt"), n_dims=n_dims, **options), ""


def with_suitable_dims(
    responses: ResponseMatrix,
    spec: CalibrationSpec,  # Of the fewest dimensions of its item model
    *,
    is_asked_for: bool = False,
    progress: ProgressCallback = silent,
) -> tuple[CalibrationSpec, str]:
    """Return a spec with the dimensions that `choose_n_dims` chooses, and why.

    Where there are too few models or items to choose it stays as it is, unless a choice was asked for.
    """
    is_one_item = responses.n_items == 1
    if not is_asked_for and (is_one_item or responses.n_models < MINIMUM_TO_CHOOSE):
        few = "one item is" if is_one_item else f"{responses.n_models} models are"
        return spec, f"{_dimensions(spec.n_dims)}: {few} too few to choose more."
    choice = choose_n_dims(responses, spec, progress=progress)
    if choice.n_dims > 1:
        item_model: ItemModel = "nested" if spec.item_model == "nested" else "mirt"
        spec = replace(spec, item_model=item_model, n_dims=choice.n_dims)
    return spec, f"{_dimensions(choice.n_dims)}: {choice.message}."


def _dimensions(n_dims: int) -> str:
    return f"{n_dims} {'dimension' if n_dims == 1 else 'dimensions'}"


@one_blas_thread()
def choose_n_dims(
    responses: GivenResponses,
    spec: CalibrationSpec | str = "variational",
    *,
    candidates: tuple[int, ...] | None = None,
    progress: ProgressCallback = silent,
) -> DimensionChoice:
    """Choose the number of dimensions by predicting held-out models on hidden items (tinyBenchmarks 4.4).

    Every fifth model with a known score (`KnownScores`) is held out; the others calibrate each candidate; the held-out
    models' abilities come from the even items, and predict the odd ones. Of more than 6,000 items every k-th is used.
    Models, and the items of each scenario, are counted in an order that follows from their answers (`content_order`).
    The smallest candidate within 0.0025 of the best mean absolute error of the scenarios' plain (micro) scores is
    chosen. A candidate needs four past models for each of its dimensions, and marginal ML has one.
    Variational fits stop at a tolerance of 1e-3, unless that of the spec is larger, and are float32, unless the
    spec forbids it. On nine sets of responses that led to the choices of 1e-6, and to errors within 0.13 points of
    theirs (of probabilities 0.3), in an eighth to two thirds of the time.

    Parameters
    ----------
    responses : ResponseMatrix, path or paths
    spec : CalibrationSpec or str
        Every choice but the item model and number of dimensions.
        A nested item model stays one: its number of dimensions counts the general one.
    candidates : tuple of int, optional
        ``CANDIDATES``, or ``NESTED_CANDIDATES``.
    progress : ProgressCallback

    Raises
    ------
    DataError
        With fewer than ten models, or where the held-out models have no answer to predict, as with one item.
    ParameterError
        Without a candidate that could be tried.
    """
    spec = loosened(METHODS.resolve(spec), 1e-3)
    if isinstance(spec, Variational):
        spec = replace(spec, single_precision=bool(spec.single_precision))  # 'auto', too
    responses = as_responses(responses)
    if spec.family == "auto":
        responses = with_assumed_sizes(responses)
    is_nested = spec.item_model == "nested"
    if candidates is None:
        candidates = NESTED_CANDIDATES if is_nested else CANDIDATES
    check_enough_models(responses.n_models, MINIMUM_TO_CHOOSE, "choosing the number of dimensions")
    responses = in_content_order(responses, every=_stride(responses))
    # Of the models whose scores are known, or of all where these are too few; siblings go with them.
    rows = KnownScores.of(responses, ScoreTargets.create(responses.items)).models
    if rows.size < MINIMUM_TO_CHOOSE:
        rows = np.arange(responses.n_models)
    group = sibling_groups(responses)
    held_out = leave_out(responses, Split.of(np.isin(group, group[one_of_each(group, rows)[::5]])))
    tried = feasible(candidates, held_out.n_calibration, held_out.usable.size, spec)
    item_model: ItemModel = "nested" if is_nested else "mirt"
    progress(f"trying {tried[0]}", 0.0)
    *found, family = _try(held_out, spec, tried[0], item_model)
    measured = {tried[0]: found}
    spec = replace(spec, family=family)  # log-likelihoods compare within one family
    parts = [(held_out, spec, n_dims, item_model) for n_dims in tried[1:]]
    for number, (*found, _) in in_parallel(_try, parts):
        measured[tried[1 + number]] = found
        progress(f"trying {', '.join(map(str, tried))}", len(measured) / len(tried))
    errors, log_likelihoods = np.array([measured[n_dims] for n_dims in tried]).T
    best = tried[int(np.flatnonzero(errors <= errors.min() + TOLERANCE)[0])]
    listed = ", ".join(f"{100 * error:.2f} with {n}" for error, n in zip(errors, tried, strict=True))
    message = f"mean error of held-out scores in points: {listed}; the smallest within {100 * TOLERANCE:g} of the best"
    return DimensionChoice(best, tried, errors, log_likelihoods, message)


def parallel_analysis(
    # (n_models, n_items): NaN cells take the item's mean, and stay where they are when the others are shuffled; items
    # that do not vary are left out
    responses: FloatArray,
    rng: np.random.Generator,
    *,
    n_shuffles: int = 20,
) -> ParallelAnalysis:
    """Compare the eigenvalues of the item correlation matrix with those of shuffled data (Horn 1965; WILD B.1).

    Shuffling each item's responses over the models keeps its mean and removes every relation between items. The
    largest eigenvalues are found from the (n_models, n_models) matrix of products, which has the same ones.
    """
    # Items with mean 0 and variance 1 over models, missing cells at the mean; constant items are left out.
    missing = np.isnan(responses)
    answered = np.maximum((~missing).sum(axis=0), 1)
    filled = np.where(missing, 0.0, responses)
    filled = np.where(missing, 0.0, filled - filled.sum(axis=0) / answered)
    spread = np.sqrt(np.mean(filled**2, axis=0))
    varies = spread > 1e-12
    standardised, missing = filled[:, varies] / spread[varies], missing[:, varies]
    eigenvalues = _correlation_eigenvalues(standardised)
    shuffled = np.array([_correlation_eigenvalues(_shuffled(standardised, missing, rng)) for _ in range(n_shuffles)])
    thresholds = np.percentile(shuffled, 95.0, axis=0)
    # The leading eigenvalues count up to the first that shuffled data reach: later ones above are not dimensions.
    below = np.flatnonzero(eigenvalues <= thresholds)
    n_dims = int(below[0]) if below.size else eigenvalues.shape[0]
    return ParallelAnalysis(n_dims, eigenvalues, thresholds)


def _try(held_out: HeldOut, spec: CalibrationSpec, n_dims: int, item_model: ItemModel) -> tuple[float, float, Family]:
    """Give a candidate's mean absolute error of held-out scores, mean log-likelihood of hidden answers, and family."""
    fitted = fit_candidate(held_out, spec, n_dims, item_model=item_model)
    errors, _, log_likelihood = hidden_errors(held_out, fitted, held_out.is_even)
    errors = np.abs(errors)
    means: FloatArray = np.nanmean(errors[:, ~np.isnan(errors).all(axis=0)], axis=0)
    return float(np.nanmean(means)), log_likelihood, fitted.parameters.family


def _shuffled(standardised: FloatArray, missing: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Shuffle each item's observed cells among themselves."""
    if not missing.any():
        return rng.permuted(standardised, axis=0)
    # `source` lists the observed cells of each item in random order, `place` in their own; missing cells come last.
    source = np.argsort(np.where(missing, np.inf, rng.random(missing.shape)), axis=0)
    place = np.argsort(missing, axis=0, kind="stable")
    result = np.zeros_like(standardised)
    np.put_along_axis(result, place, np.take_along_axis(standardised, source, axis=0), axis=0)
    return result


def _correlation_eigenvalues(standardised: FloatArray) -> FloatArray:
    """Nonzero eigenvalues of the item correlation matrix, falling, for standardised items (n_models, n_items)."""
    n_models, n_items = standardised.shape
    products = (
        standardised @ standardised.T / n_models if n_items > n_models else standardised.T @ standardised / n_models
    )
    values: FloatArray = np.linalg.eigvalsh(products)[::-1]
    # Centred over models, so that one of the n_models eigenvalues is zero.
    return values[: min(n_models - 1, n_items)]


def thinned(responses: ResponseMatrix) -> tuple[ResponseMatrix, int]:
    """Take every k-th item of a long benchmark; also return k."""
    stride = _stride(responses)
    return (responses if stride == 1 else responses.take(items=np.arange(0, responses.n_items, stride))), stride


def _stride(responses: ResponseMatrix) -> int:
    return -(-responses.n_items // MOST_ITEMS)


def feasible(candidates: tuple[int, ...], n_models: int, n_items: int, spec: CalibrationSpec) -> tuple[int, ...]:
    """Candidates that the method allows, and past models and items suffice for, rising.

    Raises
    ------
    ParameterError
        Without one.
    """
    models_per_dimension, items_per_dimension = 4, 2
    most = min(n_models // models_per_dimension, n_items // items_per_dimension)
    if isinstance(spec, MarginalML):
        most = 1
    tried = tuple(n for n in sorted(set(candidates)) if n <= max(most, 1))
    if not tried or tried[0] < 1:
        raise ParameterError(
            f"a candidate number of dimensions must be at least 1 and leave {models_per_dimension} of the {n_models} "
            f"past models and {items_per_dimension} of the {n_items} items to each, got {candidates}."
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
            "comparing numbers of dimensions needs answers to predict: cross-validated models must have answered one "
            f"of the second, fourth, ... items, got no such answer among {responses.n_items} items. A bank of one "
            f"dimension needs no comparison: {remedy('n_dims=1', '--dims 1')}."
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
    with without_repeated_warnings(), unsaid(ConvergenceWarning):  # one not quite converged still predicts
        return fit_item_model(held_out.train, chosen)


def hidden_errors(
    held_out: HeldOut,
    fitted: Calibration,  # Of `held_out.train`
    is_shown: BoolArray,  # (n_usable,) or (n_held_out, n_usable): Among the items of even place
) -> tuple[FloatArray, FloatArray, float]:
    """Find the held-out models' abilities from the shown items, and compare their predictions of the odd ones.

    Returns predicted minus actual mean responses on these, (n_held_out, n_scenarios), the mean log-likelihood of a
    response to one, (n_held_out,), both NaN where a model has none, and that over all responses.
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
    # log-likelihood of every hidden response, (n_held_out, n_hidden)
    hidden = np.flatnonzero(~held_out.is_even)
    some, values = fitted.parameters.take(hidden), binary[:, hidden]
    if some.family == "bernoulli":
        # one answer against a certain prediction must not make the mean minus infinity
        probabilities = np.clip(probability(some, abilities.theta), 1e-9, 1.0 - 1e-9)
        terms = values * np.log(probabilities) + (1.0 - values) * np.log1p(-probabilities)
    else:
        hidden_trials = None if trials is None else trials[:, hidden]
        terms = ResponseModel.of(some).log_likelihood_terms(logit(some, abilities.theta), values, hidden_trials)
    return (
        score_errors(held_out.responses, predicted, ~held_out.is_even, held_out.targets, held_out.usable),
        mean_where_known(terms, axis=1),
        float(np.nanmean(terms)),
    )
