"""`itembank run lm-eval`: run chosen items inside lm-evaluation-harness."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.gate import Judging
from itembank.cli.new_results import note_known_models
from itembank.cli.render import Printer, note, warnings_as_notes
from itembank.cli.session_options import RunSession, session_spec
from itembank.cli.signatures import option, verb
from itembank.errors import visible
from itembank.files.atomic import sweep
from itembank.tables import plural
from itembank_harnesses.cli import run_common

if TYPE_CHECKING:
    from itembank.sessions.asking import Asking
    from itembank_harnesses.lm_eval.command import HarnessCall
    from itembank_harnesses.lm_eval.rows import RowFile


ROWS = "selection.rows"
"""Of the folder of a selection's run: samples of the items that were run."""
MACRO_AND_GROUPS = (
    "Groups of lm_eval that weigh by size (mmlu, bbh) are micro: for those calibrate with --across items, or import "
    "with use_groups = true in the file of --spec."
)


@verb("lm-eval", cls=Judging)
def run_lm_eval_command(
    *,
    bank: options.Bank,
    arguments: Annotated[tuple[str, ...], run_common.arguments("LM_EVAL")],
    output: run_common.Output,
    which: run_common.Which,
    batch: Annotated[
        int | None,
        option(
            "Items run at once; a stop may lose them.  [default: the model's batch size, at least 64 (8 with "
            "--adaptive)]",
            metavar="N",
            type=options.COUNT,
        ),
    ],
    model_id: Annotated[str | None, "Id of the model.  [default: the model's name in --model_args]"],
    plugin: Annotated[
        str | None,
        option(
            "Import this module (its name, or FILE.py) first, for example one that registers a model of your own.",
            "--import",
            metavar="MODULE",
        ),
    ],
    match: options.Match,
    dry_run: run_common.DryRun,
    ignore_prompts: run_common.IgnorePrompts,
    choices: RunSession,
    outputs: run_common.Outputs,
) -> None:
    """Run chosen items inside lm-evaluation-harness, and estimate the scores on all items.

    Arguments after two dashes go to lm_eval, whose own command runs in this process. Prompts are those of the bank's
    runs, even with random few-shot examples: shots, chat template and seed are the bank's unless you give others, and
    all prompts are compared before the first request. Without --tasks the tasks of the chosen items are loaded.

      itembank run lm-eval bank --selection selection.json -o runs/m1 -- --model hf --model_args pretrained=org/m1
      itembank run lm-eval bank -n 100 -o runs/m1 -- --model hf --model_args pretrained=org/m1 --batch_size 16
      itembank run lm-eval bank --adaptive --half-width 0.02 --max-items 300 -o runs/m1 -- --model hf ...
      itembank run lm-eval bank --gate gate -o runs/int8 -- --model hf --model_args pretrained=org/m1-int8
      itembank run lm-eval bank -n 100 -o runs/m1 --dry-run -- --model hf ...

    The harness's own table goes to standard error, without scores: the mean of the chosen items is no estimate. If a
    run was interrupted, repeat the command to continue, also with another batch size or device; nothing that was
    finished runs again. The exit code is 3 if an adaptive run ends without the precision that was asked for, and 4 if
    documents or prompts are not those of the bank.
    """
    from itembank_harnesses.lm_eval.command import HarnessCall, run_command
    from itembank_harnesses.lm_eval.documents import BankPrompts, arguments_of, tasks_of
    from itembank_harnesses.lm_eval.patches import check_release

    adaptive, gate, out = which["adaptive"], which["gate"], outputs["out"]
    run_common.check_items(bank, which, choices, has_batches=True)
    call = HarnessCall.of(arguments)
    name = model_id or call.model_id
    if not name:
        raise click.UsageError("The model needs a name, which --model_args does not tell: --model-id NAME.")
    spec = session_spec(choices) if adaptive else None
    check_release()
    loaded = ib.load_bank(bank)
    with warnings_as_notes():
        note_known_models(loaded, [name])
        plan = None if gate is None else run_common.gate_of(gate, loaded, ignore_prompts=ignore_prompts)
        chosen = None if adaptive or plan else run_common.chosen_items(loaded, which)
        item_ids = run_common.items_to_run(loaded, chosen, spec, plan)
        tasks = tasks_of(loaded.responses.items, item_ids)
        call = _with_tasks(call, loaded, tasks).as_of(arguments_of(loaded.responses.items, tasks))
        run_common.note_untold_prompts(loaded)
        prompts = BankPrompts(
            loaded.responses.items,
            not (call.has("--num_fewshot") or call.has("--config")),
            call.fewshot_seed,
            has_template=call.has("--apply_chat_template") if dry_run else None,
            is_ignored=ignore_prompts,
        )
        if dry_run:
            launch = partial(run_command, call.without_model(), output=None, plugin=plugin)
            most = None if spec is None else spec.budget.n_items
            from itembank_harnesses.lm_eval.selected import dry_run as counted_run

            counted = counted_run(launch, loaded, item_ids, n_items=most, prompts=prompts, match=match)
            run_common.print_dry_run(loaded, counted, out, plan)
            if prompts.has_template:
                note("Chat templates are the model's, so the settings of prompts were compared, not the prompts.")
            return
        launch = partial(run_command, call, output=output, plugin=plugin)
        how: dict[str, Any] = {"batch": batch, "prompts": prompts, "match": match}
        if chosen is not None:
            own = {"model_id": name, "errors": choices["errors"]}
            scores = _run_selection(launch, call, loaded, chosen, output, **own, **how)
            if scores is not None:
                _print(scores, loaded, output, out, match)
        run = partial(_run_rest, launch, call, **how)
        if gate is not None:
            verdict = run_common.run_gate(run, output, gate, bank=loaded, model_id=name, errors=choices["errors"])
        if spec is not None:
            with run_common.session_of_run(run, output, spec, loaded, name) as session:
                _print(session.estimate().scores, loaded, output, out, match)
                run_common.end_session(session)
    if gate is not None:
        run_common.end_gate_of_run(verdict, outputs)


def _with_tasks(call: "HarnessCall", bank: "ib.Bank", tasks: Sequence[str]) -> "HarnessCall":
    """Return the call with the bank's tasks, unless it names some."""
    from itembank.responses.prompts import names_in_harness

    if call.has("--tasks") or call.has("--config"):
        return call
    if not tasks:
        raise click.UsageError(
            "Name the tasks of lm_eval that have the items, since neither the bank nor its ids do "
            f"({visible(bank.responses.item_ids[0])}): -- --tasks NAME,... A group is searched whole."
        )
    own = names_in_harness(bank.responses.items)
    return call.with_more("--tasks", ",".join(own.get(task, task) for task in tasks))


def _run_selection(
    launch: Callable[[], Any], call: "HarnessCall", bank: "ib.Bank", selection: "ib.Selection", output: Path, **how: Any
) -> "ib.ScoreEstimates | None":
    """Run a selection, or what is missing of it in the logs; other ranks have no estimates."""
    from itembank_harnesses.lm_eval.rows import RowFile
    from itembank_harnesses.lm_eval.run import run_selection

    run_common.note_earlier(selection, run_common.keep_selection(selection, output), output)
    rows = RowFile(output / ROWS, call)
    n_answered = sum(item in rows.by_item for item in selection.item_ids)
    if n_answered:
        note(f"Continuing the run in {output}: {plural(n_answered, 'item', 'are')} answered.")
    with run_common.says_how_to_go_on():
        done = run_selection(launch, bank, selection, rows, is_logged=_is_logged(output, rows), **how)
    return None if done is None else done.estimates


def _run_rest(
    launch: Callable[[], Any], call: "HarnessCall", bank: "ib.Bank", session: "Asking", journal: Path, **how: Any
) -> None:
    """Run what a session or a gate asks until it is over, and write the logs; say what continues."""
    from itembank.gating.running import GateRun
    from itembank_harnesses.lm_eval.rows import RowFile, option_probabilities
    from itembank_harnesses.lm_eval.run import rows_path, run_adaptively

    rows = RowFile(rows_path(journal), call)  # the journal's lock guards both files
    if isinstance(session, GateRun) and session.plan.probabilities is not None:
        session.look_with(lambda: option_probabilities(rows, session.model_id))
    run_common.note_continued(session, journal)
    is_over = session.reason_stopped is not None and not session.pending
    if not (is_over and _is_logged(journal.parent, rows)):
        with run_common.says_how_to_go_on():
            run_adaptively(launch, bank, session, rows, **how)


def _is_logged(output: Path, rows: "RowFile") -> bool:
    """Whether the harness has logged a run of these very arguments: with others, prompts are built and compared."""
    sweep(output)  # what was left if that run was killed at its very end
    return rows.is_of_same_words and any(output.rglob("results_*.json"))


def _print(scores: "ib.ScoreEstimates", bank: "ib.Bank", output: Path, out: Printer, match: str) -> None:
    """Print the estimates, and say which groups of lm_eval have another overall score."""
    run_common.print_run(scores, bank, output, out, match)
    if bank.targets.overall_is == "macro":
        note(MACRO_AND_GROUPS)
