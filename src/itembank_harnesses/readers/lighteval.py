"""Details of lighteval and of the Open LLM Leaderboard v1: Parquet files ``details_<task>_<date>.parquet``.

The rows are the items of the task in its order, so an item is told by its number; a digest of the question guards
against another order. Metrics are the fields of the struct `metric` (`metrics` in older files), or, in files of July
2023, columns of their own.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError, shown
from itembank.files.documents import digest_of
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent
from itembank.readers.reading_specs import ReadingSpec, how_to_name_model
from itembank.readers.rows import ResponseRows
from itembank.readers.table_files import read_parquet_file
from itembank_harnesses.readers.lm_eval_samples import NO_FILTER, Metric, Samples
from itembank_harnesses.readers.logged import LogKind, harness_rows
from itembank_harnesses.readers.runs import Run, SampleFile

KIND = LogKind("details files", "question and options", source="lighteval")
NAME = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?)")
METRICS = ("metric", "metrics")
QUESTION = ("example", "choices", "gold", "gold_index")
"""Columns that tell the item, where there is no struct `doc`."""
QUESTION_OF_DOC = ("query", "choices", "gold_index")
FLAT = ("acc", "acc_norm", "em", "exact_match", "qem", "mc1", "mc2", "f1")
"""Metrics that had columns of their own in July 2023."""


def lighteval_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read details files, and folders of them."""
    return harness_rows(KIND, _file, _samples, paths, spec, progress=progress)


def _file(path: Path, spec: ReadingSpec) -> SampleFile:
    """Tell task, date and model of a file by its name and place."""
    match = NAME.fullmatch(path.stem)
    if match is None:
        raise DataError(
            f"{path}: the name of a details file must name task and date, as details_<task>_<date>.parquet does. Keep "
            "the name it had."
        )
    model = _model(path)
    if not (model or spec.model_id):
        raise DataError(
            f"{path}: the model is unknown: the file must lie in details/<model>/<date>/ or "
            f"details_<org>__<model>/<date>/. Keep the folders, or say the name ({how_to_name_model()})."
        )
    task = match["task"]
    # suite|name:part|shots, as both programs write it
    words = task.split("|")
    name = words[1] if len(words) > 2 else words[0]
    run = Run(model_name=model, groups={task: name.partition(":")[0]}, about={"run_date": match["date"]})
    return SampleFile(path, task, match["date"], run, spec.model_id or model)


def _model(path: Path) -> str:
    """Name of the model that the folders of a file tell; empty where they tell none."""
    folders = path.parts[:-2]  # the last folder is the run's date
    if folders and folders[-1].startswith("details_"):
        return folders[-1].removeprefix("details_").replace("__", "/", 1)
    if "details" in folders:
        return "/".join(folders[len(folders) - folders[::-1].index("details") :])
    return ""


def _samples(file: SampleFile) -> Samples:
    """Read one file: of its columns only those that are needed."""
    wanted = {*METRICS, *QUESTION, *FLAT, "doc", "model_response"}
    frame = read_parquet_file(file.path, keep=lambda every: [name for name in every if name in wanted]).frame
    if frame.height == 0:
        raise DataError(f"{file.path}: there must be at least one answer, got none.")
    struct = next((name for name in METRICS if isinstance(frame.schema.get(name), pl.Struct)), None)
    found = frame[struct].struct.unnest() if struct else frame.select(name for name in FLAT if name in frame.columns)
    metrics = {column.name: _metric(column) for column in found}
    if not metrics:
        raise DataError(
            f"{file.path}: there must be a struct of metrics (metric), or a column of one ({shown(FLAT, 10)}); there "
            f"are {shown(frame.columns, 12)}."
        )
    rows = frame.select(
        document=pl.int_range(pl.len()).cast(pl.String), filter=pl.lit(NO_FILTER), content=_contents(frame)
    ).cast(pl.Categorical)
    return Samples(file, rows.with_columns(pl.Series(unit, n) for unit, n in _tokens(frame).items()), metrics)


def _metric(column: pl.Series) -> Metric:
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return Metric(_floats(column))
    return Metric(np.full(column.len(), np.nan), None, f"holds {column.dtype}, not numbers")


def _floats(column: pl.Series) -> FloatArray:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _contents(frame: pl.DataFrame) -> pl.Series:
    """Digest of what tells the item of each row, null where nothing does."""
    if isinstance(frame.schema.get("doc"), pl.Struct):
        frame = frame["doc"].struct.unnest()
    names = [name for name in dict.fromkeys((*QUESTION, *QUESTION_OF_DOC)) if name in frame.columns]
    if not names:
        return pl.Series([None] * frame.height, dtype=pl.String)
    told = frame.select(names).to_struct("told").struct.json_encode()
    return pl.Series([digest_of(one.encode()) for one in told], dtype=pl.String)


def _tokens(frame: pl.DataFrame) -> dict[str, FloatArray]:
    """Tokens in and out of each row, as far as the struct `model_response` tells."""
    if not isinstance(frame.schema.get("model_response"), pl.Struct):
        return {}
    response = frame["model_response"].struct.unnest()
    counts = {}
    for unit in ("input_tokens", "output_tokens"):
        dtype = response.schema.get(unit)
        if isinstance(dtype, pl.List):
            tokens = pl.col(unit).list  # of one text, or of several
            n = tokens.eval(pl.element().list.len()).list.sum() if isinstance(dtype.inner, pl.List) else tokens.len()
            counts[unit] = _floats(response.select(n)[unit])
    return counts
