"""Outlying probabilities: where they are moved to, and that they spoil nothing."""

import numpy as np
import pytest
from scipy.special import digamma, expit, logit, polygamma

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational.beta_cells import BetaRule, make_table
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.fit import MOST_SDS, draw_in, fit_variational
from itembank.calibration.variational.passes import constants_of
from itembank.progress import silent
from tests.calibration.simulated import random_posterior

PRECISION = 300.0
SPEC = Variational(family="beta")


def probabilities(n_models=30, n_items=40, *, precision=PRECISION, seed=0):
    rng = np.random.default_rng(seed)
    mean = expit(rng.normal(size=(n_models, 1)) * rng.lognormal(0.0, 0.3, n_items) + rng.normal(size=n_items))
    drawn = np.clip(rng.beta(mean * precision, (1.0 - mean) * precision), 1e-6, 1.0 - 1e-6)
    return beta_data(drawn), mean


def beta_data(values, observed=None):
    n_items = values.shape[1]
    return FitData(
        values, observed, np.zeros(n_items), family="beta", precision_index=np.zeros(n_items, dtype=np.int64)
    )


@pytest.mark.parametrize("missing", [False, True])
def test_outlying_logits_end_five_standard_deviations_off_and_others_stay(missing):
    data, _ = probabilities(6, 5)
    observed = np.random.default_rng(1).random((6, 5)) > 0.3 if missing else None
    data = beta_data(data.responses if observed is None else np.where(observed, data.responses, 0.0), observed)
    posterior, blocks = random_posterior(6, 5, 1), make_blocks(data, single_precision=False)
    rule = BetaRule((make_table(PRECISION, 0.0, np.dtype(np.float64)),))
    drawn = draw_in(blocks, posterior, rule)
    theta, items = posterior.ability_mean, posterior.item_mean
    x = items[:, :1] @ theta.T + items[:, 1:]
    a, b = PRECISION * expit(x), PRECISION * expit(-x)
    design = np.stack([np.broadcast_to(theta.T, x.shape), np.ones(x.shape)], axis=-1)
    spread = np.einsum("ilk,ikm,ilm->il", design, posterior.item_covariance, design)
    spread += (items[:, :1] ** 2 + posterior.item_covariance[:, :1, 0]) * posterior.ability_covariance[:, 0, 0]
    variance = polygamma(1, a) + polygamma(1, b)
    sd = np.sqrt(variance + spread * (a * expit(-x) * variance) ** 2)
    centre, known = digamma(a) - digamma(b), np.ones(x.shape) if observed is None else observed.T
    expected = np.clip(blocks.values, centre - MOST_SDS * sd, centre + MOST_SDS * sd)
    expected = np.where(known, expected, blocks.values)
    np.testing.assert_allclose(drawn.blocks.values, expected, atol=0.05)
    assert drawn.n_cells == np.sum(expected != blocks.values) > 0
    moved = beta_data(expit(drawn.blocks.values.T), observed)
    np.testing.assert_allclose(
        constants_of(drawn.blocks, rule), constants_of(make_blocks(moved, single_precision=False), rule), rtol=1e-9
    )


def test_a_response_of_next_to_nothing_spoils_neither_its_item_nor_the_precision():
    data, mean = probabilities()
    clean = fit_variational(data, SPEC, progress=silent)
    low = np.unravel_index(np.argmin(np.abs(mean - 0.1)), mean.shape)
    values = data.responses.copy()
    values[low] = 1e-6
    spoiled = fit_variational(beta_data(values), SPEC, progress=silent)
    assert "1 of 1200 responses lie further than 5 standard deviations" in spoiled.message
    errors = np.sqrt(np.diagonal(clean.item_covariance, axis1=1, axis2=2))
    assert np.abs(spoiled.intercept - clean.intercept)[low[1]] < 3.0 * errors[low[1], 1]
    assert spoiled.precision[0] == pytest.approx(clean.precision[0], rel=0.1)
    fixed = fit_variational(beta_data(values), Variational(family="beta", precision=PRECISION), progress=silent)
    assert "further" not in fixed.message  # a precision that is given says what is far
    assert np.abs(fixed.intercept - clean.intercept)[low[1]] > 4.0 * errors[low[1], 1]


@pytest.mark.parametrize("precision", [2.0, 300.0])
def test_true_draws_are_left_alone_but_for_very_few(precision):
    data, _ = probabilities(precision=precision, seed=2)
    fit = fit_variational(data, SPEC, progress=silent)
    assert abs(np.log(fit.precision[0] / precision)) < 4.0 * fit.log_precision_error[0]
    posterior_logit = fit.abilities @ fit.loadings.T + fit.intercept
    a, b = fit.precision * expit(posterior_logit), fit.precision * expit(-posterior_logit)
    distance = logit(data.responses) - digamma(a) + digamma(b)
    share = np.mean(np.abs(distance) > MOST_SDS * np.sqrt(polygamma(1, a) + polygamma(1, b)))
    assert share < 1.0 / 200.0
