"""Response tables of OpenEval: ``response/<benchmark>-<part>.parquet``, one row a response, with its scores.

A row has ``response_id`` (``<item>_<model>_<trial>``, the item ``<benchmark>_<time>_<number>``), ``model`` with a
``name``, and ``scores``: a list ``metric`` of metrics with their ``name``, and a list ``value`` beside it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from itembank.errors import DataError, quoted
from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import read_parquet, read_parquet_schema, translated

ITEM = re.compile(r"(?P<item>(?P<benchmark>.+?)_\d{8}T\d{6}Z_\d+)(?:_.*)?", re.DOTALL)
COLUMNS = ("response_id", "model", "scores")


def open_eval_answers(file: Path, spec: ReadingSpec) -> Iterator[Record]:
    """Give the rows of a response table; the benchmark is the scenario.

    The response is the first `metric` that was asked for, and rows without it are left out; else the row's first.
    """
    with translated(file, "Parquet file"):
        places = [place for place, name in enumerate(read_parquet_schema(file)) if name in COLUMNS]
        frame = read_parquet(file, columns=places)
    for part in frame.iter_slices(10_000):
        for row in part.iter_rows(named=True):
            with laid_out(file, f"a table with the columns {', '.join(COLUMNS)}"):
                found = ITEM.fullmatch(row["response_id"])
                if found is None:
                    raise DataError(
                        f"{file}: a response_id must begin with <benchmark>_<time>_<number>, got "
                        f"{quoted(row['response_id'])}."
                    )
                scores = row["scores"] or {"metric": (), "value": ()}
                values = {one["name"]: value for one, value in zip(scores["metric"], scores["value"], strict=True)}
                metric = next((one for one in spec.metric or values if one in values), None)
                if metric is not None:
                    yield {
                        "model_id": row["model"]["name"],
                        "item_id": found["item"],
                        "response": values[metric],
                        "scenario": spec.scenario or found["benchmark"],
                    }
