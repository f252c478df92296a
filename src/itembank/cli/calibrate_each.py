"""`itembank calibrate --each`: a bank of each of many results, in one folder."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.render import note, progress
from itembank.errors import ItembankWarning, ParameterError, command_line_words, shown, visible

if TYPE_CHECKING:
    from itembank.bank.banks import Bank

Made = tuple[dict[str, Any], str, list[str]]
"""The row of a bank, what ended it (empty where nothing did), and what it warned of."""

COLUMNS = ("name", "status", "bank", "n_models", "n_items", "n_scenarios", "n_dims", "converged")
"""Of the table; JSON and CSV have all."""


@dataclass(frozen=True, slots=True)
class BankWork:
    """How one bank is made."""

    # function of (paths,) and a destination: Makes a bank and writes it whole.
    make: Callable[[tuple[Path, ...], Path], "Bank"]
    finish: Callable[[Path], "Bank"]  # Loads a bank that stands there already, and does what may be left to do
    summary: Callable[["Bank"], dict[str, Any]]  # What a row says of it
    force: bool  # Make those anew that stand there already


def calibrate_each(sources: Sequence[Path], output: Path, work: BankWork) -> list[dict[str, Any]]:
    """Make a bank of each of the results in a folder; one that fails does not stop the others.

    Rows come in the order of the results, with `name`, `status` ('made', 'kept' or 'failed') and `error`.
    """
    from itembank.numerics.parallel import in_parallel  # noqa: PLC0415

    names = names_of(sources)
    check_folder(output)
    parts = [(source, output / name, work) for source, name in zip(sources, names, strict=True)]
    rows: dict[int, dict[str, Any]] = {}
    with progress("calibrate") as report:
        for number, (row, failure, said) in in_parallel(_one, parts):
            rows[number] = row
            for message in dict.fromkeys(said):
                click.echo(f"Warning: {names[number]}: {visible(message)}", err=True)
            if failure:
                click.echo(f"Error: {names[number]}: {visible(failure)}", err=True)
            report(f"{len(rows)} of {len(parts)} done", len(rows) / len(parts))
    n_kept = sum(row["status"] == "kept" for row in rows.values())
    if n_kept:
        note(f"{n_kept} of {len(rows)} banks stood there already and were kept; --force makes them anew.")
    known = dict.fromkeys(name for row in sorted(rows.values(), key=len, reverse=True) for name in row)
    return [{**known, **rows[number]} for number in range(len(parts))]


def names_of(sources: Sequence[Path]) -> list[str]:
    """Return the name of each bank: that of its file without endings, or of its folder.

    Raises
    ------
    ParameterError
        When two would have one name.
    """
    names = [source.name.split(".")[0] if source.is_file() else source.resolve().name for source in sources]
    twice = [str(source) for source, name in zip(sources, names, strict=True) if names.count(name) > 1 or not name]
    if twice:
        raise ParameterError(
            "with --each every bank is named after its results, so their names must differ and not be empty, got "
            f"{shown(twice)}. Rename them, or calibrate these one by one."
        )
    return names


def check_folder(output: Path) -> None:
    """Raise `ParameterError` where no folder of banks can be."""
    from itembank.bank.bank_records import RECORD  # noqa: PLC0415
    from itembank.files.atomic import check_destination  # noqa: PLC0415

    check_destination(output, is_folder=True)
    if (output / RECORD).is_file():
        raise ParameterError(
            f"{output} is a bank; with --each, -o must name a folder for several. Choose another place."
        )


def _one(source: Path, destination: Path, work: BankWork) -> Made:
    """Make one bank without a word: banks that are made at once would write over each other's bars."""
    from itembank.bank.bank_files import check_bank_destination  # noqa: PLC0415
    from itembank.bank.bank_records import RECORD  # noqa: PLC0415

    with (
        command_line_words(),
        click.Context(click.Command(destination.name), obj={"quiet": True}).scope(),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", ItembankWarning)
        is_there = (destination / RECORD).is_file() and not work.force
        status, failure, facts = "kept" if is_there else "made", "", {}
        try:
            if not is_there:
                check_bank_destination(destination, overwrite=work.force)  # before the long work
            facts = work.summary(work.finish(destination) if is_there else work.make((source,), destination))
        except click.ClickException as error:
            status, failure = "failed", error.format_message()
        except Exception as error:  # noqa: BLE001 (whatever ends a bank is told as its failure)
            status, failure = "failed", str(error) or type(error).__name__
    said = [str(one.message) for one in caught if issubclass(one.category, ItembankWarning)]
    return {"name": destination.name, "status": status, **facts, "error": failure or None}, failure, said
