"""How good estimates are, measured out of fold: against the plan, by counting, and from the cache."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import DataError, ParameterError
from itembank.living.starting import start
from itembank.planning import accuracy as module
from itembank.planning.accuracy import (
    USUAL_AGREEMENT,
    Accuracy,
    accuracy,
    between_models,
    can_be_measured,
    kept_accuracy,
    plan_models,
)
from itembank.planning.goals import PrecisionCurve
from itembank.planning.plan import plan
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    made = make_bank(n_models=30, n_items=60, n_dims=1)
    return dataclasses.replace(made, calibration=dataclasses.replace(made.calibration, tolerance=1e-3))


@pytest.fixture(scope="module")
def found(bank):
    return accuracy(bank)


def test_expected_half_widths_are_those_of_a_plan(bank, found):
    made = plan(bank)
    assert made.table.sizes.tolist() == found.sizes.tolist()
    np.testing.assert_allclose(found.expected_half_widths, made.table.half_widths, rtol=1e-9)
    np.testing.assert_allclose(found.differences, made.table.detectable_differences, rtol=1e-9)
    np.testing.assert_allclose(found.mean_absolute_errors[:, -1], made.table.mean_absolute_errors, rtol=1e-9)


def test_more_items_make_smaller_errors_and_intervals_hold(found):
    assert found.sizes.tolist() == sorted(found.sizes.tolist())
    assert found.errors.shape == (found.sizes.size, 30, 4) == found.half_widths.shape
    assert found.mean_absolute_errors[-1, -1] < found.mean_absolute_errors[0, -1]
    assert (found.coverage[:, -1] >= 0.8).all()


def test_summaries_count_what_is_known():
    nan = np.nan
    errors = np.array([[[0.1], [-0.3], [nan]]])
    half_widths = np.array([[[0.2], [0.2], [0.2]]])
    curve = PrecisionCurve(10, np.array([0.5, 0.4]))
    made = Accuracy(np.array([11]), errors, half_widths, curve, np.array([0.6]), {}, 0.95, 20)
    assert made.mean_absolute_errors[0, 0] == pytest.approx(0.2)
    assert made.standard_errors[0, 0] == pytest.approx(0.1)  # sqrt(0.01 / (2 - 1)), the standard error of 0.1 and 0.3
    assert made.coverage[0, 0] == 0.5
    assert made.mean_half_widths[0, 0] == pytest.approx(0.2)
    assert made.expected_half_widths.tolist() == [0.4]


def test_what_was_measured_is_kept_and_nothing_is_measured_to_look(bank, found, tmp_path, monkeypatch):
    save_bank(bank, tmp_path / "bank")
    monkeypatch.setattr(module, "_measured", lambda *_: pytest.fail("measured again"))
    again = kept_accuracy(load_bank(tmp_path / "bank"))
    assert again is not None
    np.testing.assert_array_equal(again.errors, found.errors)
    assert kept_accuracy(bank, level=0.5) is None


def test_costs_are_those_of_the_chosen_items(bank, monkeypatch):
    monkeypatch.setattr(module, "plan_sizes", lambda *_: np.array([10, 20]))
    costs = {"output_tokens": np.ones(bank.responses.responses.shape)}
    made = accuracy(dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs=costs)))
    assert made.sizes.tolist() == [10, 20]
    assert list(made.costs) == ["output_tokens"]
    assert made.costs["output_tokens"].tolist() == [10.0, 20.0]


def test_too_few_models_are_refused():
    few = make_bank(n_models=9)
    assert not can_be_measured(few)
    with pytest.raises(DataError, match="at least 10 past models"):
        accuracy(few)


def simulated(n_models: int, rng: np.random.Generator, *, agreement: float, n_items: int = 4000) -> ResponseMatrix:
    """Answers whose items are solved with chances of beta distribution: two models correlate by `agreement`."""
    count = (1.0 - agreement) / agreement
    chance = rng.beta(count / 2.0, count / 2.0, n_items)
    return ResponseMatrix.create((rng.random((n_models, n_items)) < chance).astype(float))


def test_half_width_of_a_plain_sample_is_the_textbook_one():
    bank = start(pl.DataFrame({"item_id": [f"q{number}" for number in range(1000)]}))
    found = plan_models(bank, 100, more=())
    assert found.half_width[0] == pytest.approx(t.ppf(0.975, 99) * np.sqrt(0.25 / 100 * 0.9))
    assert not found.is_measured
    assert found.agreement == USUAL_AGREEMENT


def test_agreement_of_models_is_found(rng):
    for agreement in (0.2, 0.5):
        responses = simulated(8, rng, agreement=agreement)
        assert between_models(start(responses.items, responses)) == pytest.approx(agreement, abs=0.03)


def test_forecast_is_what_more_models_bring(rng):
    responses = simulated(9, rng, agreement=0.5)
    said = plan_models(start(responses.items, responses.take(models=np.arange(3))), 200, more=(5,)).half_width
    # what 3 and 8 past means explain of the ninth model's answers, by least squares
    for half, n_past in zip(said, (3, 8), strict=True):
        mean, last = responses.responses[:n_past].mean(axis=0), responses.responses[8]
        left = 1.0 - np.corrcoef(mean, last)[0, 1] ** 2
        sample = t.ppf(0.975, 199) * np.sqrt(0.25 / 200 * 0.95)
        assert half == pytest.approx(sample * np.sqrt(left), rel=0.05)


def test_one_model_cannot_tell_how_alike_models_are(rng):
    responses = simulated(1, rng, agreement=0.5, n_items=50)
    assert np.isnan(between_models(start(responses.items, responses)))


def test_level_and_size_are_checked():
    bank = start(pl.DataFrame({"item_id": ["a", "b"]}))
    with pytest.raises(ParameterError, match="number of items"):
        plan_models(bank, 0)
    with pytest.raises(ParameterError, match="level"):
        plan_models(bank, 1, level=1.5)
