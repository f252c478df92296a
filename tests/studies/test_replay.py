import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank.costs import CostUnit
from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.progress import silent
from itembank.responses.responses import ResponseMatrix
from itembank.selection.greedy import Constraints
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.session_spec import SessionSpec
from itembank_studies.replays import replay
from tests.bank.banks import make_bank
from tests.sessions.simulated import begin


@pytest.fixture(scope="module")
def bank():
    made = make_bank(n_models=15, n_items=90, with_extras=True)
    calibration = dataclasses.replace(made.calibration, thresholds={}, tolerance=1e-3)
    rng = np.random.default_rng(7)
    shape = made.responses.responses.shape
    read = rng.integers(10, 100, shape).astype(float)
    written = np.rint(rng.lognormal(0, 0.3, shape) * rng.lognormal(4, 1.5, shape[1])) + 1.0
    responses = dataclasses.replace(made.responses, costs={"input_tokens": read, "output_tokens": written})
    return dataclasses.replace(made, calibration=calibration, responses=responses)


@pytest.fixture(scope="module")
def recorded(bank):
    """Five new models that answered everything, with what it cost."""
    rng = np.random.default_rng(3)
    chances = probability(bank.parameters, rng.normal(size=(5, 2)))
    expected = bank.responses.expected_costs()
    costs = {unit: np.rint(cost * rng.lognormal(0, 0.2, chances.shape)) + 1.0 for unit, cost in expected.items()}
    return ResponseMatrix.create(
        (rng.random(chances.shape) < chances).astype(float),
        model_ids=[f"new-{row}" for row in range(5)],
        items=bank.responses.items.select("item_id", "scenario"),
        costs=costs,
    )


def replayed(bank, recorded, *, batch=1, n_jobs=1, progress=silent, **choices):
    """Replay sessions of a spec with these choices; calibrated intervals would take a fit for every fold."""
    spec = SessionSpec(**{"interval": "model-based", **choices})
    return replay(bank, recorded, spec, batch=batch, n_jobs=n_jobs, progress=progress)


def driven_by_hand(bank, recorded, row, *, batch=1, **choices):
    """The session of one model, asked and told as a loop around any evaluation tool would."""
    session = begin(bank, model_id=recorded.model_ids[row], **{"interval": "model-based", **choices})
    while items := session.ask(batch):
        for item in items:
            column = recorded.item_ids.index(item)
            costs = {unit: float(cost[row, column]) for unit, cost in recorded.costs.items()}
            session.tell(item, recorded.responses[row, column], costs=costs)
    return session


CHOICES = {
    "a budget of items": {"budget": Budget(n_items=12)},
    "tokens": {"cost": "tokens", "budget": Budget(costs={"tokens": 900.0})},
    "reading is free": {"cost": CostUnit("tokens", 0.0), "budget": Budget(n_items=8)},
    "batches": {"batch": 5, "budget": Budget(n_items=12)},
    "chance": {"criterion": "random", "seed": 11, "budget": Budget(n_items=9)},
    "randomesque": {"constraints": Constraints(at_least=2, randomesque=4), "seed": 5, "budget": Budget(n_items=9)},
    "precision": {"stopping": Stopping(half_width={"overall": 0.09}, min_items=3)},
    "ability": {"criterion": "d-optimal", "stopping": Stopping(ability_error=0.5), "n_start": 4},
    "a target": {"target": {"math/0": 1.0, "code/1": 2.0}, "budget": Budget(n_items=6)},
    "calibrated": {"stopping": Stopping(half_width=0.15), "budget": Budget(10), "batch": 2, "interval": "calibrated"},
}


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_numbers_are_those_of_a_session_driven_by_hand(bank, recorded, choices):
    recorded = recorded.take(models=np.arange(3))
    result = replayed(bank, recorded, **choices)
    for row, model in enumerate(recorded.model_ids):
        session = driven_by_hand(bank, recorded, row, **choices)
        scores = session.estimate().scores
        assert scores.targets == result.estimates.targets
        assert scores.interval_kind == result.estimates.interval_kind == choices.get("interval", "model-based")
        for name in ("value", "standard_error", "low", "high", "n_items", "abilities", "ability_covariance"):
            np.testing.assert_array_equal(getattr(result.estimates, name)[row], getattr(scores, name)[0])
        asked = [item for event in session.history if hasattr(event, "item_ids") for item in event.item_ids]
        assert result.asked.filter(pl.col("model_id") == model)["item_id"].to_list() == asked
        assert result.reason_stopped[row] == session.reason_stopped
        assert result.is_precise[row] == session.is_precise
        assert result.n_answered[row] == session.n_items == len(asked)
        for unit, amount in session.costs.items():
            assert result.costs[unit][row] == amount


@pytest.mark.parametrize("choices", [CHOICES["batches"], CHOICES["randomesque"]], ids=["batches", "randomesque"])
def test_neither_processes_nor_the_order_of_models_change_a_number(bank, recorded, choices):
    alone = replayed(bank, recorded, **choices)
    order = np.array([3, 0, 4, 1, 2])
    shared = replayed(bank, recorded.take(models=order), n_jobs=2, **choices)
    assert shared.estimates.model_ids == tuple(recorded.model_ids[row] for row in order)
    for name in ("value", "low", "high", "abilities"):
        np.testing.assert_array_equal(getattr(shared.estimates, name), getattr(alone.estimates, name)[order])
    np.testing.assert_array_equal(shared.costs["tokens"], alone.costs["tokens"][order])
    assert shared.asked.sort("model_id", "step").equals(alone.asked)


def test_tokens_are_those_of_the_record(bank, recorded):
    result = replayed(bank, recorded, cost="tokens", budget=Budget(n_items=6))
    for row, model in enumerate(recorded.model_ids):
        columns = recorded.item_indices(result.asked.filter(pl.col("model_id") == model)["item_id"].to_list())
        read, written = (recorded.costs[unit][row, columns] for unit in ("input_tokens", "output_tokens"))
        assert result.costs["tokens"][row] == pytest.approx(0.5 * read.sum() + written.sum(), rel=1e-14)
    assert result.rows("tokens")[0]["cost"] == result.costs["tokens"][0]
    assert result.rows()[0]["cost"] is None


def test_items_without_a_recorded_response_fail_and_count_for_nothing(bank, recorded):
    wanted = set(replayed(bank, recorded, budget=Budget(n_items=5)).asked["item_id"])
    columns = [column for column, item in enumerate(recorded.item_ids) if item in wanted]
    values = recorded.responses.copy()
    values[:, columns[: len(columns) // 2]] = np.nan  # no response, though the item stands in the record
    kept = np.setdiff1d(np.arange(recorded.n_items), columns[len(columns) // 2 :])  # the others do not stand there
    gaps = dataclasses.replace(recorded, responses=values).take(items=kept)
    result = replayed(bank, gaps, budget=Budget(n_items=5))
    assert result.n_answered.tolist() == result.estimates.n_items[:, -1].tolist() == 5 * [5]
    failed = result.asked.filter(pl.col("response").is_null())
    assert (set(failed["item_id"]) <= wanted, failed.height) == (True, result.n_failed.sum())
    assert (result.n_failed >= 5).all()


def test_a_model_without_responses_keeps_the_prior(bank, recorded):
    silent = dataclasses.replace(recorded, responses=np.full_like(recorded.responses, np.nan), costs={})
    result = replayed(bank, silent.take(models=np.arange(1), items=np.arange(20)))
    prior = begin(bank, interval="model-based").estimate()
    assert (result.reason_stopped, result.costs) == (("exhausted",), {})
    assert (result.n_answered[0], result.n_failed[0]) == (0, bank.n_items - bank.calibration.is_degenerate.sum())
    np.testing.assert_array_equal(result.estimates.value, prior.scores.value)


def test_trials_weigh_as_often_as_they_were_made_and_shares_that_are_no_counts_are_told_as_they_are(bank, recorded):
    shape = recorded.responses.shape
    often = dataclasses.replace(recorded, n_trials=np.full(shape, 5))
    plain, repeated = (replayed(bank, responses, budget=Budget(n_items=10)) for responses in (recorded, often))
    one, other = (np.trace(result.estimates.ability_covariance[0]) for result in (plain, repeated))
    assert other < 0.8 * one
    third = dataclasses.replace(recorded, responses=np.full(shape, 0.3), n_trials=np.full(shape, 4))
    assert set(replayed(bank, third, budget=Budget(n_items=3)).asked["response"]) == {0.3}


def test_unknown_costs_are_left_out_of_the_sum(bank, recorded):
    output = recorded.costs["output_tokens"].copy()
    output[0] = np.nan
    result = replayed(bank, dataclasses.replace(recorded, costs={"output_tokens": output}), budget=Budget(n_items=3))
    assert np.isnan(result.costs["output_tokens"][0])
    assert (result.costs["output_tokens"][1:] > 0.0).all()
    assert result.asked.filter(pl.col("model_id") == "new-0")["output_tokens"].null_count() == 3


def test_precision_is_told_apart_from_the_end_of_the_budget(bank, recorded):
    stopping = Stopping(half_width={"overall": 0.09})
    free = replayed(bank, recorded, stopping=stopping)
    assert free.is_precise.all()
    assert set(free.reason_stopped) == {"half-width of overall"}
    middle = int(np.sort(free.n_answered)[2])
    short = replayed(bank, recorded, stopping=stopping, budget=Budget(n_items=middle - 1))
    np.testing.assert_array_equal(short.is_precise, free.n_answered < middle)
    assert {short.reason_stopped[row] for row in np.flatnonzero(~short.is_precise)} == {f"budget: {middle - 1} items"}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_rises_to_one(bank, recorded, n_jobs):
    told = []
    replayed(bank, recorded, budget=Budget(n_items=1), n_jobs=n_jobs, progress=lambda _, share: told.append(share))
    assert (told, told[-1]) == (sorted(told), 1.0)


def test_rows_say_how_each_session_went(bank, recorded):
    rows = replayed(bank, recorded, budget=Budget(n_items=4)).rows("output_tokens")
    facts = {"model_id": "new-1", "target": "overall", "n_answered": 4, "n_items": 4, "n_total": bank.n_items}
    facts |= {"cost_unit": "output_tokens", "reason_stopped": "budget: 4 items"}
    assert (len(rows), {name: rows[7][name] for name in facts}) == (5 * 4, facts)


def test_impossible_choices_are_refused_before_the_work(bank, recorded):
    stranger = ResponseMatrix.create(np.ones((1, 2)), item_ids=["math/0", "elsewhere"])
    for responses, choices, error, message in (
        (recorded, {"batch": 0}, ParameterError, "batch must be a whole number >= 1, got 0"),
        (recorded, {"n_jobs": 0}, ParameterError, "n_jobs must be -1"),
        (stranger, {}, DataError, "1 of 2 are not: 'elsewhere'"),
        (recorded, {"cost": "seconds"}, DataError, "'seconds'"),
    ):
        with pytest.raises(error, match=message):
            replayed(bank, responses, **choices)
