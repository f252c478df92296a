"""What more past models would bring, against least squares on answers with a known agreement."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from itembank.errors import ParameterError
from itembank.living.starting import start
from itembank.planning.more_models import USUAL_AGREEMENT, between_models, plan_models
from itembank.planning.plan import plan
from itembank.responses.responses import ResponseMatrix


def simulated(n_models: int, rng: np.random.Generator, *, agreement: float, n_items: int = 4000) -> ResponseMatrix:
    """Answers whose items are solved with chances of beta distribution: two models correlate by `agreement`."""
    count = (1.0 - agreement) / agreement
    chance = rng.beta(count / 2.0, count / 2.0, n_items)
    return ResponseMatrix.create((rng.random((n_models, n_items)) < chance).astype(float))


def test_forecasts_begin_with_what_a_plan_says():
    bank = start(pl.DataFrame({"item_id": [f"q{number}" for number in range(1000)]}))
    found = plan_models(bank, 100, more=(1,))
    assert found.half_width[0] == pytest.approx(plan(bank, max_items=100).table[-1].half_width)
    # one model explains the square of a correlation
    assert found.half_width[1] == pytest.approx(found.half_width[0] * np.sqrt(1.0 - USUAL_AGREEMENT**2))
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
