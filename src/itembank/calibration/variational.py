"""Variational calibration by coordinate ascent: the loop (P1 4.4; methods.md section 2)."""

import numpy as np

from itembank.calibration.fits import Fit, FitData
from itembank.calibration.specs import Variational
from itembank.calibration.start import start_abilities
from itembank.calibration.variational_bound import divergence
from itembank.calibration.variational_passes import Blocks, ability_statistics, item_statistics, make_blocks
from itembank.calibration.variational_scale import principal_axes, rescale
from itembank.calibration.variational_state import Posterior, start_posterior
from itembank.calibration.variational_updates import update_abilities, update_items
from itembank.irt.parameters import AbilityPrior
from itembank.progress import ProgressCallback


def fit_variational(data: FitData, spec: Variational, *, progress: ProgressCallback) -> Fit:
    """Fit item parameters and abilities by variational Bayes.

    Returns
    -------
    Fit
        Abilities with mean 0 and unit second moment over the models, on the principal axes of the loadings.
        `history` is the bound on the log evidence; in float64 it never falls.
    """
    blocks = make_blocks(data, single_precision=spec.single_precision)
    abilities = start_abilities(data.responses, data.observed, n_dims=spec.n_dims)
    posterior = start_posterior(abilities, blocks.centred.shape[0], has_common_slope=spec.item_model == "1pl")
    posterior, history, converged = ascend(blocks, posterior, spec, progress=progress)
    return _fit(principal_axes(posterior), spec, history, converged=converged)


def ascend(
    blocks: Blocks, posterior: Posterior, spec: Variational, *, progress: ProgressCallback
) -> tuple[Posterior, list[float], bool]:
    """Repeat sweeps until the bound rises by less than the tolerance; also give the bound before each sweep."""
    history: list[float] = []
    for iteration in range(spec.max_iterations + 1):
        statistics = item_statistics(blocks, posterior)
        history.append(statistics.likelihood - divergence(posterior))
        progress(f"sweep {iteration}", iteration / spec.max_iterations)
        if iteration > 1 and history[-1] - history[-2] < spec.tolerance * abs(history[-1]):
            return posterior, history, True
        posterior = update_items(posterior, statistics)
        posterior = update_abilities(posterior, *ability_statistics(blocks, posterior))
        posterior = rescale(posterior)
    return posterior, history, False


def _fit(posterior: Posterior, spec: Variational, history: list[float], *, converged: bool) -> Fit:
    """Pack the result."""
    n_iterations = len(history) - 1
    message = f"the bound rose by less than {spec.tolerance:g} of its size after {n_iterations} sweeps"
    if not converged:
        message = (
            f"the bound still rose by more than {spec.tolerance:g} of its size after {n_iterations} sweeps. "
            "Raise max_iterations, or accept a larger tolerance."
        )
    return Fit(
        loadings=posterior.item_mean[:, :-1],
        intercept=posterior.item_mean[:, -1],
        item_covariance=posterior.item_covariance,
        abilities=posterior.ability_mean,
        ability_covariance=posterior.ability_covariance,
        prior=AbilityPrior.standard(spec.n_dims),
        converged=converged,
        n_iterations=n_iterations,
        message=message,
        history=np.asarray(history),
    )
