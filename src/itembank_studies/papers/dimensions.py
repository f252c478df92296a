"""The verb `dimensionality`: how many abilities responses tell of, seen in three ways (WILD Figures 5 and 8)."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenResponses, as_responses
from itembank.calibration.calibration_specs import METHODS, CalibrationSpec
from itembank.calibration.dimensions import (
    MINIMUM_TO_CHOOSE,
    TOLERANCE,
    feasible,
    fit_candidate,
    hidden_errors,
    leave_out,
    parallel_analysis,
    thinned,
)
from itembank.errors import DataError, ParameterError
from itembank.estimation.folds import TOLERANCE as TOLERANCE_OF_FOLDS
from itembank.numerics.arrays import FloatArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.numerics.splits import dealt_out, splits_of
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix, check_enough_models, check_models_and_items_have_responses
from itembank.tables import points_of
from itembank.tabular import Tabular
from itembank_studies.papers.task_overview import task_means, tasks_of


@dataclass(frozen=True, slots=True, repr=False)
class Dimensionality(Tabular):
    """Number of abilities that responses measure.

    Attributes
    ----------
    eigenvalues : (n_eigenvalues,)
        Of the correlation matrix of items, or of the scores of tasks (`by`), falling.
    shares : (n_eigenvalues,)
        Of their variance that each explains.
    thresholds : (n_eigenvalues,)
        95th percentile of each eigenvalue when every item's responses are shuffled over models.
    n_dims_parallel : int
        How many leading eigenvalues exceed their threshold.
    candidates : tuple of n_candidates numbers
        Numbers of dimensions that were cross-validated; empty with fewer than ten models.
    n_shown : tuple of n_sizes numbers
        Items that a cross-validated model showed; the last is half of all.
    errors, error_standard_errors : (n_sizes, n_candidates)
        Mean over models of the mean over scenarios of ``|predicted - actual|`` score on the hidden half of the items.
    log_likelihoods, log_likelihood_standard_errors : (n_sizes, n_candidates)
        Mean over models of the log-likelihood of a hidden response.
    relative_errors, relative_standard_errors : (n_sizes, n_candidates)
        Error over that of the smallest candidate, minus one (WILD Figure 8); the models are the same, so its standard
        error is smaller than those of the two.
    n_dims : int or None
        The smallest candidate within a quarter of a point of the best error with half of the items shown; None when
        nothing was tried.
    n_models, n_items : int
    n_items_used : int
        Every k-th item of a long benchmark, for the errors.
    share_missing : float
    by : str
        Column of the tasks whose scores the eigenvalues are of; empty for those of items.
    """

    header = (
        *("n_dims", "n_dims_parallel", "n_models", "n_items", "n_items_used", "share_missing"),
        *("eigenvalues", "thresholds", "shares", "message"),
    )

    eigenvalues: FloatArray
    shares: FloatArray
    thresholds: FloatArray
    n_dims_parallel: int
    candidates: tuple[int, ...]
    n_shown: tuple[int, ...]
    errors: FloatArray
    error_standard_errors: FloatArray
    log_likelihoods: FloatArray
    log_likelihood_standard_errors: FloatArray
    relative_errors: FloatArray
    relative_standard_errors: FloatArray
    n_dims: int | None
    n_models: int
    n_items: int
    n_items_used: int
    share_missing: float
    by: str = ""

    @property
    def table(self) -> pl.DataFrame:
        """One row for each number of shown items and each candidate."""
        j, k = (place.ravel() for place in np.indices(self.errors.shape))
        columns = {"n_shown": [self.n_shown[size] for size in j], "n_dims": [self.candidates[number] for number in k]}
        measures = {
            "error": self.errors,
            "error_standard_error": self.error_standard_errors,
            "relative_error": self.relative_errors,
            "relative_standard_error": self.relative_standard_errors,
            "log_likelihood": self.log_likelihoods,
            "log_likelihood_standard_error": self.log_likelihood_standard_errors,
        }
        return pl.DataFrame(columns | {name: values[j, k] for name, values in measures.items()})

    @property
    def message(self) -> str:
        """What was found, and the data behind it."""
        parts = [
            f"the first eigenvalue explains {100 * self.shares[0]:.0f} % of the {'tasks' if self.by else 'items'}' "
            f"variance, and {self.n_dims_parallel} exceed what shuffled responses give"
        ]
        if self.n_dims is None:
            parts.append(f"{self.n_models} models are too few for cross-validation")
        else:
            tried = zip(self.errors[-1], self.candidates, strict=True)
            listed = ", ".join(f"{points_of(error)} with {n_dims}" for error, n_dims in tried)
            parts.append(
                f"cross-validated scores are off by {listed} (points, {self.n_shown[-1]} items shown): {self.n_dims} "
                f"{'is' if self.n_dims == 1 else 'are'} the fewest within {100 * TOLERANCE:g} of the best"
            )
        if self.share_missing > 0.0:
            parts.append(
                f"{100 * self.share_missing:.1f} % of the responses are missing: they count as their item's mean in "
                "the eigenvalues, and not at all elsewhere"
            )
        if self.n_items_used < self.n_items:
            parts.append(f"errors rest on {self.n_items_used} of {self.n_items} items")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts, with the first ten eigenvalues."""
        facts = Tabular.to_dict(self)
        return facts | {name: facts[name][:10] for name in ("eigenvalues", "thresholds", "shares")}


CANDIDATES = (1, 2, 3, 4, 5, 8)
"""Every small number, among them the three that WILD chooses, and a larger one to show whether errors still fall."""
N_SHOWN = (16, 64, 256)
"""By factors of four up to half of the items: a short test can make use of fewer abilities than a long one."""


HeldOutErrors: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], FloatArray, FloatArray]
"""Candidates, n_shown, and the errors and log-likelihoods of each model, (n_sizes, n_candidates, n_models) each."""


@one_blas_thread()
def dimensionality(
    responses: GivenResponses,
    spec: CalibrationSpec | str = "variational",
    *,
    candidates: tuple[int, ...] = CANDIDATES,
    n_shown: tuple[int, ...] = N_SHOWN,
    by: str = "",
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Dimensionality:
    """Count the abilities by eigenvalues, by parallel analysis and by cross-validation.

    Eigenvalues are those of the item correlation matrix, their thresholds the 95th percentile over 50 shuffles of
    each item's responses (WILD B.1). Errors are cross-validated, a fifth of the models at a time:
    the others calibrate each candidate; a model of the fifth shows `n_shown` items drawn from those of even place, and
    last all of these; each time its items of odd place are predicted. Of more than 6,000 items every k-th is used.

    Parameters
    ----------
    responses : ResponseMatrix, path or paths
        NaN where missing. A missing cell counts as its item's mean in the eigenvalues, and stays in its place when the
        others are shuffled; it takes no part in the fits and errors.
    spec : CalibrationSpec or str
        Every choice but the number of dimensions.
    candidates : tuple of int
        Numbers of dimensions to try; those with fewer than four past models for each dimension are left out.
    n_shown : tuple of int
        Numbers that half of the items do not exceed are left out.
    by : str
        Column of the item table that names tasks: the eigenvalues are then those of models' scores on the tasks, as in
        the paper, and far fewer. Errors are of items all the same.
    rng : Generator, int or None
        Shuffles responses, divides the models and draws the items they show.
    progress : ProgressCallback

    Returns
    -------
    Dimensionality
        Without held-out errors when there are fewer than ten models.

    Raises
    ------
    DataError
        With fewer than three models, a model or item without responses, or no item that varies.
    ParameterError
        For a number of shown items below one, or without a candidate that could be tried.
    """
    responses = as_responses(responses)
    spec = METHODS.resolve(spec)
    rng = as_generator(rng)
    if n_shown and min(n_shown) < 1:
        raise ParameterError(f"a number of shown items must be at least 1, got {n_shown}.")
    # centred, two models have one eigenvalue, which explains everything whatever they answered
    check_enough_models(responses.n_models, 3, "counting dimensions")
    check_models_and_items_have_responses(responses.responses, responses.model_ids, responses.item_ids)
    if not (np.nanmax(responses.responses, axis=0) > np.nanmin(responses.responses, axis=0)).any():
        raise DataError(
            f"at least one item must tell models apart, got {responses.n_items} items each answered alike by all "
            "models. Check the metric, or add models of other strength."
        )
    progress("parallel analysis", 0.0)
    values = responses.responses
    if by:
        names, index = tasks_of(responses.items, by)
        values = task_means(values, index, len(names))
    # their 95th percentile is known to 0.3 standard deviations of an eigenvalue; that of 20 to 0.4, of 200 to 0.15
    parallel = parallel_analysis(values, rng, n_shuffles=50)
    used, _ = thinned(responses)
    none: FloatArray = np.empty((0, 0))
    tried: HeldOutErrors = (), (), none, none
    n_dims = None
    errors, error_spread, log_likelihoods, likelihood_spread, relative, relative_spread = (none,) * 6
    if responses.n_models >= MINIMUM_TO_CHOOSE:
        tried = held_out_errors(used, spec, candidates=candidates, n_shown=n_shown, rng=rng, progress=progress)
        of_models = tried[2]
        errors, error_spread = _mean_and_error(of_models)
        ratio = errors / errors[:, :1]
        # the error of a ratio r of means by linearisation: that of the mean of e - r e_1, over the mean of e_1
        _, ratio_spread = _mean_and_error(of_models - ratio[:, :, None] * of_models[:, :1])
        relative, relative_spread = ratio - 1.0, ratio_spread / errors[:, :1]
        log_likelihoods, likelihood_spread = _mean_and_error(tried[3])
        n_dims = tried[0][int(np.flatnonzero(errors[-1] <= errors[-1].min() + TOLERANCE)[0])]
    return Dimensionality(
        parallel.eigenvalues,
        parallel.eigenvalues / parallel.eigenvalues.sum(),
        parallel.thresholds,
        parallel.n_dims,
        *tried[:2],
        errors,
        error_spread,
        log_likelihoods,
        likelihood_spread,
        relative,
        relative_spread,
        n_dims=n_dims,
        n_models=responses.n_models,
        n_items=responses.n_items,
        n_items_used=used.n_items,
        share_missing=1.0 - float(responses.observed.mean()),
        by=by,
    )


def held_out_errors(
    responses: ResponseMatrix,
    spec: CalibrationSpec,
    *,
    candidates: tuple[int, ...],
    n_shown: tuple[int, ...],
    rng: np.random.Generator,
    progress: ProgressCallback = silent,
) -> HeldOutErrors:
    """Fit every candidate without each fifth of the models, and predict these from some of their items.

    An error is the mean over scenarios of ``|predicted - actual|`` score; NaN where a model has no hidden response.
    """
    # a fit to compare predictions need not be as exact as one to keep
    spec = replace(spec, tolerance=max(TOLERANCE_OF_FOLDS, spec.tolerance))
    by_score = np.argsort(np.nanmean(responses.responses, axis=1), kind="stable")
    n_folds = 5  # a fifth of the models at a time, as in tinyBenchmarks; each candidate costs so many fits
    splits = splits_of(dealt_out(by_score, n_folds, rng))
    parts = [leave_out(responses, split) for split in splits]
    n_models, n_items = (min(sizes) for sizes in zip(*((p.n_calibration, p.usable.size) for p in parts), strict=True))
    tried = feasible(candidates, n_models, n_items, spec)
    n_even = min(int(part.is_even.sum()) for part in parts)
    sizes = (*sorted({size for size in n_shown if size < n_even}), n_even)
    errors = np.full((len(sizes), len(tried), responses.n_models), np.nan)
    log_likelihoods = errors.copy()
    for number, (split, part) in enumerate(zip(splits, parts, strict=True)):
        may_be, showing = part.is_even & ~np.isnan(part.responses), []
        for size in sizes[:-1]:
            # the items of the smallest random keys are a simple random sample of each row; infinite keys come last
            keys = np.where(may_be, rng.random(may_be.shape), np.inf)
            showing.append(may_be & (np.argsort(np.argsort(keys, axis=1), axis=1) < size))
        for k, n_dims in enumerate(tried):
            progress(f"trying {n_dims}", (number + k / len(tried)) / n_folds)
            fitted = fit_candidate(part, spec, n_dims)
            spec = replace(spec, family=fitted.parameters.family)  # log-likelihoods compare within one family
            for j, is_shown in enumerate([*showing, part.is_even]):
                off, log_likelihood, _ = hidden_errors(part, fitted, is_shown)
                errors[j, k, split.test] = mean_where_known(np.abs(off), axis=1)
                log_likelihoods[j, k, split.test] = log_likelihood
    return tried, sizes, errors, log_likelihoods


def _mean_and_error(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over the last axis, and its standard error."""
    counts = (~np.isnan(values)).sum(axis=-1)
    return np.nanmean(values, axis=-1), np.nanstd(values, axis=-1, ddof=1) / np.sqrt(counts)
