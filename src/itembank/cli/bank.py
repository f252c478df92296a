"""`itembank bank`: banks that change, each change a new version of the bank."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Function, Group
from itembank.cli.new_results import mixed_prompts_option
from itembank.cli.options import (
    FILE,
    BankPath,
    bank_argument,
    format_option,
    ids_of_file,
    option,
    output_option,
    refuse_unused,
    responses_argument,
)
from itembank.cli.render import note, print_record, print_rows, progress, warnings_as_notes
from itembank.errors import shown, visible

if TYPE_CHECKING:
    from itembank.bank.bank_history import Change
    from itembank.bank.banks import Bank
    from itembank.living.linked_items import LinkedItems
    from itembank.responses.responses import ResponseMatrix


def writing(function: Function) -> Function:
    """Add what commands take that write a new bank: `-o`, `--force`, `--format`."""
    for one in (
        format_option,
        option("--force", "Replace the bank that stands at -o.", bool),
        output_option("the new bank"),
    ):
        function = one(function)
    return function


_HOW = option(
    "--how",
    "How each model's items were chosen, where its file does not say.",
    ["complete", "random", "fixed", "adaptive"],
)
_SELECTION = option("--selection", "The items that the models were asked, in place of --how: random or fixed.", FILE)
_NOTE = option("--note TEXT text", "Why; the bank's history keeps it.", default="")
_METHOD = option("--method", "How new items come onto the bank's scale.", ["fixed", "stocking-lord"], default="fixed")


@click.command("link")
@bank_argument
@responses_argument
@_METHOD
@mixed_prompts_option
@format_option
def link(
    *, bank: Path, responses: tuple[Path, ...], method: Any, allow_mixed_prompts: bool, output_format: str
) -> None:
    """Show what RESPONSES say of items that are new to BANK, and write nothing.

    Each new item with its parameters on the bank's scale and their errors; the error that the link adds to a score; the
    old items that moved; and the models of the bank that should be run on the new items next.

    \b
      itembank bank link bank answers-to-old-and-new-items.csv
    """  # noqa: D301
    from itembank.bank.arguments import as_new_responses  # noqa: PLC0415
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.living.records import link_items  # noqa: PLC0415

    with warnings_as_notes(), progress("bank link") as report:
        loaded = load_bank(bank)
        given = as_new_responses(loaded, list(responses), allow_mixed_prompts=allow_mixed_prompts)
        linked = link_items(loaded, given, method=method, progress=report)
    print_record(
        _facts(linked), "items", linked.rows(), output_format, least=("scenario", "n_answers", "mean_response")
    )
    if linked.further_models:
        note(f"To know more, run these models of the bank on the new items: {visible(shown(linked.further_models))}.")


@click.command("add-items")
@bank_argument
@responses_argument
@_METHOD
@option("--status", "field-test: not in the score yet.", ["active", "suspect", "field-test"], default="active")
@_HOW
@mixed_prompts_option
@_NOTE
@writing
def add_items(**given: Any) -> None:
    """Add the items that BANK does not know to it, on its scale, with the models that answered them.

    RESPONSES hold at least 3 models, better 10 to 20 that span the bank's abilities, with answers to new and to old
    items; models of the bank need no old ones. Old items keep their parameters. The score is then one of old and new
    items, and has an id of its own. See itembank bank link for the new items' parameters.

    \b
      itembank bank add-items bank questions-of-may.csv --note "questions of May" -o bank-2
    """  # noqa: D301
    from itembank.living.add_items import add_items as add  # noqa: PLC0415

    changed = _write_learned("bank add-items", add, **given)
    made = None if changed.history is None else changed.history.changes[-1].link
    if made is not None and made.linking_error is not None:
        note(
            f"Linked by {made.n_models} models and {made.n_items} old items: the link adds a standard error of "
            f"{100 * made.linking_error:.2f} points to scores."
        )


@click.command("add-models")
@bank_argument
@responses_argument
@_HOW
@_SELECTION
@mixed_prompts_option
@_NOTE
@writing
def add_models(
    *,
    bank: Path,
    responses: tuple[Path, ...],
    how: str | None,
    selection: Path | None,
    allow_mixed_prompts: bool,
    text: str,
    force: bool,
    output: Path,
    output_format: str,
) -> None:
    """Add the models of RESPONSES to BANK; its items keep their parameters, its scores what they mean.

    RESPONSES are response files, logs of harnesses (also of itembank run), or journals of sessions.

    \b
      itembank bank add-models bank new-models.parquet --selection selection.json -o bank-2
      itembank bank add-models bank session.jsonl -o bank-2
    """  # noqa: D301
    from itembank.living.add_models import add_models as add  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        given = _read(loaded, responses, allow_mixed_prompts=allow_mixed_prompts)
        changed = add(loaded, given, how=_way(how, selection), note=text)
    write_bank(changed, output, output_format, force=force)


def _write_learned(
    command: str,
    change: Callable[..., "Bank"],
    *,
    bank: Path,
    responses: tuple[Path, ...],
    allow_mixed_prompts: bool,
    text: str,
    force: bool,
    output: Path,
    output_format: str,
    **asked: Any,
) -> "Bank":
    """Let a bank learn of responses, write the new one, and return it."""
    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes(), progress(command) as report:
        given = _read(loaded, responses, allow_mixed_prompts=allow_mixed_prompts) if responses else None
        changed = change(loaded, given, note=text, progress=report, **asked)
    write_bank(changed, output, output_format, force=force)
    return changed


def _read(bank: "Bank", paths: Sequence[Path], *, allow_mixed_prompts: bool) -> "ResponseMatrix":
    """Read results of models, or the answers that journals of sessions hold."""
    from itembank.bank.arguments import as_new_responses  # noqa: PLC0415
    from itembank.bank.bank_lineage import aside_items  # noqa: PLC0415
    from itembank.sessions.journal_answers import is_journal, journal_responses  # noqa: PLC0415

    journals = [path for path in paths if is_journal(path)]
    if not journals:
        return as_new_responses(bank, list(paths), allow_mixed_prompts=allow_mixed_prompts)
    if len(journals) < len(paths):
        raise click.UsageError("RESPONSES must be journals of sessions or other results, not both. Add them in turn.")
    refuse_unused(("how", False, "results that are no journals of sessions, which say it themselves"))
    found = journal_responses(bank, journals).responses
    aside = aside_items(bank, found.item_ids)
    if aside:
        note(
            f"{len(aside)} of {found.n_items} items that were asked do not count in the score any more; the bank keeps "
            f"their answers: {visible(shown(aside))}."
        )
    return found


def _way(how: str | None, selection: Path | None) -> str | None:
    """Say how items were chosen, as it was given or as the selection that was run says."""
    from itembank.bank.answered_how import FIXED, RANDOM  # noqa: PLC0415
    from itembank.bank.selections import Selection  # noqa: PLC0415

    if selection is None:
        return how
    if how is not None:
        raise click.UsageError("--selection says how the items were chosen. Leave --how out.")
    return RANDOM if Selection.load(selection).is_random else FIXED


@click.command("recalibrate")
@bank_argument
@click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))
@option(
    "--parameters",
    "all: also slopes, on a new scale, from models whose items were not chosen by their own answers.",
    ["difficulties", "all"],
    default="difficulties",
)
@_HOW
@mixed_prompts_option
@_NOTE
@writing
def recalibrate(**given: Any) -> None:
    """Let BANK's items learn from models that were added since, and from those of RESPONSES.

    Answers to items that a session chose make slopes look steeper than they are: they only move difficulties, with the
    old values as a prior.

    \b
      itembank bank recalibrate bank-2 -o bank-3
      itembank bank recalibrate bank new-models.parquet --how random --parameters all -o bank-2
    """  # noqa: D301
    from itembank.living.recalibrate import recalibrate as learn  # noqa: PLC0415

    _write_learned("bank recalibrate", learn, **given)


def _facts(linked: "LinkedItems") -> dict[str, Any]:
    """Sum up the link as a whole."""
    other = linked.other
    return {
        "bank": linked.bank_id,
        "method": linked.method,
        "linking_models": linked.n_models,
        "range_covered": linked.covered,
        "old_items": len(linked.anchors.item_ids),
        "unlinked": list(linked.anchors.unlinked),
        "linking_error": linked.linking_error,
        "stocking_lord_slope": None if other is None else other.slope,
        "stocking_lord_intercept": None if other is None else other.intercept,
        "stocking_lord_differs_by": None if other is None else other.difference,
        "further_models": list(linked.further_models),
    }


def write_bank(bank: "Bank", output: Path, output_format: str, *, force: bool) -> None:
    """Write a changed bank and say what it is."""
    from itembank.bank.bank_files import save_bank  # noqa: PLC0415

    save_bank(bank, output, overwrite=force)
    row = {
        "bank": bank.bank_id,
        "name": bank.name or None,
        "version": bank.version,
        "target_id": bank.target_id,
        "models": bank.n_models,
        "items": bank.n_items,
        "items_aside": bank.n_aside,
    }
    print_rows([row], output_format)
    note(f"Written to {output}.")


def loaded_for_change(bank: Path, output: Path, *, force: bool) -> "Bank":
    """Load a bank once it is sure that the new one can be written."""
    from itembank.bank.bank_files import check_bank_destination, load_bank  # noqa: PLC0415

    check_bank_destination(output, overwrite=force)
    return load_bank(bank)


@click.group("bank", cls=Group)
def bank_command() -> None:
    """Change a bank, or see how it changed. Every change writes a new bank; the old one stays as it is.

    \b
      itembank bank add-models bank new-models.parquet --how random -o bank-2
      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank bank log bank-2
      itembank estimate bank-2 new-model.csv --target mmlu_pro@1
    """  # noqa: D301


for _one in (link, add_items, add_models, recalibrate):
    bank_command.add_command(_one)

_ITEMS = click.argument("items", nargs=-1, required=True, metavar="ITEMS...")
_REASON = option("--reason TEXT", "Why; the bank's history keeps it.", required=True)


@bank_command.command("retire")
@bank_argument
@_ITEMS
@_REASON
@option(
    "--status",
    "suspect: still counts; field-test: not in the score yet.",
    ["retired", "suspect", "field-test"],
    default="retired",
)
@option("--label WORD", "Ends the new target's id: clean makes NAME@1-clean.", default="")
@writing
def retire(*, bank: Path, items: tuple[str, ...], force: bool, output: Path, output_format: str, **asked: str) -> None:
    """Take ITEMS out of a bank's score: ids, or files of ids (text, one a line; a table; a selection).

    Retired items are not chosen any more and count in no score from here on. The new score has an id of its own. What
    is known of the items stays in the bank, so that itembank bank restore is exact and the old score can still be
    estimated (--target of itembank estimate).

    \b
      itembank bank add-models bank new-models.parquet --how random -o bank-2
      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank bank retire bank law/17 law/18 --reason "duplicates of law/3" --label clean -o bank-2
    """  # noqa: D301
    from itembank.living.statuses import retire as retire_items  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        changed = retire_items(loaded, item_ids(loaded, items), **asked)
    write_bank(changed, output, output_format, force=force)


@bank_command.command("restore")
@bank_argument
@_ITEMS
@_REASON
@writing
def restore(*, bank: Path, items: tuple[str, ...], reason: str, force: bool, output: Path, output_format: str) -> None:
    """Let ITEMS count again that were retired, suspected or on trial: ids, or files of ids.

    Once all are restored, estimates are those of the bank before, to the last digit.

    \b
      itembank bank restore bank-2 law/17 --reason "the key was right" -o bank-3
    """  # noqa: D301
    from itembank.living.statuses import restore as restore_items  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        changed = restore_items(loaded, item_ids(loaded, items), reason=reason)
    write_bank(changed, output, output_format, force=force)


@bank_command.command("merge")
@bank_argument
@click.argument("other", type=BankPath())
@option("--note TEXT text", "Why; the bank's history keeps it.", default="")
@writing
def merge(*, bank: Path, other: Path, text: str, force: bool, output: Path, output_format: str) -> None:
    """Merge BANK and OTHER, which stand on one scale, into a bank of the items and models of both.

    Nothing is fitted anew: common items must have the same parameters. Banks on different scales are refused; link one
    to the other first.

    \b
      itembank bank merge bank-of-law bank-of-medicine -o bank
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.living.merging import merge as merge_banks  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        changed = merge_banks(loaded, load_bank(other), note=text)
    write_bank(changed, output, output_format, force=force)


@bank_command.command("note")
@bank_argument
@click.argument("text")
@option("--name NAME", "The benchmark's name: its scores are NAME@1, NAME@2, ...", default="")
@writing
def note_command(*, bank: Path, text: str, name: str, force: bool, output: Path, output_format: str) -> None:
    """Write TEXT into a bank's history, and name the bank.

    \b
      itembank bank note bank "as published in May" --name mmlu_pro -o bank-named
    """  # noqa: D301
    from itembank.living.notes import note as note_bank  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    write_bank(note_bank(loaded, text, name=name), output, output_format, force=force)


@bank_command.command("add-scores")
@bank_argument
@click.argument("scores", type=FILE)
@option("--score COLUMN names", "A column of SCORES to keep. Repeatable.", many=True, required=True)
@option("--note TEXT text", "Why; the bank's history keeps it.", default="")
@writing
def add_scores(
    *, bank: Path, scores: Path, names: tuple[str, ...], text: str, force: bool, output: Path, output_format: str
) -> None:
    """Keep SCORES of a bank's models that its items do not make, such as a leaderboard's own, by model_id.

    Fractions of one, or points up to 100; models may lack some. itembank estimate and its neighbours then take
    --target COLUMN.

    \b
      itembank bank add-scores bank leaderboard.csv --score mmlu_full -o bank-2
      itembank estimate bank-2 new-model.csv --target mmlu_full
    """  # noqa: D301
    from itembank.living.add_scores import add_scores as add  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        changed = add(loaded, scores, names, note=text)
    write_bank(changed, output, output_format, force=force)


@bank_command.command("diff")
@bank_argument
@click.argument("other", type=BankPath())
@format_option
def diff(*, bank: Path, other: Path, output_format: str) -> None:
    """Show what differs between BANK and OTHER: score, scale, items, models.

    JSON lists every id; CSV holds the differences alone.

    \b
      itembank bank diff bank bank-2
    """  # noqa: D301
    from itembank.living.differences import diff as diff_banks  # noqa: PLC0415

    found = diff_banks(bank, other)
    rows = found.rows()
    if output_format == "table":
        rows = [{**row, "ids": shown(row["ids"])} for row in rows]
    print_record(
        found.to_dict(), "differences", rows, output_format, title=f"{bank} and {other}", heading="Differences"
    )


@bank_command.command("log")
@bank_argument
@format_option
def log(*, bank: Path, output_format: str) -> None:
    """Show a bank's history: every change, the newest last.

    \b
      itembank bank log bank-2
      itembank bank log bank-2 --format json
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415

    loaded = load_bank(bank)
    changes = () if loaded.history is None else loaded.history.changes
    rows = [_in_words(change) if output_format == "table" else _in_full(change) for change in changes]
    if not rows:
        note(f"Bank {loaded.bank_id} has no history: it is as it was calibrated.")
    title = f"{visible(loaded.name) or 'Bank'} {loaded.version}, bank {loaded.bank_id}, score {loaded.target_id}"
    print_rows(rows, output_format, title=title, least=("by", "bank", "link", "run with", "models"))


def item_ids(bank: "Bank", given: Sequence[str]) -> tuple[str, ...]:
    """Return the items that arguments name: ids, or files of ids. A name that the bank knows is an id."""
    from itembank.bank.bank_views import whole_bank  # noqa: PLC0415

    known = set(whole_bank(bank).item_ids)
    found: dict[str, None] = {}
    for one in given:
        is_file = one not in known and os.path.isfile(one)  # noqa: PTH113 (no path at all is no file)
        found |= dict.fromkeys(ids_of_file(Path(one)) if is_file else (one,))
    return tuple(found)


def _in_words(change: "Change") -> dict[str, Any]:
    """One change as a line of a table."""
    counts = {"+": change.items_added, "-": change.items_dropped, "changed ": change.items_changed}
    models = {"+": change.models_added, "-": change.models_dropped}
    run_with = _run_with(change)
    return {
        "version": change.version,
        "at": change.at,
        "operation": change.operation,
        "items": _counted(counts),
        "models": _counted(models),
        "target_id": change.target_id,
        "note": change.note,
        **({"run with": run_with} if run_with else {}),
        "link": None if change.link is None else change.link.method,
        "bank": change.bank,
        "by": change.by,
    }


def _run_with(change: "Change") -> str:
    """Say which prompts, versions and harnesses the results that came had; a stranger's file may hold anything."""
    told = change.arguments.get("run_with")
    return "; ".join(f"{name} {value}" for name, value in told.items()) if isinstance(told, dict) else ""


def _in_full(change: "Change") -> dict[str, Any]:
    return asdict(change)


def _counted(counts: dict[str, Any]) -> str:
    """Say how many ids came, went and changed: '+3 -1'."""
    return " ".join(f"{sign}{ids.n}" for sign, ids in counts.items() if ids.n)
