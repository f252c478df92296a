"""`itembank sample-data`: results to try the commands on."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import folder_option, format_option
from itembank.cli.render import note, print_rows


@click.command("sample-data", cls=Command)
@folder_option("sample", "the two files")
@format_option
def command(*, output: Path, output_format: str) -> None:
    """Write example results of past models and of a new one, to try the commands on.

    past.csv holds the answers of 110 small language models to 680 questions of five tasks, new-model.csv those of
    another model. The models are tiny, and this project trained them. The columns are those that itembank reads from
    your own results: model_id, item_id, scenario, response.

    \b
      itembank sample-data
      itembank import sample/past.csv -o responses.parquet
    """  # noqa: D301
    from itembank.readers.builtin import NEW, PAST, write_sample_data  # noqa: PLC0415

    past, new = write_sample_data(output)
    rows = [
        {"file": str(output / name), "models": responses.n_models, "items": responses.n_items}
        for name, responses in ((PAST, past), (NEW, new))
    ]
    print_rows(rows, output_format, title="Sample data")
    note(f"Next: itembank import {output / PAST} -o responses.parquet")
