"""`itembank import json`: results in JSON or nested Parquet of any shape."""

from typing import Any

import click

from itembank.cli.import_results import finish_import, import_options, import_spec
from itembank.cli.reading_options import column_mapping
from itembank.cli.spec_options import spec_option
from itembank.readers.reading_specs import ReadingSpec


@click.command("json", short_help="Read JSON or nested Parquet of any shape, by paths.")
@import_options(
    click.option(
        "--rows",
        default="",
        metavar="PATH",
        help="Path of the rows in each record (a line, an element of the file's array, or its one object): results, "
        "eval.*.  [default: each record is a row]",
    ),
    click.option(
        "--column",
        "columns",
        multiple=True,
        required=True,
        metavar="OURS=PATH",
        help="Where a column stands: item_id=doc.id, response=metrics.acc. Repeatable.",
    ),
    spec_option(
        ReadingSpec,
        "true_value",
        "The response that is right, where responses are words. Usual ones (correct, pass, yes, C, ...) need none.",
        metavar="VALUE",
    ),
)
def command(**given: Any) -> None:
    """Read JSON, JSON Lines or nested Parquet, by paths that say where things stand.

    \b
      itembank import json runs/*.json --rows results --column item_id=doc.id --column response=metrics.acc \\
        --column model_id=@file -o responses.parquet
      itembank import json trials/*/result.json --column item_id=task_name --column epoch=trial_name \\
        --column model_id=agent.model --column response=reward --repeats count -o responses.parquet

    A path is keys with dots between them; a key with a dot in it stands in double quotes. It begins at the row, or with
    / at the record that the row is in. =TEXT is this text in every row; @file and @folder are the names of the file and
    its folder; @key and @index are what the last * of --rows stood for and the row's place in its list. Columns are
    those of long tables (itembank import table --help), and what is found is checked and read as they are.
    """  # noqa: D301
    columns, rows = column_mapping(given["reading"].pop("columns")), given["reading"].pop("rows")
    spec = import_spec("auto", **given["reading"])

    def read(**known: Any) -> Any:
        from itembank.readers.json_import import JsonMapping, read_json_results  # noqa: PLC0415

        return read_json_results(given["paths"], JsonMapping(columns, rows), spec=spec, **known)

    finish_import(given, read)
