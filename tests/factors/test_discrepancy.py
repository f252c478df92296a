import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.factors.discrepancy import with_discrepancy
from itembank.factors.linear_gaussian import FactorModel, factor_posterior

RNG = np.random.default_rng(0)
GROUPS = np.repeat([0, 1], [100, 5])
MODEL = FactorModel(RNG.random(105), RNG.normal(scale=0.1, size=(105, 2)), np.full(105, 0.1))


def added(model):
    loadings = with_discrepancy(model, GROUPS, scale=0.2).loadings[:, model.n_factors :]
    return loadings @ loadings.T


def test_without_a_scale_nothing_changes():
    assert with_discrepancy(MODEL, GROUPS, scale=0.0) is MODEL


def test_items_of_a_group_and_of_like_difficulty_move_together():
    covariance = added(MODEL)
    order = np.argsort(MODEL.mean[:100])
    easiest, hardest, next_easiest = order[-1], order[0], order[-2]
    assert covariance[easiest, next_easiest] > covariance[easiest, hardest] >= 0.2**2 - 1e-12
    assert np.all(covariance[:100, 100:] == 0.0)


def test_a_small_group_moves_as_one():
    assert_allclose(added(MODEL)[100:, 100:], 0.2**2)


def test_the_past_stays_as_it_was():
    changed = with_discrepancy(MODEL, GROUPS, scale=0.2)
    assert changed.mean is MODEL.mean
    assert changed.noise is MODEL.noise
    assert_allclose(changed.loadings[:, :2], MODEL.loadings)


@pytest.mark.parametrize("scale", [0.03, 0.1])
def test_a_model_beyond_the_past_is_followed(scale):
    # no past model told the items apart: without the shifts the answers of a strong one count for nothing
    model = FactorModel(np.full(200, 0.1), np.full((200, 1), 1e-4), np.full(200, 0.01))
    items, answers = np.arange(0, 200, 4), np.full((1, 50), 0.9)
    predicted = {}
    for label, each in (("past", model), ("open", with_discrepancy(model, np.zeros(200, int), scale=scale))):
        factors = factor_posterior(each, items, answers).mean
        predicted[label] = (each.mean + factors @ each.loadings.T).mean()
    assert predicted["past"] < 0.12
    assert predicted["open"] > 0.7
