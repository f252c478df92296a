"""`itembank run inspect`: run chosen items inside Inspect."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.gate import Judging
from itembank.cli.new_results import note_known_models
from itembank.cli.render import Printer, note, warnings_as_notes
from itembank.cli.session_options import RunSession, session_spec
from itembank.cli.signatures import argument, option, verb
from itembank.errors import DataError
from itembank_harnesses.cli import run_common

if TYPE_CHECKING:
    from itembank_harnesses.inspect.command import HarnessCall
    from itembank_harnesses.inspect.samples import TaskItems


@verb("inspect", cls=Judging)
def run_inspect_command(
    *,
    bank: options.Bank,
    task: Annotated[str, argument()],
    arguments: Annotated[tuple[str, ...], run_common.arguments("INSPECT")],
    output: run_common.Output,
    which: run_common.Which,
    batch: Annotated[int | None, run_common.batch("items asked for and run at once")],
    task_arg: Annotated[tuple[str, ...], option("Argument of the task. Repeatable.", metavar="NAME=VALUE")],
    match: options.Match,
    dry_run: run_common.DryRun,
    ignore_prompts: run_common.IgnorePrompts,
    choices: RunSession,
    outputs: run_common.Outputs,
) -> None:
    """Run chosen samples of TASK inside Inspect, and estimate the scores on all of them.

    TASK is what inspect eval takes: a file, FILE@NAME or PACKAGE/NAME. Arguments after two dashes go to inspect eval,
    whose output goes to standard error. Its log has the estimate, too.

      itembank run inspect bank inspect_evals/gsm8k --selection selection.json -o runs/m1 -- --model openai/gpt-4o
      itembank run inspect bank task.py -n 100 -o runs/m1 -- --model openai/gpt-4o
      itembank run inspect bank task.py --adaptive --half-width 0.02 --max-items 300 -o runs/m1 -- --model ...
      itembank run inspect bank task.py --gate gate -o runs/m2 -- --model openai/gpt-5

    If a run was interrupted, repeat the command to continue; no sample that was answered runs again. The exit code is 3
    if an adaptive run ends without the precision that was asked for, and 4 if a sample is not that of the bank.
    """
    from itembank.bank.bank_places import is_bank_name
    from itembank_harnesses.inspect.command import (
        IGNORE_PROMPTS,
        HarnessCall,
        check_arguments,
        check_task,
        expected_run,
        run_command,
    )
    from itembank_harnesses.inspect.samples import check_release, task_items

    adaptive, gate, out = which["adaptive"], which["gate"], outputs["out"]
    run_common.check_items(bank, which, choices, has_batches=adaptive)
    given: dict[str, Any] = {IGNORE_PROMPTS: True} if ignore_prompts else {}
    given |= {"match": match} if match != "auto" else {}
    place = str(bank if is_bank_name(bank) else bank.resolve())
    given |= {"task": task, "bank": place, "task_args": _task_arguments(task_arg)}
    check_arguments(arguments)
    check_release()
    loaded = ib.load_bank(bank)
    with warnings_as_notes():
        known = task_items(loaded, _task_name(loaded, task))
        if adaptive:
            session = session_spec(choices).to_dict()
            call = HarnessCall("adaptive", {**given, "batch": batch or run_common.BATCH, "session": session}, arguments)
        elif gate is not None:
            given |= {} if choices["errors"] is None else {"errors": choices["errors"]}
            call = HarnessCall("gated", {**given, "gate": str(gate.resolve())}, arguments)
        else:
            chosen = run_common.chosen_items(loaded, which, known.others)
            kept = which["selection"] or run_common.keep_selection(chosen, output)
            run_common.note_earlier(chosen, kept, output)
            call = HarnessCall("subset", {**given, "selection": str(kept.resolve())}, arguments)
        run_common.note_untold_prompts(loaded)
        check_task(call, loaded, known)
        if dry_run:
            run_common.print_dry_run(loaded, expected_run(loaded, known, call), out)
            return
        with run_common.says_how_to_go_on():
            run_command(call, output)
        if gate is not None:
            verdict = _inspected_gate(gate, loaded, known, call, output)
        else:
            _print_harness_run(loaded, known, call, output, choices=choices, out=out)
    if gate is not None:
        run_common.end_gate_of_run(verdict, outputs)


def _task_arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """Turn NAME=VALUE into a mapping; values that are JSON are read as such."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"must be NAME=VALUE, got {pair!r}.", param_hint="--task-arg")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _task_name(bank: "ib.Bank", task: str) -> str:
    """Return the name of a task, which a file alone does not tell if the bank has several."""
    names = bank.responses.items["task"].unique().to_list() if "task" in bank.responses.items.columns else []
    if "@" in task:
        return task.rpartition("@")[2]
    return str(names[0]) if len(names) == 1 else task.removesuffix(".py")


def _print_harness_run(
    bank: "ib.Bank", known: "TaskItems", call: "HarnessCall", output: Path, *, choices: Mapping[str, Any], out: Printer
) -> None:
    """Print the estimates of a run that came to its end."""
    from itembank_harnesses.inspect.command import last_run, lost_to, run_answers
    from itembank_harnesses.inspect.samples import known_pool, selected_estimates, told_session

    run = last_run(output)
    answers = {} if run is None else run_answers(run, known, known.scorer)
    if run is None or not any(score == score for scores in answers.values() for score in scores):  # noqa: PLR0124 (NaN)
        raise DataError(f"{output}: no sample was scored, so there is nothing to estimate from.")
    note_known_models(bank, [run.model_id])
    session = None
    if "session" in call.task_arguments:
        text = json.dumps(call.task_arguments["session"], sort_keys=True)
        pool = known_pool(call.task_arguments["bank"], "", known.task, text)
        session = told_session(pool, answers, model_id=run.model_id, kinds=lost_to(run, known))
        scores: ib.ScoreEstimates | None = session.estimate().scores
    else:
        chosen = ib.Selection.load(call.task_arguments["selection"])
        how = {"errors": choices["errors"], "kinds": lost_to(run, known)}
        scores = selected_estimates(bank, answers, chosen, model_id=run.model_id, **how)
    if scores is None:
        raise DataError(f"{output}: no sample of the selection was scored, so there is nothing to estimate from.")
    run_common.print_run(scores, bank, output, out, "auto")  # the samples have the bank's ids in the log
    note(run_common.OWN_SCORE)
    if session is not None:
        run_common.end_session(session)


def _inspected_gate(gate: Path, bank: "ib.Bank", known: "TaskItems", call: "HarnessCall", output: Path) -> "ib.Gate":
    """Return the verdict of a run that came to its end."""
    from itembank.gating.running import GateRun
    from itembank_harnesses.inspect.command import answers_with_costs, last_run

    run = last_run(output)
    if run is None:
        raise DataError(f"{output}: no sample was run, so there is nothing to look at.")
    plan = ib.GatePlan.load(gate).with_errors(call.task_arguments.get("errors"))
    passing = GateRun(plan, model_id=run.model_id, bank=bank)
    for answer in answers_with_costs(run, known, known.scorer):
        passing.take(answer)
    return passing.result
