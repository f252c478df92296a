"""`itembank bank`: banks that change, each change a new version of the bank."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.bank_growing import add_items, add_models, link, recalibrate
from itembank.cli.bank_writing import loaded_for_change, write_bank, writing
from itembank.cli.command import Group
from itembank.cli.options import FILE, BankPath, bank_argument, format_option, ids_of_file
from itembank.cli.render import note, print_record, print_rows, warnings_as_notes
from itembank.errors import shown, visible

if TYPE_CHECKING:
    from itembank.bank.bank_history import Change
    from itembank.bank.banks import Bank


@click.group("bank", cls=Group)
def command() -> None:
    """Change a bank, or see how it changed. Every change writes a new bank; the old one stays as it is.

    \b
      itembank bank add-models bank new-models.parquet --how random -o bank-2
      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank bank log bank-2
      itembank estimate bank-2 new-model.csv --target mmlu_pro@1
    """  # noqa: D301


for _one in (link, add_items, add_models, recalibrate):
    command.add_command(_one)

_ITEMS = click.argument("items", nargs=-1, required=True, metavar="ITEMS...")
_REASON = click.option("--reason", required=True, metavar="TEXT", help="Why; the bank's history keeps it.")


@command.command("retire")
@bank_argument
@_ITEMS
@_REASON
@click.option(
    "--status",
    type=click.Choice(["retired", "suspect", "field-test"]),
    default="retired",
    show_default=True,
    help="suspect: still counts; field-test: not in the score yet.",
)
@click.option("--label", default="", metavar="WORD", help="Ends the new target's id: clean makes NAME@1-clean.")
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
    from itembank.living.notes import retire as retire_items  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        changed = retire_items(loaded, item_ids(loaded, items), **asked)
    write_bank(changed, output, output_format, force=force)


@command.command("restore")
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
    from itembank.living.notes import restore as restore_items  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        changed = restore_items(loaded, item_ids(loaded, items), reason=reason)
    write_bank(changed, output, output_format, force=force)


@command.command("merge")
@bank_argument
@click.argument("other", type=BankPath())
@click.option("--note", "text", default="", metavar="TEXT", help="Why; the bank's history keeps it.")
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


@command.command("note")
@bank_argument
@click.argument("text")
@click.option("--name", default="", metavar="NAME", help="The benchmark's name: its scores are NAME@1, NAME@2, ...")
@writing
def note_command(*, bank: Path, text: str, name: str, force: bool, output: Path, output_format: str) -> None:
    """Write TEXT into a bank's history, and name the bank.

    \b
      itembank bank note bank "as published in May" --name mmlu_pro -o bank-named
    """  # noqa: D301
    from itembank.living.notes import note as note_bank  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    write_bank(note_bank(loaded, text, name=name), output, output_format, force=force)


@command.command("add-scores")
@bank_argument
@click.argument("scores", type=FILE)
@click.option(
    "--score", "names", multiple=True, required=True, metavar="COLUMN", help="A column of SCORES to keep. Repeatable."
)
@click.option("--note", "text", default="", metavar="TEXT", help="Why; the bank's history keeps it.")
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
    from itembank.living.notes import add_scores as add  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        changed = add(loaded, scores, names, note=text)
    write_bank(changed, output, output_format, force=force)


@command.command("diff")
@bank_argument
@click.argument("other", type=BankPath())
@format_option
def diff(*, bank: Path, other: Path, output_format: str) -> None:
    """Show what differs between BANK and OTHER: score, scale, items, models.

    JSON lists every id; CSV holds the differences alone.

    \b
      itembank bank diff bank bank-2
    """  # noqa: D301
    from itembank.living.merging import diff as diff_banks  # noqa: PLC0415

    found = diff_banks(bank, other)
    rows = found.rows()
    if output_format == "table":
        rows = [{**row, "ids": shown(row["ids"])} for row in rows]
    print_record(
        found.to_dict(), "differences", rows, output_format, title=f"{bank} and {other}", heading="Differences"
    )


@command.command("log")
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
