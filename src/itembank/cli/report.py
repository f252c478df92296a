"""`itembank report`: one HTML file of what is given."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import BankPath, checked_report_path, typed_command, write_report


@click.command("report", cls=Command)
@click.argument("source", metavar="BANK|STUDY", type=BankPath())
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=checked_report_path,
    required=True,
    metavar="FILE",
    help="The page, .html.",
)
def command(*, source: Path, output: Path) -> None:
    """Write one page that opens anywhere: of a bank, or of a study's folder.

    \b
      itembank report bank -o bank.html
      itembank report study -o study.html
    """  # noqa: D301
    from itembank.studies.manifests import is_study_folder  # noqa: PLC0415

    if is_study_folder(source):
        from itembank.pages.study_folder import study_folder_page  # noqa: PLC0415

        write_report(study_folder_page(source, command=typed_command()), output)
        return
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.pages.bank_page import bank_page  # noqa: PLC0415

    write_report(bank_page(load_bank(source), command=typed_command()), output)
