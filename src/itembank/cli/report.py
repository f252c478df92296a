"""`itembank report`: one HTML file of what is given."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import BankPath, checked_report_path, typed_command, write_report
from itembank.cli.render import note, progress, warnings_as_notes


@click.command("report", cls=Command)
@click.argument("source", metavar="BANK", type=BankPath())
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=checked_report_path,
    required=True,
    metavar="FILE",
    help="The page; its name must end in .html.",
)
@click.option("--title", default="", help="What stands above the page.  [default: the bank's name]")
@click.option(
    "--accuracy/--no-accuracy",
    default=True,
    show_default=True,
    help="Measure how good estimates from 10 to 300 items are, which takes minutes for a large bank, once: it is kept. "
    "Without, the page has it only where it was measured before.",
)
def command(*, source: Path, output: Path, title: str, accuracy: bool) -> None:
    """Write a page about a bank: one HTML file that opens anywhere.

    It says how good estimates from a few of the items are and how many items buy which interval, what the bank holds,
    how past models score by date, size and maker, where its items lie beside the models, what its abilities are, which
    items may be wrong, what a run costs and where the bank comes from. The file loads nothing and sends nothing: mail
    it, or put it on a web server.

    \b
      itembank report bank -o bank.html
      itembank report bank -o bank.html --no-accuracy --title "MMLU-Pro, May"

    Dates, sizes and makers of models are found by the names of the model table's columns (release_date, params, org,
    family, ...): itembank calibrate --models FILE. Texts of items come from the item table (--items FILE).
    """  # noqa: D301
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.pages.bank_page import bank_page  # noqa: PLC0415
    from itembank.planning.accuracy import accuracy as measure  # noqa: PLC0415
    from itembank.planning.accuracy import can_be_measured, kept_accuracy  # noqa: PLC0415

    with warnings_as_notes():
        bank = load_bank(source)
        found = kept_accuracy(bank)
        if found is None and accuracy and can_be_measured(bank):
            with progress("report") as advance:
                found = measure(bank, progress=advance)
        write_report(bank_page(bank, accuracy=found, title=title, command=typed_command()), output)
    if found is None:
        note("Without how good estimates are: " + ("too few past models." if accuracy else "--no-accuracy was given."))
