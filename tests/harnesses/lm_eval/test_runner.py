"""`Runner`: selections and sessions inside the harness, and what is paid when it is killed."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning, IntegrityError
from itembank.planning.select import select
from itembank.sessions.journal_sessions import read_session
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.session_spec import SessionSpec
from itembank_harnesses import Runner
from itembank_harnesses.lm_eval.patches import HarnessError
from tests.harnesses.lm_eval.conftest import EXAMPLE
from tests.harnesses.lm_eval.rows import rows_of

pytestmark = [pytest.mark.harness, pytest.mark.filterwarnings("ignore")]
FEW = SessionSpec(budget=Budget(n_items=12), interval="model-based")


@pytest.fixture
def runner(new_model, manager_of, bank):
    """A runner of the new model over the bank."""
    return Runner(new_model, tasks=["quiz"], bank=bank, model_id="new", task_manager=manager_of())


def everything(bank):
    """A selection of all items."""
    return select(bank, bank.n_items, method="random", rng=0)


@pytest.mark.parametrize(
    ("reading", "calibrating", "expected"),
    [
        ((), (), lambda full: (full["sums"] + full["products"] + full["words"]) / 3),
        ((), ("--across", "items"), lambda full: (24 * full["sums"] + 12 * full["products"] + 16 * full["words"]) / 52),
        (("--task", "sums", "--task", "products"), ("--across", "items"), lambda full: full["calculating"]),
        (("--task", "sums", "--task", "products", "--spec", "use_groups = true"), (), lambda full: full["calculating"]),
    ],
    ids=["macro", "micro", "the harness's group", "groups"],
)
def test_with_all_items_the_overall_score_is_the_harness_s_own(
    new_model, manager_of, evaluate, bank_of, reading, calibrating, expected
):
    results = evaluate(new_model)["results"]
    full = {task: one.get("acc,none", one.get("exact_match,strict-match")) for task, one in results.items()}
    whole = load_bank(bank_of(reading, calibrating))
    runner = Runner(new_model, tasks=["quiz"], bank=whole, model_id="new", task_manager=manager_of())
    estimates = runner.run(everything(whole)).estimates
    assert estimates.column("overall")[0] == pytest.approx(expected(full), abs=1e-12, rel=0)
    for task in {task for task in whole.targets.scenarios if full[task] is not None}:
        assert estimates.column(task)[0] == pytest.approx(full[task], abs=1e-12, rel=0)


def test_a_selection_is_run_and_estimated(runner, bank, evaluate, new_model):
    selection = select(bank, 15, rng=0)
    done = runner.run(selection)
    full = rows_of(evaluate(new_model))
    assert set(done.responses.items["item_id"]) == set(selection.item_ids)
    metric = {"words": ("exact_match", "strict-match")}
    for position, item in enumerate(done.responses.items["item_id"]):
        task, _, number = item.partition("/")
        name, filter_name = metric.get(task, ("acc", "none"))
        assert done.responses.responses[0, position] == full[task, int(number), filter_name][name]
    assert done.estimates.n_items[0, -1] == 15


def test_a_session_asks_the_same_whether_or_not_the_harness_runs_it(runner, bank, evaluate, new_model, tmp_path):
    estimate = runner.run_adaptive(FEW, journal=tmp_path / "run.jsonl", batch=4)
    session = read_session(tmp_path / "run.jsonl", bank)
    full = rows_of(evaluate(new_model))
    assert session.n_items == 12
    for item, told in session.told.items():
        task, _, number = item.partition("/")
        name, filter_name = {"words": ("exact_match", "strict-match")}.get(task, ("acc", "none"))
        assert told.response == full[task, int(number), filter_name][name]
    np.testing.assert_equal(estimate.scores.rows(), session.estimate().scores.rows())


def test_tokens_are_the_costs(runner, bank, evaluate, new_model, tmp_path):
    runner.run_adaptive(FEW, journal=tmp_path / "run.jsonl", batch=4)
    full = rows_of(evaluate(new_model))
    for item, told in read_session(tmp_path / "run.jsonl", bank).told.items():
        task, _, number = item.partition("/")
        row = full[task, int(number), "strict-match" if task == "words" else "none"]
        sent = [" ".join(part for part in one if isinstance(part, str)) for one in row["arguments"]]
        replies = [reply for one in row["resps"] for reply in one if isinstance(reply, str)]
        expected = {"input_tokens": sum(len(text.split()) for text in sent)}
        expected["output_tokens"] = sum(len(text.split()) for text in replies)
        assert told.costs == expected


def test_a_model_without_tokens_has_unknown_costs(runner, bank, new_model, tmp_path):
    new_model.tok_encode = lambda text: text
    runner.run_adaptive(FEW, journal=tmp_path / "run.jsonl")
    assert all(not told.costs for told in read_session(tmp_path / "run.jsonl", bank).told.values())


def test_a_session_that_goes_on_must_be_the_same(runner, tmp_path, manager_of, new_model, bank):
    runner.run_adaptive(FEW, journal=tmp_path / "run.jsonl")
    with pytest.raises(DataError, match="another stopping"):
        runner.run_adaptive(
            SessionSpec(budget=Budget(n_items=12), stopping=Stopping(half_width=0.1), interval="model-based"),
            journal=tmp_path / "run.jsonl",
        )
    named = {"tasks": ["quiz"], "bank": bank, "model_id": "new", "task_manager": manager_of(), "num_fewshot": 1}
    with pytest.raises(IntegrityError, match="these have 1 shot"):
        Runner(new_model, **named).run_adaptive(FEW, journal=tmp_path / "run.jsonl")
    with (
        pytest.warns(DataWarning, match="The run goes on with these prompts"),
        pytest.raises(DataError, match="goes on with the prompts that it was started with"),
    ):
        Runner(new_model, **named, ignore_prompts=True).run_adaptive(FEW, journal=tmp_path / "run.jsonl")


def test_several_ranks_are_refused_in_a_session(runner, new_model, tmp_path):
    new_model._world_size = 2
    with pytest.raises(HarnessError, match="got 2 ranks"):
        runner.run_adaptive(FEW, journal=tmp_path / "run.jsonl")


def test_a_changed_document_is_refused_before_a_session_s_first_request(runner, bank, new_model, tmp_path):
    new_model.calls = tmp_path / "calls"
    known = bank.responses.items
    other = pl.when(pl.col("item_id") == "products/11").then(pl.lit("another")).otherwise("content_hash")
    changed = known.with_columns(other.alias("content_hash"))
    runner.bank = replace(bank, responses=bank.responses.with_tables(items=changed))
    with pytest.raises(IntegrityError, match="products/11"):
        runner.run_adaptive(FEW, journal=tmp_path / "run.jsonl")
    assert not new_model.calls.exists()


def test_items_of_other_banks_are_refused(runner, bank):
    foreign = Selection(("plain id",), ("sums",), np.ones(1), "random", bank.bank_id)
    with pytest.raises(IntegrityError, match="1 of 1 that are in none: 'plain id'"):
        runner.run(foreign)


PROGRAM = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import simulated_lm
from itembank.sessions.limits import Budget
from itembank.sessions.session_spec import SessionSpec
from itembank_harnesses import Runner
from itembank_harnesses.lm_eval import run as hooks, rows
from lm_eval.tasks import TaskManager

_, _, tasks, bank, folder, place, count = sys.argv
left = int(count)

def dying(function):
    def call(*given, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)
    return call

if place == "model":
    simulated_lm.SimulatedLM.solves = dying(simulated_lm.SimulatedLM.solves)
elif place == "samples written":
    hooks.responses_of = dying(hooks.responses_of)
elif place == "answer told":
    from itembank.sessions.session import AdaptiveSession
    AdaptiveSession.take = dying(AdaptiveSession.take)
elif place == "samples half written":
    def half(self, lines):
        global left
        left -= 1
        text = "".join(rows._dumped(line) + "\\n" for line in lines).encode()
        with self.path.open("ab") as file:
            file.write(text[: len(text) * 2 // 3] if left == 0 else text)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    rows.RowFile._append = half

lm = simulated_lm.SimulatedLM(skill=0.6, seed=99, calls=f"{folder}/calls")
manager = TaskManager(include_path=tasks, include_defaults=False)
runner = Runner(lm, tasks=["quiz"], bank=bank, model_id="new", task_manager=manager)
spec = SessionSpec(budget=Budget(n_items=16), interval="model-based")
runner.run_adaptive(spec, journal=f"{folder}/run.jsonl", batch=4)
"""


def start(arguments):
    """Run a session in another process; return its exit code."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(EXAMPLE), *map(str, arguments)], check=False,
                          capture_output=True, text=True, env=environment)  # fmt: skip
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode


def finished(folder):
    """Items whose samples are whole in the file."""
    path = folder / "run.jsonl.rows"
    lines = map(json.loads, path.read_bytes().split(b"\n")[:-1] if path.exists() else ())
    return {line["item_id"] for line in lines if "item_id" in line}


def items_called(folder):
    """Items of requests so far, as often as each request was sent."""
    calls = Counter((folder / "calls").read_text().splitlines()) if (folder / "calls").exists() else Counter()
    return {call.rpartition("/")[0]: n for call, n in calls.items()}


@pytest.mark.parametrize(
    ("place", "counts"),
    [("model", (3, 12)), ("samples written", (1, 3)), ("answer told", (1, 6)), ("samples half written", (2, 3, 4))],
)
def test_nothing_that_was_finished_is_paid_twice(place, counts, manager_of, bank_of, simulated, tmp_path, bank):
    tasks = tmp_path / "tasks"
    simulated.write_tasks(tasks, {"sums": 24, "products": 12, "words": 16})
    for count in counts:
        folder = tmp_path / str(count)
        folder.mkdir()
        assert start([tasks, bank_of(), folder, place, count]) == -signal.SIGKILL
        before, paid = items_called(folder), finished(folder)
        assert start([tasks, bank_of(), folder, "nowhere", 0]) == 0
        after = items_called(folder)
        assert all(after[item] == before[item] for item in paid)
        again = {item for item, n in after.items() if n > 1}
        assert len(again) <= 4  # a batch that was under way in the model
        if place in {"samples written", "answer told"}:
            assert not again
        session = read_session(folder / "run.jsonl", bank)
        assert session.n_items == 16
        assert set(after) == set(session.told)
