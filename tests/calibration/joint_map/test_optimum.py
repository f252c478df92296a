"""Joint MAP against an objective written anew here and a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import FitData
from itembank.calibration.joint_map.fit import Plain, fit_joint_map
from itembank.calibration.joint_map.steps import ascend
from itembank.progress import silent
from tests.calibration.joint_map.starting import leading_point

SHAPE = (11, 7)


def simulated(n_dims, *, missing=False, lower=0.0, shape=SHAPE, seed=0):
    rng = np.random.default_rng(seed)
    loadings, abilities = rng.lognormal(0.0, 0.4, (shape[1], n_dims)), rng.normal(size=(shape[0], n_dims))
    share = 1.0 / (1.0 + np.exp(-(abilities @ loadings.T + rng.normal(size=shape[1]))))
    responses = (rng.random(shape) < lower + (1.0 - lower) * share).astype(float)
    observed = rng.random(shape) > 0.2 if missing else None
    if missing:
        responses[~observed] = 0.0
    return FitData(responses, observed, np.full(shape[1], lower))


def penalised(data, spec, loadings, intercept, abilities):
    """Minus the log posterior density without its constant."""
    share = 1.0 / (1.0 + np.exp(-(abilities @ loadings.T + intercept)))
    chances = data.lower_asymptote + (1.0 - data.lower_asymptote) * share
    cells = data.responses * np.log(chances) + (1.0 - data.responses) * np.log1p(-chances)
    if data.observed is not None:
        cells = cells * data.observed
    prior = 0.5 * np.sum(abilities**2) + 0.5 * np.sum((intercept / spec.intercept_sd) ** 2)
    return -cells.sum() + prior + spec.l1 * np.abs(loadings).sum()


def optimum_nearby(data, spec, point, rng, density=penalised):
    """Best value a general optimiser finds from near the given point, L1 exact by positive and negative parts."""
    n_items, n_dims = point.items.shape[0], spec.n_dims
    size = n_items * n_dims

    def split(values):
        loadings = (values[:size] - values[size : 2 * size]).reshape(n_items, n_dims)
        intercept = values[2 * size : 2 * size + n_items]
        return loadings, intercept, values[2 * size + n_items :].reshape(-1, n_dims)

    def objective(values):
        loadings, intercept, abilities = split(values)
        smooth = density(data, spec, loadings, intercept, abilities) - spec.l1 * np.abs(loadings).sum()
        return smooth + spec.l1 * values[: 2 * size].sum()

    loadings = point.items[:, :-1].ravel() + 0.1 * rng.normal(size=size)
    rest = np.concatenate([point.items[:, -1], point.abilities.ravel()])
    start = np.concatenate(
        [np.maximum(loadings, 0.0), np.maximum(-loadings, 0.0), rest + 0.1 * rng.normal(size=rest.size)]
    )
    bounds = [(0.0, None)] * (2 * size) + [(None, None)] * rest.size
    options = {"maxiter": 3000, "maxfun": 10**7, "ftol": 1e-14, "gtol": 1e-8}
    return minimize(objective, start, method="L-BFGS-B", bounds=bounds, options=options).fun


@pytest.mark.parametrize(
    ("n_dims", "l1", "missing", "lower"),
    [(1, 0.1, False, 0.0), (1, 1.0, True, 0.0), (1, 0.1, False, 0.2), (2, 0.1, False, 0.0)],
)
def test_no_general_optimiser_finds_a_better_point_nearby(n_dims, l1, missing, lower):
    data = simulated(n_dims, missing=missing, lower=lower)
    spec = JointMAP("2pl" if n_dims == 1 else "mirt", n_dims=n_dims, l1=l1, tolerance=1e-12, max_iterations=5000)
    path = ascend(Plain(data, spec), leading_point(data, spec))
    loadings, intercept = path.end.items[:, :-1], path.end.items[:, -1]
    ours = penalised(data, spec, loadings, intercept, path.end.abilities)
    assert path.converged
    # the history is the same objective up to a constant
    first = leading_point(data, spec)
    start = penalised(data, spec, first.items[:, :-1], first.items[:, -1], first.abilities)
    assert path.history[-1] - path.history[0] == pytest.approx(start - ours, rel=1e-8)
    best = optimum_nearby(data, spec, path.end, np.random.default_rng(1))
    assert ours == pytest.approx(best, abs=1e-4 * abs(best) if n_dims > 1 else 1e-4)


def test_the_common_slope_is_common():
    fit = fit_joint_map(simulated(1, shape=(40, 60)), JointMAP("1pl"), progress=silent)
    assert fit.loadings.std() == pytest.approx(0.0, abs=1e-12)


def test_covariances_are_inverse_blocks_of_the_information():
    data, spec = simulated(1, shape=(60, 40)), JointMAP()
    fit = fit_joint_map(data, spec, progress=silent)
    # on the reported scale the block of an item is X' W X, plus the intercept's prior moved with the scale
    design = np.column_stack([fit.abilities, np.ones(60)])
    share = 1.0 / (1.0 + np.exp(-(fit.abilities @ fit.loadings.T + fit.intercept)))
    item = 7
    information = (design * (share * (1 - share))[:, [item]]).T @ design
    without_prior = np.linalg.inv(information)
    assert np.all(np.diag(fit.item_covariance[item]) <= np.diag(without_prior) + 1e-9)
    np.testing.assert_allclose(fit.item_covariance[item], without_prior, rtol=0.1)
