"""`itembank report`: one HTML file of what is given."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.new_results import mixed_prompts_option, note_known_models, read_new_results, selection_option
from itembank.cli.options import BankPath, refuse_unused
from itembank.cli.render import note, progress, warnings_as_notes
from itembank.cli.report_options import checked_report_path, typed_command, write_report
from itembank.cli.session_record import bank_option, loaded_bank

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.pages.render import Page
    from itembank.planning.accuracy import Accuracy


@click.command("report", cls=Command)
@click.argument("source", metavar="BANK|JOURNAL|STUDY", type=BankPath(file_okay=True))
@click.argument("results", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=checked_report_path,
    required=True,
    metavar="FILE",
    help="The page; its name must end in .html.",
)
@click.option("--title", default="", help="What stands above the page.  [default: the name of what it is about]")
@click.option(
    "--accuracy/--no-accuracy",
    default=True,
    show_default=True,
    help="Of a bank: measure how good estimates from 10 to 500 items are, which takes minutes for a large bank, once: "
    "it is kept. Without, the page has it only where it was measured before.",
)
@selection_option
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL_ID",
    help="Show these models only, in this order. Repeatable.  [default: all models of RESULTS]",
)
@bank_option
@mixed_prompts_option
def command(
    *, source: Path, results: tuple[Path, ...], output: Path, title: str, accuracy: bool, **choices: Any
) -> None:
    """Write a page about a bank, new models, an adaptive session or a study: one HTML file that opens anywhere.

    Of a bank it says how good estimates from a few of the items are, what the bank holds, how past models score, where
    its items lie, what its abilities are, which items may be wrong and what a run costs. With RESULTS of new models it
    estimates their scores as itembank estimate does unasked, and shows up to three models with every answer. Of a
    session's JOURNAL it shows the estimate after each answer, of a STUDY's folder which method came closest. The file
    loads nothing and sends nothing: mail it, or put it on a web server.

    \b
      itembank report bank -o bank.html
      itembank report bank new-model.csv --selection selection.json -o new-model.html
      itembank report run.jsonl -o session.html
      itembank report study -o study.html

    Dates, sizes and makers of models are found by the names of the model table's columns (release_date, params, org,
    family, ...), texts of items from the item table: itembank import --models FILE --items FILE.
    """  # noqa: D301
    from itembank.sessions.journal_answers import is_journal  # noqa: PLC0415
    from itembank.studies.manifests import is_study_folder  # noqa: PLC0415

    is_session, is_study = source.is_file() and is_journal(source), is_study_folder(source)
    if source.is_file() and not is_session:
        raise click.UsageError(f"{source} must be a bank's folder or the journal of a session. Name the bank first.")
    if (is_session or is_study) and results:
        raise click.UsageError(
            f"A {'journal' if is_session else 'study'} is shown alone. Leave out what stands behind it."
        )
    refuse_unused(
        *((name, bool(results), "RESULTS of new models") for name in ("selection", "models", "allow_mixed_prompts")),
        ("bank", is_session, "a journal of a session"),
        ("accuracy", not is_session and not is_study and not results, "a bank alone"),
    )
    known = {"title": title, "command": typed_command()}
    with warnings_as_notes():
        if is_study:
            page = _of_study(source, known)
        elif is_session:
            page = _of_session(source, choices["bank"], known)
        elif results:
            page = _of_results(source, results, choices, known)
        else:
            page = _of_bank(source, known, measures=accuracy)
    write_report(page, output)


def _of_study(folder: Path, known: Mapping[str, str]) -> "Page":
    from itembank.pages.prediction_study_page import study_folder_page  # noqa: PLC0415

    return study_folder_page(folder, **known)


def _of_bank(path: Path, known: Mapping[str, str], *, measures: bool) -> "Page":
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.pages.bank_page import bank_page  # noqa: PLC0415
    from itembank.planning.accuracy import kept_accuracy  # noqa: PLC0415

    bank = load_bank(path)
    found, missing = kept_accuracy(bank), "--no-accuracy was given."
    if found is None and measures:
        found, missing = _measured(bank)
    if found is None:
        note(f"Without how good estimates are: {missing}")
    return bank_page(bank, accuracy=found, **known)


def _measured(bank: "Bank") -> "tuple[Accuracy | None, str]":
    """Measure how good estimates are, or say why that cannot be done."""
    from itembank.errors import DataError  # noqa: PLC0415
    from itembank.planning.accuracy import accuracy, can_be_measured  # noqa: PLC0415

    if not can_be_measured(bank):
        return None, "too few past models."
    try:
        with progress("report") as advance:
            return accuracy(bank, progress=advance), ""
    except DataError as error:  # without some models the rest may leave no item that tells them apart
        return None, str(error)


def _of_results(path: Path, results: tuple[Path, ...], choices: Mapping[str, Any], known: Mapping[str, str]) -> "Page":
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.bank.selections import Selection  # noqa: PLC0415
    from itembank.estimation.estimate import estimate  # noqa: PLC0415
    from itembank.pages.estimates_page import estimates_page  # noqa: PLC0415

    bank = load_bank(path)
    selection = None if choices["selection"] is None else Selection.load(choices["selection"]).whole
    matrix = read_new_results(bank, results, selection, allow_mixed_prompts=choices["allow_mixed_prompts"])
    if choices["models"]:
        matrix = matrix.take(models=matrix.model_indices(choices["models"]))
    note_known_models(bank, matrix.model_ids)
    with progress("report") as advance:
        estimates = estimate(bank, matrix, selection=selection, progress=advance)
    return estimates_page(bank, matrix, estimates, selection, **known)


def _of_session(journal: Path, bank: Path | None, known: Mapping[str, str]) -> "Page":
    from itembank.pages.session_page import session_page  # noqa: PLC0415
    from itembank.sessions.journal_sessions import bank_of_session, read_session  # noqa: PLC0415

    loaded = bank_of_session(journal, loaded_bank(bank))
    with progress("report") as advance:
        session = read_session(journal, loaded, progress=advance)
        return session_page(session, loaded, **known)
