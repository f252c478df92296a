from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from itembank.calibration.fits import FitData
from itembank.calibration.variational.state import Covariances, start_posterior
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True)
class Simulated:
    theta: np.ndarray
    loadings: np.ndarray
    intercept: np.ndarray
    data: FitData


def simulate(n_models, n_items, *, n_dims=1, missing=0.0, guessing=0.0, common_slope=None, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, n_dims))
    theta = (theta - theta.mean(axis=0)) / theta.std(axis=0)
    loadings = rng.normal(1.0, 0.4, size=(n_items, n_dims)) * np.array([1.0, *[0.7] * (n_dims - 1)])
    loadings[:, 1:] -= 0.7
    if common_slope is not None:
        loadings[:] = common_slope
    intercept = rng.normal(0.0, 1.2, size=n_items)
    lower = np.full(n_items, float(guessing))
    chances = lower + (1.0 - lower) * expit(theta @ loadings.T + intercept)
    responses = (rng.random(chances.shape) < chances).astype(float)
    observed = np.ones(chances.shape, dtype=bool)
    if missing:
        observed = rng.random(responses.shape) >= missing
        responses = np.where(observed, responses, 0.0)
    tell_apart(responses, observed, theta)
    data = FitData(responses, observed if missing else None, lower)
    return Simulated(theta, loadings, intercept, data)


def tell_apart(responses, observed, theta):
    """Let the weakest (strongest) model that was asked fail (solve) an item that all others solve (fail)."""
    order = np.argsort(theta[:, 0])
    for item in range(responses.shape[1]):
        asked = order[observed[order, item]]
        if np.ptp(responses[asked, item]) == 0.0:
            odd_one = asked[0] if responses[asked[0], item] == 1.0 else asked[-1]
            responses[odd_one, item] = 1.0 - responses[odd_one, item]


def random_posterior(n_models, n_items, n_dims, *, seed=0):
    """Any posterior of the family, with correlated items and abilities."""
    rng = np.random.default_rng(seed)

    def covariances(count, size):
        root = 0.3 * rng.normal(size=(count, size, size))
        return root @ root.swapaxes(1, 2) + 0.05 * np.eye(size)

    theta, spread = rng.normal(size=(n_models, n_dims)), covariances(n_models, n_dims)
    start = start_posterior(theta, spread, n_items, has_common_slope=False)
    items = rng.normal(size=(n_items, n_dims + 1))
    return replace(start, item_mean=items, items_spread=Covariances.of(covariances(n_items, n_dims + 1)))


def guessing_siblings(known=0.2, *, seed=1):
    """Skill (60,) and responses of 15 families of four to 300 items: skill decides a part, guesses of families most."""
    rng = np.random.default_rng(seed)
    skill, family = rng.normal(size=60), np.repeat(np.arange(15), 4)
    is_known = rng.random(300) < known
    probability = 1.0 / (1.0 + np.exp(-(skill[:, None] - rng.normal(size=300))))
    of_family, own = rng.random((15, 300)) < 0.4, rng.random((60, 300)) < 0.4
    guess = np.where(rng.random((60, 300)) < 0.8, of_family[family], own)
    answers = np.where(is_known, rng.random((60, 300)) < probability, guess)
    return skill, ResponseMatrix.create(answers.astype(float))
