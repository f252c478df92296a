"""`SweBenchRun`: what one report, submission or log of SWE-bench says of each instance, as lists by outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from itembank.errors import DataError, did_you_mean, remedy, shown
from itembank.responses.error_kinds import is_of_run
from itembank_harnesses.readers.swe_agents import AgentRun

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
Outcome: TypeAlias = tuple[float | None, str | None]
"""Response of an instance, or the kind of error in its place."""


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a model in the logs of a run."""
    return folder.parent.parent.name == "run_evaluation"


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
        return folder.parent.parent.parent.parent if self.is_logs and is_run(folder) else folder.parent

    def ids(self, names: Sequence[str]) -> set[str]:
        """Instances in any of these lists."""
        return {one for name in names for one in self.lists.get(name, ())}


def all_instances(runs: Sequence[SweBenchRun], item_ids: Sequence[str] | None) -> set[str] | None:
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


def outcomes_of(run: SweBenchRun, known: set[str] | None) -> dict[str, Outcome]:
    """Response of each instance that was run, or the kind of error in its place."""
    resolved, wrong = run.ids(RESOLVED), run.ids(WRONG)
    submitted = run.ids(("submitted_ids",))
    if run.n_instances is not None and len(submitted) > run.n_instances:
        submitted = set()  # predictions of all instances, some of which were graded (--instance_ids)
    # those submitted that no list has failed, too
    failed = dict.fromkeys(submitted - run.ids((*RESOLVED, *WRONG, *NOT_RUN)), "error")
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
