import numpy as np
import pytest
from scipy.special import expit

from itembank.errors import DataError, ParameterError
from itembank.readers.compute import training_compute
from itembank.scaling.pretraining.common_factor import common_factors
from itembank.scaling.pretraining.law_spec import ObservationalLaw
from itembank.scaling.pretraining.method_specs import PretrainingSettings
from itembank.scaling.pretraining.pretraining_law import pretraining_law
from itembank.scaling.pretraining.shared_ability import general_ability
from tests.scaling.simulated_suite import simulated_suite


def test_factors_are_the_leading_eigenvectors_of_the_covariance(rng):
    z = rng.standard_normal((30, 5)) @ rng.standard_normal((5, 5))
    found = common_factors(z, 2)
    values, vectors = np.linalg.eigh(np.cov(z.T))
    assert found.share == pytest.approx(values[-2:].sum() / values.sum())
    for k in range(2):
        assert abs(found.loadings[k] @ vectors[:, -1 - k]) == pytest.approx(1.0)
        np.testing.assert_allclose(found.values[:, k], (z - z.mean(axis=0)) @ found.loadings[k], atol=1e-10)


def test_the_factor_that_made_abilities_is_found_with_what_each_scenario_adds(rng):
    loadings, own, mean = (
        np.array([1.0, 0.8, 0.5, 0.9]),
        np.array([0.2, 0.3, 0.5, 0.1]),
        np.array([0.0, 1.0, -1.0, 0.5]),
    )
    general = rng.standard_normal(2000)
    theta = mean + np.outer(general, loadings) + np.sqrt(own) * rng.standard_normal((2000, 4))
    measured = theta + 0.3 * rng.standard_normal(theta.shape)
    measured[rng.random(theta.shape) < 0.1] = np.nan
    found = general_ability(measured, np.full(theta.shape, 0.09))
    np.testing.assert_allclose(found.loadings, loadings, atol=0.06)
    np.testing.assert_allclose(found.own_variance, own, atol=0.06)
    np.testing.assert_allclose(found.mean, mean, atol=0.06)
    apart = (found.general - general) / np.sqrt(found.variance)
    assert np.std(apart) == pytest.approx(1.0, abs=0.06)


@pytest.fixture(scope="module")
def suite():
    """Three scenarios of one ability, in four recipes."""
    return simulated_suite(
        np.random.default_rng(3),
        n_recipes=4,
        n_items=45,
        n_checkpoints=1,
        n_sizes=4,
        scenarios=("easy", "middle", "hard"),
    )


def truth(suite, flops):
    """Score of every recipe at a compute in each scenario, (n_recipes, 3)."""
    p = expit(suite.loadings * suite.law(np.arange(4), np.log(flops))[:, None] + suite.intercept)
    return p.reshape(4, 3, 15).mean(axis=2)


def test_laws_of_a_common_ability_come_near_the_truth(suite):
    settings = PretrainingSettings(laws=("observational", "shared", "params-tokens"), n_checked=0)
    compute = training_compute(suite.models)
    law = pretraining_law(suite.accuracy, compute, settings=settings, target_flops=4.0 * suite.flops.max())
    expected = truth(suite, law.target_flops)
    for name in law.names:
        for number, one in enumerate(law.scenarios):
            found = law.forecast(one.scenario, name)
            assert np.abs(found.score[:, 0] - expected[:, number]).mean() < 0.2
            assert (found.low <= found.score).all()
            assert (found.score <= found.high).all()
    few, many = (law.forecast("easy", "params-tokens", flops=[1e13], params=[params]).score for params in (1e5, 1.1e5))
    assert (few != many).all()
    with pytest.raises(ParameterError, match="params are for the law 'params-tokens' alone"):
        law.forecast("easy", "shared", flops=[1e13], params=[1e6])
    with pytest.raises(ParameterError, match="params must be finite and > 0"):
        law.forecast("easy", "params-tokens", flops=[1e13], params=[-1.0])


def test_what_a_law_needs_is_said(suite):
    compute = training_compute(suite.models.drop("params", "train_tokens"))
    with pytest.raises(DataError, match="the law 'params-tokens' needs the number of parameters"):
        pretraining_law(suite.accuracy, compute, settings=PretrainingSettings(laws=("params-tokens",)))
    easy = suite.accuracy.take(items=np.arange(15))
    with pytest.raises(DataError, match="'observational' needs at least 2 scenarios"):
        pretraining_law(easy, compute, settings=PretrainingSettings(laws=("observational",)))
    with pytest.raises(DataError, match="'shared' needs abilities in at least 3 scenarios"):
        pretraining_law(easy, compute, settings=PretrainingSettings(laws=("shared",)))
    with pytest.raises(ParameterError, match="n_factors"):
        ObservationalLaw(n_factors=0)
