import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.irt.discrepancy import Discrepancy, measure_discrepancy, with_discrepancy
from itembank.irt.linear_gaussian import FactorModel, factor_posterior

RNG = np.random.default_rng(0)
GROUPS = np.repeat([0, 1], [100, 5])
MODEL = FactorModel(RNG.random(105), RNG.normal(scale=0.1, size=(105, 2)), np.full(105, 0.1))


def added(model):
    loadings = with_discrepancy(model, GROUPS, Discrepancy(0.2)).loadings[:, model.n_factors :]
    return loadings @ loadings.T


def test_items_of_a_group_and_of_like_difficulty_move_together():
    assert with_discrepancy(MODEL, GROUPS, Discrepancy(0.0)) is MODEL
    covariance = added(MODEL)
    order = np.argsort(MODEL.mean[:100])
    easiest, hardest, next_easiest = order[-1], order[0], order[-2]
    assert covariance[easiest, next_easiest] > covariance[easiest, hardest] >= 0.2**2 - 1e-12
    assert np.all(covariance[:100, 100:] == 0.0)
    assert_allclose(added(MODEL)[100:, 100:], 0.2**2)
    subgroups = np.arange(105) // 21
    changed = with_discrepancy(MODEL, GROUPS, Discrepancy(0.0, 0.3), subgroups=subgroups)
    extra = changed.loadings[:, 2:] @ changed.loadings[:, 2:].T
    assert_allclose(extra, 0.09 * (subgroups[:, None] == subgroups))


def test_the_past_stays_as_it_was():
    changed = with_discrepancy(MODEL, GROUPS, Discrepancy(0.2))
    assert changed.mean is MODEL.mean
    assert changed.noise is MODEL.noise
    assert_allclose(changed.loadings[:, :2], MODEL.loadings)


@pytest.mark.parametrize("scale", [0.03, 0.1])
def test_a_model_beyond_the_past_is_followed(scale):
    # no past model told the items apart: without the shifts the answers of a strong one count for nothing
    model = FactorModel(np.full(200, 0.1), np.full((200, 1), 1e-4), np.full(200, 0.01))
    items, answers = np.arange(0, 200, 4), np.full((1, 50), 0.9)
    predicted = {}
    for label, each in (("past", model), ("open", with_discrepancy(model, np.zeros(200, int), Discrepancy(scale)))):
        factors = factor_posterior(each, items, answers)[0]
        predicted[label] = (each.mean + factors @ each.loadings.T).mean()
    assert predicted["past"] < 0.12
    assert predicted["open"] > 0.7


def shifted_responses(n_models, level, seed=0, n_subgroups=30):
    """Responses of one factor and shifts of every subgroup that no factor of others explains."""
    rng = np.random.default_rng(seed)
    loadings, factors = rng.normal(scale=0.1, size=(300, 1)), rng.normal(size=(n_models, 1))
    subgroups = np.arange(300) % n_subgroups
    shift = rng.normal(scale=level, size=(n_models, n_subgroups))[:, subgroups]
    return 0.5 + factors @ loadings.T + shift + rng.normal(scale=0.3, size=(n_models, 300)), subgroups


@pytest.mark.parametrize("level", [0.06, 0.12])
def test_measures_the_shifts_of_subgroups(level):
    # few models: their factors cannot stand for thirty independent shifts, which stay for the discrepancy
    found = np.mean(
        [
            measure_discrepancy(responses, np.zeros(300, int), subgroups=subgroups).subgroup ** 2
            for responses, subgroups in (shifted_responses(24, level, seed) for seed in range(8))
        ]
    )
    assert_allclose(np.sqrt(found), level, rtol=0.2)


def test_measures_none_where_there_is_none_too_few_models_nothing_and_missing_responses_no_matter():
    responses, subgroups = shifted_responses(200, 0.0)
    found = measure_discrepancy(responses, np.zeros(300, int), subgroups=subgroups)
    assert found.level < 0.012
    assert found.subgroup < 0.025
    responses, subgroups = shifted_responses(10, 0.12)
    few, enough = (measure_discrepancy(responses[:n], np.zeros(300, int), subgroups=subgroups) for n in (9, 10))
    assert few == Discrepancy(0.0) != enough
    responses, subgroups = shifted_responses(30, 0.12)
    holes = np.where(np.random.default_rng(1).random(responses.shape) < 0.1, np.nan, responses)
    found = measure_discrepancy(holes, np.zeros(300, int), subgroups=subgroups)
    assert_allclose(found.subgroup, 0.12, rtol=0.35)
