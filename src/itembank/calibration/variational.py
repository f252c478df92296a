"""Variational calibration (P1 4.4; methods.md section 2): start, ascent, result."""

import numpy as np

from itembank.calibration.fits import Fit, FitData
from itembank.calibration.orientation import standardise
from itembank.calibration.specs import Variational
from itembank.calibration.start import start_abilities
from itembank.calibration.variational_ascent import Ascent, ascend
from itembank.calibration.variational_cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational_passes import make_blocks
from itembank.calibration.variational_state import start_posterior
from itembank.irt.parameters import AbilityPrior
from itembank.progress import ProgressCallback

ROUGH_TOLERANCE = 1e-3


def fit_variational(data: FitData, spec: Variational, *, progress: ProgressCallback) -> Fit:
    """Fit item parameters and abilities by variational Bayes.

    Returns
    -------
    Fit
        Abilities with mean 0 and unit second moment over the models, on the principal axes of the loadings.
        `history` is the bound on the log evidence; in float64 it never falls.
    """
    blocks = make_blocks(data, single_precision=spec.single_precision)
    n_models, n_items = data.responses.shape
    abilities = start_abilities(data.responses, data.observed, n_dims=spec.n_dims)
    covariance = np.broadcast_to(0.1 * np.eye(spec.n_dims), (n_models, spec.n_dims, spec.n_dims)).copy()
    posterior = start_posterior(abilities, covariance, n_items, has_common_slope=spec.item_model == "1pl")
    rough = ascend(
        blocks,
        posterior,
        jaakkola_jordan,
        tolerance=ROUGH_TOLERANCE,
        max_sweeps=spec.max_iterations,
        progress=progress,
    )
    ascent = ascend(
        blocks,
        rough.posterior,
        normal_expectation,
        tolerance=spec.tolerance,
        max_sweeps=spec.max_iterations,
        progress=progress,
    )
    return _fit(ascent, [*rough.history, *ascent.history], spec)


def _fit(ascent: Ascent, history: list[float], spec: Variational) -> Fit:
    """Pack the result."""
    posterior = ascent.posterior
    n_iterations = len(history)
    message = f"the bound rose by less than {spec.tolerance:g} of its size after {n_iterations} sweeps"
    if not ascent.converged:
        message = (
            f"the bound still rose by more than {spec.tolerance:g} of its size after {n_iterations} sweeps. "
            "Raise max_iterations, or accept a larger tolerance."
        )
    oriented = standardise(
        posterior.item_mean[:, :-1],
        posterior.item_mean[:, -1],
        posterior.item_covariance,
        posterior.ability_mean,
        posterior.ability_covariance,
    )
    return Fit(
        *oriented,
        prior=AbilityPrior.standard(spec.n_dims),
        converged=ascent.converged,
        n_iterations=n_iterations,
        message=message,
        history=np.asarray(history),
    )
