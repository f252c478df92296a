"""`itembank bank`: banks that change, each change a new version of the bank."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Function, Group
from itembank.cli.options import bank_argument, format_option, ids_of_file, output_option
from itembank.cli.render import note, print_rows, warnings_as_notes
from itembank.errors import visible

if TYPE_CHECKING:
    from itembank.data.bank_history import Change
    from itembank.data.banks import Bank


@click.group("bank", cls=Group)
def command() -> None:
    """Change a bank, or see how it changed. Every change writes a new bank; the old one stays as it is.

    \b
      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank bank log bank-2
      itembank estimate bank-2 new-model.csv --target mmlu_pro@1
    """  # noqa: D301


def writing(function: Function) -> Function:
    """Add what commands take that write a new bank: `-o`, `--force`, `--format`."""
    for option in (
        format_option,
        click.option("--force", is_flag=True, help="Replace the bank that stands at -o."),
        output_option("the new bank"),
    ):
        function = option(function)
    return function


def write_bank(bank: "Bank", output: Path, output_format: str, *, force: bool) -> None:
    """Write a changed bank and say what it is."""
    from itembank.data.bank_files import save_bank  # noqa: PLC0415

    save_bank(bank, output, overwrite=force)
    whole = bank.n_items if bank.history is None or bank.history.whole is None else bank.history.whole.n_items
    row = {
        "bank": bank.bank_id,
        "name": bank.name or None,
        "version": bank.version,
        "target": bank.target_id,
        "models": bank.n_models,
        "items": bank.n_items,
        "items_aside": whole - bank.n_items,
    }
    print_rows([row], output_format)
    note(f"Written to {output}.")


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
      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank bank retire bank law/17 law/18 --reason "duplicates of law/3" --label clean -o bank-2
    """  # noqa: D301
    from itembank.banks.statuses import retire as retire_items  # noqa: PLC0415

    loaded = _checked(bank, output, force=force)
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
    from itembank.banks.statuses import restore as restore_items  # noqa: PLC0415

    loaded = _checked(bank, output, force=force)
    with warnings_as_notes():
        changed = restore_items(loaded, item_ids(loaded, items), reason=reason)
    write_bank(changed, output, output_format, force=force)


@command.command("log")
@bank_argument
@format_option
def log(*, bank: Path, output_format: str) -> None:
    """Show a bank's history: every change, the newest last.

    \b
      itembank bank log bank-2
      itembank bank log bank-2 --format json
    """  # noqa: D301
    from itembank.data.bank_files import load_bank  # noqa: PLC0415

    loaded = load_bank(bank)
    changes = () if loaded.history is None else loaded.history.changes
    rows = [_in_words(change) if output_format == "table" else _in_full(change) for change in changes]
    if not rows:
        note(f"Bank {loaded.bank_id} has no history: it is as it was calibrated.")
    title = f"{visible(loaded.name) or 'Bank'} {loaded.version}, bank {loaded.bank_id}, score {loaded.target_id}"
    print_rows(rows, output_format, title=title, least=("by", "bank", "link", "models"))


def item_ids(bank: "Bank", given: Sequence[str]) -> tuple[str, ...]:
    """Return the items that arguments name: ids, or files of ids. A name that the bank knows is an id."""
    from itembank.data.bank_views import whole_bank  # noqa: PLC0415

    known = set(whole_bank(bank).item_ids)
    found: dict[str, None] = {}
    for one in given:
        is_file = one not in known and Path(one).is_file()
        found |= dict.fromkeys(ids_of_file(Path(one)) if is_file else (one,))
    return tuple(found)


def _checked(bank: Path, output: Path, *, force: bool) -> "Bank":
    """Load a bank once it is sure that the new one can be written."""
    from itembank.data.bank_files import check_bank_destination, load_bank  # noqa: PLC0415

    check_bank_destination(output, overwrite=force)
    return load_bank(bank)


def _in_words(change: "Change") -> dict[str, Any]:
    """One change as a line of a table."""
    counts = {"+": change.items_added, "-": change.items_dropped, "changed ": change.items_changed}
    models = {"+": change.models_added, "-": change.models_dropped}
    return {
        "version": change.version,
        "at": change.at,
        "operation": change.operation,
        "items": _counted(counts),
        "models": _counted(models),
        "target": change.target,
        "note": change.note,
        "link": None if change.link is None else change.link.method,
        "bank": change.bank,
        "by": change.by,
    }


def _in_full(change: "Change") -> dict[str, Any]:
    from dataclasses import asdict  # noqa: PLC0415

    return asdict(change)


def _counted(counts: dict[str, Any]) -> str:
    """Say how many ids came, went and changed: '+3 -1'."""
    return " ".join(f"{sign}{ids.n}" for sign, ids in counts.items() if ids.n)
