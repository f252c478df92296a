"""Results of SWE-bench: the harness's reports, and submissions in the layout of the experiments repository.

A report, ``<model>.<run_id>.json``, lists the ids of each outcome (``resolved_ids``, ``unresolved_ids``, ...; written
by ``swebench.harness.reporting.make_run_report``). A submission is a folder ``evaluation/<split>/<date>_<name>`` with
``results/results.json``: lists by outcome (``resolved``, ``no_generation``, ``no_logs``, and more in 2024).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from itembank.errors import DataError, did_you_mean, remedy, shown
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import collect, files_below, read_each
from itembank.readers.indented import read_indented
from itembank.readers.json_files import mapping
from itembank.readers.long_table import rows_of_records
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import refuse_or_leave_out
from itembank.readers.rows import ResponseRows, joined_source
from itembank.readers.sources import SOURCES
from itembank.responses.opening import name_without_ending

RESOLVED = ("resolved_ids", "resolved")
WRONG = ("unresolved_ids", "empty_patch_ids", "no_generation", "no_apply")
"""No patch, one that cannot be applied, and one that does not resolve the issue."""
FAILED = {
    "infra_failure_ids": "harness",
    "ambiguous_failure_ids": "error",
    "error_ids": "error",
    "no_logs": "harness",
    "install_fail": "harness",
    "reset_failed": "harness",
    "test_errored": "harness",
    "test_timeout": "time-out",
}
"""Nobody knows whether the patch is right: the run or its grading broke off. The kind of error of each list, of several
the first; reports list failures of the infrastructure among the unresolved, too."""
NOT_RUN = ("incomplete_ids",)
OTHERS = ("submitted_ids", "completed_ids", "generated", "with_logs", "applied")
"""Lists of ids that say nothing of the outcome."""
LISTS = (*RESOLVED, *WRONG, *FAILED, *NOT_RUN, *OTHERS)
SPLIT_SIZES = {"verified": 500, "lite": 300, "test": 2294}
"""Instances of the splits of SWE-bench (Jimenez et al., 2024; OpenAI, 2024)."""
SUBMISSION = re.compile(r"(?P<date>20\d{6})_.+")
VERSION = re.compile(r"\d\.\d{1,2}(?!\d)")
"""A dot within a version: the date or number of a run has more digits."""
INSTANCE = re.compile(r"(?P<owner>.+?)__(?P<name>.+)-\d+")
"""An instance, such as django__django-11099, is of a repository: django/django."""


@dataclass(frozen=True, slots=True)
class SweBenchRun:
    """One report or submission."""

    path: Path
    model_id: str  # `run_id` is empty for submissions, `split` for reports
    run_id: str
    split: str
    lists: Mapping[str, tuple[str, ...]]
    n_instances: int | None  # Of the whole data set, where it is told
    about: Mapping[str, Any] = field(default_factory=dict)  # For the model table

    def ids(self, names: Sequence[str]) -> set[str]:
        """Instances in any of these lists."""
        return {one for name in names for one in self.lists.get(name, ())}


def is_swe_bench(record: Any) -> bool:
    """Whether a JSON document is a report of SWE-bench or a submission's results."""
    if not isinstance(record, dict):
        return False
    is_report = "resolved_ids" in record and "results" not in record  # which Terminal-Bench has
    is_submission = isinstance(record.get("resolved"), list) and not record.keys() - set(LISTS)
    return is_report or is_submission


def find_swe_bench(path: Path, spec: ReadingSpec) -> list[Path]:
    """Return the results below a folder: those of submissions, else every report; a file is what it is."""
    if not path.is_dir():
        return [path]
    files = [one for one in files_below(path, spec) if one.suffix == ".json"]
    return [one for one in files if SOURCES["swe-bench"].holds(one)] or [one for one in files if _is_report(one)]


def _is_report(path: Path) -> bool:
    """Whether a file below a folder is a report; folders hold other JSON, too."""
    try:
        return is_swe_bench(read_json(path))
    except (DataError, OSError):
        return False


def swe_bench_rows(
    paths: Sequence[Path],
    spec: ReadingSpec,
    *,
    item_ids: Sequence[str] | None = None,
    progress: ProgressCallback = silent,
) -> ResponseRows:
    """Read reports and submissions.

    An instance that is in no list of a run counts as wrong where all instances of the data set are known: they were
    given, or the lists of all runs together hold as many as the runs (or the split) say there are.

    An instance whose grading failed is a lost answer; `item_ids` are all instances of the data set.
    """
    files = [file for path in paths for file in find_swe_bench(path, spec)]
    source = joined_source(paths)
    if not files:
        raise DataError(
            f"{source}: must hold reports of SWE-bench (<model>.<run_id>.json) or submissions "
            "(<date>_<name>/results/results.json), got neither."
        )
    runs = read_each(files, _run, progress, spec)
    known = _all_instances(runs, item_ids)
    found, problems = collect(runs, lambda run: (run, _outcomes(run, known)), silent, name=lambda run: run.model_id)
    refuse_or_leave_out(problems, spec, has_rest=bool(found))
    runs = [run for run, _ in found]
    repeated = len({run.model_id for run in runs}) < len(runs)
    rows = [
        {
            "model_id": run.model_id,
            "item_id": one,
            "response": value,
            "error": error,
            "scenario": spec.scenario or "-".join(filter(None, ("swe-bench", run.split))),
            "subscenario": INSTANCE.sub(r"\g<owner>/\g<name>", one) if INSTANCE.fullmatch(one) else None,
            **({"seed": run.run_id} if repeated else {}),
        }
        for run, outcomes in found
        for one, (value, error) in outcomes.items()
    ]
    if not rows:
        raise DataError(f"{source}: must hold an instance that was graded, got none.")
    return rows_of_records(source, rows, spec, models=[{"model_id": run.model_id, **run.about} for run in runs])


def _run(path: Path) -> SweBenchRun:
    content = read_json(path)
    if not is_swe_bench(content):
        raise DataError(
            f"{path}: must be a report of SWE-bench or a submission's results.json, with a list resolved_ids or "
            "resolved; got neither."
        )
    lists = {name: tuple(map(str, content[name])) for name in LISTS if isinstance(content.get(name), list)}
    total = content.get("total_instances")
    n_instances = total if isinstance(total, int) else None
    if "resolved_ids" in content:
        model_id, run_id = _model_and_run(name_without_ending(path))
        return SweBenchRun(path, model_id, run_id, "", lists, n_instances)
    folder = path.absolute().parent.parent if path.parent.name == "results" else path.absolute().parent
    split = folder.parent.name if folder.parent.parent.name == "evaluation" else ""
    dated = SUBMISSION.fullmatch(folder.name)
    date = f"{dated['date'][:4]}-{dated['date'][4:6]}-{dated['date'][6:]}" if dated else None
    about = {"date": date, **_metadata(folder / "metadata.yaml")}
    return SweBenchRun(path, folder.name, "", split, lists, SPLIT_SIZES.get(split), about)


def _model_and_run(name: str) -> tuple[str, str]:
    """Return the model and the run id of ``<model>.<run_id>``; the dot of a version, as in gpt-4.1, parts nothing."""
    model, _, run_id = name.rpartition(".")
    if not model or VERSION.match(name, len(model) - 1):
        return name.replace("__", "/"), ""
    return model.replace("__", "/"), run_id


def _metadata(path: Path) -> dict[str, Any]:
    """Return what a submission says of itself: its name, language model, organisation, number of attempts."""
    if not path.is_file():
        return {}
    content = read_indented(path)
    info, tags = mapping(content.get("info")), mapping(content.get("tags"))
    found = {
        "name": info.get("name") or content.get("name"),
        "llm": tags.get("model"),
        "organisation": tags.get("org"),
        "attempts": mapping(tags.get("system")).get("attempts"),
    }
    return {name: ", ".join(value) if isinstance(value, list) else str(value) for name, value in found.items() if value}


def _all_instances(runs: Sequence[SweBenchRun], item_ids: Sequence[str] | None) -> set[str] | None:
    """Return all instances of the data set, None when they cannot be known; runs have no others than `item_ids`."""
    if item_ids is not None:
        known = set(item_ids)
        for run in runs:
            unknown = sorted(run.ids(LISTS) - known)
            if unknown:
                raise DataError(
                    f"{run.path}: every instance must be in the table of items, got {len(unknown)} that are not: "
                    f"{shown(unknown)}.{did_you_mean(unknown, known)} Give the instances of the same data set and "
                    "split."
                )
        return known
    listed = {one for run in runs for one in run.ids(LISTS)}
    sizes = {run.n_instances for run in runs}
    return listed if sizes == {len(listed)} else None


def _outcomes(run: SweBenchRun, known: set[str] | None) -> dict[str, tuple[float | None, str | None]]:
    """Response of each instance that was run, or the kind of error in its place."""
    resolved, wrong = run.ids(RESOLVED), run.ids(WRONG)
    # those submitted that no list has failed, too
    failed = dict.fromkeys(run.ids(("submitted_ids",)) - run.ids((*RESOLVED, *WRONG, *NOT_RUN)), "error")
    for name, kind in reversed(FAILED.items()):
        failed |= dict.fromkeys(run.ids((name,)), kind)
    twice = sorted(resolved & (wrong | set(failed)))
    if twice:
        raise DataError(
            f"{run.path}: an instance must have one outcome, got {len(twice)} that are resolved and in another list "
            f"as well: {shown(twice)}."
        )
    if known is None and not ("submitted_ids" in run.lists or "unresolved_ids" in run.lists):
        size = f" of {run.n_instances}" if run.n_instances else ""
        table = remedy("items='instances.csv'", "--items instances.csv")
        raise DataError(
            f"{run.path}: lists the resolved instances only ({len(run.ids(RESOLVED))}{size}), so those that it did not "
            f"resolve must be known from elsewhere. Give a table of all instances of the data set (column item_id): "
            f"{table}; or read it together with runs that list them all."
        )
    if known is not None and "submitted_ids" not in run.lists:  # what was not submitted was not run
        wrong |= known - resolved - set(failed) - run.ids(NOT_RUN)
    others = {one: (None, failed[one]) if one in failed else (0.0, None) for one in sorted(wrong | set(failed))}
    return {**dict.fromkeys(sorted(resolved), (1.0, None)), **others}


def swe_bench_published(folder: Path) -> Iterator[tuple[str, str | None, float]]:
    """Give the scores that ``leaderboards.json`` of the project's web site tells, in [0, 1], by submission folder."""
    for path in sorted(folder.rglob("leaderboards.json")):
        boards = read_json(path)
        for board in boards.get("leaderboards", []) if isinstance(boards, dict) else []:
            scenario = f"swe-bench-{str(board.get('name', '')).lower()}"
            for one in board.get("results", []):
                if isinstance(one.get("resolved"), int | float) and one.get("folder"):
                    yield str(one["folder"]), scenario, float(one["resolved"]) / 100.0
