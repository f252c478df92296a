"""Beta terms by table against the same terms by special functions."""

import numpy as np
import pytest
from scipy.stats import beta as beta_distribution

from itembank.errors import ParameterError
from itembank.irt import beta
from itembank.irt.tables import BetaTable, BetaWork, response_constants

PRECISIONS = (1e-2, 1.0, 10.0, 1e3, 1e7)


def cells(precision: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Logits over the table's reach with log-odds of responses around them."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(0.0, 3.0, 4000), rng.uniform(-39.0, 39.0, 1000), [0.0, -40.0, 40.0]])
    spread = 1.0 / np.sqrt(beta.information_weights(x, precision))
    return x, np.clip(x + rng.normal(size=x.size) * spread, -13.8, 13.8)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_double_table_keeps_its_stated_error(precision):
    x, log_odds = cells(precision)
    table = BetaTable.of(precision)
    terms = table.evaluate(x)
    y = 1.0 / (1.0 + np.exp(-log_odds))
    slope = beta.score_terms(x, y, precision)
    np.testing.assert_allclose(table.score(terms, x, log_odds), slope, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(terms.information, beta.information_weights(x, precision), rtol=1e-6)
    density = table.log_likelihood(terms, x, log_odds) + response_constants(log_odds)
    np.testing.assert_allclose(density, beta.log_likelihood_terms(x, y, precision), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_single_table_errs_by_rounding(precision):
    x, log_odds = (part.astype(np.float32) for part in cells(precision))
    table = BetaTable.of(precision)
    terms = table.evaluate(x)
    assert {part.dtype for part in terms} == {np.dtype(np.float32)}
    wide = x.astype(np.float64)
    y = 1.0 / (1.0 + np.exp(-log_odds.astype(np.float64)))
    np.testing.assert_allclose(terms.information, beta.information_weights(wide, precision), rtol=2e-6)
    slope = beta.score_terms(wide, y, precision)
    unit = np.sqrt(beta.information_weights(wide, precision)) + np.abs(slope)
    assert np.max(np.abs(table.score(terms, x, log_odds) - slope) / unit) < 2e-5
    density = table.log_likelihood(terms, x, log_odds) + response_constants(log_odds)
    exact = beta.log_likelihood_terms(wide, y, precision)
    assert np.max(np.abs(density - exact) / (1.0 + np.abs(exact))) < 2e-4


def test_density_is_that_of_scipy():
    x, y = np.linspace(-5.0, 5.0, 41), 0.3
    table = BetaTable.of(12.0)
    log_odds = np.full(x.shape, np.log(y / (1.0 - y)))
    density = table.log_likelihood(table.evaluate(x), x, log_odds) + response_constants(log_odds)
    p = 1.0 / (1.0 + np.exp(-x))
    np.testing.assert_allclose(density, beta_distribution.logpdf(y, 12.0 * p, 12.0 * (1.0 - p)), atol=2e-6)


def test_asymptotes_beyond_the_table():
    table = BetaTable.of(10.0)
    x = np.array([-60.0, -45.0, 45.0, 60.0])
    terms = table.evaluate(x)
    np.testing.assert_allclose(terms.rest, beta.log_normaliser(x, 10.0), atol=1e-6)
    np.testing.assert_allclose(terms.information, 1.0, atol=1e-9)
    np.testing.assert_allclose(terms.rest_slope, [1.0, 1.0, -1.0, -1.0], atol=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_work_space_changes_no_number(kind):
    x, log_odds = (part.astype(kind) for part in cells(10.0))
    x, log_odds = x[:5000].reshape(50, 100), log_odds[:5000].reshape(50, 100)
    table, work = BetaTable.of(10.0), BetaWork.of(6000, kind)
    fresh, kept = table.evaluate(x), table.evaluate(x, work)
    for one, other in zip(fresh, kept, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        table.log_likelihood(kept, x, log_odds, work), table.log_likelihood(fresh, x, log_odds)
    )
    np.testing.assert_array_equal(table.score(kept, x, log_odds, work), table.score(fresh, x, log_odds))
    without = table.evaluate(x, work, with_rest=False)
    np.testing.assert_array_equal(without.rest_slope, fresh.rest_slope)


@pytest.mark.parametrize("precision", [0.0, -1.0, np.nan, np.inf])
def test_precision_must_be_positive(precision):
    with pytest.raises(ParameterError, match="positive"):
        BetaTable.of(precision)
