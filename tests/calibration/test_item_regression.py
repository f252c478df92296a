from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration.build import build_bank
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.calibration.item_regression import item_regression
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.folds import spec_of
from itembank.responses.responses import ResponseMatrix

KNOWN = Variational(item_covariates=("length", "topic", "vector"))


def simulate(n_models=25, n_items=200, *, easy=0.0, seed=0):
    """Responses whose item table says much of the intercepts, with these."""
    rng = np.random.default_rng(seed)
    about = rng.normal(size=n_items)
    topic, vector = rng.integers(0, 3, n_items), rng.normal(size=(n_items, 2))
    intercept = easy + 0.9 * about + np.array([-0.8, 0.0, 0.8])[topic] + 0.5 * vector[:, 0]
    intercept += rng.normal(0.0, 0.4, n_items)
    chances = expit(rng.normal(size=(n_models, 1)) + intercept)
    items = pl.DataFrame(
        {
            "item_id": [f"i{k}" for k in range(n_items)],
            "length": np.exp(3.0 + about),
            "topic": [f"topic {k}" for k in topic],
            "vector": vector.tolist(),
        }
    )
    return ResponseMatrix.create((rng.random(chances.shape) < chances).astype(float), items=items), intercept


def test_intercepts_of_items_that_nobody_answered_are_foretold(tmp_path):
    responses, intercept = simulate()
    bank = build_bank(responses.take(items=np.arange(150)), KNOWN)
    found = item_regression(bank)
    mean, deviation = found.predict(responses.items[150:])
    errors = (mean - intercept[150:]) / deviation
    assert np.corrcoef(mean, intercept[150:])[0, 1] > 0.85
    assert 0.6 < np.sqrt(np.mean(errors**2)) < 1.4
    assert found.explained == pytest.approx(0.9, abs=0.1)
    table = found.to_polars()
    assert table["column"].to_list() == ["length", *["topic"] * 3, "vector", "vector"]
    length = table.row(0, named=True)
    assert abs(length["effect"] - 0.9) < 3.5 * length["standard_error"]
    topics = table.filter(column="topic").sort("level")
    assert np.all(np.abs(topics["effect"].to_numpy() - [-0.8, 0.0, 0.8]) < 3.5 * topics["standard_error"].to_numpy())
    assert topics["standard_error"].max() < 0.15
    save_bank(bank, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    assert spec_of(loaded.calibration) == replace(KNOWN, family="bernoulli")
    np.testing.assert_allclose(item_regression(loaded).predict(responses.items[150:])[0], mean)


def test_items_of_few_answers_are_closer_to_the_truth():
    responses, intercept = simulate(n_models=30, seed=1)
    values = np.array(responses.responses)
    values[3:, :80] = np.nan
    rare = ResponseMatrix.create(values, items=responses.items)
    errors = [
        np.sqrt(np.mean((calibrate(rare, spec).parameters.intercept - intercept)[:80] ** 2))
        for spec in (KNOWN, Variational())
    ]
    assert errors[0] < 0.65 * errors[1]


def test_items_that_all_answered_alike_follow_what_is_known_of_them():
    responses, intercept = simulate(n_models=10, easy=2.0, seed=2)
    made = calibrate(responses, KNOWN)
    found, truth = made.parameters.intercept[made.is_degenerate], intercept[made.is_degenerate]
    plain = calibrate(responses, Variational()).parameters.intercept[made.is_degenerate]
    assert made.is_degenerate.sum() > 30
    assert np.ptp(plain) < 1e-6
    assert np.corrcoef(found, truth)[0, 1] > 0.75
    assert np.abs(found - truth).mean() < 0.75 * np.abs(plain - truth).mean()


def test_columns_that_say_nothing_are_named_and_left_out():
    responses, _ = simulate(n_items=60)
    same = responses.items.with_columns(idle=pl.lit("x"))
    responses = ResponseMatrix.create(responses.responses, items=same)
    plain = calibrate(responses)
    with pytest.warns(DataWarning, match="'idle' does not"):
        made = calibrate(responses, Variational(item_covariates=("idle",)))
    np.testing.assert_array_equal(made.parameters.intercept, plain.parameters.intercept)


def test_a_column_that_is_not_there_is_refused():
    responses, _ = simulate(n_items=60)
    with pytest.raises(DataError, match="Did you mean 'length'"):
        calibrate(responses, Variational(item_covariates=("lenght",)))


def test_a_bank_without_covariates_has_no_regression():
    responses, _ = simulate(n_items=60)
    with pytest.raises(ParameterError, match="calibrated with item covariates"):
        item_regression(build_bank(responses))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"item_covariates": "length"}, r"names of columns, got 'length'. Write \('length',\)"),
        ({"item_covariates": (1,)}, "names of columns"),
        ({"item_covariates": ("length",), "by_task": True}, "by_task goes without item_covariates"),
    ],
)
def test_choices_that_cannot_be(choices, message):
    with pytest.raises(ParameterError, match=message):
        Variational(**choices)
