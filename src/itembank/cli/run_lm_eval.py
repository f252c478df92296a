"""`itembank run lm-eval`: chosen items inside lm-evaluation-harness, with its own command."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.estimate import interval_text
from itembank.cli.harness_run import (
    check_items,
    chosen_items,
    end_session,
    keep_selection,
    note_earlier,
    note_untold_prompts,
    overall_of,
    print_dry_run,
    print_run,
    run_options,
    says_how_to_go_on,
)
from itembank.cli.new_results import note_known_models
from itembank.cli.options import bank_argument, option
from itembank.cli.render import note, progress, warnings_as_notes
from itembank.cli.session_options import session_spec
from itembank.errors import visible

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.bank.selections import Selection
    from itembank.estimation.estimates import ScoreEstimates
    from itembank.harnesses.lm_eval.command import HarnessCall
    from itembank.harnesses.lm_eval.prompts import BankPrompts
    from itembank.harnesses.lm_eval.rows import RowFile
    from itembank.sessions.answers import Answer
    from itembank.sessions.session import AdaptiveSession
    from itembank.sessions.session_spec import SessionSpec

JOURNAL = "session.jsonl"
ROWS = "stages.rows"
"""Of the folder of a selection's run, or of one in stages: samples of the items that were run."""
MACRO_AND_GROUPS = (
    "Groups of lm_eval that weigh by size (mmlu, bbh) are micro: for those calibrate with --across items, or import "
    "with --groups."
)


@click.command("lm-eval", cls=Command)
@bank_argument
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="-- LM_EVAL_ARGUMENTS...")
@run_options(
    option("--model-id", "Id of the model.  [default: the model's name in --model_args]"),
    option(
        "--import MODULE plugin",
        "Import this module (its name, or FILE.py) first: one that registers a model of your own.",
    ),
    batch="Items run at once: what a stop may lose.  [default: the model's batch size; 64 at least, 8 with --adaptive]",
)
def run_lm_eval_command(
    *,
    bank: Path,
    arguments: tuple[str, ...],
    output: Path,
    selection: Path | None,
    n_chosen: int | None,
    adaptive: bool,
    stages: str,
    batch: int | None,
    model_id: str | None,
    plugin: str | None,
    dry_run: bool,
    ignore_prompts: bool,
    choices: Mapping[str, Any],
    seed: int,
    output_format: str,
) -> None:
    """Run chosen items inside lm-evaluation-harness, and estimate the scores on all items.

    What stands after two dashes goes to lm_eval, whose own command runs in this process. Prompts are those of the
    bank's runs, also where few-shot examples are random: shots, chat template and seed are the bank's unless you give
    others, and before the first request all prompts are compared. Without --tasks the tasks of the chosen items are
    loaded.

    \b
      itembank run lm-eval bank --selection selection.json -o runs/m1 -- --model hf --model_args pretrained=org/m1
      itembank run lm-eval bank -n 100 -o runs/m1 -- --model hf --model_args pretrained=org/m1 --batch_size 16
      itembank run lm-eval bank -n 90 --stages 2 -o runs/m1 -- --model hf --model_args pretrained=org/m1
      itembank run lm-eval bank --adaptive --half-width 0.02 --max-items 300 -o runs/m1 -- --model hf ...
      itembank run lm-eval bank -n 100 -o runs/m1 --dry-run -- --model hf ...

    The harness's own table goes to standard error, without scores: the mean of the chosen items is no estimate. A run
    that was interrupted goes on when the command is repeated, also with another batch size or device; nothing that was
    finished is run again. The exit code is 3 when an adaptive run ends without the precision that was asked for, and 4
    when documents or prompts are not those of the bank.
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.harnesses.lm_eval.command import HarnessCall, run_command  # noqa: PLC0415
    from itembank.harnesses.lm_eval.prompts import BankPrompts, arguments_of  # noqa: PLC0415
    from itembank.harnesses.lm_eval.releases import check_release  # noqa: PLC0415

    n_stages = 1 if n_chosen is None else int(stages)
    check_items(bank, selection, n_chosen, adaptive=adaptive, has_batches=True, choices=choices)
    call = HarnessCall.of(arguments)
    name = model_id or call.model_id
    if not name:
        raise click.UsageError("Say what the model is called: --model-id NAME, since --model_args does not tell.")
    spec = session_spec(choices, seed) if adaptive else None
    check_release()
    loaded = load_bank(bank)
    with warnings_as_notes():
        note_known_models(loaded, [name])
        chosen = None if adaptive else chosen_items(loaded, selection, n_chosen, seed=seed, stages=n_stages)
        documents = _documents(loaded, None if n_stages > 1 else chosen, spec)
        call = _with_tasks(call, loaded, documents).as_of(arguments_of(loaded.responses.items, documents))
        note_untold_prompts(loaded)
        prompts = BankPrompts(
            loaded.responses.items,
            not (call.has("--num_fewshot") or call.has("--config")),
            call.fewshot_seed,
            has_template=call.has("--apply_chat_template") if dry_run else None,
            is_ignored=ignore_prompts,
        )
        if dry_run:
            launch = partial(run_command, call.without_model(), output=None, plugin=plugin)
            most = spec.budget.n_items if spec is not None else n_chosen if n_stages > 1 else None
            _print_dry_run(launch, loaded, documents, prompts, most=most, output_format=output_format)
            return
        launch = partial(run_command, call, output=output, plugin=plugin)
        if chosen is not None:
            scores = _run_selection(
                launch, call, loaded, chosen, prompts,
                model_id=name, output=output, has_stages=n_stages > 1, level=choices["level"], batch=batch,
            )  # fmt: skip
            if scores is not None:
                _print(scores, loaded, output, output_format)
        elif spec is not None:
            with _session(launch, call, loaded, spec, prompts, model_id=name, output=output, batch=batch) as session:
                _print(session.estimate().scores, loaded, output, output_format)
                end_session(session)


def _documents(bank: "Bank", selection: "Selection | None", spec: "SessionSpec | None") -> dict[str, list[int]]:
    """Return the documents that are run, or may be asked for."""
    from itembank.harnesses.lm_eval.documents import chosen_documents  # noqa: PLC0415

    if selection is not None:
        return chosen_documents(selection)
    excluded = set() if spec is None else set(spec.constraints.excluded)
    return chosen_documents(item for item in bank.responses.items["item_id"] if item not in excluded)


def _with_tasks(call: "HarnessCall", bank: "Bank", documents: Mapping[str, Any]) -> "HarnessCall":
    """Name the tasks where the arguments do not, as the harness does."""
    from itembank.responses.prompts import names_in_harness  # noqa: PLC0415

    own = names_in_harness(bank.responses.items)
    names = ",".join(own.get(task, task) for task in documents)
    return call if call.has("--tasks") or call.has("--config") else call.with_more("--tasks", names)


def _run_selection(
    launch: Callable[[], Any],
    call: "HarnessCall",
    bank: "Bank",
    selection: "Selection",
    prompts: "BankPrompts",
    *,
    model_id: str,
    output: Path,
    has_stages: bool,
    level: float,
    batch: int | None,
) -> "ScoreEstimates | None":
    """Run a selection or all stages, or what is missing of them beside the logs; other ranks have no estimates."""
    from itembank.harnesses.lm_eval.rows import RowFile  # noqa: PLC0415
    from itembank.harnesses.lm_eval.run import run_selection  # noqa: PLC0415

    path = keep_selection(selection, output)
    if not has_stages:
        note_earlier(selection, path, output)
    rows = RowFile(output / ROWS, call)
    n_answered = sum(item in rows.by_item for item in (rows.by_item if has_stages else selection.item_ids))
    if n_answered:
        note(f"Going on with the run in {output}: {n_answered} items are answered.")
    with says_how_to_go_on():
        done = run_selection(
            launch, bank, selection, rows, prompts=prompts,
            model_id=model_id, has_stages=has_stages, level=level, batch=batch, is_logged=_is_logged(output, rows),
        )  # fmt: skip
    if done is None:
        return None
    run, last = done
    if has_stages:
        keep_selection(last, output)
        note(f"Chosen by {visible(last.explanation)}")
    return run.estimates


@contextmanager
def _session(
    launch: Callable[[], Any],
    call: "HarnessCall",
    bank: "Bank",
    spec: "SessionSpec",
    prompts: "BankPrompts",
    *,
    model_id: str,
    output: Path,
    batch: int | None,
) -> Iterator["AdaptiveSession"]:
    """Run a session to its end, or go on with the one that is kept beside the logs."""
    from itembank.harnesses.lm_eval.rows import RowFile  # noqa: PLC0415
    from itembank.harnesses.lm_eval.run import rows_path, run_adaptively, session_at  # noqa: PLC0415

    journal = output / JOURNAL
    with (
        progress("session") as report,
        session_at(journal, bank, spec, model_id=model_id, progress=report) as session,
    ):
        rows = RowFile(rows_path(journal), call)  # the journal's lock guards both files
        if session.n_items:
            note(f"Going on with the session in {journal}: {session.n_items} items are answered.")
        is_over = session.reason_stopped is not None and not session.pending
        if not (is_over and _is_logged(output, rows)):
            with says_how_to_go_on():
                run_adaptively(launch, bank, session, rows, batch=batch, prompts=prompts, after_answer=_say)
        yield session


def _is_logged(output: Path, rows: "RowFile") -> bool:
    """Whether the harness has logged a run of these very arguments: with others, prompts are built and compared."""
    return rows.is_of_same_words and any(output.rglob("results_*.json"))


def _say(session: "AdaptiveSession", answer: "Answer") -> None:
    """Say how far a session is when a batch is told."""
    if answer.failed:
        note(f"{visible(answer.item_id)} has no answer: {visible(answer.reason)}.")
    if not session.pending:
        overall = session.estimate().scores.rows()[-1]
        note(f"{session.n_items} items: {overall['target']} {overall['estimate']:.4f}, {interval_text(overall)}")


def _print(scores: "ScoreEstimates", bank: "Bank", output: Path, output_format: str) -> None:
    """Print the estimates, and say which groups of lm_eval have another overall score."""
    print_run(scores, bank, output, output_format)
    if overall_of(bank) == "macro":
        note(MACRO_AND_GROUPS)


def _print_dry_run(
    launch: Callable[[], Any],
    bank: "Bank",
    documents: Mapping[str, Any],
    prompts: "BankPrompts",
    *,
    most: int | None,
    output_format: str,
) -> None:
    """Count what would be sent, and print it."""
    from itembank.harnesses.lm_eval.dry_run import dry_run  # noqa: PLC0415

    counted = dry_run(launch, bank, documents, n_items=most, prompts=prompts).to_dict()
    print_dry_run({"bank": bank.bank_id, **counted}, output_format)
    if prompts.has_template:
        note("Chat templates are the model's, so the settings of prompts were compared, not the prompts.")
