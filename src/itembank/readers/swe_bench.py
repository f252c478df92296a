"""Results of SWE-bench: the harness's reports and logs, and submissions in the layout of the experiments repository.

A report, ``<model>.<run_id>.json``, lists the ids of each outcome (``resolved_ids``, ``unresolved_ids``, ...; written
by ``swebench.harness.reporting.make_run_report``). Logs are ``run_evaluation/<run_id>/<model>/<instance>/report.json``,
of which a report is made once a run is over. A submission is a folder ``evaluation/<split>/<date>_<name>`` with
``results/results.json``: lists by outcome (``resolved``, ``no_generation``, ``no_logs``, and more in 2024). What agents
tell of their runs (`itembank.readers.swe_agents`) is joined to the verdicts.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from itembank.errors import DataError, DataWarning, did_you_mean, first_few, remedy, shown, warn
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import collect, files_below, read_each
from itembank.readers.indented import read_indented
from itembank.readers.json_files import first_record, mapping
from itembank.readers.long_table import rows_of_records
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.readers.refusals import refuse_or_leave_out
from itembank.readers.rows import ResponseRows, joined_source
from itembank.readers.swe_agents import (
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
from itembank.readers.trials import check_agents, tell_of_own_means
from itembank.responses.error_kinds import KINDS, error_kind, is_of_run
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
    "broke_off": "error",
}
"""Nobody knows whether the patch is right: the run or its grading broke off. The kind of error of each list, of several
the first; reports list failures of the infrastructure among the unresolved, too. The last is of no report: an agent's
run broke, and left no patch."""
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


IN_LOGS = ("report.json", "run_instance.log", "test_output.txt", "patch.diff", "eval.sh")
"""Files that the harness writes into the folder of an instance."""
SUBMITTED = "results/results.json"
NAMELESS = re.compile(r"OpenHands|output|report|swe-bench[-_].+/.+")
"""Reports whose names tell no model: OpenHands calls all of them so, and sb-cli names the data set and the run."""


Outcome: TypeAlias = tuple[float | None, str | None]
"""Response of an instance, or the kind of error in its place."""


@dataclass(frozen=True, slots=True)
class SweBenchRun:
    """One report or submission, or the logs of a run."""

    path: Path
    model_id: str  # `run_id` is empty for submissions, `split` for reports
    run_id: str
    split: str
    lists: Mapping[str, tuple[str, ...]]
    n_instances: int | None  # Of the whole data set, where it is told
    about: Mapping[str, Any] = field(default_factory=dict)  # For the model table
    reasons: Mapping[str, str] = field(default_factory=dict)  # Why the grading of an instance failed, where it is told
    agents: Sequence[AgentRun] = ()  # Whose patches were graded, where they tell of themselves
    is_logs: bool = False

    @property
    def place(self) -> Path:
        """Folder in which the harness was run, as far as the layout tells."""
        folder = self.path.absolute()
        return folder.parent.parent.parent.parent if self.is_logs and _is_run(folder) else folder.parent

    def ids(self, names: Sequence[str]) -> set[str]:
        """Instances in any of these lists."""
        return {one for name in names for one in self.lists.get(name, ())}


def is_swe_bench(record: Any) -> bool:
    """Whether a JSON document is a report of SWE-bench, a submission's results, a log, or what an agent wrote."""
    if not isinstance(record, dict):
        return False
    is_log = len(record) == 1 and all("patch_successfully_applied" in mapping(one) for one in record.values())
    return is_log or is_predictions(record) or is_trajectory(record) or is_openhands(record) or _is_report(record)


def _is_report(record: Any) -> bool:
    """Whether a JSON document lists instances by outcome."""
    if not isinstance(record, dict):
        return False
    is_report = "resolved_ids" in record and "results" not in record  # which Terminal-Bench has
    is_submission = isinstance(record.get("resolved"), list) and not record.keys() - set(LISTS)
    return is_report or is_submission


@dataclass(frozen=True, slots=True)
class _Files:
    """Files of SWE-bench and of agents, told apart."""

    reports: list[Path] = field(default_factory=list)  # And results of submissions
    logs: dict[Path, dict[str, Path]] = field(default_factory=dict)  # By folder of a model: folders by instance
    predictions: list[Path] = field(default_factory=list)
    trajectories: list[Path] = field(default_factory=list)
    outputs: list[Path] = field(default_factory=list)

    def add(self, path: Path, *, is_given: bool) -> None:
        """Add a file by its content; one that `is_given` must be of some use."""
        try:
            record = first_record(path) if path.suffix == ".jsonl" else {}
            if path.suffix == ".json" and not path.name.endswith(TRAJECTORY):
                record = mapping(read_json(path))
        except (DataError, OSError):
            if is_given and not self._in_logs(path):
                raise
            record = {}
        folder = path.absolute().parent
        if path.name.endswith(TRAJECTORY):
            self.trajectories.append(path)
        elif self._in_logs(path) or (path.name == "report.json" and folder.name in record and is_swe_bench(record)):
            self.logs.setdefault(folder.parent, {})[folder.name] = folder
        elif path.suffix == ".jsonl" and is_openhands(record):
            self.outputs.append(path)
        elif is_predictions(record):
            self.predictions.append(path)
        elif _is_report(record) or is_given:
            self.reports.append(path)  # which is refused if it is none

    @staticmethod
    def _in_logs(path: Path) -> bool:
        return path.name in IN_LOGS and _is_run(path.absolute().parent.parent)


def _is_run(folder: Path) -> bool:
    """Whether a folder is that of a model in the logs of a run."""
    return folder.parent.parent.name == "run_evaluation"


def _files(paths: Sequence[Path], spec: ReadingSpec) -> _Files:
    """Tell apart what is below these folders, and these files."""
    found = _Files()
    for path in paths:
        files = [*files_below(path, spec)] if path.is_dir() else [path]
        submissions = [file for file in files if file.match(SUBMITTED)] if path.is_dir() else []
        n_before = len(found.reports)
        for file in files:
            found.add(file, is_given=not path.is_dir())
        if submissions:  # whose repository has reports of other kinds, too
            found.reports[n_before:] = submissions
    for model, instances in found.logs.items():  # instances that left no report
        for folder in sorted(model.iterdir()):
            is_log = folder.is_dir() and (_is_run(model) or any((folder / name).is_file() for name in IN_LOGS))
            if is_log and not folder.name.startswith(".") and not spec.leaves_out(folder):
                instances[folder.name] = folder
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
    agents = agent_runs(files.predictions, files.trajectories, files.outputs)
    logs = [_run_of_logs(folder, instances) for folder, instances in files.logs.items()]
    runs = read_each(files.reports, partial(_run, logs=logs), progress, spec)
    runs = _joined([*runs, *_only_logs(runs, logs)], agents)
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
    known = _all_instances(runs, item_ids)
    found, problems = collect(runs, lambda run: (run, _outcomes(run, known)), silent, name=lambda run: run.model_id)
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
    model, run_id = folder.name, folder.parent.name if _is_run(folder) else ""
    model = folder.parent.name if model == "logs" else model  # of a submission
    named = {name: tuple(some) for name, some in lists.items()}
    return SweBenchRun(folder, model.replace("__", "/"), run_id, "", named, None, reasons=reasons, is_logs=True)


def _only_logs(runs: Sequence[SweBenchRun], logs: Sequence[SweBenchRun]) -> list[SweBenchRun]:
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


def _run(path: Path, logs: Sequence[SweBenchRun]) -> SweBenchRun:
    """Read a report or submission; of a report whose logs are there these tell model and run apart."""
    content = read_json(path)
    if not _is_report(content):
        raise DataError(
            f"{path}: must be a report of SWE-bench or a submission's results.json, with a list resolved_ids or "
            "resolved; got neither."
        )
    lists = {name: tuple(map(str, content[name])) for name in LISTS if isinstance(content.get(name), list)}
    total = content.get("total_instances")
    n_instances = total if isinstance(total, int) else None
    if "resolved_ids" in content:
        name = name_without_ending(path)
        named = (one for one in logs if name == f"{one.path.name}.{one.run_id}")
        model_id, run_id = next(((one.model_id, one.run_id) for one in named), None) or _model_and_run(name)
        reasons = {str(one): str(reason) for one, reason in mapping(content.get("failure_reasons")).items()}
        return SweBenchRun(path, model_id, run_id, "", lists, n_instances, reasons=reasons)
    folder = path.absolute().parent.parent if path.parent.name == "results" else path.absolute().parent
    split = folder.parent.name if folder.parent.parent.name == "evaluation" else ""
    dated = SUBMISSION.fullmatch(folder.name)
    date = f"{dated['date'][:4]}-{dated['date'][4:6]}-{dated['date'][6:]}" if dated else None
    about = {"date": date, **_metadata(folder / "metadata.yaml")}
    return SweBenchRun(path, folder.name, "", split, lists, SPLIT_SIZES.get(split), about)


def _model_and_run(name: str) -> tuple[str, str]:
    """Return the model and the run id of ``<model>.<run_id>``; the dot of a version, as in gpt-4.1, parts nothing."""
    if name == "output.report":
        return "OpenHands", ""
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


def _outcomes(run: SweBenchRun, known: set[str] | None) -> dict[str, Outcome]:
    """Response of each instance that was run, or the kind of error in its place."""
    resolved, wrong = run.ids(RESOLVED), run.ids(WRONG)
    # those submitted that no list has failed, too
    failed = dict.fromkeys(run.ids(("submitted_ids",)) - run.ids((*RESOLVED, *WRONG, *NOT_RUN)), "error")
    for name, kind in reversed(FAILED.items()):
        failed |= dict.fromkeys(run.ids((name,)), kind)
    failed = {one: reason if is_of_run(reason := run.reasons.get(one, "")) else kind for one, kind in failed.items()}
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
