"""Variational calibration (P1 4.4; methods.md section 2): start, ascent, result."""

import numpy as np

from itembank.calibration.fits import Fit, FitData
from itembank.calibration.orientation import Oriented, empirical_prior, reordered, standardise
from itembank.calibration.specs import Variational
from itembank.calibration.start import start_abilities
from itembank.calibration.variational.ascent import Ascent, ascend
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.passes import Blocks, item_statistics, make_blocks
from itembank.calibration.variational.scale import in_general_axes, rescale
from itembank.calibration.variational.state import Posterior, start_posterior
from itembank.calibration.variational.tasks import start_tasks
from itembank.calibration.variational.updates import update_items
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import IntArray
from itembank.progress import ProgressCallback, silent

ROUGH_TOLERANCE = 1e-3
SUBSET_SIZE = 3000
"""Of many items, so many are fitted first: they tell abilities well enough for the others to need few sweeps."""
ITEM_ROUNDS = 5
START_VARIANCE = 0.1
"""Of the abilities at the start; any number below one will do."""


def fit_variational(data: FitData, spec: Variational, *, progress: ProgressCallback) -> Fit:
    """Fit item parameters and abilities by variational Bayes.

    The ascent starts with the Jaakkola-Jordan bound, whose updates cannot overshoot, and ends with the expected
    log-likelihood itself (see `cells`). Of more than 4,500 items, 3,000 are fitted first.

    Returns
    -------
    Fit
        Abilities with mean 0 and unit second moment over the models, on the principal axes of the loadings. Nested:
        mean 0 and variance 1, the general one first and then by the size of the loadings; the prior is the
        distribution of the calibration models' abilities.
        `history` is the bound on the log evidence of all responses; in float64 it never falls.
    """
    blocks = make_blocks(data, single_precision=spec.single_precision)
    if blocks.n_items <= 1.5 * SUBSET_SIZE:
        rough = _from_nothing(blocks, data, spec)
        ascent = _to_the_end(blocks, rough.posterior, spec, _stage(progress, "fit", 0.1, 1.0))
        return _fit(ascent, [*rough.history, *ascent.history], spec, n_sweeps=len(rough.history) + len(ascent.history))
    chosen = spread_over_difficulty(blocks, SUBSET_SIZE)
    some = blocks.take_items(chosen)
    rough = _from_nothing(some, _take_items(data, chosen), spec)
    first = _to_the_end(some, rough.posterior, spec, _stage(progress, f"fit {SUBSET_SIZE} items", 0.1, 0.5))
    posterior = all_items(blocks, first.posterior, data.task_index)
    ascent = _to_the_end(blocks, posterior, spec, _stage(progress, "fit all items", 0.5, 1.0))
    n_sweeps = len(rough.history) + len(first.history) + ITEM_ROUNDS + len(ascent.history)
    return _fit(ascent, ascent.history, spec, n_sweeps=n_sweeps)


def spread_over_difficulty(blocks: Blocks, size: int) -> IntArray:
    """Choose `size` items at equal steps along the order of their mean response, in their own order."""
    total = blocks.centred.sum(axis=1)
    answered = blocks.centred.shape[1] if blocks.observed is None else blocks.observed.sum(axis=1)
    order = np.argsort(total / answered, kind="stable")
    steps = np.linspace(0, blocks.n_items - 1, size).astype(np.int64)
    return np.sort(order[steps]).astype(np.int64)


def all_items(blocks: Blocks, of_some: Posterior, task_index: IntArray | None = None) -> Posterior:
    """Give a posterior of all items, each from nothing, given the abilities found from some of them."""
    posterior = start_posterior(
        of_some.ability_mean,
        of_some.ability_covariance,
        blocks.n_items,
        has_common_slope=of_some.has_common_slope,
        is_nested=of_some.is_nested,
        tasks=None if task_index is None else start_tasks(task_index, of_some.n_dims + 1),
    )
    full_steps = np.ones(blocks.n_items)
    for _ in range(ITEM_ROUNDS):
        posterior = update_items(posterior, item_statistics(blocks, posterior, jaakkola_jordan), full_steps)
    return rescale(posterior)


def _from_nothing(blocks: Blocks, data: FitData, spec: Variational) -> Ascent:
    """Start at the leading directions in which models differ and go part of the way."""
    abilities = start_abilities(data.responses, data.observed, n_dims=spec.n_dims)
    covariance = np.tile(START_VARIANCE * np.eye(spec.n_dims), (len(abilities), 1, 1))
    start = start_posterior(
        abilities,
        covariance,
        blocks.n_items,
        has_common_slope=spec.item_model == "1pl",
        is_nested=spec.item_model == "nested",
        tasks=None if data.task_index is None else start_tasks(data.task_index, spec.n_dims + 1),
    )
    return ascend(
        blocks,
        start,
        jaakkola_jordan,
        tolerance=max(ROUGH_TOLERANCE, spec.tolerance),
        max_sweeps=spec.max_iterations,
        progress=silent,
    )


def _to_the_end(blocks: Blocks, start: Posterior, spec: Variational, progress: ProgressCallback) -> Ascent:
    return ascend(
        blocks,
        start,
        normal_expectation,
        tolerance=spec.tolerance,
        max_sweeps=spec.max_iterations,
        progress=progress,
    )


def _take_items(data: FitData, items: IntArray) -> FitData:
    """Cut the data down to some items."""
    observed = None if data.observed is None else data.observed[:, items]
    task_index = None
    if data.task_index is not None:  # numbers of the tasks that are left
        task_index = np.unique(data.task_index[items], return_inverse=True)[1].astype(np.int64)
    return FitData(data.responses[:, items], observed, data.lower_asymptote[items], task_index=task_index)


def _stage(progress: ProgressCallback, name: str, first: float, last: float) -> ProgressCallback:
    """Report on one part of the work."""
    return lambda message, share: progress(f"{name} ({message})", first + share * (last - first))


def _fit(ascent: Ascent, history: list[float], spec: Variational, *, n_sweeps: int) -> Fit:
    """Pack the result."""
    posterior = ascent.posterior
    message = f"the bound rose by less than {spec.tolerance:g} of its size after {n_sweeps} sweeps"
    if not ascent.converged:
        message = (
            f"the bound still rose by more than {spec.tolerance:g} of its size after {n_sweeps} sweeps. "
            "Raise max_iterations, or accept a larger tolerance."
        )
    oriented, prior = _oriented(posterior)
    return Fit(
        *oriented,
        prior=prior,
        converged=ascent.converged,
        n_iterations=n_sweeps,
        message=message,
        history=np.asarray(history),
    )


def _oriented(posterior: Posterior) -> tuple[Oriented, AbilityPrior]:
    """Give items and abilities on the standard scale, and the distribution that new models' abilities have there."""
    if not posterior.is_nested:
        return standardise(*_arrays(posterior)), AbilityPrior.standard(posterior.n_dims)
    oriented = _arrays(in_general_axes(posterior))
    sizes = np.sum(oriented.loadings[:, 1:] ** 2, axis=0)
    oriented = reordered(oriented, np.append(0, 1 + np.argsort(-sizes, kind="stable")))
    return oriented, empirical_prior(oriented.abilities, oriented.ability_covariance)


def _arrays(posterior: Posterior) -> Oriented:
    return Oriented(
        posterior.item_mean[:, :-1],
        posterior.item_mean[:, -1],
        posterior.item_covariance,
        posterior.ability_mean,
        posterior.ability_covariance,
    )
