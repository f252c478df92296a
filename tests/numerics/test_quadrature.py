import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp

from itembank.errors import ParameterError
from itembank.numerics.quadrature import THREE_NODES, log_sum_exp, normal_grid


def test_grids_are_those_of_the_normal_density():
    places, weights = np.array(THREE_NODES).T
    found = [weights @ (places * np.sqrt(3.0)) ** power for power in range(6)]
    assert_allclose(found, [1.0, 0.0, 1.0, 0.0, 3.0, 0.0], atol=1e-15)
    nodes, log_weights = normal_grid(61, bounds=(-6.0, 6.0), n_dims=1)
    density = stats.norm.pdf(nodes[:, 0])
    assert_allclose(np.exp(log_weights), density / density.sum(), rtol=1e-13)
    nodes, log_weights = normal_grid(31, bounds=(-6.0, 6.0), n_dims=2)
    weights = np.exp(log_weights)
    assert nodes.shape == (961, 2)
    assert_allclose(weights @ nodes, 0.0, atol=1e-15)
    assert_allclose(nodes.T @ (weights[:, None] * nodes), np.eye(2), atol=1e-6)
    # the fourth moment of a cut normal is the first to show a wrong tail
    assert_allclose(weights @ nodes[:, 0] ** 4, 3.0, atol=1e-4)


@pytest.mark.parametrize("ratio", [0.5, 0.7])
def test_trapezoid_error_is_the_stated_one(ratio):
    # a likelihood of width s and spacing h = s / ratio, wherever it stands between two nodes
    spacing = 0.1
    width = ratio * spacing
    nodes, _ = normal_grid(121, bounds=(-6.0, 6.0), n_dims=1)
    distance = (nodes[:, 0, None] - np.linspace(0.0, spacing, 41)) / width
    sums = np.exp(-0.5 * distance**2).sum(axis=0) * spacing
    error = np.abs(sums / (width * np.sqrt(2.0 * np.pi)) - 1.0).max()
    assert_allclose(error, 2.0 * np.exp(-2.0 * np.pi**2 * ratio**2), rtol=0.01)


def test_log_sum_exp_where_plain_exponentials_underflow():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(7, 11)) - 1500.0
    assert_allclose(log_sum_exp(values), logsumexp(values, axis=1), rtol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_nodes": 1}, "at least 2 nodes"),
        ({"n_nodes": 11, "bounds": (2.0, -2.0)}, "increasing bounds"),
        ({"n_nodes": 1001, "n_dims": 2}, "at most 1,000,000 nodes"),
    ],
)
def test_impossible_grids_are_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        normal_grid(**arguments)
