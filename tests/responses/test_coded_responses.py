"""Coded responses are a response matrix: the same numbers wherever they are asked for."""

import copy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import polars as pl
import pytest

from itembank import ResponseMatrix, read_responses, write_responses
from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.banks import data_fingerprint
from itembank.bank.known_scores import KnownScores
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError
from itembank.responses import coded_responses
from itembank.responses.code_array import MISSING, codes_of
from itembank.responses.coded_responses import CodedResponses, binary_codes, summary
from itembank.responses.targets import ScoreTargets
from tests.bank.banks import make_bank


def answers(n_models=12, n_items=30, seed=0):
    rng = np.random.default_rng(seed)
    responses = (rng.random((n_models, n_items)) < 0.6).astype(float)
    responses[rng.random(responses.shape) < 0.1] = np.nan
    return responses


def pair(**tables):
    """The same answers as numbers and as codes."""
    numbers = ResponseMatrix.create(answers(), **tables)
    coded = CodedResponses.from_item_codes(codes_of(answers()).cells, models=numbers.models, items=numbers.items)
    return numbers, coded


@pytest.fixture
def _many(monkeypatch):
    """Let a few cells count as many, which come in several parts."""
    monkeypatch.setattr(coded_responses, "NUMBERS_UP_TO", 50)
    monkeypatch.setattr(coded_responses, "CODES_DOWN_TO", 50)
    monkeypatch.setattr(coded_responses, "CELLS_AT_ONCE", 100)


def same(one, other):
    np.testing.assert_array_equal(one.responses, other.responses)
    assert one.model_ids == other.model_ids
    assert one.items.equals(other.items)
    assert (one.n_models, one.n_items) == (other.n_models, other.n_items)


@pytest.mark.usefixtures("_many")
def test_numbers_tables_and_parts_are_those_of_a_matrix():
    numbers, coded = pair()
    same(coded, numbers)
    np.testing.assert_array_equal(coded.observed, numbers.observed)
    assert coded.is_binary
    assert not coded.is_complete
    assert coded.n_trials is None
    assert coded.costs == {}
    assert summary(coded) == summary(numbers)
    assert len(list(coded.parts())) == 4
    same(coded.block(3, 7), numbers.block(3, 7))
    assert data_fingerprint(coded) == data_fingerprint(numbers)
    assert repr(coded) == "CodedResponses of 12 models to 30 items"


@pytest.mark.usefixtures("_many")
def test_what_is_taken_stays_coded_while_it_is_much():
    numbers, coded = pair()
    rows, columns = np.array([5, 2, 9]), np.array([29, 0, 4])
    same(coded.take(models=rows), numbers.take(models=rows))
    assert isinstance(coded.take(models=rows), CodedResponses)
    same(coded.take(models=rows, items=columns), numbers.take(models=rows, items=columns))
    assert type(coded.take(models=rows, items=columns)) is ResponseMatrix
    np.testing.assert_array_equal(coded.of_items(columns), numbers.of_items(columns))
    np.testing.assert_array_equal(coded.of_items(columns, models=rows), numbers.responses[np.ix_(rows, columns)])
    np.testing.assert_array_equal(numbers.of_items(columns, models=rows), numbers.responses[np.ix_(rows, columns)])


def test_tables_are_changed_and_copies_sent_without_numbers():
    numbers, coded = pair()
    models = numbers.models.with_columns(size=pl.int_range(12))
    changed = coded.with_tables(models=models)
    assert np.shares_memory(changed.item_codes().cells, coded.item_codes().cells)
    assert changed.models.equals(models)
    same(copy.deepcopy(coded), numbers)  # by what another process is sent
    other = 1.0 - numbers.responses
    np.testing.assert_array_equal(replace(coded, responses=other).block(1, 3).responses, other[1:3])


def test_what_is_made_of_numbers_holds_their_codes():
    numbers, _ = pair()
    trials = np.where(numbers.observed, 3, 0)
    costs = {"seconds": np.random.default_rng(5).random((12, 30))}  # 360 values, of two bytes each
    whole = replace(numbers, responses=numbers.responses * (2.0 / 3.0), n_trials=trials, costs=costs)
    coded = CodedResponses(whole.responses, whole.models, whole.items, trials, costs)
    same(coded, whole)
    np.testing.assert_array_equal(coded.n_trials, trials)
    assert coded.n_trials.dtype == np.int64
    np.testing.assert_array_equal(coded.costs["seconds"], costs["seconds"])
    assert coded.item_codes() is None
    assert CodedResponses.create(numbers.responses).item_codes().cells.dtype == np.uint8


def test_coded_responses_are_not_changed_in_place():
    _, coded = pair()
    for name in ("responses", "models", "items", "n_trials", "costs"):
        with pytest.raises(FrozenInstanceError):
            setattr(coded, name, None)


@pytest.mark.usefixtures("_many")
def test_scores_and_variances_are_those_of_numbers():
    numbers, coded = pair(scenarios=["a"] * 20 + ["b"] * 10)
    targets = ScoreTargets.create(numbers.items)
    found, expected = KnownScores.of(coded, targets), KnownScores.of(numbers, targets)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-12)
    np.testing.assert_allclose(response_variance(coded, targets), response_variance(numbers, targets), rtol=1e-12)


@pytest.mark.usefixtures("_many")
def test_a_large_file_is_read_into_codes_and_a_bank_keeps_them(tmp_path):
    numbers, _ = pair()
    write_responses(numbers, tmp_path / "responses.parquet")
    read = read_responses(tmp_path / "responses.parquet")
    assert isinstance(read, CodedResponses)
    same(read, numbers)
    np.testing.assert_array_equal(binary_codes(read).responses(), numbers.responses)
    bank = make_bank()
    save_bank(bank, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    assert isinstance(loaded.responses, CodedResponses) == bank.responses.is_binary
    same(loaded.responses, bank.responses)
    np.testing.assert_allclose(loaded.scenario_scores, bank.scenario_scores, rtol=1e-12)


def test_a_mapped_file_is_not_copied(tmp_path):
    path = tmp_path / "codes"
    codes_of(answers()).cells.tofile(path)
    mapped = np.memmap(path, np.uint8, "r", shape=(30, 12))
    coded = CodedResponses.from_item_codes(mapped)
    np.testing.assert_array_equal(coded.responses, answers())
    assert np.shares_memory(coded.item_codes().cells, mapped)


def test_codes_that_mean_nothing_are_refused():
    with pytest.raises(DataError, match=r"must be 0, 1 or 255 \(missing\), got 2 others among items 1 to 3"):
        CodedResponses.from_item_codes(np.array([[0, 1], [2, 254], [MISSING, 1]], dtype=np.uint8))
    with pytest.raises(DataError, match=r"two axes \(n_items, n_models\) of uint8, got shape \(3,\) of int64"):
        CodedResponses.from_item_codes(np.zeros(3, dtype=np.int64))
