"""Logs of SWE-bench's harness, ``run_evaluation/<run_id>/<model>/<instance>/report.json``, made before its report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from itembank.errors import DataError, DataWarning, first_few, shown, warn
from itembank.files.documents import read_json
from itembank.readers.json_files import mapping
from itembank.readers.reading_specs import ReadingSpec
from itembank_harnesses.readers.swe_bench_runs import RESOLVED, SweBenchRun, is_run

IN_LOGS = ("report.json", "run_instance.log", "test_output.txt", "patch.diff", "eval.sh")
"""Files that the harness writes into the folder of an instance."""


def in_logs(path: Path) -> bool:
    """Whether a file is one that the harness writes into the folder of an instance."""
    return path.name in IN_LOGS and is_run(path.absolute().parent.parent)


def is_log(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is the log of an instance."""
    return len(record) == 1 and all("patch_successfully_applied" in mapping(one) for one in record.values())


def runs_of_logs(files: Sequence[Path], spec: ReadingSpec) -> list[SweBenchRun]:
    """Read the runs that these files of logs are of."""
    known: dict[Path, dict[str, Path]] = {}
    for folder in (file.absolute().parent for file in files):
        known.setdefault(folder.parent, {})[folder.name] = folder
    return [_run_of_logs(model, _instances_of(model, own, spec)) for model, own in known.items()]


def _instances_of(model: Path, known: Mapping[str, Path], spec: ReadingSpec) -> dict[str, Path]:
    """Return the folders of a model's instances, by their names: those known, and others, which left no report."""
    found = dict(known)
    for folder in sorted(model.iterdir()):
        is_log = folder.is_dir() and (is_run(model) or any((folder / name).is_file() for name in IN_LOGS))
        if is_log and not folder.name.startswith(".") and not spec.leaves_out(folder):
            found[folder.name] = folder
    return found


def _run_of_logs(folder: Path, instances: Mapping[str, Path]) -> SweBenchRun:
    """Read the logs of a run: an instance without a report that can be read was not graded, as for the harness."""
    lists: dict[str, list[str]] = {}
    reasons = {}
    for name, place in instances.items():
        try:
            told = mapping(mapping(read_json(place / "report.json")).get(name))
        except (DataError, OSError):
            told = {}
        outcome = "error_ids"
        if told.get("patch_is_None") is True:
            outcome = "empty_patch_ids"
        elif isinstance(told.get("resolved"), bool):
            outcome = "resolved_ids" if told["resolved"] else "unresolved_ids"
        lists.setdefault(outcome, []).append(name)
        reason = told.get("infra_failure_reason")
        if outcome == "unresolved_ids" and (reason or told.get("infra_failure") is True):
            kind = "infra_failure_ids" if told.get("infra_failure") is True else "ambiguous_failure_ids"
            lists.setdefault(kind, []).append(name)
            reasons[name] = str(reason or "")
    lists["submitted_ids"] = list(instances)
    model, run_id = folder.name, folder.parent.name if is_run(folder) else ""
    model = folder.parent.name if model == "logs" else model  # of a submission
    named = {name: tuple(some) for name, some in lists.items()}
    return SweBenchRun(folder, model.replace("__", "/"), run_id, "", named, None, reasons=reasons, is_logs=True)


def only_logs(runs: Sequence[SweBenchRun], logs: Sequence[SweBenchRun]) -> list[SweBenchRun]:
    """Return the logs of which there is no report; a warning names reports that say otherwise than their logs."""
    rest, unlike = [], []
    for log in logs:
        of_same = (run for run in runs if run.model_id == log.model_id)
        report = next((run for run in of_same if run.run_id == log.run_id or _is_moved(run, log)), None)
        if report is None:
            rest.append(log)
            continue
        judged = log.ids((*RESOLVED, "unresolved_ids"))
        differing = log.ids(RESOLVED) ^ (report.ids(RESOLVED) & judged)
        if differing:
            unlike.append(f"{report.path} on {len(differing)} instances ({shown(sorted(differing))})")
    if unlike:
        warn(f"reports count, and say otherwise than the logs of the same run: {first_few(unlike)}.", DataWarning)
    return rest


def _is_moved(report: SweBenchRun, log: SweBenchRun) -> bool:
    """Whether a report that tells no run was made where the run was."""
    return not report.run_id and report.place == log.place
