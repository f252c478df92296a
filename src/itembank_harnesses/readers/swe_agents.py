"""What agents tell of their own runs at SWE-bench's instances: costs, calls, patches, and how a run ended.

mini-SWE-agent writes ``DIR/preds.json`` and ``DIR/<instance>/<instance>.traj.json``, OpenHands ``DIR/output.jsonl``.
None of them holds a verdict, which reports of SWE-bench have: `itembank_harnesses.readers.swe_bench` joins the two.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itembank.errors import DataError, DataWarning, first_few, shell_word, shown, warn
from itembank.files.documents import read_json
from itembank.readers.json_files import Record, each_record, mapping
from itembank.readers.reading_specs import COST_COLUMNS
from itembank.responses.prompts import entries_text
from itembank_harnesses.readers.trials import mean_cost

CALLS = "calls"
"""Unit: requests to the language model, which are mini-SWE-agent's steps."""
TRAJECTORY = ".traj.json"
OWN_END = re.compile(
    r"|none|submitted|\w*limitsexceeded|timeexceeded|repeatedformaterror|.*max\w*\W+iteration.*|.*stuck\W?in\W?loop.*",
    re.IGNORECASE | re.DOTALL,
)
"""How a run ends that did not break: the agent handed in, or came to a limit of its own. All else is an exception."""
MINI = "mini-swe-agent"
GRADE = {
    MINI: "python -m swebench.harness.run_evaluation --dataset_name DATASET --predictions_path {} --run_id NAME",
    "OpenHands": "swebench-eval {} --run-id NAME",
}
"""The command that judges an agent's patches, and writes the report."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of an agent at an instance."""

    costs: Mapping[str, Any]  # By unit; None where it is not told
    broke: str  # The exception that the run ended in; empty where it did not break
    is_empty: bool | None  # Whether there is no patch; None where that is not told


@dataclass(frozen=True, slots=True)
class AgentRun:
    """All runs of an agent with one language model in one folder."""

    file: Path  # What is to be graded
    agent: str
    version: str
    llm: str
    arguments: str
    attempts: Mapping[str, Attempt]  # By instance

    @property
    def about(self) -> dict[str, str | None]:
        """What the table of models tells of it."""
        version, arguments = self.version or None, self.arguments or None
        return {"agent": self.agent, "agent_version": version, "llm": self.llm or None, "agent_args": arguments}

    @property
    def identity(self) -> str:
        """Agent, version and arguments in one text: agents of one name that differ in it are different models."""
        return " ".join(filter(None, (self.agent, self.version, self.arguments)))

    @property
    def has_patches(self) -> bool:
        """Whether it tells which instances it left no patch for."""
        return any(one.is_empty is not None for one in self.attempts.values())

    def how_to_grade(self) -> str:
        """Say what makes the report that is missing."""
        return GRADE[self.agent].format(shell_word(self.file))


def is_predictions(record: Any) -> bool:
    """Whether a JSON document is ``preds.json``: a patch by instance."""
    return bool(mapping(record)) and all("model_patch" in mapping(one) for one in record.values())


def is_trajectory(record: Record) -> bool:
    """Whether an object is a run of mini-SWE-agent."""
    return str(record.get("trajectory_format")).startswith("mini-swe-agent")


def is_openhands(record: Record) -> bool:
    """Whether an object is a run of OpenHands."""
    return record.keys() >= {"instance_id", "test_result", "metrics"}


def agent_runs(predictions: Sequence[Path], trajectories: Sequence[Path], outputs: Sequence[Path]) -> list[AgentRun]:
    """Read what agents wrote; a warning names files that cannot be read, for no verdict hangs on them."""
    problems: list[str] = []
    runs = [*_mini_runs(predictions, trajectories, problems), *_openhands_runs(outputs, problems)]
    if problems:
        warn(f"costs are unknown where an agent's file cannot be read: {first_few(problems)}", DataWarning)
    return runs


def nearest(runs: Sequence[AgentRun], place: Path) -> list[AgentRun]:
    """Return the runs whose folder has most of its path in common with a place."""
    shared = [len(Path(os.path.commonpath([run.file.absolute().parent, place.absolute()])).parts) for run in runs]
    return [run for run, one in zip(runs, shared, strict=True) if one == max(shared)]


def costs_of(runs: Sequence[AgentRun], instance: str) -> dict[str, float]:
    """Return the mean cost of some runs at an instance, by unit, as far as it is told."""
    told = [run.attempts[instance].costs for run in runs if instance in run.attempts]
    means = {unit: mean_cost([one.get(unit) for one in told]) for unit in (*COST_COLUMNS, CALLS)}
    return {unit: value for unit, value in means.items() if value is not None}


def broke_on(runs: Sequence[AgentRun], instance: str) -> str:
    """Return the exception that all of some runs at an instance broke on, the first's; empty where one did not."""
    ends = [run.attempts[instance].broke for run in runs if instance in run.attempts]
    return ends[0] if ends and all(ends) else ""


def _mini_runs(predictions: Sequence[Path], trajectories: Sequence[Path], problems: list[str]) -> list[AgentRun]:
    """Read the folders of mini-SWE-agent, each by the names of its language models."""
    infos: dict[Path, dict[str, Record]] = {}
    patches: dict[Path, Record] = {path.parent: {} for path in predictions}
    for path in predictions:
        patches[path.parent] = mapping(_read(path, problems))
    for path in trajectories:
        content = mapping(_read(path, problems))
        name = path.name.removesuffix(TRAJECTORY)
        folder = path.parent.parent if path.parent.name == name else path.parent
        infos.setdefault(folder, {})[str(content.get("instance_id") or name)] = mapping(content.get("info"))
    runs = []
    for folder in {**patches, **infos}:
        own, told = patches.get(folder, {}), infos.get(folder, {})
        by_model: dict[str, list[str]] = {}
        for instance in sorted({*own, *told}):
            model = mapping(mapping(told.get(instance, {}).get("config")).get("model")).get("model_name")
            by_model.setdefault(str(mapping(own.get(instance)).get("model_name_or_path") or model or ""), []).append(
                instance
            )
        for model, instances in by_model.items():
            some = [told[one] for one in instances if one in told]
            agents = [mapping(mapping(one.get("config")).get("agent")) for one in some]
            runs.append(
                AgentRun(
                    *(folder / "preds.json", MINI, _versions(one.get("mini_version") for one in some)),
                    *(model, _versions(entries_text(_arguments(one)) for one in agents)),
                    {one: _mini_attempt(own.get(one), told.get(one, {})) for one in instances},
                )
            )
    return runs


def _mini_attempt(prediction: Any, info: Record) -> Attempt:
    """Read one run, of which the prediction or what the trajectory says may be missing."""
    stats, end = mapping(info.get("model_stats")), str(info.get("exit_status") or "")
    patch = prediction["model_patch"] if isinstance(prediction, dict) and "model_patch" in prediction else ...
    costs = {"cost_usd": stats.get("instance_cost"), CALLS: stats.get("api_calls")}
    return Attempt(costs, "" if OWN_END.fullmatch(end) else end, None if patch is ... else not patch)


def _openhands_runs(outputs: Sequence[Path], problems: list[str]) -> Iterator[AgentRun]:
    """Read the folders of OpenHands; beside ``output.jsonl`` other files tell of the same runs once more."""
    for path in outputs:
        if path.name != "output.jsonl" and path.with_name("output.jsonl") in outputs:
            continue
        attempts, models, versions, limits = {}, [], [], []
        try:
            for record in each_record(path):
                about, metrics = mapping(record.get("metadata")), mapping(record.get("metrics"))
                llm = mapping(about.get("llm")) or mapping(about.get("llm_config"))
                models.append(llm.get("model"))
                versions.append(about.get("openhands_sdk_version"))
                limit = about.get("max_iterations")
                limits.append(None if limit is None else f"max_iterations={limit}")
                usage = mapping(metrics.get("accumulated_token_usage"))
                told = str(record.get("error") or "")
                attempts[str(record.get("instance_id"))] = Attempt(
                    {
                        "cost_usd": metrics.get("accumulated_cost"),
                        "input_tokens": usage.get("prompt_tokens"),
                        "output_tokens": usage.get("completion_tokens"),
                    },
                    "" if OWN_END.fullmatch(told) else told,
                    not mapping(record.get("test_result")).get("git_patch"),
                )
        except DataError as error:
            problems.append(str(error))
        yield AgentRun(path, "OpenHands", _versions(versions), _versions(models), _versions(limits), attempts)


def _arguments(config: Record) -> Record:
    """Return settings of an agent, without the places of its files."""
    return {name: value for name, value in config.items() if not name.endswith("_path")}


def _versions(values: Any) -> str:
    """Join the different texts among these, None and the empty one left out."""
    found = [str(one) for one in values if one]
    return ", ".join(dict.fromkeys(found))


def _read(path: Path, problems: list[str]) -> Any:
    """Read a document; None where it cannot be read."""
    try:
        return read_json(path)
    except (DataError, OSError) as error:
        problems.append(str(error))
        return None


def name_agents(runs: Sequence[AgentRun]) -> str:
    """Say which agents these are, on which language models."""
    return shown([f"{run.agent}{f' on {run.llm}' if run.llm else ''} ({len(run.attempts)} instances)" for run in runs])
