import dataclasses
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.irt.parameters import AbilityPrior
from itembank.sessions.preparation import ready_pool
from itembank.sessions.priors import (
    GroupPrior,
    KnownModels,
    RegressionPrior,
    ability_prior,
    group_prior,
    regression_prior,
    warn_of_unheard_values,
)
from tests.sessions.simulated import model_based, session_bank

BANK = AbilityPrior(np.array([0.5, -0.5]), np.array([[1.0, 0.3], [0.3, 2.0]]))


def known_models(rng, n_models=40):
    size = rng.uniform(0.0, 3.0, n_models)
    family = rng.choice(["x", "y", "z"], n_models)
    effect = np.array([{"x": -1.0, "y": 0.0, "z": 1.0}[name] for name in family])
    abilities = np.column_stack([2.0 * size + effect, effect]) + 0.1 * rng.normal(size=(n_models, 2))
    models = pl.DataFrame({"model_id": [f"m{k}" for k in range(n_models)], "size": size, "family": family})
    return KnownModels(models, abilities, np.zeros((n_models, 2, 2)), BANK)


def test_a_groups_prior_has_the_moments_of_its_mixture(rng):
    """Draw from the mixture of the group's uncertain abilities and the bank's prior, and compare moments."""
    abilities = rng.normal(size=(4, 2))
    covariance = np.tile(np.array([[0.3, 0.1], [0.1, 0.2]]), (4, 1, 1))
    found = group_prior(abilities, covariance, BANK, bank_models=2.0)
    which = rng.choice(5, 400_000, p=[1 / 6] * 4 + [2 / 6])
    noise = rng.multivariate_normal(np.zeros(2), covariance[0], which.size)
    of_bank = rng.multivariate_normal(BANK.mean, BANK.covariance, which.size)
    draws = np.where((which < 4)[:, None], abilities[np.minimum(which, 3)] + noise, of_bank)
    np.testing.assert_allclose(found.mean, draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(found.covariance, np.cov(draws.T), atol=0.02)


def test_a_large_group_speaks_for_itself_and_none_for_the_bank(rng):
    many = rng.multivariate_normal([3.0, 3.0], [[0.2, 0.1], [0.1, 0.3]], 20_000)
    found = group_prior(many, np.zeros((20_000, 2, 2)), BANK, bank_models=5.0)
    np.testing.assert_allclose(found.mean, many.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(found.covariance, np.cov(many.T), atol=0.02)
    nobody = group_prior(np.empty((0, 2)), np.empty((0, 2, 2)), BANK, bank_models=5.0)
    np.testing.assert_allclose(nobody.mean, BANK.mean)
    np.testing.assert_allclose(nobody.covariance, BANK.covariance)


def test_a_group_is_found_by_its_value(rng):
    known = known_models(rng)
    rows = np.flatnonzero((known.models["family"] == "z").to_numpy())
    expected = group_prior(known.abilities[rows], known.ability_covariance[rows], BANK, bank_models=5.0)
    found = ability_prior(known, GroupPrior("family", "z"))
    np.testing.assert_array_equal(found.mean, expected.mean)
    assert found.mean[1] > ability_prior(known, GroupPrior("family", "x")).mean[1] + 1.0


def test_regression_is_exact_bayesian_regression(rng):
    """Against the posterior predictive of a Bayesian regression of one ability, worked out cell by cell."""
    n, features = 30, rng.normal(size=(30, 3))
    features -= features.mean(axis=0)
    abilities = features @ rng.normal(size=(3, 1)) + 0.4 * rng.normal(size=(n, 1))
    new, bank = rng.normal(size=3), AbilityPrior(np.zeros(1), np.eye(1))
    found = regression_prior(abilities, np.zeros((n, 1, 1)), features, new, bank, penalty=2.0, bank_models=1e-9)
    # intercept with a flat prior, coefficients N(0, v / 2), noise variance v
    design = np.column_stack([np.ones(n), features])
    precision = design.T @ design + np.diag([0.0, 2.0, 2.0, 2.0])
    coefficients = np.linalg.solve(precision, design.T @ abilities[:, 0])
    x = np.concatenate([[1.0], new])
    residuals = abilities[:, 0] - design @ coefficients
    used = np.trace(design @ np.linalg.solve(precision, design.T))
    variance = residuals @ residuals / (n - used)
    np.testing.assert_allclose(found.mean, [x @ coefficients], rtol=1e-10)
    expected = variance * (1.0 + x @ np.linalg.solve(precision, x))
    np.testing.assert_allclose(found.covariance, [[expected]], rtol=1e-6)


def test_features_that_fit_everything_leave_the_banks_spread(rng):
    """As many features as models: the residuals are 0 and tell nothing."""
    features = rng.normal(size=(4, 4))
    features -= features.mean(axis=0)
    new, bank = rng.normal(size=4), AbilityPrior(np.zeros(1), np.array([[1.7]]))
    found = regression_prior(
        rng.normal(size=(4, 1)), np.zeros((4, 1, 1)), features, new, bank, penalty=1e-7, bank_models=0.5
    )
    gram = features.T @ features + 1e-7 * np.eye(4)
    np.testing.assert_allclose(found.covariance, [[1.7 * (1.25 + new @ np.linalg.solve(gram, new))]], rtol=1e-4)


def test_regression_finds_what_size_and_family_foretell(rng):
    known = known_models(rng, 400)
    spec = RegressionPrior(("size", "family"), {"size": 2.5, "family": "z"}, penalty=0.1, bank_models=1.0)
    found = ability_prior(known, spec)
    np.testing.assert_allclose(found.mean, [6.0, 1.0], atol=0.1)
    np.testing.assert_allclose(np.sqrt(np.diagonal(found.covariance)), [0.1, 0.1], atol=0.05)


def test_what_is_not_known_is_average(rng):
    known = known_models(rng)
    nothing = ability_prior(known, RegressionPrior(("size", "family")))
    np.testing.assert_allclose(nothing.mean, known.abilities.mean(axis=0))
    new_family = ability_prior(known, RegressionPrior(("size", "family"), {"family": "never seen"}))
    np.testing.assert_allclose(new_family.mean, nothing.mean)


def test_missing_cells_of_the_model_table_are_average(rng):
    known = known_models(rng)
    models = known.models.with_columns(
        size=pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.col("size")),
        family=pl.when(pl.int_range(pl.len()) > 36).then(None).otherwise(pl.col("family")),
        same=pl.lit(1.0),
    )
    holed = dataclasses.replace(known, models=models)
    found = ability_prior(holed, RegressionPrior(("size", "family", "same"), {"size": 1.0, "family": "x", "same": 1.0}))
    assert np.isfinite(found.mean).all()
    assert np.linalg.eigvalsh(found.covariance).min() > 0.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (GroupPrior("colour", "red"), "column"),
        (GroupPrior("family", "w"), "none has"),
        (GroupPrior("size", "big"), "number"),
        (RegressionPrior(("colour",)), "column"),
        (RegressionPrior(("size",), {"size": "big"}), "number"),
    ],
)
def test_what_the_table_does_not_hold_is_refused(rng, spec, message):
    with pytest.raises(DataError, match=message):
        ability_prior(known_models(rng), spec)


def test_another_word_is_refused(rng):
    with pytest.raises(ParameterError, match="prior"):
        ability_prior(known_models(rng), "hunch")


def test_a_category_that_no_model_has_is_warned_of_and_is_average(rng):
    known = known_models(rng)
    unheard = RegressionPrior(("size", "family"), {"size": 1.0, "family": "w"})
    with pytest.warns(DataWarning, match=r"no calibration model has family = 'w'.* 'x'"):
        warn_of_unheard_values(known.models, unheard)
    found = ability_prior(known, unheard)
    average = ability_prior(known, RegressionPrior(("size", "family"), {"size": 1.0}))
    np.testing.assert_array_equal(found.mean, average.mean)


@pytest.mark.parametrize(
    "spec", ["bank", GroupPrior("family", "x"), RegressionPrior(("size", "family"), {"size": 99.0, "family": "x"})]
)
def test_what_the_table_holds_is_not_warned_of(rng, spec):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_unheard_values(known_models(rng).models, spec)


def test_a_session_warns_of_an_unheard_category_when_it_is_begun_alone():
    bank = session_bank()
    responses = bank.responses
    models = responses.models.with_columns(family=pl.lit("x"))
    bank = dataclasses.replace(bank, responses=dataclasses.replace(responses, models=models))
    prior = RegressionPrior(("family",), {"family": "w"})
    with pytest.warns(DataWarning, match="family = 'w'"):
        session = model_based(bank, prior=prior)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ready_pool(bank, session.pool.spec)


def test_truth_values_are_categories(rng):
    known = known_models(rng)
    models = known.models.with_columns(is_open=pl.col("family") == "z")
    known = dataclasses.replace(known, models=models)
    found = ability_prior(known, GroupPrior("is_open", True))
    np.testing.assert_array_equal(found.mean, ability_prior(known, GroupPrior("family", "z")).mean)
    by_regression = [ability_prior(known, RegressionPrior(("is_open",), {"is_open": flag})) for flag in (True, False)]
    assert by_regression[0].mean[1] > by_regression[1].mean[1] + 0.5


def test_the_banks_own_prior_is_the_calibrations():
    bank = session_bank()
    assert ability_prior(KnownModels.of_bank(bank), "bank") is bank.calibration.prior
