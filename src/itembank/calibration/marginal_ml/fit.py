"""Marginal maximum likelihood of item parameters: EM with quadrature (Bock and Aitkin 1981)."""

from dataclasses import replace

import numpy as np

from itembank.calibration.calibration_specs import ItemPrior, MarginalML, RelativeItemPrior
from itembank.calibration.fits import Ascent, Fit, FitData, standardise
from itembank.calibration.marginal_ml.em import (
    Problem,
    Step,
    best_scale,
    em_step,
    rescale,
    run_em,
    start_items,
    with_line,
)
from itembank.calibration.marginal_ml.errors import item_covariances
from itembank.calibration.marginal_ml.posterior import (
    WIDEST_SPACING_TO_SD,
    ability_grid,
    adaptive_grid,
    is_fine_enough,
    sharpest_sd,
)
from itembank.errors import ParameterError
from itembank.irt.parameters import AbilityPrior
from itembank.progress import ProgressCallback, silent


def fit_marginal_ml(data: FitData, spec: MarginalML, *, progress: ProgressCallback = silent) -> Fit:
    """Fit item parameters with abilities integrated out over N(0, I), then score the models.

    Abilities are expected a posteriori, with their posterior variances. `history` is the log
    marginal likelihood plus the log prior of the items.

    Raises
    ------
    ParameterError
        When `n_quadrature` is given and far too coarse for the posteriors of ability.
    """
    problem, path = fit_items(data, spec, progress=progress)
    items, posterior = path.end.items, path.end.posterior
    covariance, how = item_covariances(problem, path.end)
    sharpest = _sharpest(problem, path)
    parts = [f"largest change of an item {path.end.change:.2g} standard errors after {len(path.history)} steps"]
    if not path.converged:
        advice = "Raise max_iterations, or set an item prior"
        if len(path.history) < spec.max_iterations:
            advice = "No step raised the likelihood any more: set an item prior, or look for broken items"
        parts[0] += f", above the tolerance {spec.tolerance:g}. {advice}"
    parts.append(f"{len(problem.grid.nodes)} nodes")
    if problem.grid.spacing > WIDEST_SPACING_TO_SD * sharpest:
        parts.append(
            f"their spacing {problem.grid.spacing:.3g} is wide for the sharpest ability's posterior sd "
            f"{sharpest:.3g}, so results depend on the nodes: leave n_quadrature at 'auto'"
        )
    parts.append(f"standard errors: {how}")
    return standardise(
        Fit(
            *(items[:, :-1], items[:, -1], covariance, posterior.mean, posterior.covariance),
            prior=AbilityPrior.standard(1),
            converged=path.converged,
            n_iterations=len(path.history),
            message="; ".join(parts) + ".",
            history=np.asarray(path.history),
        )
    )


def fit_items(data: FitData, spec: MarginalML, *, progress: ProgressCallback = silent) -> tuple[Problem, Ascent[Step]]:
    """Find the item parameters, on nodes fine enough for the data."""
    grid = adaptive_grid(1.0, 5.0, bounds=spec.bounds)
    if spec.n_quadrature != "auto":
        grid = ability_grid(spec.n_quadrature, spec.n_quadrature, bounds=spec.bounds)
    has_common_slope = spec.item_model == "1pl"
    prior = _prior(spec, *data.responses.shape)
    start_prior = ItemPrior() if isinstance(prior, RelativeItemPrior) else prior
    problem = Problem(data, grid, start_prior, has_common_slope)
    items = start_items(data, grid, has_common_slope=has_common_slope)
    # Steps on coarse nodes, to see how sharp posteriors and how steep curves will be. One to ten lead to the same end.
    n_warm_up = 5
    path = run_em(problem, items, max_steps=n_warm_up, tolerance=spec.tolerance, progress=silent)
    if isinstance(prior, RelativeItemPrior):
        # the line of the intercepts, on a scale at which abilities have mean 0 and variance 1
        posterior = path.end.posterior
        items = rescale(path.end.items, *best_scale(posterior.mean, posterior.covariance, path.end.items, None))
        problem = replace(problem, prior=with_line(prior, items, has_common_slope=has_common_slope))
        path = Ascent(em_step(problem, items), [], converged=False)
    if spec.n_quadrature == "auto":
        n_trials = 1.0 if problem.data.n_trials is None else float(problem.data.n_trials.max())
        # Four grids at most, while the solution is sharper than the nodes resolve; the first was fine enough in
        # simulations. Each fit goes on from the last, so that more cost little.
        for _ in range(4):
            # slopes may still grow beyond those of the warm-up: a margin of a quarter saves another grid
            sharpest, steepest = _sharpest(problem, path), 1.25 * _steepest(path)
            grid = adaptive_grid(sharpest, steepest, bounds=spec.bounds, n_trials=n_trials)
            problem = replace(problem, grid=grid)
            path = run_em(
                problem, path.end.items, max_steps=spec.max_iterations, tolerance=spec.tolerance, progress=progress
            )
            if is_fine_enough(grid, _sharpest(problem, path), _steepest(path), n_trials=n_trials):
                break
        return problem, path
    sharpest, refused_spacing = _sharpest(problem, path), 4.0
    if grid.spacing > refused_spacing * sharpest:  # no posterior could be summed on these nodes
        raise ParameterError(
            f"nodes of ability must lie closer than {refused_spacing:g} posterior standard deviations, got spacing "
            f"{grid.spacing:.3g} (n_quadrature={spec.n_quadrature}, bounds={spec.bounds}) for a posterior sd of "
            f"{sharpest:.3g}. Leave n_quadrature at 'auto'."
        )
    path = run_em(problem, path.end.items, max_steps=spec.max_iterations, tolerance=spec.tolerance, progress=progress)
    return problem, path


def _sharpest(problem: Problem, path: Ascent[Step]) -> float:
    """Posterior sd of the sharpest ability."""
    return sharpest_sd(path.end.items, path.end.posterior.mean, problem.data.n_trials)


def _steepest(path: Ascent[Step]) -> float:
    """Largest absolute loading."""
    return float(np.abs(path.end.items[:, :-1]).max())


def _prior(spec: MarginalML, n_models: int, n_items: int) -> ItemPrior | RelativeItemPrior | None:
    if spec.prior != "auto":
        return spec.prior
    # From this many models on, and when there are more models than items, prior 'auto' means none.
    many_models = 300
    if n_models >= many_models and n_models > n_items:
        return None
    return RelativeItemPrior()
