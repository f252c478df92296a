"""Output of OpenCompass: ``results/<model>/<dataset>.json``, whose details hold one entry an item."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from itembank.errors import DataError
from itembank.progress import ProgressCallback, silent
from itembank.readers.columns import USUAL_NAMES, plain_name
from itembank.readers.json_files import Record, each_record, first_record, mapping
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows, content_digest
from itembank_harnesses.readers.logged import LoggedAnswer, LogKind, harness_rows
from itembank_harnesses.readers.runs import Run, SampleFile
from itembank_harnesses.readers.sources import SOURCES

KIND = LogKind("OpenCompass results", "prompt and reference", uses_groups=False, source="opencompass")
QUESTION = ("origin_prompt", "prompt", "question", "references", "reference", "answer", "gold")
"""Keys of an entry that tell the item."""
RIGHT = ("correct", "is_correct", "cascade_correct")
"""Keys of whether an entry is right, in the order in which OpenCompass itself looks for them."""
TEXTS = frozenset(
    {*QUESTION, "pred", "prediction", "predictions", "origin_prediction", "refr", "label", "idx", "index"}
)
"""Keys of what was asked and answered: an answer that is a number is no score."""


def is_opencompass(record: Record) -> bool:
    """Whether an object is the result of a dataset, with details, which names neither its model nor its items."""
    details = record.get("details")
    first = details[0] if isinstance(details, list) and _is_numbered(details) else {}
    names = [("model_id", key) for key in record] + [("item_id", key) for key in first if key not in TEXTS]
    if any(plain_name(key) in USUAL_NAMES[ours] for ours, key in names):
        return False
    return _is_numbered(details) or _is_prediction(record)


def opencompass_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read the ``results`` of output folders, or files of them."""
    return harness_rows(KIND, _file, _answers, paths, spec, progress=progress)


def _file(path: Path, spec: ReadingSpec) -> SampleFile:
    """Tell dataset and model of a file by its place."""
    model = path.parent.name
    return SampleFile(path, path.stem, "", Run(model_name=model), spec.model_id or model)


def _answers(file: SampleFile) -> Iterator[LoggedAnswer]:
    path, record = file.path, first_record(file.path)
    if [*islice(each_record(path), 1, 2)]:
        raise DataError(f"{path}: the result of OpenCompass must be one object, got a list of several.")
    if _is_prediction(record):
        if path.absolute().parent.parent.name == "results":
            raise DataError(
                f"{path}: holds predictions of OpenCompass, though it lies in results/, and no scores. Evaluate them "
                "(--mode eval --dump-eval-details), which writes the details of every item."
            )
        raise DataError(f"{path}: holds predictions of OpenCompass, and no scores. {SOURCES['opencompass'].hint}")
    details = record.get("details")
    if not _is_numbered(details):
        raise DataError(
            f"{path}: the result must hold details of every item, got averages only. Evaluate with --dump-eval-details."
        )
    entries = enumerate(details) if isinstance(details, list) else mapping(details).items()
    for number, entry in entries:
        if isinstance(entry, dict):  # beside the items is their type
            told = [entry.get(key) for key in QUESTION]
            content = content_digest(*told) if any(told) else None
            for attempt, metrics in enumerate(_metrics(entry)):
                yield LoggedAnswer(str(number), metrics, content, str(attempt))


def _metrics(entry: Record) -> list[dict[str, Any]]:
    """Whether each attempt of an entry is right; where it does not say, whatever numbers it holds.

    A value is in a list, of one attempt or of several (`n`). G-Pass@k beside several is a score of none of them.
    """
    name = next((key for key in RIGHT if key in entry), None)
    if name is not None:
        return [{RIGHT[0]: one} for one in (entry[name] if isinstance(entry[name], list) else [entry[name]])]
    values = {key: one[0] if isinstance(one, list) and len(one) == 1 else one for key, one in entry.items()}
    return [{key: one for key, one in values.items() if isinstance(one, bool | int | float) and key not in TEXTS}]


def _is_numbered(details: Any) -> bool:
    """Whether details hold entries of items."""
    if isinstance(details, list):
        return bool(details) and isinstance(details[0], dict)
    return isinstance(details, dict) and isinstance(details.get("0"), dict)


def _is_prediction(record: Record) -> bool:
    """Whether an object holds predictions: numbered entries with a prompt and a prediction."""
    return {"origin_prompt", "prediction"} <= mapping(record.get("0")).keys()
