"""AlpacaEval's annotations: how probable a judge holds it that a model's answer is better than the baseline's.

``results/<model>/<annotator>/annotations.json`` is a list of ``{instruction, dataset, generator_1, generator_2,
annotator, preference}``. Generator 2 is the model, and a preference of 2 (1) says that its answer is better (worse).
"""

import csv
import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from itembank.errors import DataError, DataWarning, shown, warn
from itembank.files.documents import read_document
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import own_files, read_each
from itembank.readers.json_files import Record, each_record
from itembank.readers.long_table import rows_of_records
from itembank.readers.reading_specs import ReadingSpec, how
from itembank.readers.refusals import RefusedError, WaysOut
from itembank.readers.rows import ResponseRows, joined_source
from itembank.tables import plural

JUDGE = "weighted_alpaca_eval_gpt4_turbo"
"""The judge of AlpacaEval 2.0, taken where there are annotations of several."""
FIELDS = {"instruction", "generator_1", "generator_2", "preference"}


def is_alpaca_eval(record: Any) -> bool:
    """Whether a record is an annotation of AlpacaEval."""
    return isinstance(record, dict) and record.keys() >= FIELDS


def alpaca_eval_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read annotations; the response is preference - 1, the item the instruction (its hash), whatever its place."""
    files, source = own_files(paths, "alpaca-eval", spec), joined_source(paths)
    judge, files = _of_one_judge(files, spec)
    parts = read_each(files, lambda file: list(_annotations(file, judge, spec)), progress, spec)
    found = [one for part in parts for one in part]
    if not found:
        raise DataError(f"{source}: must hold annotations of AlpacaEval (annotations.json), got none.")
    baselines = sorted({one.pop("baseline") for one in found})
    if len(baselines) > 1:
        raise DataError(
            f"{source}: all models must be compared with one baseline (generator_1), got {shown(baselines)}. Name the "
            "folders of one of them."
        )
    judges = sorted({one["judge"] for one in found})
    if len(judges) > 1:
        raise DataError(
            f"{source}: all models must be judged by one judge (annotator), got {shown(judges)}. To take one, add: "
            f"{how(metric=(judges[0],))}"
        )
    return rows_of_records(source, found, spec)


def _of_one_judge(files: Sequence[Path], spec: ReadingSpec) -> tuple[str | None, list[Path]]:
    """Return the judge that was asked for, else the usual one, and its files; None and all where there is neither."""
    judges = {file: file.parent.name for file in files}
    names = sorted(set(judges.values()))
    asked = [name for name in spec.metric if "=" not in name]
    wanted = next((name for name in asked or [JUDGE] if name in names), None)
    without = {file.parents[1] for file in files} - {file.parents[1] for file in files if judges[file] == wanted}
    if wanted is not None and without:
        left = shown(sorted(place.name for place in without))
        warn(
            f"{plural(len(without), 'model', 'have')} no annotations by the judge {wanted!r} and "
            f"{'is' if len(without) == 1 else 'are'} left out: {left}.",
            DataWarning,
        )
    elif wanted is not None and not asked and names != [wanted]:
        others, choose = shown([name for name in names if name != wanted]), how(metric=("NAME",))
        warn(f"taken by default: judge {wanted!r} (there are also {others}). Choose with {choose}.", DataWarning)
    if asked and wanted is None:
        usual = JUDGE if JUDGE in names else names[0]
        problem = f"no annotations are by the judge {shown(asked)}; there are {shown(names)}."
        raise RefusedError([problem], WaysOut(metrics=(usual,)), spec)
    return wanted, [file for file in files if wanted is None or judges[file] == wanted]


def _annotations(file: Path, judge: str | None, spec: ReadingSpec) -> Iterator[Record]:
    """Give the comparisons of a file; an item is told by its instruction, wherever that is."""
    for record in each_record(file):
        if not is_alpaca_eval(record):
            wanted = ", ".join(sorted(FIELDS))
            raise DataError(f"{file}: an annotation must have {wanted}, got {shown(list(record))}.")
        digest = hashlib.sha256(str(record["instruction"]).encode()).hexdigest()
        yield {
            "model_id": str(record["generator_2"]),
            "baseline": str(record["generator_1"]),
            "item_id": f"alpaca_eval/{digest[:16]}",
            "content_hash": digest,
            "response": _preference(file, record["preference"]),
            "judge": judge or str(record.get("annotator") or file.parent.name),
            "scenario": spec.scenario or "alpaca_eval",
            "subscenario": record.get("dataset"),
        }


def _preference(file: Path, value: Any) -> float | None:
    """Response of a preference: 0.5 for a tie, which old annotators wrote as 0; None where the judge gave none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if value == 0:
        return 0.5
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 2:
        raise DataError(f"{file}: preference must lie in [1, 2], or be 0 for a tie, got {value!r}.")
    return float(value) - 1.0


def alpaca_eval_published(folder: Path) -> Iterator[tuple[str, str | None, float]]:
    """Give the win rates of the leaderboard's table, in [0, 1]."""
    for path in sorted(folder.rglob(f"{JUDGE}_leaderboard.csv")):
        for row in csv.DictReader(read_document(path).splitlines()):
            name = row.get("") or row.get("name") or ""
            if name and row.get("win_rate"):
                yield name, "alpaca_eval", float(row["win_rate"]) / 100.0
