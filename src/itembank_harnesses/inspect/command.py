"""A run of Inspect's own command with chosen items: what it is given, would cost, and left behind."""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError, shown
from itembank.files.atomic import write_text
from itembank.gating.stages import GatePlan
from itembank.readers.reading_specs import ReadingSpec
from itembank.sessions.events import Answer
from itembank_harnesses.inspect.samples import TaskItems, answer_of, answers_of, response_of
from itembank_harnesses.readers.inspect_runs import InspectRun, inspect_files, read_log, run_of, together
from itembank_harnesses.readers.inspect_samples import Sample
from itembank_harnesses.running import alone_in, call_program, usual_costs

IGNORE_PROMPTS = "ignore_prompts"
"""Argument of our tasks; absent where prompts count."""
TASK_FILE = "task.json"
PATIENCE = 10.0
"""Seconds for Inspect to end by itself after Ctrl-C."""
OWNED = ("-T", "--task-config", "--log-dir", "--limit", "--sample-id", "--sample-shuffle", "--no-log-samples")
"""Options of `inspect eval` that the run sets itself, or that would change which samples are run."""


@dataclass(frozen=True, slots=True)
class HarnessCall:
    """A call of `inspect eval`."""

    task: str  # {'adaptive', 'subset', 'gated'}: Of our own tasks
    task_arguments: Mapping[str, Any]  # What the task is given
    arguments: tuple[str, ...]  # Further arguments of `inspect eval`

    def __post_init__(self) -> None:
        """Check the arguments of Inspect."""
        check_arguments(self.arguments)


def check_arguments(arguments: Sequence[str]) -> None:
    """Raise `ParameterError` for options that would change which samples are run, or where the log goes."""
    given = [one for one in arguments if one.split("=")[0] in OWNED or one.startswith("-T")]
    if given:
        raise ParameterError(
            f"arguments of inspect must not hold {shown(given)}: itembank sets what is run and where the log goes. "
            "Arguments of the task are given with --task-arg NAME=VALUE."
        )


def check_task(call: HarnessCall, bank: Bank, known: TaskItems) -> None:
    """Make the task, and so compare it with the bank, and its solvers with those of the bank's runs.

    No model is called.
    """
    from itembank_harnesses.inspect import tasks  # noqa: PLC0415 (import Inspect)

    made = getattr(tasks, call.task)(**call.task_arguments)
    is_ignored = bool(call.task_arguments.get(IGNORE_PROMPTS))
    tasks.check_prompts(bank, known, tasks.solvers_told(made, call.arguments), is_ignored=is_ignored)


def run_command(call: HarnessCall, folder: Path) -> None:
    """Run Inspect's command, or go on where an earlier one of the same arguments ended; its output goes to stderr."""
    text = json.dumps(call.task_arguments, indent=1, ensure_ascii=False) + "\n"
    kept = folder / TASK_FILE
    if kept.is_file() and kept.read_text(encoding="utf-8") != text:
        raise DataError(f"{folder} holds a run with other choices ({TASK_FILE}); take another folder.")
    with alone_in(folder, "Inspect") as handles:
        run = last_run(folder)
        if run is None or not run.is_finished:
            write_text(kept, text)
            words = ["eval", f"itembank/{call.task}", "--task-config", str(kept), "--log-buffer", "1", *call.arguments]
            if run is not None and run.samples:
                words = ["eval-retry", str(run.path), "--log-buffer", "1"]
            call_program([sys.executable, "-m", "inspect_ai", *words, "--log-dir", str(folder)], handles, PATIENCE)
    run = last_run(folder)
    if run is None or not (run.samples or run.is_finished):
        raise DataError(
            f"{folder}: Inspect ended before any sample was run; its output is above. Fix that before you give the "
            "command again."
        )
    if not run.is_finished:
        raise DataError(
            f"{folder}: Inspect did not finish; its output is above. Give the same command again to go on; no "
            "sample that was answered is run again."
        )


def last_run(folder: Path) -> InspectRun | None:
    """Return the latest run of a folder with its retries, None where there is none."""
    spec = ReadingSpec()
    logs = inspect_files([folder], spec) if folder.is_dir() else []
    runs = together([run_of(read_log(path), spec) for path in logs if path.name != TASK_FILE])
    return runs[-1] if runs else None


def answers_with_costs(run: InspectRun, known: TaskItems, scorer: str | None) -> list[Answer]:
    """Return the outcome of each item of a run: a response or a failure, and what it cost."""
    epochs: dict[str, list[Sample]] = defaultdict(list)
    for one in run.samples.values():
        if str(one.id) in known.items:
            epochs[known.items[str(one.id)]].append(one)
    return [
        answer_of(item_id, own, [response_of(one, known.task, scorer) for one in own])
        for item_id, own in epochs.items()
    ]


def run_answers(run: InspectRun, known: TaskItems, scorer: str | None) -> dict[str, list[float]]:
    """Return the scores of each item of a run, one an epoch, NaN where there is none."""
    return answers_of(known, [(one.id, response_of(one, known.task, scorer)) for one in run.samples.values()])


def lost_to(run: InspectRun, known: TaskItems) -> dict[str, int]:
    """Return the kind of what ended a sample of each item that was ended before its time."""
    ended = [(str(one.id), one.failure) for one in run.samples.values() if one.failure]
    return {known.items[name]: kind for name, kind in ended if name in known.items}


def expected_run(bank: Bank, known: TaskItems, call: HarnessCall) -> dict[str, Any]:
    """Return the items of a run at most, and its expected cost in each unit that the bank records."""
    arguments, own = call.task_arguments, list(known.items.values())
    wanted, most = own, None  # any item may be asked
    if call.task == "gated":
        plan = GatePlan.load(arguments["gate"])
        costs = usual_costs(bank, plan.order, plan.sizes[-1])
        counts = {"n_items_first": plan.sizes[0], "n_items": plan.sizes[-1], "n_items_full": len(set(own))}
        return {"bank": bank.bank_id, "task": known.task, **counts, **costs}
    if call.task == "subset":
        wanted = [item_id for item_id in Selection.load(arguments["selection"]).item_ids if item_id in set(own)]
    else:
        most = arguments["session"]["budget"]["n_items"]
    n_items = len(wanted) if most is None else min(most, len(wanted))
    costs = usual_costs(bank, wanted, n_items)
    return {"bank": bank.bank_id, "task": known.task, "n_items": n_items, "n_items_full": len(set(own)), **costs}
