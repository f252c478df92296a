"""Results of SWE-bench: the harness's reports and logs, submissions, and what agents tell of their own runs, joined.

A report is made of the logs once a run is over, and counts before them. What agents tell
(`itembank_harnesses.readers.swe_agents`) is joined to the verdicts.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from itembank.errors import DataError, DataWarning, shown, warn
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import collect, files_below, read_each
from itembank.readers.json_files import first_record, mapping
from itembank.readers.long_table import rows_of_records
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.readers.refusals import refuse_or_leave_out
from itembank.readers.rows import ResponseRows, joined_source
from itembank.responses.error_kinds import KINDS, error_kind
from itembank_harnesses.readers.swe_agents import (
    CALLS,
    MINI,
    TRAJECTORY,
    AgentRun,
    agent_runs,
    broke_on,
    costs_of,
    is_openhands,
    is_predictions,
    is_trajectory,
    name_agents,
    nearest,
)
from itembank_harnesses.readers.swe_bench_logs import in_logs, is_log, only_logs, runs_of_logs
from itembank_harnesses.readers.swe_bench_reports import is_report, run_of_report
from itembank_harnesses.readers.swe_bench_runs import LISTS, Outcome, SweBenchRun, all_instances, outcomes_of
from itembank_harnesses.readers.trials import check_agents, tell_of_own_means

INSTANCE = re.compile(r"(?P<owner>.+?)__(?P<name>.+)-\d+")
"""An instance, such as django__django-11099, is of a repository: django/django."""


SUBMITTED = "results/results.json"
NAMELESS = re.compile(r"OpenHands|output|report|swe-bench[-_].+/.+")
"""Reports whose names tell no model: OpenHands calls all of them so, and sb-cli names the data set and the run."""


def is_swe_bench(record: Any) -> bool:
    """Whether a JSON document is a report of SWE-bench, a submission's results, a log, or what an agent wrote."""
    if not isinstance(record, dict):
        return False
    tests = (is_log, is_report, is_predictions, is_trajectory, is_openhands)
    return any(is_own(record) for is_own in tests)


def _kind_of(path: Path, *, is_given: bool) -> str | None:
    """Tell what a file is by its name and content; None where it is nothing, unless it was given: a bad report."""
    if path.name.endswith(TRAJECTORY):
        return "trajectory"
    try:
        record = first_record(path) if path.suffix == ".jsonl" else {}
        record = mapping(read_json(path)) if path.suffix == ".json" else record
    except (DataError, OSError):
        if is_given and not in_logs(path):
            raise
        record = {}
    if in_logs(path) or (path.name == "report.json" and path.absolute().parent.name in record and is_log(record)):
        return "log"
    if path.suffix == ".jsonl" and is_openhands(record):
        return "output"
    if is_predictions(record):
        return "predictions"
    return "report" if is_report(record) or is_given else None


def _files(paths: Sequence[Path], spec: ReadingSpec) -> dict[str, list[Path]]:
    """Tell apart what is below these folders, and these files: by the kind of `_kind_of`."""
    found: dict[str, list[Path]] = {kind: [] for kind in ("report", "log", "predictions", "trajectory", "output")}
    for path in paths:
        files = [*files_below(path, spec)] if path.is_dir() else [path]
        submissions = [file for file in files if file.match(SUBMITTED)] if path.is_dir() else []
        n_before = len(found["report"])
        for file in files:
            if kind := _kind_of(file, is_given=not path.is_dir()):
                found[kind].append(file)
        if submissions:  # whose repository has reports of other kinds, too
            found["report"][n_before:] = submissions
    return found


def swe_bench_rows(
    paths: Sequence[Path],
    spec: ReadingSpec,
    *,
    item_ids: Sequence[str] | None = None,
    progress: ProgressCallback = silent,
) -> ResponseRows:
    """Read reports, logs and submissions, with what agents tell of their runs.

    An instance that is in no list of a run counts as wrong where all instances of the data set are known: they were
    given, or the lists of all runs together hold as many as the runs (or the split) say there are.

    An instance whose grading failed is a lost answer; `item_ids` are all instances of the data set.
    """
    files, source = _files(paths, spec), joined_source(paths)
    agents = agent_runs(files["predictions"], files["trajectory"], files["output"])
    logs = runs_of_logs(files["log"], spec)
    runs = read_each(files["report"], partial(run_of_report, logs=logs), progress, spec)
    runs = _joined([*runs, *only_logs(runs, logs)], agents)
    if not runs and agents:
        raise DataError(
            f"{source}: holds runs of {name_agents(agents)} and no verdict on them: SWE-bench's report must be there, "
            f"too. To make it: {agents[0].how_to_grade()}"
        )
    if not runs:
        raise DataError(
            f"{source}: must hold reports of SWE-bench (<model>.<run_id>.json), logs (run_evaluation/<run_id>/<model>/"
            "<instance>/report.json) or submissions (<date>_<name>/results/results.json), got neither."
        )
    check_agents([(run.model_id, one.identity, one.file.parent) for run in runs for one in run.agents])
    known = all_instances(runs, item_ids)
    found, problems = collect(runs, lambda run: (run, outcomes_of(run, known)), silent, name=lambda run: run.model_id)
    refuse_or_leave_out(problems, spec, has_rest=bool(found))
    runs = [run for run, _ in found]
    repeated = len({run.model_id for run in runs}) < len(runs)
    costs = [costs_of(run.agents, one) for run, outcomes in found for one in outcomes]
    units = {unit for one in costs for unit in one}
    rows: list[dict[str, Any]] = [
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
    for row, told in zip(rows, costs, strict=True):
        row.update({unit: told.get(unit) for unit in COST_COLUMNS if unit in units})
    _tell_of_rates(found, spec)
    table = rows_of_records(source, rows, spec, models=[{"model_id": run.model_id, **run.about} for run in runs])
    if CALLS not in units:
        return table
    calls = [one.get(CALLS, math.nan) for one in costs]
    return replace(table, frame=table.frame.with_columns(pl.Series(CALLS, calls, dtype=pl.Float64)))


def _joined(runs: Sequence[SweBenchRun], agents: Sequence[AgentRun]) -> list[SweBenchRun]:
    """Join runs with what the nearest agents of their model tell; a run that names no model gets that of its agent."""
    by_name: dict[str, list[AgentRun]] = {}
    for one in agents:
        by_name.setdefault(one.llm.replace("__", "/"), []).append(one)
    names = {run.model_id for run in runs}
    free = [one for name, some in by_name.items() if name not in names for one in some]
    joined = []
    for run in runs:
        own = nearest(by_name.get(run.model_id) or (free if NAMELESS.fullmatch(run.model_id) else []), run.place)
        is_told = run.model_id in by_name or len(own) == 1
        joined.append(_with_agents(run, own) if own and is_told else run)
    alone = [run.model_id for run in joined if run.is_logs and not any(one.has_patches for one in run.agents)]
    if alone:
        warn(
            "logs tell nothing of empty patches, which are wrong and leave no log, and rates are too high without: "
            f"{shown(alone)}. Give SWE-bench's report, or the predictions (preds.json), as well.",
            DataWarning,
        )
    used = {id(one) for run in joined for one in run.agents}
    unused = [one for one in agents if id(one) not in used]
    if unused and runs:
        warn(
            f"there is no verdict on the runs of {name_agents(unused)}, whose costs are not read; reports are of "
            f"{shown(sorted(names))}. To make a report: {unused[0].how_to_grade()}",
            DataWarning,
        )
    return joined


def _with_agents(run: SweBenchRun, agents: Sequence[AgentRun]) -> SweBenchRun:
    """Add what agents tell: costs, who they are, which runs broke and left no patch; to logs, what was not graded."""
    lists, first = dict(run.lists), agents[0]
    if run.is_logs and len(agents) == 1:
        rest = {name: one for name, one in first.attempts.items() if name not in run.ids(LISTS)}
        for name in ("empty_patch_ids", "error_ids"):
            told = [one for one in rest if rest[one].is_empty is (name == "empty_patch_ids")]
            lists[name] = (*lists.get(name, ()), *told)
            lists["submitted_ids"] = (*lists["submitted_ids"], *told)
    silent = {name for key in ("empty_patch_ids", "error_ids") for name in lists.get(key, ())}
    broke = {name: end for name in silent if (end := broke_on(agents, name))}
    model = run.model_id
    if NAMELESS.fullmatch(model) and first.llm:
        model = first.llm if first.agent == MINI else f"{first.agent}+{first.llm}"
    return replace(
        run,
        model_id=model,
        lists={**lists, "broke_off": tuple(broke)},
        about={**run.about, **first.about},
        reasons={**broke, **run.reasons},
        agents=agents,
    )


def _tell_of_rates(found: Sequence[tuple[SweBenchRun, Mapping[str, Outcome]]], spec: ReadingSpec) -> None:
    """Name SWE-bench's own rates beside ours where lost answers make them differ."""
    rates, kinds = [], Counter[str]()
    for run, outcomes in found:
        known = [value for value, _ in outcomes.values() if value is not None]
        kinds.update(KINDS[error_kind(error)] for _, error in outcomes.values() if error)
        if 0 < len(known) < len(outcomes):
            rates.append((run.model_id, sum(known) / len(outcomes), sum(known) / len(known)))
    tell_of_own_means("instances", "SWE-bench's rate counts", kinds, rates, spec)


def swe_bench_published(folder: Path) -> Iterator[tuple[str, str | None, float]]:
    """Give the scores that ``leaderboards.json`` of the project's web site tells, in [0, 1], by submission folder."""
    for path in sorted(folder.rglob("leaderboards.json")):
        boards = read_json(path)
        for board in boards.get("leaderboards", []) if isinstance(boards, dict) else []:
            scenario = f"swe-bench-{str(board.get('name', '')).lower()}"
            for one in board.get("results", []):
                if isinstance(one.get("resolved"), int | float) and one.get("folder"):
                    yield str(one["folder"]), scenario, float(one["resolved"]) / 100.0
