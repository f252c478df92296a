"""Outputs of MMLU-Pro's models: ``model_outputs_<model>_<n>shots.zip``, each with one JSON list of answered questions.

Its scripts write such lists into ``<model>/<category>_result.json``; a list by another name is of the model so called.

An answer has ``question_id``, ``category``, the key ``answer`` and what was read of the output, ``pred``; an output of
which nothing could be read is wrong. (MMLU-Pro's own script draws a letter for it, so that its scores are higher.)
"""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from itembank.errors import DataError
from itembank.files.documents import MOST_BYTES, parse_json, regular_size
from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record, each_record
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import name_without_ending

MODEL = re.compile(r"model_outputs_(?P<model>.+?)_\d+-?shots.*")
LAYOUT = "outputs of MMLU-Pro (question_id, category, answer, pred)"


def is_mmlu_pro(record: Record) -> bool:
    """Whether a record is an answered question."""
    return record.keys() >= {"question_id", "category", "answer", "pred", "model_outputs"} and "model" not in record


def mmlu_pro_answers(file: Path, spec: ReadingSpec) -> Iterator[Record]:
    """Give the answers of an archive, which is of one model; the category is the subscenario."""
    found = MODEL.fullmatch(file.name)
    if found is None and file.suffix == ".zip":
        raise DataError(f"{file}: must be named model_outputs_<model>_<n>shots.zip, which names the model.")
    by_name = file.absolute().parent.name if file.stem.endswith("_result") else name_without_ending(file)
    content = _document(file) if file.suffix == ".zip" else each_record(file)
    with laid_out(file, LAYOUT):
        for one in content:
            yield {
                "model_id": by_name if found is None else found["model"],
                "item_id": one["question_id"],
                "response": float(one["pred"] is not None and one["pred"] == one["answer"]),
                "scenario": spec.scenario or "mmlu_pro",
                "subscenario": one["category"],
            }


def _document(file: Path) -> Any:
    """Return the content of an archive's one JSON file."""
    regular_size(file)
    try:
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.endswith(".json") and not name.startswith("__MACOSX")]
            if len(names) != 1:
                raise DataError(f"{file}: must hold one JSON file, got {len(names)}.")
            with archive.open(names[0]) as stream:
                content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise DataError(f"{file}: its JSON file must have at most {MOST_BYTES:,} bytes, got more.")
        return parse_json(content.decode("utf-8"))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as an archive of one JSON file: {error}. Fetch it again.") from error
