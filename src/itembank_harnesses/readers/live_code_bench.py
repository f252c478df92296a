"""LiveCodeBench's results: ``output/<model>/Scenario.<scenario>_<n>_<temperature>_eval_all.json``.

A list with an object for each problem: ``question_id``, ``graded_list`` (whether each sample passed all tests),
``contest_date``, ``difficulty``, ``platform``. ``..._eval.json`` beside it states pass@1 of the whole.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from itembank.errors import DataError, DataWarning, shown, warn
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import own_files, read_each
from itembank.readers.json_files import Record, each_record
from itembank.readers.long_table import rows_of_records
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows, joined_source
from itembank_harnesses.readers.sources import SOURCES

NAME = re.compile(r"(?:Scenario\.)?(?P<scenario>[A-Za-z]+)_(?:.*_)?eval_all.*\.json")
ABOUT = ("contest_date", "difficulty", "platform")


class NotGradedError(DataError):
    """A file holds something else than graded problems."""


def is_live_code_bench(record: Any) -> bool:
    """Whether a record is a problem with its graded samples."""
    return isinstance(record, dict) and "question_id" in record and isinstance(record.get("graded_list"), list)


def live_code_bench_rows(
    paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent
) -> ResponseRows:
    """Read graded problems; the response is the share of samples that pass, with their number."""
    source = joined_source(paths)
    files = {file: path for path in paths for file in own_files([path], "livecodebench", spec)}
    parts = read_each(list(files), lambda file: _read(file, files[file], spec), progress, spec)
    rows = [one for part in parts for one in part]
    if not rows:
        raise DataError(
            f"{source}: must hold graded problems of LiveCodeBench, got none. {SOURCES['livecodebench'].hint}"
        )
    return rows_of_records(source, rows, spec)


def model_of(file: Path) -> str:
    """Model of a file: the name of its folder."""
    return file.absolute().parent.name


def scenario_of(file: Path) -> str:
    """Scenario that the name of a file tells."""
    match = NAME.fullmatch(file.name)
    return match["scenario"] if match else "livecodebench"


def _read(file: Path, named: Path, spec: ReadingSpec) -> list[Record]:
    """Problems of a file; one of a folder that holds averages only is left out with a warning."""
    try:
        return list(_problems(file, spec))
    except NotGradedError as error:
        if file == named:
            raise
        warn(f"a file is left out: {error}", DataWarning)
        return []


def _problems(file: Path, spec: ReadingSpec) -> Iterator[Record]:
    """Give the problems of a file; where each test or run of code is asked for by itself, each is an item."""
    for record in each_record(file):
        if not is_live_code_bench(record):
            raise NotGradedError(
                f"{file}: a problem must have question_id and graded_list, got {shown(list(record), 8)}. Run "
                "LiveCodeBench with --evaluate and read *_eval_all.json."
            )
        problem, test = record["question_id"], record.get("test_id", record.get("id"))
        yield {
            "model_id": model_of(file),
            "item_id": str(problem) if test is None else f"{problem}/{test}",
            "n_correct": sum(map(bool, record["graded_list"])),
            "n_trials": len(record["graded_list"]),
            "scenario": spec.scenario or scenario_of(file),
            "subscenario": record.get("difficulty"),
            **{name: record.get(name) for name in ABOUT},
        }


def live_code_bench_published(folder: Path) -> Iterator[tuple[str, str | None, float]]:
    """Give pass@1 as ``..._eval.json`` states it."""
    for file in own_files([folder], "livecodebench", ReadingSpec()):
        stated = file.with_name(file.name.removesuffix("_all.json") + ".json")
        content = read_json(stated) if stated.is_file() else None
        metrics = content[0] if isinstance(content, list) and content else content
        if isinstance(metrics, dict) and isinstance(metrics.get("pass@1"), int | float):
            yield model_of(file), scenario_of(file), float(metrics["pass@1"])
