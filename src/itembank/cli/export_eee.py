"""`itembank export eee`: estimates as records of Every Eval Ever."""

from pathlib import Path
from typing import Any

import click

from itembank.cli.command import Command
from itembank.cli.options import FILE, format_option, option, output_option
from itembank.cli.render import note, print_rows
from itembank.publishing.every_eval_ever import ExportSpec


@click.command("eee", cls=Command)
@click.argument("estimates", type=FILE)
@output_option("the records: a folder, one file a model")
@option("--organization NAME", "Who ran the items and estimated.", required=True)
@option("--relationship", "Between these and the developers of the models.", ExportSpec)
@option(
    "--timestamp SECONDS", "When the estimates were made, in seconds since 1970.  [default: now]", click.IntRange(min=0)
)
@format_option
def export_eee_command(*, estimates: Path, output: Path, output_format: str, **choices: Any) -> None:
    """Write estimates as records of Every Eval Ever, with their intervals and the items behind them.

    ESTIMATES is what itembank estimate --format json printed.

    \b
      itembank estimate bank new-model.csv --selection selection.json --format json > estimates.json
      itembank export eee estimates.json --organization 'My lab' -o records/

    Each result says that its score was estimated, from how many items of how many, and by which bank. Records are
    aggregates of schema 0.3.0: a bank holds no question texts, so no samples are written.
    """  # noqa: D301
    import time  # noqa: PLC0415
    from importlib.metadata import version  # noqa: PLC0415

    from itembank.files.atomic import check_destination  # noqa: PLC0415
    from itembank.publishing.every_eval_ever import (  # noqa: PLC0415
        evaluation_records,
        read_estimates,
        write_records,
    )

    check_destination(output, is_folder=True)
    if choices["timestamp"] is None:
        choices["timestamp"] = int(time.time())
    records = evaluation_records(read_estimates(estimates), ExportSpec(version=version("itembank"), **choices))
    paths = write_records(records, output)
    rows = [
        {"file": str(path), "model_id": record["model_info"]["id"], "n_results": len(record["evaluation_results"])}
        for path, record in zip(paths, records.values(), strict=True)
    ]
    print_rows(rows, output_format, title="Records of Every Eval Ever")
    note("Before publishing, say in model_info how the models were deployed: it is unknown here.")
