"""`itembank report`: one HTML file of what is given."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.new_results import note_known_models, read_new_results, selection_option
from itembank.cli.options import (
    BankPath,
    checked_report_path,
    reading_options,
    refuse_unused,
    typed_command,
    write_report,
)
from itembank.cli.render import progress, warnings_as_notes
from itembank.cli.session_record import bank_option, loaded_bank

if TYPE_CHECKING:
    from itembank.pages.blocks import Page

RESULTS = "RESULTS of new models"


@click.command("report", cls=Command)
@click.argument("source", metavar="BANK|JOURNAL", type=BankPath(file_okay=True))
@click.argument("results", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=checked_report_path,
    required=True,
    metavar="FILE",
    help="The page, .html.",
)
@selection_option
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL_ID",
    help="Show these models only, in this order. Repeatable.  [default: all models of the files]",
)
@bank_option
@reading_options()
def command(
    *,
    source: Path,
    results: tuple[Path, ...],
    output: Path,
    selection: Path | None,
    models: tuple[str, ...],
    bank: Path | None,
    reading: dict[str, Any],
) -> None:
    """Write one page that opens anywhere: of a bank, of new models' estimates, or of an adaptive session.

    With RESULTS of new models their scores are estimated as itembank estimate does without options. One to three
    models are shown with every answer, more in order.

    \b
      itembank report bank -o bank.html
      itembank report bank new-model.csv --selection selection.json -o new-model.html
      itembank report run.jsonl -o session.html
    """  # noqa: D301
    from itembank.adaptive.journal_answers import is_journal  # noqa: PLC0415

    is_session = source.is_file() and is_journal(source)
    if source.is_file() and not is_session:
        raise click.UsageError(f"{source} must be a bank's folder or the journal of a session. Name the bank first.")
    if is_session and results:
        raise click.UsageError("A journal is shown alone. Leave out what stands behind it.")
    refuse_unused(
        *((name, bool(results), RESULTS) for name in ("selection", "models", *reading)),
        ("bank", is_session, "a journal of a session"),
    )
    with warnings_as_notes():
        if is_session:
            page = _of_session(source, bank)
        else:
            page = _of_results(source, results, selection, models, reading) if results else _of_bank(source)
    write_report(page, output)


def _of_bank(path: Path) -> "Page":
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.pages.bank_page import bank_page  # noqa: PLC0415

    return bank_page(load_bank(path), command=typed_command())


def _of_results(
    path: Path, results: tuple[Path, ...], selection: Path | None, models: tuple[str, ...], reading: dict[str, Any]
) -> "Page":
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.data.selections import Selection  # noqa: PLC0415
    from itembank.estimation.estimate import estimate  # noqa: PLC0415
    from itembank.pages.estimates_page import estimates_page  # noqa: PLC0415

    loaded = load_bank(path)
    chosen = None if selection is None else Selection.load(selection).whole
    matrix = read_new_results(loaded, results, reading, chosen)
    if models:
        matrix = matrix.take(models=matrix.model_indices(models))
    note_known_models(loaded, matrix.model_ids)
    with progress("report") as advance:
        estimates = estimate(loaded, matrix, selection=chosen, progress=advance)
    return estimates_page(loaded, matrix, estimates, chosen, command=typed_command())


def _of_session(journal: Path, bank: Path | None) -> "Page":
    from itembank.adaptive.journal_sessions import bank_of_session, read_session  # noqa: PLC0415
    from itembank.pages.session_page import session_page  # noqa: PLC0415

    known = bank_of_session(journal, loaded_bank(bank))
    with progress("report") as advance:
        session = read_session(journal, known, progress=advance)
        return session_page(session, known, command=typed_command())
