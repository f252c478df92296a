"""Results of the Berkeley Function-Calling Leaderboard.

``score/<model>/.../<category>_score.json`` begins with ``{accuracy, correct_count, total_count}``, and after that lists
**failed** items only. Which items there were is in ``result/<model>/.../<category>_result.json``, one a line, with
tokens and latency. Both are needed. File names may begin with ``BFCL_v4_`` (score) or, in 2024,
``gorilla_openfunctions_v1_test_`` (result); ids of 2024's score files count from 1, those of result files (``idx`` at
first) from 0.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from itembank.errors import DataError, shown
from itembank.readers.collecting import own_files
from itembank.readers.json_files import Record, as_float, each_record
from itembank.readers.reading_specs import ReadingSpec

PREFIX = r"(?:BFCL_v\d+_|gorilla_openfunctions_v\d+_test_)?"
SCORE = re.compile(rf"{PREFIX}(?P<category>.+)_score\.json")
RESULT = re.compile(rf"{PREFIX}(?P<category>.+)_result\.json")
FOLDER = re.compile(r"score(?:[_-].+)?")
COSTS = {"input_tokens": "input_token_count", "output_tokens": "output_token_count", "seconds": "latency"}
HEADER = {"accuracy", "correct_count", "total_count"}


def is_bfcl(record: Any) -> bool:
    """Whether a record is the header of a score file."""
    return isinstance(record, dict) and record.keys() >= HEADER


def bfcl_published(folder: Path) -> Iterator[tuple[str, str | None, float]]:
    """Give the accuracy of each model over all categories, as the headers of its score files tell it."""
    counts: dict[str, list[int]] = {}
    for path in own_files([folder], "bfcl", ReadingSpec()):
        header = next(each_record(path))
        sums = counts.setdefault(_model_of(path), [0, 0])
        sums[0] += int(header["correct_count"])
        sums[1] += int(header["total_count"])
    yield from ((model, "bfcl", correct / total) for model, (correct, total) in counts.items() if total)


def bfcl_answers(file: Path, spec: ReadingSpec) -> list[Record]:
    """Read the answers of one model in one category from a score file and its result file."""
    match = SCORE.fullmatch(file.name)
    records = [*each_record(file)]
    if match is None or not records or not is_bfcl(records[0]):
        raise DataError(
            f"{file}: must be a score file of BFCL: its name ends in _score.json and its first line has "
            f"{', '.join(sorted(HEADER))}."
        )
    category, header, failures = match["category"], records[0], records[1:]
    failed = frozenset(_failed_id(one, category) for one in failures)
    every = each_record(_result_file(file, category))
    results = [
        {"id": _result_id(record, category), **{name: record.get(name) for name in COSTS.values()}} for record in every
    ]
    ids = {record["id"] for record in results}
    unknown = sorted(failed - ids)
    n_correct = len(ids) - len(failed)
    if unknown or (n_correct, len(ids)) != (header["correct_count"], header["total_count"]):
        raise DataError(
            f"{file}: score and result file must be of one run, got {header['correct_count']} of "
            f"{header['total_count']} right in the score file and {n_correct} of {len(ids)} from both"
            + (f"; failed items that the result file does not have: {shown(unknown)}." if unknown else ".")
        )
    about = {"model_id": _model_of(file), "scenario": spec.scenario or "bfcl", "subscenario": category}
    return [
        {
            **about,
            "item_id": record["id"],
            "response": float(record["id"] not in failed),
            **{unit: _total(record[name]) for unit, name in COSTS.items()},
        }
        for record in results
    ]


def _failed_id(record: Record, category: str) -> str:
    prompt = record.get("prompt")
    if isinstance(prompt, dict) and isinstance(prompt.get("id"), str):
        return str(prompt["id"])
    number = record.get("id")
    return f"{category}_{number - 1}" if isinstance(number, int) else str(number)


def _result_id(record: Record, category: str) -> str:
    number = record.get("id", record.get("idx"))
    return f"{category}_{number}" if isinstance(number, int) else str(number)


def _place(file: Path) -> tuple[Path, tuple[str, ...]]:
    """Folder of the results, and the parts of the path below `score`; both folders may have one ending: score_1."""
    parts = file.absolute().parts
    place = next((at for at in range(len(parts) - 2, 0, -1) if FOLDER.fullmatch(parts[at])), None)
    if place is None:
        raise DataError(
            f"{file}: must be in a folder score/<model>, beside result/<model>: a score file lists failures only, "
            "and the items that were right are in the result file."
        )
    return Path(*parts[:place], parts[place].replace("score", "result", 1)), parts[place + 1 :]


def _model_of(file: Path) -> str:
    return _place(file)[1][0]


def _result_file(file: Path, category: str) -> Path:
    results, below = _place(file)
    folder = results / below[0]
    for one in sorted(folder.rglob("*_result.json")):
        match = RESULT.fullmatch(one.name)
        if match is not None and match["category"] == category:
            return one
    raise DataError(
        f"{file}: needs its result file ({folder}/*{category}_result.json), which is not there: a score file lists "
        "failures only."
    )


def _total(value: Any) -> float | None:
    """Sum of a number, or of all steps of a conversation; zero and what is no number are unknown."""
    if isinstance(value, list):
        return sum(_total(one) or 0.0 for one in value) or None
    return as_float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
