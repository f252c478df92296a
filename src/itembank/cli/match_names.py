"""`itembank match-names`: which models of several sets of results are the same one, proposed for editing."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import format_option, output_option
from itembank.cli.render import note, print_rows, progress, warnings_as_notes


@click.command("match-names", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH PATH...")
@output_option("the table of proposals (.csv)")
@click.option(
    "--least",
    type=float,
    default=0.6,
    show_default=True,
    help="Smallest likeness of two names that are proposed, above 0 and at most 1.",
)
@format_option
def command(paths: tuple[Path, ...], output: Path, least: float, output_format: str) -> None:
    """Propose which models of several files are the same one under different names.

    \b
      itembank match-names a.parquet b.parquet -o names.csv
      itembank import a.parquet b.parquet --names names.csv -o joined.parquet

    Case, punctuation, order of words, the maker before the name, and how a date is written do not matter. The column
    'same' says yes where names differ in nothing else. Other pairs that are alike have it empty, with the words that
    differ: write yes or no. Only rows that say yes join models, and nothing is joined before the second command.
    """  # noqa: D301
    from itembank.files.atomic import check_destination, replacing_file  # noqa: PLC0415
    from itembank.readers.read import read_responses  # noqa: PLC0415
    from itembank.spreadsheets import write_guarded_csv  # noqa: PLC0415
    from itembank.studies.same_models import match_models  # noqa: PLC0415

    check_destination(output)
    with warnings_as_notes(), progress("match names") as report:
        sets = {str(path): read_responses(path, progress=report).model_ids for path in paths}
    found = match_models(sets, least=least)
    with replacing_file(output) as temporary:
        write_guarded_csv(found, temporary)
    print_rows(found.rows(named=True), output_format, title="Models that may be the same")
    note(
        f"Edit the column 'same' of {output}, and then: itembank import {' '.join(map(str, paths))} "
        f"--names {output} -o joined.parquet"
    )
