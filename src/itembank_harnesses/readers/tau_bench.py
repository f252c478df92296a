"""Results of the first tau-bench: a list of trials in a file, which does not say whose they are.

The name that ``run.py`` gives the file tells the agent, its model, temperature, tasks and simulated user; the policy
that begins a conversation tells the domain. A trial that ended in an exception has a reward of 0 there, and is a lost
answer.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from itembank.errors import DataError
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record, each_record, listed, mapping
from itembank.readers.reading_specs import ReadingSpec, how, how_to_name_model
from itembank.readers.rows import ResponseRows, content_digest
from itembank_harnesses.readers.trials import Agent, Trial, item_of, reward_of, rows_of_agents, rows_of_trials

RESULT = {"task_id", "reward", "info", "traj", "trial"}
USUAL_STRATEGY, USUAL_USER = "tool-calling", "llm"
"""What the names of models and users leave out."""
OF_RUN = re.compile(
    r"(?P<strategy>tool-calling|act|react|few-shot)-(?P<llm>.+)-(?P<temperature>[\d.]+)_range_-?\d+--?\d+"
    r"_user-(?P<user>.+)-(?P<kind>human|llm|react|verify|reflection)_\d+"
)
"""Name that a run gives its file."""
OF_RELEASE = re.compile(r"(?P<llm>.+)-(?P<domain>airline|retail)")
"""Name of a file of the trajectories that the authors published."""
POLICY = re.compile(r"# (\w+) agent policy", re.IGNORECASE)


def is_tau_bench(record: Record) -> bool:
    """Whether an object is a trial of tau-bench."""
    return record.keys() >= RESULT


def tau_bench_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read results: a model and domain a file, whose trials are counted."""
    return rows_of_agents("tau-bench", paths, lambda path: _rows(path, spec), spec, progress)


def _rows(path: Path, spec: ReadingSpec) -> tuple[Agent, ResponseRows]:
    """Read a file: its model, and its rows."""
    results = [*each_record(path)]
    if not results or not all(map(is_tau_bench, results)):
        raise DataError(f"{path}: every trial must have {', '.join(sorted(RESULT))}, got one without.")
    told = OF_RUN.fullmatch(path.stem) or OF_RELEASE.fullmatch(path.stem)
    name = {} if told is None else told.groupdict()
    kind, llm, user = name.get("strategy", USUAL_STRATEGY), name.get("llm"), name.get("user")
    model = spec.model_id or (llm if llm is None or kind == USUAL_STRATEGY else f"{kind}+{llm}")
    if model is None:
        raise DataError(
            f"{path}: the model is unknown: results of tau-bench tell it by the name that run.py gives their file, "
            f"'tool-calling-MODEL-0.0_range_...'. Name it: {how_to_name_model()}."
        )
    with laid_out(path, "results of tau-bench"):
        domain = spec.scenario or name.get("domain") or next(filter(None, map(_domain, results)), None)
        if domain is None:
            raise DataError(
                f"{path}: the domain is unknown, for no conversation begins with its policy. Name it: "
                f"{how(scenario='airline')}, or retail."
            )
        trials = [_trial(one, domain) for one in results]
    arguments = None if "temperature" not in name else f"temperature={name['temperature']}"
    about = {"model_id": model, "agent": kind, "llm": llm, "agent_args": arguments}
    if user and name["kind"] != USUAL_USER:
        user = f"{user} ({name['kind']})"
    rows = rows_of_trials(str(path), about, domain, trials, spec, settings={"user": user})
    return (model, arguments, path), rows


def _domain(result: Record) -> str | None:
    """Return the domain whose policy begins the conversation of a trial."""
    first = mapping(next(iter(listed(result["traj"])), None)).get("content")
    policy = POLICY.match(first.strip()) if isinstance(first, str) else None
    return None if policy is None else policy[1].lower()


def _trial(result: Record, domain: str) -> Trial:
    info = mapping(result["info"])
    error = str(info.get("error") or info.get("traceback") or "")
    return Trial(
        item_of(domain, result["task_id"]),
        None if error else reward_of(result["reward"]),
        error,
        name=str(result["trial"]),
        content=content_digest(info["task"]) if "task" in info else None,
    )
