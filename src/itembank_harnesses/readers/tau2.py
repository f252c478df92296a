"""Results of tau2-bench: a file with all simulations, or ``results.json`` with an index of them.

A model is the language model of the agent, an item a task of a domain. Simulations that ended in an error of the
infrastructure are lost answers, as tau2's own metrics leave them out; all other ends count, with the reward there is.
The simulated user is a part of the benchmark: results with another one are not comparable.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from itembank.errors import DataError
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record, mapping
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows, content_digest
from itembank.responses.prompts import entries_text
from itembank_harnesses.readers.trials import Agent, Trial, item_of, name_of, reward_of, rows_of_agents, rows_of_trials

LOST = "infrastructure_error"
"""The end of a simulation that says nothing of the agent."""
USUAL_AGENT = "llm_agent"
"""tau2's own agent, which the language model alone names."""
SIMULATIONS, INDEX = "simulations", "simulation_index"


def is_tau2(record: Record) -> bool:
    """Whether an object is a file of results of tau2-bench."""
    return "agent_info" in mapping(record.get("info")) and (SIMULATIONS in record or INDEX in record)


def tau2_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read results: a model and domain a file, whose trials are counted."""
    return rows_of_agents("tau2", paths, lambda path: _rows(path, spec), spec, progress)


def _rows(path: Path, spec: ReadingSpec) -> tuple[Agent, ResponseRows]:
    """Read a file: its agent, and its rows."""
    content = read_json(path)
    if not isinstance(content, dict) or not is_tau2(content):
        raise DataError(f"{path}: must be results of tau2-bench (info, simulations), got something else.")
    with laid_out(path, "results of tau2-bench"):
        info = content["info"]
        told, user = info["agent_info"], mapping(info.get("user_info"))
        domain = str(mapping(info.get("environment_info"))["domain_name"])
        kind, llm = str(told.get("implementation") or USUAL_AGENT), name_of(told["llm"], "model")
        model = spec.model_id or (llm if kind == USUAL_AGENT else f"{kind}+{llm}")
        about = {
            "model_id": model,
            "agent": kind,
            "llm": llm,
            "agent_args": entries_text(mapping(told.get("llm_args"))) or None,
        }
        tasks = {str(one["id"]): content_digest(one) for one in map(mapping, content.get("tasks") or []) if "id" in one}
        simulations = content[SIMULATIONS] if SIMULATIONS in content else content[INDEX]
        trials = [_trial(one, domain, tasks.get(str(one["task_id"]))) for one in simulations]
        settings = {"user": user.get("llm"), "task_args": _limits(info)}
    if not trials:
        raise DataError(f"{path}: there must be a simulation, got none.")
    return (model, about["agent_args"], path), rows_of_trials(str(path), about, domain, trials, spec, settings=settings)


def _trial(simulation: Record, domain: str, content: str | None) -> Trial:
    """Read a simulation, as the whole file or the index of a folder has it."""
    told = simulation["reward"] if "reward" in simulation else mapping(simulation.get("reward_info")).get("reward")
    end = str(simulation.get("termination_reason") or "")
    reward = None if end == LOST else reward_of(told)
    return Trial(
        item_id=item_of(domain, simulation["task_id"]),
        reward=reward,
        error=end if reward is None else "",
        name=str(simulation.get("trial", "")),
        costs={"cost_usd": simulation.get("agent_cost"), "seconds": simulation.get("duration")},
        content=content,
    )


def _limits(info: Record) -> str | None:
    """Limits of a run, by which results are comparable."""
    known: dict[str, Any] = {name: info[name] for name in ("max_steps", "max_errors") if info.get(name) is not None}
    return entries_text(known) or None
