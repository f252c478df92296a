"""New models with one graded attempt at an item beside past models' means of several."""

import dataclasses
import warnings

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.errors import DataWarning
from itembank.estimation.observations import attempt_variances, past_runs
from itembank.responses.how_read import ATTEMPT_VARIANCE
from itembank.responses.sizes import graded_items, with_assumed_sizes, with_usual_sizes
from itembank_living import without_responses

pytestmark = pytest.mark.usefixtures("few_folds")
N_ATTEMPTS, N_ITEMS, SHARE = 6, 80, 0.4
"""Attempts vary by this share of ``p (1 - p)``."""


def attempts(seed, n_models, n_attempts):
    rng, items = np.random.default_rng(seed), np.random.default_rng(5)
    slope, difficulty = np.exp(items.normal(0.0, 0.3, N_ITEMS)), items.normal(size=N_ITEMS)
    p = np.clip(1.0 / (1.0 + np.exp(-slope * (rng.normal(size=(n_models, 1)) - difficulty))), 1e-3, 1.0 - 1e-3)
    size = (1.0 - SHARE) / SHARE
    return rng.beta(size * p, size * (1.0 - p), (n_attempts, *p.shape))


def rows_of(values, name):
    attempt, model, item = (one.ravel() for one in np.indices(values.shape))
    ids = {"model_id": [f"{name}{one}" for one in model], "item_id": [f"item-{one:03d}" for one in item]}
    return pl.DataFrame({**ids, "seed": attempt, "response": values.ravel()})


@pytest.fixture(scope="module")
def graded():
    """Past attempts as they were made, and their bank."""
    past = attempts(1, 45, N_ATTEMPTS)
    read = ib.read_responses(rows_of(past, "past"), spec=ib.ReadingSpec(repeats="mean"))
    return past, ib.calibrate(read, ib.calibrations.Variational("2pl"))


def test_reading_keeps_how_much_graded_attempts_vary_and_nothing_of_right_and_wrong_ones():
    values = np.array([[[0.2, 1.0], [0.5, 0.0]], [[0.4, 1.0], [0.5, 1.0]], [[0.6, 0.0], [0.8, 1.0]]])
    read = ib.read_responses(rows_of(values, "m"), spec=ib.ReadingSpec(repeats="mean"))
    assert read.items[ATTEMPT_VARIANCE].to_list() == pytest.approx([(0.04 + 0.03) / 2, 1 / 3])
    counted = ib.read_responses(rows_of(np.round(values), "m"), spec=ib.ReadingSpec(repeats="mean"))
    assert ATTEMPT_VARIANCE not in counted.items.columns


def test_drawn_attempts_vary_as_attempts_did(graded):
    """A mean of k of n attempts is off by ``s^2 (1 / k - 1 / n)``."""
    past, bank = graded
    own = past.var(axis=0, ddof=1)
    assert attempt_variances(bank).mean(axis=0) == pytest.approx(own.mean(axis=0), rel=0.02)
    for k in (1, 2):
        responses, n_trials = past_runs(bank, float(k))
        assert np.all(n_trials == k)
        off = responses - bank.responses.responses
        assert np.mean(off**2) == pytest.approx(own.mean() * (1 / k - 1 / N_ATTEMPTS), rel=0.08)
        assert abs(off.mean()) < 4.0 * off.std() / np.sqrt(off.size)


def test_intervals_cover_models_with_one_attempt_and_the_bank_says_where_it_cannot_know(graded):
    _, bank = graded
    full = attempts(2, 240, 1)[0]
    items = bank.responses.items.select("item_id").sort("item_id")
    new = ib.ResponseMatrix.create(full, model_ids=[f"new{row}" for row in range(240)], items=items)
    selection = ib.select(bank, 20, method="v-optimal", rng=0)
    part = new.take(items=np.sort(new.item_indices(selection.item_ids)))

    def found(bank):
        made = ib.estimate(bank, part, selection=selection)
        low, high, truth = made.low[:, -1], made.high[:, -1], full.mean(axis=1)
        return np.mean((low <= truth) & (truth <= high)), np.mean(high - low), {note.kind for note in made.notes}

    coverage, width, notes = found(bank)
    assert 0.91 < coverage < 0.99
    assert "attempts" not in notes
    bare = dataclasses.replace(bank.responses, items=bank.responses.items.drop(ATTEMPT_VARIANCE))
    with pytest.warns(DataWarning, match="import past results from such"):
        as_means = found(dataclasses.replace(bank, responses=bare))
    assert as_means[1] < 0.9 * width
    assert "attempts" in found(without_responses(bank, selections=[selection]))[2]


def test_counts_read_twice_have_no_variance_of_graded_attempts():
    ids = {"model_id": ["a", "a", "b", "b"], "item_id": ["x"] * 4, "seed": [0, 1, 0, 1]}
    table = pl.DataFrame({**ids, "n_correct": [0, 1, 2, 3], "n_trials": [3] * 4})
    read = ib.read_responses(table, spec=ib.ReadingSpec(repeats="count"))
    assert ATTEMPT_VARIANCE not in read.items.columns


def test_a_share_of_an_item_that_is_right_or_wrong_counts_as_past_ones_beside_graded_items():
    items = pl.DataFrame({"item_id": ["graded", "right"], ATTEMPT_VARIANCE: [0.05, 0.2]})
    past = ib.ResponseMatrix.create(np.array([[0.31, 0.5], [0.62, 0.25]]), items=items, n_trials=np.full((2, 2), 4))
    assert graded_items(past).tolist() == [True, False]
    new = ib.ResponseMatrix.create(np.array([[0.4, 0.5]]), items=items.select("item_id"))
    with pytest.warns(DataWarning, match="^1 score came .* give them: n_trials.$"):
        assert with_usual_sizes(new, past).n_trials.tolist() == [[1, 4]]


def test_scores_of_as_many_questions_as_was_assumed_are_no_graded_attempts():
    scores = np.random.default_rng(0).random((12, 3)).round(4)
    items = pl.DataFrame({"item_id": ["x", "y", "z"], "scenario": ["x", "y", "z"]})
    past = with_assumed_sizes(ib.ResponseMatrix.create(scores, items=items))
    assert past.n_trials.min() == 100
    assert not graded_items(past).any()


@pytest.mark.parametrize("family", ["beta", "binomial"])
def test_a_published_bank_tells_of_fewer_attempts_only_where_there_are_fewer_and_an_interval_rests_on_errors(family):
    shares = np.round(4.0 * attempts(3, 33, 1)[0]) / 4.0
    matrix = ib.ResponseMatrix.create(shares, n_trials=np.full(shares.shape, 4))
    past, new = matrix.take(models=np.arange(30)), matrix.take(models=np.arange(30, 33))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # zeros and ones, which a Beta model has none of
        bank = ib.calibrate(past, ib.calibrations.Variational("2pl", family=family))
    selection = ib.select(bank, 20, method="v-optimal", rng=0)
    bank = without_responses(bank, selections=[selection])
    part = new.take(items=np.sort(new.item_indices(selection.item_ids)))
    single = dataclasses.replace(part, responses=np.round(part.responses), n_trials=None)

    def tells(responses, **choices):
        return "attempts" in {note.kind for note in ib.estimate(bank, responses, **choices).notes}

    assert tells(single, selection=selection)
    assert not tells(single, selection=selection, interval="model-based")
    assert not tells(part, selection=selection)
    assert not tells(dataclasses.replace(new, responses=np.round(new.responses), n_trials=None))
