"""`itembank run inspect`: chosen items of a task inside Inspect, with its own command."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.harness_run import (
    SELECTION,
    check_items,
    chosen_items,
    end_session,
    keep_selection,
    note_earlier,
    note_untold_prompts,
    print_dry_run,
    print_run,
    run_options,
    says_how_to_go_on,
)
from itembank.cli.new_results import note_known_models
from itembank.cli.options import bank_argument
from itembank.cli.render import note, warnings_as_notes
from itembank.cli.session_options import session_spec
from itembank.errors import visible

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.estimation.estimates import ScoreEstimates
    from itembank.harnesses.inspect.command import HarnessCall
    from itembank.harnesses.inspect.task_items import TaskItems

BATCH = 8
ROUTING = "routing.json"
"""Of the folder of a run in stages: the items of the first stage."""


@click.command("inspect", cls=Command)
@bank_argument
@click.argument("task")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="-- INSPECT_ARGUMENTS...")
@run_options(
    click.option("--scorer", metavar="NAME", help="Whose scores are the responses.  [default: the bank's]"),
    click.option("--task-arg", multiple=True, metavar="NAME=VALUE", help="Argument of the task. Repeatable."),
    batch=f"--adaptive: items asked for and run at once.  [default: {BATCH}]",
)
def command(
    *,
    bank: Path,
    task: str,
    arguments: tuple[str, ...],
    output: Path,
    selection: Path | None,
    n_chosen: int | None,
    adaptive: bool,
    stages: str,
    batch: int | None,
    scorer: str | None,
    task_arg: tuple[str, ...],
    dry_run: bool,
    ignore_prompts: bool,
    choices: Mapping[str, Any],
    seed: int,
    output_format: str,
) -> None:
    """Run chosen samples of TASK inside Inspect, and estimate the scores on all of them.

    TASK is what inspect eval takes: a file, FILE@NAME or PACKAGE/NAME. What stands after two dashes goes to inspect
    eval, whose output goes to standard error. Its log holds the estimate, too.

    \b
      itembank run inspect bank inspect_evals/gsm8k --selection selection.json -o runs/m1 -- --model openai/gpt-4o
      itembank run inspect bank task.py -n 100 -o runs/m1 -- --model openai/gpt-4o
      itembank run inspect bank task.py -n 90 --stages 2 -o runs/m1 -- --model openai/gpt-4o
      itembank run inspect bank task.py --adaptive --half-width 0.02 --max-items 300 -o runs/m1 -- --model ...

    A run that was interrupted goes on when the command is repeated; no sample that was answered is run again. The exit
    code is 3 when an adaptive run ends without the precision that was asked for, and 4 when a sample is not the one of
    the bank.
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.files.hub import is_hub_name  # noqa: PLC0415
    from itembank.harnesses.inspect.command import (  # noqa: PLC0415
        IGNORE_PROMPTS,
        HarnessCall,
        check_arguments,
        check_task,
        run_command,
    )
    from itembank.harnesses.inspect.dry_run import expected_run  # noqa: PLC0415
    from itembank.harnesses.inspect.releases import check_release  # noqa: PLC0415
    from itembank.harnesses.inspect.task_items import task_items  # noqa: PLC0415

    n_stages = 1 if n_chosen is None else int(stages)
    check_items(bank, selection, n_chosen, adaptive=adaptive, has_batches=adaptive, choices=choices)
    given: dict[str, Any] = {IGNORE_PROMPTS: True} if ignore_prompts else {}
    place = str(bank if is_hub_name(bank) else bank.resolve())
    given |= {"task": task, "bank": place, "scorer": scorer, "task_args": _task_arguments(task_arg)}
    check_arguments(arguments)
    check_release()
    loaded = load_bank(bank)
    with warnings_as_notes():
        known = task_items(loaded, _task_name(loaded, task))
        if adaptive:
            session = session_spec(choices, seed).to_dict()
            call = HarnessCall("adaptive", {**given, "batch": batch or BATCH, "session": session}, arguments)
        else:
            chosen = chosen_items(loaded, selection, n_chosen, seed=seed, excluded=known.others, stages=n_stages)
            kept = selection or keep_selection(chosen, output, SELECTION if n_stages == 1 else ROUTING)
            note_earlier(chosen, kept, output)
            our_task = "subset" if n_stages == 1 else "stages"
            call = HarnessCall(our_task, {**given, "selection": str(kept.resolve())}, arguments)
        note_untold_prompts(loaded)
        check_task(call, loaded, known)
        if dry_run:
            print_dry_run(expected_run(loaded, known, call), output_format)
            return
        with says_how_to_go_on():
            run_command(call, output)
        _print(loaded, known, call, output, level=choices["level"], output_format=output_format)


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


def _task_name(bank: "Bank", task: str) -> str:
    """Return the name of a task, which a file alone does not tell where the bank holds several."""
    names = bank.responses.items["task"].unique().to_list() if "task" in bank.responses.items.columns else []
    if "@" in task:
        return task.rpartition("@")[2]
    return str(names[0]) if len(names) == 1 else task.removesuffix(".py")


def _print(
    bank: "Bank", known: "TaskItems", call: "HarnessCall", output: Path, *, level: float, output_format: str
) -> None:
    """Print the estimates of a run that came to its end."""
    from itembank.bank.selections import Selection  # noqa: PLC0415
    from itembank.errors import DataError  # noqa: PLC0415
    from itembank.harnesses.inspect.command import last_run, run_answers  # noqa: PLC0415
    from itembank.harnesses.inspect.estimates import known_pool, selected_estimates, told_session  # noqa: PLC0415
    from itembank.harnesses.inspect.stages import stage_of  # noqa: PLC0415

    run = last_run(output)
    answers = {} if run is None else run_answers(run, known, call.task_arguments["scorer"] or known.scorer)
    if run is None or not answers:
        raise DataError(f"{output}: no sample was scored, so there is nothing to estimate from.")
    note_known_models(bank, [run.model_id])
    session = None
    if "session" in call.task_arguments:
        text = json.dumps(call.task_arguments["session"], sort_keys=True)
        pool = known_pool(call.task_arguments["bank"], "", known.task, text)
        session = told_session(pool, answers, model_id=run.model_id)
        scores: ScoreEstimates | None = session.estimate().scores
    else:
        chosen = Selection.load(call.task_arguments["selection"])
        if call.task == "stages":
            chosen = stage_of(bank, chosen, answers, run.model_id)
            keep_selection(chosen, output)
            note(f"Chosen by {visible(chosen.explanation)}")
        scores = selected_estimates(bank, answers, chosen, model_id=run.model_id, level=level)
    if scores is None:
        raise DataError(f"{output}: no sample of the selection was scored, so there is nothing to estimate from.")
    print_run(scores, bank, output, output_format)
    note("What the harness printed as a score is the mean of the items that were run, no estimate of the whole.")
    if session is not None:
        end_session(session)
