import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.calibration.variational import blocks as variational_blocks
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.passes import ability_statistics, item_statistics
from itembank.numerics.symmetric import unpack
from tests.calibration.simulated import random_posterior, simulate


def moments_by_hand(posterior, item, model):
    """Mean and variance of the logit as the covariance of a product of independent vectors."""
    x = np.append(posterior.ability_mean[model], 1.0)
    spread = np.zeros((x.size, x.size))
    spread[:-1, :-1] = posterior.ability_covariance[model]
    beta, covariance = posterior.item_mean[item], posterior.item_covariance[item]
    second = np.sum((covariance + np.outer(beta, beta)) * (spread + np.outer(x, x)))
    return beta @ x, second - (beta @ x) ** 2, spread + np.outer(x, x), x


@pytest.mark.parametrize("rule", [jaakkola_jordan, normal_expectation])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_statistics_are_the_sums_they_claim_to_be(rule, missing, monkeypatch):
    monkeypatch.setattr(variational_blocks, "CELLS_PER_BLOCK", 20)  # several blocks
    data = simulate(7, 9, n_dims=2, missing=missing, seed=1).data
    posterior = random_posterior(7, 9, 2)
    blocks = make_blocks(data, single_precision=False)
    items = item_statistics(blocks, posterior, rule)
    abilities = ability_statistics(blocks, posterior, rule)
    of_items, of_items_linear = np.zeros((9, 3, 3)), np.zeros((9, 3))
    of_models, of_models_linear = np.zeros((7, 2, 2)), np.zeros((7, 2))
    likelihood = np.zeros(9)
    for item in range(9):
        for model in range(7):
            if data.observed is not None and not data.observed[model, item]:
                continue
            mean, variance, second, x = moments_by_hand(posterior, item, model)
            tilt, curvature, log_cosh = (
                0.0 if value is None else value.item() for value in rule(np.array([[mean]]), np.array([[variance]]))
            )
            centred = data.responses[model, item] - 0.5
            beta = posterior.item_mean[item]
            squares = posterior.item_covariance[item] + np.outer(beta, beta)
            of_items[item] += curvature * second
            of_items_linear[item] += (centred + tilt) * x
            of_models[model] += curvature * squares[:2, :2]
            of_models_linear[model] += (centred + tilt) * beta[:2] - curvature * squares[:2, 2]
            likelihood[item] += centred * mean - log_cosh
    assert_allclose(unpack(items.precision, 3), of_items, rtol=1e-10)
    assert_allclose(items.linear, of_items_linear, rtol=1e-9, atol=1e-12)
    assert_allclose(unpack(abilities.precision, 2), of_models, rtol=1e-10)
    assert_allclose(abilities.linear, of_models_linear, rtol=1e-9, atol=1e-12)
    assert_allclose(items.likelihood, likelihood, rtol=1e-10)
    assert_allclose(abilities.likelihood, likelihood, rtol=1e-10)


def test_single_precision_agrees_with_double():
    data = simulate(40, 60, n_dims=2, missing=0.2, guessing=0.2, seed=2).data
    posterior = random_posterior(40, 60, 2)
    single = item_statistics(make_blocks(data, single_precision=True), posterior, normal_expectation)
    double = item_statistics(make_blocks(data, single_precision=False), posterior, normal_expectation)
    scale = np.abs(double.precision).max()
    assert_allclose(single.precision, double.precision, atol=1e-5 * scale)
    assert_allclose(single.likelihood, double.likelihood, rtol=1e-5)
