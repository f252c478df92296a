from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.bank.banks import bank_fingerprint
from itembank.bank.marks import batches, with_batch
from itembank.calibration.build import CALIBRATION_FRACTION, calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.calibration.dimensions import choose_n_dims
from itembank.calibration.fit_item_model import fit_item_model
from itembank.calibration.item_model_bias import item_model_bias, response_variance
from itembank.errors import ParameterError
from itembank.responses.how_read import HowRead
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from tests.calibration.test_item_model_bias import simulated


@pytest.fixture(scope="module")
def responses():
    return simulated(24, 90, 1, seed=0)


@pytest.fixture(scope="module")
def bank(responses):
    return calibrate(responses, rng=3)


def test_a_bank_holds_what_its_parts_say(responses, bank):
    calibration = fit_item_model(responses)
    assert_array_equal(bank.parameters.loadings, calibration.parameters.loadings)
    expected = item_model_bias(responses, Variational(), bank.targets, rng=np.random.default_rng(3))
    assert_array_equal(bank.item_model_bias, expected)
    assert_array_equal(bank.response_variance, response_variance(responses, bank.targets))
    prior = bank.calibration.prior
    numbers = (prior.mean, prior.covariance, bank.item_model_bias, bank.response_variance)
    assert bank.bank_id == bank_fingerprint(responses, bank.parameters, bank.targets, *numbers)
    assert bank.responses is responses


def test_the_weights_are_the_asked_for_and_continuous_responses_keep_their_raw_scores(responses, rng):
    bank = calibrate(responses, within="macro", across="items")
    assert (bank.targets.within, bank.targets.across) == ("macro", "items")
    with pytest.raises(ParameterError, match="within must be one of"):
        calibrate(responses, within="mean")
    values = np.clip(rng.beta(2.0, 2.0, (12, 40)) + 0.3 * rng.normal(size=(12, 1)), 0.0, 1.0)
    bank = calibrate(ResponseMatrix.create(values))
    assert set(bank.calibration.thresholds) == {"all"}
    assert_allclose(bank.scenario_scores[:, 0], values.mean(axis=1))


def test_few_models_give_a_bank_without_a_measured_bias_and_are_refused_more_abilities(responses):
    bank = calibrate(simulated(5, 60, 1, seed=1))
    assert np.isnan(bank.item_model_bias).all()
    assert np.all(bank.response_variance > 0.0)
    n = responses.n_models + 1  # two hundred abilities of forty models kept a fit busy for ten minutes and more
    with pytest.raises(ParameterError, match=rf"{n - 1} models show no more abilities, got n_dims={n}: leave"):
        calibrate(responses, Variational("mirt", n_dims=n))


def test_progress_rises_to_the_end(responses):
    told = []
    calibrate(responses, progress=lambda text, share: told.append((text, share)))
    is_bias = ["bias" in text for text, _ in told]
    assert is_bias == sorted(is_bias)
    n, shares = is_bias.count(False), [share for _, share in told]
    first, second = shares[:n], shares[n:]
    assert 0.0 <= min(first) <= max(first) <= CALIBRATION_FRACTION <= min(second)
    assert told[-1] == ("measuring the item model's bias", 1.0)


def test_what_was_linked_to_another_bank_is_not_to_one_that_is_calibrated_anew(responses, bank):
    grown = with_batch(responses, np.arange(90) >= 80, "1.0.0", 0.02)
    grown = grown.with_tables(models=grown.models.with_columns(added_after=pl.lit("1.0.0")))
    again = calibrate(grown, rng=3)
    assert list(batches(again.responses.items)) == []
    assert again.responses.models.columns == responses.models.columns
    assert again.bank_id == bank.bank_id
    assert_array_equal(again.item_model_bias, bank.item_model_bias)


def test_a_name_is_a_method_with_as_many_dimensions_as_suit_and_a_spec_is_taken_as_it_is(monkeypatch):
    monkeypatch.setattr("itembank.calibration.dimensions.CANDIDATES", (1, 2))
    two = simulated(40, 120, 2, seed=2)
    n_dims = choose_n_dims(two).n_dims
    assert calibrate(two).calibration.n_dims == calibrate(two, "variational").calibration.n_dims == n_dims
    assert calibrate(two, Variational()).calibration.n_dims == 1
    assert calibrate(two, Variational("mirt", n_dims=3)).calibration.n_dims == 3
    assert calibrate(two.take(models=np.arange(12)), "mml").calibration.n_dims == 1
    assert calibrate(simulated(9, 60, 2, seed=1)).calibration.n_dims == 1  # too few to choose
    with pytest.raises(ParameterError, match="must be one of 'variational'"):
        calibrate(two, "other")


@pytest.mark.parametrize(
    ("errors", "n_lost", "expected"), [("wrong", 1, "wrong"), ("wrong", 0, None), ("missing", 1, None)]
)
def test_a_bank_remembers_what_lost_answers_counted_as_where_there_were_any(responses, errors, n_lost, expected):
    n = np.zeros(responses.responses.shape, dtype=np.int64)
    n[0, 0] = n_lost
    lost = replace(responses, lost=LostAnswers(n, n), n_trials=np.where(n > 0, 0, 1))
    values = np.where(n > 0, np.nan, responses.responses)
    bank = calibrate(replace(lost, responses=values).with_errors(errors), rng=3)
    assert HowRead(bank.responses.items).lost_as == expected
