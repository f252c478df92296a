import dataclasses
import json

import numpy as np
import polars as pl
import pytest

from itembank.calibration.calibration_specs import MarginalML, Variational
from itembank.calibration.dimensions import choose_n_dims, parallel_analysis
from itembank.errors import DataError, ParameterError
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank_studies.papers.dimensions import dimensionality, held_out_errors
from tests.calibration.test_dimensions import simulated

QUICK = Variational(tolerance=1e-4)


@pytest.fixture(scope="module")
def responses():
    return simulated(60, 150, 3)


@pytest.fixture(scope="module")
def found(responses):
    return dimensionality(responses, QUICK, candidates=(1, 2, 3, 5), n_shown=(10, 30, 500))


def test_three_abilities_are_seen_in_every_way_and_more_shown_items_tell_more(found):
    assert found.n_dims_parallel == 3
    assert found.n_dims == 3
    assert np.argmax(found.log_likelihoods[-1]) == 2
    assert found.candidates == (1, 2, 3, 5)
    assert found.n_shown == (10, 30, 75)
    for name in ("3 exceed what shuffled responses give", "3 are the fewest"):
        assert name in found.message
    assert np.all(np.diff(found.log_likelihoods[:, 2]) > 0.0)
    assert np.all(np.diff(found.errors[:, 2]) < 0.0)
    rows = found.rows()
    assert [(row["n_shown"], row["n_dims"]) for row in rows[:5]] == [(10, 1), (10, 2), (10, 3), (10, 5), (30, 1)]
    assert rows[6]["error"] == found.errors[1, 2]
    summary = json.loads(json.dumps(found.to_dict()))
    assert (summary["n_dims"], summary["n_dims_parallel"], summary["n_models"], summary["n_items"]) == (3, 3, 60, 150)
    assert summary["share_missing"] == 0.0
    assert len(rows) == 12


def test_eigenvalues_are_those_of_the_correlations_of_items_or_of_task_scores(found, responses):
    expected = np.linalg.eigvalsh(np.corrcoef(responses.responses.T))[::-1][:59]
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-10)
    np.testing.assert_allclose(found.shares, expected / 150, atol=1e-12)
    responses = simulated(40, 120, 2)
    tasks = [f"task {item % 6}" for item in range(120)]
    items = responses.items.with_columns(pl.Series("part", tasks))
    found = dimensionality(dataclasses.replace(responses, items=items), QUICK, candidates=(1,), n_shown=(), by="part")
    scores = np.column_stack([responses.responses[:, task::6].mean(axis=1) for task in range(6)])
    expected = np.linalg.eigvalsh(np.corrcoef(scores.T))[::-1]
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-10)
    np.testing.assert_allclose(found.shares, expected / 6, atol=1e-12)
    assert f"explains {100 * found.shares[0]:.0f} % of the tasks' variance" in found.message
    with pytest.raises(DataError, match="'no such column'"):
        dimensionality(responses, QUICK, by="no such column")


def test_errors_are_means_over_models_and_their_standard_errors(responses):
    responses = responses.take(items=np.arange(0, 150, 3))
    options = {"candidates": (1, 3), "n_shown": (10,)}
    rng = np.random.default_rng(4)
    parallel_analysis(responses.responses, rng, n_shuffles=50)  # what the verb draws first
    _, _, errors, log_likelihoods = held_out_errors(responses, QUICK, **options, rng=rng)
    found = dimensionality(responses, QUICK, **options, rng=4)
    assert errors.shape == (2, 2, 60)
    assert not np.isnan(errors).any()
    np.testing.assert_allclose(found.errors, errors.mean(axis=2))
    np.testing.assert_allclose(found.error_standard_errors, errors.std(axis=2, ddof=1) / np.sqrt(60))
    np.testing.assert_allclose(found.log_likelihoods, log_likelihoods.mean(axis=2))
    # the ratio's standard error by leaving each model out in turn
    total = errors.sum(axis=2, keepdims=True)
    without = (total - errors)[:, 1] / (total - errors)[:, 0]
    jackknife = np.sqrt(59 / 60 * np.sum((without - without.mean(axis=1, keepdims=True)) ** 2, axis=1))
    np.testing.assert_allclose(found.relative_errors[:, 1], found.errors[:, 1] / found.errors[:, 0] - 1.0)
    np.testing.assert_allclose(found.relative_standard_errors[:, 1], jackknife, rtol=0.1)
    np.testing.assert_array_equal(found.relative_standard_errors[:, 0], 0.0)


def test_missing_cells_are_left_out_and_said_and_blocks_of_them_are_no_ability():
    whole = simulated(60, 150, 2, seed=1)
    values = whole.responses.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.2] = np.nan
    values[:12, 1::2] = np.nan  # these models have nothing to predict
    holed = ResponseMatrix.create(values, items=whole.items)
    found = dimensionality(holed, QUICK, candidates=(1, 2), n_shown=(20,))
    assert found.share_missing == pytest.approx(np.isnan(values).mean())
    assert f"{100 * found.share_missing:.1f} % of the responses are missing" in found.message
    assert found.n_dims_parallel == 2
    assert found.n_dims == 2
    assert np.isfinite(found.errors).all()
    # shuffling must leave the gaps where they are: they would otherwise be spread, and look like structure
    rng = np.random.default_rng(1)
    noise = (rng.random((80, 200)) < 0.5).astype(float)
    noise[:40, :150] = np.nan
    assert parallel_analysis(noise, rng).n_dims <= 1


def test_few_models_long_benchmarks_and_marginal_ml_give_what_they_can(monkeypatch):
    found = dimensionality(simulated(9, 40, 1))
    assert (found.n_dims, found.candidates, found.rows()) == (None, (), [])
    assert found.eigenvalues.shape == (8,)
    assert "9 models are too few" in found.message
    found = dimensionality(simulated(40, 20, 1), MarginalML(tolerance=1e-2), candidates=(1, 3), n_shown=())
    assert found.candidates == (1,)
    monkeypatch.setattr("itembank.calibration.dimensions.MOST_ITEMS", 60)
    found = dimensionality(simulated(40, 150, 1), QUICK, candidates=(1, 2), n_shown=())
    assert (found.n_items, found.n_items_used, found.n_shown) == (150, 50, (25,))
    assert "50 of 150 items" in found.message


def test_errors_agree_with_the_choice_that_calibrate_makes(responses):
    """Both say how far scores are off; they leave out other models, so the numbers agree to chance."""
    choice = choose_n_dims(responses, QUICK, candidates=(1, 3))
    found = dimensionality(responses, QUICK, candidates=(1, 3), n_shown=())
    np.testing.assert_allclose(choice.errors, found.errors[-1], atol=4 * found.error_standard_errors[-1].max())
    assert choice.n_dims == found.n_dims == 3


@pytest.mark.parametrize(
    ("responses", "options", "error", "text"),
    [
        (np.ones((12, 8)), {}, DataError, "tell models apart"),
        (np.eye(2), {}, DataError, "at least 3 models"),
        (np.where(np.arange(12)[:, None] == 3, np.nan, np.eye(12)), {}, DataError, "'model-4'"),
        (np.eye(12), {"n_shown": (0,)}, ParameterError, "at least 1"),
        (np.eye(12), {"candidates": (9,)}, ParameterError, "candidate number of dimensions"),
    ],
)
def test_what_cannot_be_counted_is_refused(responses, options, error, text):
    with pytest.raises(error, match=text):
        dimensionality(ResponseMatrix.create(responses), QUICK, **options)


def test_function_calls_ask_for_several_abilities(shared_dir):
    folder = shared_dir / "data" / "bfcl_v1"
    if not folder.is_dir():
        pytest.skip(f"{folder} not found")
    matrix = read_responses(folder / "responses.parquet", items=folder / "items.csv")
    found = dimensionality(matrix.take(items=np.arange(0, 1700, 10)), QUICK, candidates=(1, 4), n_shown=(64,))
    assert 0.2 < found.shares[0] < 0.3
    assert found.n_dims == 4
    assert np.all(found.relative_errors[:, 1] < 0.0)
