import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.bank.norms import fitted_factor_model, measured_discrepancy
from itembank.irt.discrepancy import measure_discrepancy
from itembank.irt.linear_gaussian import Columns, fit_factor_model
from tests.bank.banks import make_bank

WIDTH = 7


@pytest.fixture(scope="module")
def answers():
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

    return Columns(*responses.shape, read, WIDTH)


@pytest.mark.parametrize("change", [np.copy, some_missing])
def test_fits_and_shifts_of_parts_are_those_of_the_whole(answers, change):
    responses, groups = change(answers), np.zeros(50, dtype=np.int64)
    whole, parts = fit_factor_model(responses), fit_factor_model(in_parts(responses))
    assert whole.n_factors > 0
    assert_allclose(parts.mean, whole.mean, atol=1e-12)
    assert_allclose(parts.noise, whole.noise, atol=1e-6)
    assert_allclose(parts.loadings @ parts.loadings.T, whole.loadings @ whole.loadings.T, atol=1e-6)
    whole = measure_discrepancy(responses, groups, subgroups=np.arange(50) // 10)
    parts = measure_discrepancy(in_parts(responses), groups, subgroups=np.arange(50) // 10)
    assert whole.level + whole.subgroup > 0.01
    assert_allclose([parts.level, parts.subgroup], [whole.level, whole.subgroup], atol=1e-6)


def test_never_more_than_some_items_are_read_and_models_in_the_order_asked_for(answers):
    reads = []
    fit_factor_model(in_parts(some_missing(answers), reads))
    assert {place.stop - place.start for place in reads} == {WIDTH, 50 % WIDTH}
    rows = np.array([5, 2, 30])
    found = np.hstack([part for _, part in in_parts(answers).of_models(rows).parts()])
    np.testing.assert_array_equal(found, answers[rows])


def test_a_bank_of_very_many_answers_has_the_factors_of_one_read_at_once(monkeypatch):
    bank = make_bank(n_models=40, n_items=30)
    whole, level = fitted_factor_model(bank), measured_discrepancy(bank).level
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 40 * WIDTH)
    monkeypatch.setattr("itembank.responses.responses.LARGE", 100)
    again = make_bank(n_models=40, n_items=30)
    assert_allclose(fitted_factor_model(again).noise, whole.noise, atol=1e-6)
    assert_allclose(measured_discrepancy(again).level, level, atol=1e-6)
