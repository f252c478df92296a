"""Adaptive runs inside Inspect: nothing is paid twice, whenever the provider goes down."""

import json

import numpy as np
import pytest

pytest.importorskip("inspect_ai")
import inspect_ai

from itembank.bank.bank_files import load_bank
from itembank.errors import DataWarning, IntegrityError, ParameterError
from itembank.gating.gate_spec import GateSpec
from itembank.gating.stages import start_gate
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.session_spec import SessionSpec
from itembank_harnesses.inspect.samples import estimated_metrics
from itembank_harnesses.inspect.tasks import adaptive, gated
from tests.harnesses.inspect.running import OF_INSPECT, metrics, ours, run
from tests.harnesses.inspect.toys import N_SAMPLES, Calls
from tests.readers.logs import read_inspect

pytestmark = OF_INSPECT
WRONG = (3, 5, 8, 13, 14, 17, 20, 21, 22, 24)
N_ITEMS = 8


@pytest.fixture(scope="module")
def whole(bank_path, tmp_path_factory):
    """Run that nothing interrupts, and the samples that it paid for."""
    Calls.reset(wrong=WRONG)
    log = run(adaptive("quiz", str(bank_path), max_items=N_ITEMS, batch=3), tmp_path_factory.mktemp("whole"))
    assert log.status == "success", log.error
    assert len(Calls.made) == N_ITEMS
    return log, sorted(Calls.made)


@pytest.mark.parametrize("dies_after", range(N_ITEMS + 1))
def test_no_sample_is_paid_twice_whenever_the_provider_goes_down(whole, bank_path, tmp_path, dies_after):
    uninterrupted, paid = whole
    Calls.reset(wrong=WRONG, most=dies_after)
    log = run(adaptive("quiz", str(bank_path), max_items=N_ITEMS, batch=3), tmp_path)
    assert len(Calls.made) == dies_after
    assert log.status == ("success" if dies_after == N_ITEMS else "error")
    if dies_after < N_ITEMS:
        Calls.most = N_ITEMS
        (log,) = inspect_ai.eval_retry(log, log_dir=str(tmp_path), display="none")
    assert log.status == "success"
    assert sorted(Calls.made) == paid  # each once, in both attempts together
    assert ours(log)["trace"] == ours(uninterrupted)["trace"]
    assert metrics(log) == metrics(uninterrupted)
    with pytest.warns(DataWarning, match=f"{N_ITEMS} of {N_SAMPLES} items"):
        responses = read_inspect(tmp_path)
    assert sorted(responses.items["item_id"]) == sorted(f"quiz/{number}" for number in paid)
    right = [float(int(item.split("/")[1]) not in WRONG) for item in responses.items["item_id"]]
    assert responses.responses[0].tolist() == right


def test_a_log_says_what_was_run_and_what_was_known_when(whole, bank_path):
    log, _ = whole
    about, bank = ours(log), load_bank(bank_path)
    assert (about["task"], about["bank"], about["n_items_full"]) == ("quiz", bank.bank_id, bank.n_items)
    assert SessionSpec.from_dict(about["session"]).budget.n_items == N_ITEMS
    assert [one["n_items"] for one in about["trace"]] == [3, 6, 8]
    last = about["trace"][-1]
    found = metrics(log)
    assert [found[name] for name in ("overall", "overall_low", "overall_high", "n_items")] == [
        pytest.approx(last[name]) for name in ("estimate", "low", "high", "n_items")
    ]


def test_a_run_of_all_samples_has_the_true_score(bank_path, tmp_path):
    Calls.reset(wrong=WRONG)
    log = run(adaptive("quiz", str(bank_path), max_items=N_SAMPLES, batch=8), tmp_path)
    found, truth = metrics(log), 1 - len(WRONG) / N_SAMPLES
    assert [found[name] for name in ("overall", "overall_low", "overall_high")] == pytest.approx([truth] * 3, abs=1e-12)


def test_an_error_is_no_wrong_answer(bank_path, tmp_path):
    failing = (10, 12, 15)
    Calls.reset(failing=failing)
    log = run(adaptive("quiz", str(bank_path), max_items=N_SAMPLES, batch=8), tmp_path, fail_on_error=False)
    assert log.status == "success"
    assert metrics(log)["n_items"] == N_SAMPLES - len(failing)
    assert metrics(log)["overall"] > 0.9  # every answer that there is is right
    with pytest.warns(DataWarning, match=r"count as missing, not wrong: 3 of .*3 errors"):
        responses = read_inspect(tmp_path)
    assert responses.observed.sum() == N_SAMPLES - len(failing)


def test_epochs_are_trials(bank_path, tmp_path):
    Calls.reset(wrong=WRONG)
    log = run(adaptive("quiz", str(bank_path), max_items=4, batch=2), tmp_path, epochs=3)
    assert len(Calls.made) == 12
    assert [one["n_items"] for one in ours(log)["trace"]] == [2, 4]
    assert metrics(log)["overall"] == pytest.approx(ours(log)["trace"][-1]["estimate"])
    with pytest.warns(DataWarning, match="part of their tasks"):
        responses = read_inspect(tmp_path)
    assert responses.n_trials.tolist() == [[3, 3, 3, 3]]


def test_metrics_of_no_scores_are_the_prior(bank_path):
    spec = json.dumps(SessionSpec().to_dict())
    prior = estimated_metrics([], bank=str(bank_path), task="quiz", session=spec)
    assert prior["n_items"] == 0
    assert prior["overall_low"] < prior["overall"] < prior["overall_high"]
    assert prior["overall"] == pytest.approx(load_bank(bank_path).responses.responses.mean(), abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_items": 4, "task_args": {"size": 20}}, IntegrityError, r"4 of 24 that are in none: 'quiz/21', 'quiz"),
        ({"max_items": 4, "task_args": {"changed": 2}}, IntegrityError, r"with another content: 'quiz/1'"),
        ({}, ParameterError, "half_width or max_items must be given"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_call(bank_path, arguments, error, message):
    Calls.reset()
    with pytest.raises(error, match=message):
        adaptive("quiz", str(bank_path), **arguments)
    assert not Calls.made


@pytest.mark.parametrize("dies_after", [2, 7])
def test_a_gate_goes_on_after_the_provider_went_down_and_asks_nothing_twice(bank_path, tmp_path, dies_after):
    items = load_bank(bank_path).responses.items
    baseline = ResponseMatrix.create(np.ones((1, N_SAMPLES)), model_ids=["base"], items=items)
    plan = start_gate(baseline, spec=GateSpec(margin=0.4, first_look=4))
    plan.save(tmp_path / "gate")
    Calls.reset(wrong=range(1, N_SAMPLES + 1, 3), most=dies_after)
    log = run(gated("quiz", str(bank_path), str(tmp_path / "gate")), tmp_path)
    assert (log.status, len(Calls.made)) == ("error", dies_after)
    Calls.most = N_SAMPLES
    (log,) = inspect_ai.eval_retry(log, log_dir=str(tmp_path), display="none")
    n_items = ours(log)["trace"][-1]["n_items"]
    assert n_items in plan.sizes
    assert sorted(f"quiz/{number}" for number in Calls.made) == sorted(plan.order[:n_items])
    responses = ResponseMatrix.create(
        np.array([[float(int(item.split("/")[1]) not in Calls.wrong) for item in plan.order[:n_items]]]),
        model_ids=["new"],
        items=items[baseline.item_indices(list(plan.order[:n_items]))],
    )
    found = plan.look(responses)
    assert (found.next_items, found.n_items) == ((), n_items)
    assert ours(log)["trace"][-1]["difference"] == found.difference
