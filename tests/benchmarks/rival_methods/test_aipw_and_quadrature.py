import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel
from sklearn.linear_model import Ridge

import itembank as ib
from itembank.errors import DataWarning
from itembank_rivals.aipw import RIDGE_PENALTY, AIPWSpec, ridge_predictions
from itembank_rivals.quadrature import NOISE_VARIANCE, greedy_integral, posterior_mean, prior
from tests.studies.simulated import make_responses

pytestmark = pytest.mark.usefixtures("few_folds", "rival_methods")
PAST, N_ITEMS = 28, 60


@pytest.fixture(scope="module")
def responses():
    return make_responses(n_scenarios=1)


@pytest.fixture(scope="module")
def bank(responses):
    return ib.calibrate(responses.take(models=np.arange(PAST)), "map")


@pytest.fixture(scope="module")
def asked(bank):
    return ib.select(bank, 12, method="random", rng=0)


def estimate(bank, responses, selection, method):
    positions = responses.item_indices(selection.item_ids)
    new = responses.take(models=np.arange(PAST, 40), items=positions)
    return ib.estimate(bank, new, selection=selection, method=method, interval="model-based").column("overall")


def test_aipw_is_the_papers_formula_with_another_programs_ridge(bank, responses, asked):
    """mean(y_S) + (mean of predictions of the rest - of the sample) / (1 + n / N), N items not asked."""
    positions = np.sort(responses.item_indices(asked.item_ids))
    rest = np.setdiff1d(np.arange(N_ITEMS), positions)
    features = responses.responses[:PAST].T
    expected = []
    for answers in responses.responses[PAST:, positions]:
        model = Ridge(alpha=RIDGE_PENALTY).fit(features[positions], answers)
        difference = model.predict(features[rest]).mean() - model.predict(features[positions]).mean()
        expected.append(answers.mean() + difference / (1.0 + positions.size / rest.size))
    np.testing.assert_allclose(estimate(bank, responses, asked, "aipw"), np.clip(expected, 0.0, 1.0), atol=1e-10)
    means = responses.responses[PAST:, responses.item_indices(asked.item_ids)].mean(axis=1)
    np.testing.assert_allclose(estimate(bank, responses, asked, AIPWSpec(penalty=1e12)), means, atol=1e-9)


def test_ridge_finds_a_model_that_answers_like_a_past_one(responses):
    past, positions = responses.responses[:PAST], np.arange(0, N_ITEMS, 2)
    found = ridge_predictions(np.vstack([past] * 400), positions, past[3, positions], 1e-6)
    np.testing.assert_allclose(found[positions], past[3, positions], atol=1e-3)


def test_quadrature_estimates_weigh_the_posterior_of_another_programs_gaussian_process(responses, bank, asked):
    mean, features = prior(responses.responses[:PAST])
    np.testing.assert_allclose(features @ features.T, np.cov(responses.responses[:PAST].T), atol=1e-12)
    positions, answers = np.array([3, 17, 40]), np.array([1.0, 0.0, 1.0])
    kernel = DotProduct(0.0, "fixed") + WhiteKernel(NOISE_VARIANCE, "fixed")
    other = GaussianProcessRegressor(kernel, optimizer=None).fit(features[positions], answers - mean[positions])
    expected = mean + other.predict(features)
    np.testing.assert_allclose(posterior_mean(mean, features, positions, answers, NOISE_VARIANCE), expected, atol=1e-8)
    positions = responses.item_indices(asked.item_ids)
    covariance = features @ features.T
    gain = covariance[:, positions] @ np.linalg.inv(
        covariance[np.ix_(positions, positions)] + NOISE_VARIANCE * np.eye(positions.size)
    )
    expected = mean.mean() + (responses.responses[PAST:, positions] - mean[positions]) @ gain.mean(axis=0)
    np.testing.assert_allclose(estimate(bank, responses, asked, "bayesian-quadrature"), expected, atol=1e-10)


def test_items_lower_the_variance_of_the_integral_as_the_closed_form_says():
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(9, 4)), rng.dirichlet(np.ones(9))
    covariance = features @ features.T

    def variance(items):
        items = list(items)
        inner = covariance[np.ix_(items, items)] + 0.3 * np.eye(len(items))
        cross = weights @ covariance[:, items]
        return weights @ covariance @ weights - cross @ np.linalg.solve(inner, cross)

    is_open = np.arange(9) != 2
    found = greedy_integral(features, weights, is_open, 3, 0.3)
    assert 2 not in found
    for n_chosen in range(3):
        before, others = list(found[:n_chosen]), np.setdiff1d(np.flatnonzero(is_open), found[:n_chosen])
        assert found[n_chosen] == min(others, key=lambda item: variance([*before, item]))


def test_both_take_missing_answers_and_several_scenarios():
    sparse = make_responses(missing=0.2, seed=1)
    bank = ib.calibrate(sparse.take(models=np.arange(PAST)), "map")
    new = sparse.take(models=np.arange(PAST, 40))
    for method, selector in (("aipw", "stratified"), ("bayesian-quadrature", "bayesian-quadrature")):
        selection = ib.select(bank, 14, method=selector, rng=0)
        assert selection.n_items == 14
        answers = new.take(items=new.item_indices(selection.item_ids))
        with pytest.warns(DataWarning, match="some have no response"):
            found = ib.estimate(bank, answers, selection=selection, method=method, interval="model-based")
        assert np.isfinite(found.value).all()
        assert np.corrcoef(found.column("overall"), np.nanmean(new.responses, axis=1))[0, 1] > 0.7
