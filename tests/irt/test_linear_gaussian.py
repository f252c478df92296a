import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.bank.norms import fitted_factor_model, measured_discrepancy
from itembank.estimation.regressions import predict_factor
from itembank.irt import linear_gaussian as gaussian
from itembank.irt.discrepancy import Discrepancy, measure_discrepancy, with_discrepancy
from tests.bank.banks import make_bank


def simulated(rng, n_models, n_items, n_factors, noise=0.05):
    loadings = rng.normal(scale=0.15, size=(n_items, n_factors))
    factors = rng.normal(size=(n_models, n_factors))
    mean = rng.uniform(0.3, 0.7, size=n_items)
    return mean + factors @ loadings.T + rng.normal(scale=np.sqrt(noise), size=(n_models, n_items)), loadings


@pytest.mark.parametrize("n_factors", [3, 4, 6])  # of four items: either of two formulas takes the smaller matrix
def test_the_posterior_is_that_of_dense_gaussian_conditioning(n_factors):
    rng = np.random.default_rng(0)
    model = gaussian.FactorModel(rng.random(12), rng.normal(size=(12, n_factors)), rng.uniform(0.1, 1.0, 12))
    items, answers = np.array([1, 4, 7, 11]), rng.random((5, 4))
    mean, covariance = gaussian.factor_posterior(model, items, answers)
    own = model.loadings[items]
    inverse = np.linalg.inv(own @ own.T + np.diag(model.noise[items]))
    assert_allclose(mean, (answers - model.mean[items]) @ inverse @ own, atol=1e-12)
    assert_allclose(covariance, np.eye(n_factors) - own.T @ inverse @ own, atol=1e-12)


def test_finds_the_factors_it_was_given_neither_more_nor_stronger():
    responses, loadings = simulated(np.random.default_rng(1), 300, 400, 3)
    model = gaussian.fit_factor_model(responses)
    assert model.n_factors == 3
    true = loadings @ loadings.T
    assert np.linalg.norm(model.loadings @ model.loadings.T - true) < 0.25 * np.linalg.norm(true)
    assert_allclose(model.noise.mean(), 0.05, rtol=0.05)
    assert gaussian.fit_factor_model(np.random.default_rng(3).normal(size=(80, 300))).n_factors <= 2
    model = gaussian.fit_factor_model(simulated(np.random.default_rng(2), 40, 2000, 1)[0])
    true = 2000 * 0.15**2
    assert model.n_factors == 1
    # what is left of a factor is its variance times the squared cosine, below the truth and near it
    assert 0.5 * true < np.sum(model.loadings**2) < 1.6 * true


def test_a_factor_has_its_variance_times_the_squared_cosine_between_its_vector_and_the_true_one():
    found, expected = [], []
    for seed in range(6):
        responses, loadings = simulated(np.random.default_rng([4, seed]), 40, 300, 1, noise=0.5)
        model = gaussian.fit_factor_model(responses)
        true, own = np.sum(loadings**2), np.sum(model.loadings**2)
        found.append(own / true)
        expected.append(np.sum(loadings * model.loadings) ** 2 / (true * own))
    # 39 draws of the factor tell its variance to sqrt(2 / 39); six times, to a tenth
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.25)


def test_fifty_factors_are_the_most_and_another_unit_changes_theirs_alone():
    responses, _ = simulated(np.random.default_rng(10), 150, 160, 60, noise=1e-4)
    assert gaussian.fit_factor_model(responses).n_factors == 50
    assert gaussian.fit_factor_model(responses, n_factors=55).n_factors == 55
    responses, _ = simulated(np.random.default_rng(5), 40, 300, 2)
    one, ten = gaussian.fit_factor_model(responses), gaussian.fit_factor_model(10.0 * responses)
    assert_allclose(np.sum(ten.loadings**2), 100.0 * np.sum(one.loadings**2), rtol=1e-9)
    assert_allclose(ten.noise, 100.0 * one.noise, rtol=1e-9)


@pytest.mark.parametrize("n_factors", ["auto", 0])
def test_without_spread_or_without_factors_there_is_only_noise(n_factors):
    responses = np.full((6, 4), 0.5) if n_factors == "auto" else simulated(np.random.default_rng(9), 6, 4, 1)[0]
    model = gaussian.fit_factor_model(responses, n_factors=n_factors)
    assert model.loadings.shape == (4, 0)
    assert_allclose(model.mean, responses.mean(axis=0))
    assert_allclose(model.noise, np.maximum(responses.var(axis=0, ddof=1), np.finfo(np.float64).tiny))
    for n_models in (1, 2, 3):  # a handful is survived
        model = gaussian.fit_factor_model((np.random.default_rng(4).random((n_models, 20)) < 0.5).astype(float))
        assert np.isfinite(model.loadings).all()
        assert np.all(model.noise > 0.0)


def test_missing_responses_hardly_change_the_fit():
    rng = np.random.default_rng(5)
    responses, _ = simulated(rng, 200, 150, 2)
    holes = np.where(rng.random(responses.shape) < 0.2, np.nan, responses)
    whole, holed = gaussian.fit_factor_model(responses), gaussian.fit_factor_model(holes)
    assert_allclose(holed.noise.mean(), whole.noise.mean(), rtol=0.1)
    true, found = whole.loadings @ whole.loadings.T, holed.loadings @ holed.loadings.T
    assert np.linalg.norm(found - true) < 0.3 * np.linalg.norm(true)
    responses, _ = simulated(np.random.default_rng(6), 50, 40, 1)
    responses[:, 7] = np.nan
    model = gaussian.fit_factor_model(responses)
    assert np.isfinite(model.mean).all()
    assert np.abs(model.loadings[7]).max() < 0.1


def test_models_that_answered_hardly_anything_change_nothing():
    rng = np.random.default_rng(8)
    responses, _ = simulated(rng, 230, 300, 3)
    sparse = np.where(rng.random((200, 300)) < 0.05, responses[30:], np.nan)
    alone, beside = (
        gaussian.fit_factor_model(responses[:30]),
        gaussian.fit_factor_model(np.vstack([responses[:30], sparse])),
    )
    assert_array_equal(beside.mean, alone.mean)
    assert_array_equal(beside.loadings, alone.loadings)
    only_sparse = gaussian.fit_factor_model(sparse)  # better from these than from nothing
    assert np.corrcoef(only_sparse.mean, np.nanmean(sparse, axis=0))[0, 1] > 0.9


@pytest.mark.parametrize("fraction", [0.2, 0.5])
def test_incomplete_models_make_the_fit_better(fraction):
    distances = []
    for seed in range(3):
        rng = np.random.default_rng([9, seed])
        responses, loadings = simulated(rng, 330, 300, 3)
        true, more = loadings @ loadings.T, np.where(rng.random((300, 300)) < fraction, responses[30:], np.nan)
        models = (gaussian.fit_factor_model(part) for part in (responses[:30], np.vstack([responses[:30], more])))
        distances.append([np.linalg.norm(model.loadings @ model.loadings.T - true) for model in models])
    alone, beside = np.mean(distances, axis=0)
    assert beside < 0.9 * alone


@pytest.fixture
def model(rng):
    return gaussian.FactorModel(rng.random(12), rng.normal(size=(12, 3)), rng.uniform(0.1, 1.0, 12))


ITEMS = np.array([7, 1, 11, 4, 0])


@pytest.fixture
def answers(rng):
    return rng.random((4, ITEMS.size))


def given(model, wanted, known, values):
    """Mean and covariance of some items given the values (n_models, n_known) of others, by the dense matrix."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    gain = covariance[np.ix_(wanted, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
    mean = model.mean[wanted] + (values - model.mean[known]) @ gain.T
    return mean, covariance[np.ix_(wanted, wanted)] - gain @ covariance[np.ix_(known, wanted)]


def test_an_items_and_a_groups_residual_are_what_leaving_answers_out_gives(model, answers):
    residual, variance = gaussian.item_residuals(model, ITEMS, answers)
    for column in range(ITEMS.size):
        others = np.delete(np.arange(ITEMS.size), column)
        mean, covariance = given(model, ITEMS[[column]], ITEMS[others], answers[:, others])
        assert_allclose(residual[:, column], answers[:, column] - mean[:, 0], atol=1e-12)
        assert_allclose(variance[column], covariance[0, 0])
    group, reference = np.array([0, 3]), np.array([1, 4])
    residual, variance = gaussian.group_residuals(model, ITEMS, answers, group, reference)
    mean, covariance = given(model, ITEMS[group], ITEMS[reference], answers[:, reference])
    assert_allclose(residual, answers[:, group].mean(axis=1) - mean.mean(axis=1), atol=1e-12)
    assert_allclose(variance, covariance.mean())
    model = gaussian.FactorModel(np.full(12, 0.5), np.zeros((12, 0)), np.full(12, 0.25))
    residual, variance = gaussian.item_residuals(model, ITEMS, answers)
    assert_allclose(residual, answers - 0.5)
    assert_allclose(variance, 0.25)
    assert_allclose(gaussian.successive_residuals(model, ITEMS, answers), (answers - 0.5) / 0.5)


def test_successive_residuals_are_those_given_all_answers_before_and_make_up_the_misfit(model, answers):
    found = gaussian.successive_residuals(model, ITEMS, answers)
    for t in range(1, ITEMS.size):
        mean, covariance = given(model, ITEMS[[t]], ITEMS[:t], answers[:, :t])
        assert_allclose(found[:, t], (answers[:, t] - mean[:, 0]) / np.sqrt(covariance[0, 0]), atol=1e-12)
    misfit = predict_factor(model, ITEMS, np.ones((12, 1)), answers).misfit
    assert_allclose(np.mean(found**2, axis=1), misfit)


RNG = np.random.default_rng(0)
GROUPS = np.repeat([0, 1], [100, 5])
MODEL = gaussian.FactorModel(RNG.random(105), RNG.normal(scale=0.1, size=(105, 2)), np.full(105, 0.1))


def added(model):
    loadings = with_discrepancy(model, GROUPS, Discrepancy(0.2)).loadings[:, model.n_factors :]
    return loadings @ loadings.T


def test_items_of_a_group_and_of_like_difficulty_move_together():
    assert with_discrepancy(MODEL, GROUPS, Discrepancy(0.0)) is MODEL
    covariance = added(MODEL)
    hardest, *_, next_easiest, easiest = np.argsort(MODEL.mean[:100])
    assert covariance[easiest, next_easiest] > covariance[easiest, hardest] >= 0.2**2 - 1e-12
    assert np.all(covariance[:100, 100:] == 0.0)
    assert_allclose(added(MODEL)[100:, 100:], 0.2**2)
    subgroups = np.arange(105) // 21
    changed = with_discrepancy(MODEL, GROUPS, Discrepancy(0.0, 0.3), subgroups=subgroups)
    extra = changed.loadings[:, 2:] @ changed.loadings[:, 2:].T
    assert_allclose(extra, 0.09 * (subgroups[:, None] == subgroups))
    changed = with_discrepancy(MODEL, GROUPS, Discrepancy(0.2))  # the past stays as it was
    assert changed.mean is MODEL.mean
    assert changed.noise is MODEL.noise
    assert_allclose(changed.loadings[:, :2], MODEL.loadings)


@pytest.mark.parametrize("scale", [0.03, 0.1])
def test_a_model_beyond_the_past_is_followed(scale):
    # no past model told the items apart: without the shifts the answers of a strong one count for nothing
    model = gaussian.FactorModel(np.full(200, 0.1), np.full((200, 1), 1e-4), np.full(200, 0.01))
    items, answers = np.arange(0, 200, 4), np.full((1, 50), 0.9)
    predicted = []
    for each in (model, with_discrepancy(model, np.zeros(200, int), Discrepancy(scale))):
        factors = gaussian.factor_posterior(each, items, answers)[0]
        predicted.append((each.mean + factors @ each.loadings.T).mean())
    assert predicted[0] < 0.12
    assert predicted[1] > 0.7


def shifted_responses(n_models, level, seed=0, n_subgroups=30):
    """Responses of one factor and shifts of every subgroup that no factor of others explains."""
    rng = np.random.default_rng(seed)
    loadings, factors = rng.normal(scale=0.1, size=(300, 1)), rng.normal(size=(n_models, 1))
    subgroups = np.arange(300) % n_subgroups
    shift = rng.normal(scale=level, size=(n_models, n_subgroups))[:, subgroups]
    return 0.5 + factors @ loadings.T + shift + rng.normal(scale=0.3, size=(n_models, 300)), subgroups


def measured(responses, subgroups):
    return measure_discrepancy(responses, np.zeros(300, int), subgroups=subgroups)


@pytest.mark.parametrize("level", [0.06, 0.12])
def test_measures_the_shifts_of_subgroups(level):
    # few models: their factors cannot stand for thirty independent shifts, which stay for the discrepancy
    found = [measured(*shifted_responses(24, level, seed)).subgroup ** 2 for seed in range(8)]
    assert_allclose(np.sqrt(np.mean(found)), level, rtol=0.2)


def test_measures_none_where_there_is_none_too_few_models_nothing_and_missing_responses_no_matter():
    found = measured(*shifted_responses(200, 0.0))
    assert found.level < 0.012
    assert found.subgroup < 0.025
    responses, subgroups = shifted_responses(10, 0.12)
    few, enough = (measured(responses[:n], subgroups) for n in (9, 10))
    assert few == Discrepancy(0.0) != enough
    responses, subgroups = shifted_responses(30, 0.12)
    holes = np.where(np.random.default_rng(1).random(responses.shape) < 0.1, np.nan, responses)
    assert_allclose(measured(holes, subgroups).subgroup, 0.12, rtol=0.35)


WIDTH = 7


@pytest.fixture(scope="module")
def right_and_wrong():
    """Answers of 60 models with two abilities to 50 items, right or wrong."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(60, 2)) @ np.abs(rng.normal(size=(2, 50))) + rng.normal(size=50)
    return (rng.random(logits.shape) < 1.0 / (1.0 + np.exp(-logits))).astype(float)


def some_missing(answers):
    rng = np.random.default_rng(1)
    result = np.where(rng.random(answers.shape) < 0.3, np.nan, answers)
    result[:20, 3:] = np.nan  # too few answers to count
    result[:, 11] = np.nan
    return result


def in_parts(responses, reads=None):
    def read(place):
        if reads is not None:
            reads.append(place)
        return responses[:, place].copy()

    return gaussian.Columns(*responses.shape, read, WIDTH)


@pytest.mark.parametrize("change", [np.copy, some_missing])
def test_fits_and_shifts_of_parts_are_those_of_the_whole(right_and_wrong, change):
    responses, groups = change(right_and_wrong), np.zeros(50, dtype=np.int64)
    whole, parts = gaussian.fit_factor_model(responses), gaussian.fit_factor_model(in_parts(responses))
    assert whole.n_factors > 0
    assert_allclose(parts.mean, whole.mean, atol=1e-12)
    assert_allclose(parts.noise, whole.noise, atol=1e-6)
    assert_allclose(parts.loadings @ parts.loadings.T, whole.loadings @ whole.loadings.T, atol=1e-6)
    whole = measure_discrepancy(responses, groups, subgroups=np.arange(50) // 10)
    parts = measure_discrepancy(in_parts(responses), groups, subgroups=np.arange(50) // 10)
    assert whole.level + whole.subgroup > 0.01
    assert_allclose([parts.level, parts.subgroup], [whole.level, whole.subgroup], atol=1e-6)


def test_never_more_than_some_items_are_read_and_models_in_the_order_asked_for(right_and_wrong):
    reads = []
    gaussian.fit_factor_model(in_parts(some_missing(right_and_wrong), reads))
    assert {place.stop - place.start for place in reads} == {WIDTH, 50 % WIDTH}
    rows = np.array([5, 2, 30])
    found = np.hstack([part for _, part in in_parts(right_and_wrong).of_models(rows).parts()])
    assert_array_equal(found, right_and_wrong[rows])


def test_a_bank_of_very_many_answers_has_the_factors_of_one_read_at_once(monkeypatch):
    bank = make_bank(n_models=40, n_items=30)
    whole, level = fitted_factor_model(bank), measured_discrepancy(bank).level
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 40 * WIDTH)
    monkeypatch.setattr("itembank.responses.responses.LARGE", 100)
    again = make_bank(n_models=40, n_items=30)
    assert_allclose(fitted_factor_model(again).noise, whole.noise, atol=1e-6)
    assert_allclose(measured_discrepancy(again).level, level, atol=1e-6)
