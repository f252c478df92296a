"""Jobs of Harbor: ``JOBS/JOB/TRIAL/result.json``, a trial a file; the job's own ``result.json`` beside the trials.

A model is an agent, its version and the language model behind it. Trials of one task are counted. A trial without a
verdict is a lost answer, which Harbor's own means count as 0; agents that ran out of time are judged all the same.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from itembank.errors import DataError, DataWarning, first_few, shown, warn
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import collect, laid_out, own_files
from itembank.readers.json_files import Record, as_float, listed, mapping
from itembank.readers.reading_specs import ReadingSpec, choices_for, how
from itembank.readers.refusals import refuse_or_leave_out
from itembank.readers.rows import ResponseRows, join_rows, joined_source
from itembank.responses.prompts import entries_text
from itembank.tables import plural
from itembank_harnesses.readers.trials import (
    Trial,
    agent_id,
    check_agents,
    item_of,
    name_of,
    reward_of,
    rows_of_trials,
    seconds_between,
    tell_of_own_means,
)

TRIAL, JOB = {"task_name", "trial_name", "agent_info"}, {"n_total_trials", "stats"}
"""Keys of a trial's result, and of a job's."""
USUAL = "reward"
"""The reward that counts where a verifier gives several."""
CANCELLED = "CancelledError"
"""What stopped before it was tried: it was not run."""
NOT_SET_UP = "unknown"
"""Version of an agent that is installed in each trial, until it is."""
COSTS = {"n_input_tokens": "input_tokens", "n_output_tokens": "output_tokens", "cost_usd": "cost_usd"}
NO_DATASET = "adhoc"
"""Scenario of tasks that belong to no dataset, as Harbor calls it."""
AGREEMENT = 0.005
"""How far a mean may be from the one that the job states."""


Group: TypeAlias = tuple[Path, str, str]
"""A job, a model and a dataset."""


@dataclass(frozen=True, slots=True)
class JobTrial:
    """One trial of a job."""

    job: Path
    key: str  # The same for copies
    task: str
    dataset: str
    about: Mapping[str, str | None]  # Agent, version, language model and arguments, for the model table
    started: str
    checksum: str | None
    rewards: Mapping[str, Any] | None  # None where there is no verdict
    error: str  # Name of the exception that it ended in, whether or not there is a verdict; empty for none
    has_ended: bool  # Neither still running, nor cancelled before it was tried
    costs: Mapping[str, Any]
    limits: str  # How much more time than usual it had

    @property
    def model_id(self) -> str:
        """The agent with its version, and the language model."""
        agent = "@".join(filter(None, (self.about["agent"], self.about["agent_version"])))
        return "+".join(filter(None, (agent, self.about["llm"])))


def is_harbor(record: Record) -> bool:
    """Whether an object is the result of a trial or of a job of Harbor."""
    return record.keys() >= TRIAL or (record.keys() >= JOB and "evals" in mapping(record["stats"]))


def harbor_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read the trials of jobs, or of folders of jobs; the `metric` names the reward where there are several."""
    source = joined_source(paths)
    found, problems = collect(own_files(paths, "harbor", spec), read_trial, progress, name=lambda path: path.name)
    if not any(found):
        refuse_or_leave_out(problems, spec, has_rest=False)
    elif problems:  # a trial whose file was cut, or tells nothing, blocks no other
        which = first_few([one.removesuffix(".") for one in problems])
        warn(
            f"{plural(len(problems), 'file')} cannot be read and {'is' if len(problems) == 1 else 'are'} "
            f"left out, their trials as not run: {which}.",
            DataWarning,
        )
    every = sorted((one for one in found if one is not None), key=lambda one: (one.job, one.started))
    size = Counter(one.job for one in every)
    known = {one.key: one for one in sorted(every, key=lambda one: (one.has_ended, size[one.job]))}
    trials = _with_versions([one for one in every if known[one.key] is one])  # of copies that of the fuller job
    if not trials:
        raise DataError(
            f"{source}: must hold results of trials (JOB/TRIAL/result.json), got those of jobs alone. Give the folder "
            "of a job."
        )
    names = [agent_id(one.model_id, one.about["agent_args"], spec) for one in trials]
    check_agents([(name, one.about["agent_args"], one.job) for name, one in zip(names, trials, strict=True)], spec)
    groups: dict[Group, list[JobTrial]] = {}
    for name, one in zip(names, trials, strict=True):
        groups.setdefault((one.job, name, one.dataset), []).append(one)
    chosen = {key: [_reward(one, spec) for one in group] for key, group in groups.items()}
    values = {key: [value for value, _ in group] for key, group in chosen.items()}
    n_open = sum(not one.has_ended for one in trials)
    if n_open == len(trials):
        raise DataError(f"{source}: must hold a trial that has ended, got {n_open} that have not, or were cancelled.")
    if n_open:
        warn(
            f"{source}: {n_open} of {len(trials)} trials have not ended, or were cancelled, and count as not run.",
            DataWarning,
        )
    versions = {job: _versions(job) for job, *_ in groups}
    parts = [
        _rows(key[1], group, chosen[key], versions[key[0]].get(key[2]), spec)
        for key, group in groups.items()
        if any(one.has_ended for one in group)
    ]
    _compare(groups, values, spec)
    return join_rows(parts, allow_mixed_prompts=spec.allow_mixed_prompts)


def _with_versions(trials: Sequence[JobTrial]) -> list[JobTrial]:
    """Give trials that broke before their agent was set up its version, if other trials of it have but one."""
    known: dict[tuple[Path | None, str | None, str | None], dict[str, None]] = {}
    for one in trials:
        if (version := one.about["agent_version"]) not in {None, NOT_SET_UP}:
            for job in (one.job, None):
                known.setdefault((job, one.about["agent"], one.about["llm"]), {})[str(version)] = None
    filled = []
    for one in trials:
        agent = one.about["agent"], one.about["llm"]
        versions = known.get((one.job, *agent)) or known.get((None, *agent)) or {}
        is_open = one.about["agent_version"] == NOT_SET_UP and one.rewards is None and len(versions) == 1
        filled.append(replace(one, about={**one.about, "agent_version": next(iter(versions))}) if is_open else one)
    return filled


def read_trial(path: Path) -> JobTrial | None:
    """Read a trial; None of a job's own result."""
    record = read_json(path)
    if not isinstance(record, dict) or not is_harbor(record):
        raise DataError(f"{path}: must be the result of a trial or job of Harbor, got something else.")
    if record.keys() >= JOB:
        return None
    with laid_out(path, "the result of a trial of Harbor"):
        config, told = mapping(record.get("config")), mapping(record["agent_info"])
        agent, llm = mapping(config.get("agent")), mapping(told.get("model_info"))
        name = "/".join(str(part) for part in (llm.get("provider"), llm.get("name")) if part) or agent.get("model_name")
        version = told.get("version") or ""
        about = {
            "agent": name_of(told["name"], "agent"),
            "agent_version": str(version) or None,
            "llm": str(name) if name else None,
            "agent_args": entries_text(mapping(agent.get("kwargs"))) or None,
        }
        run, usage = mapping(record.get("agent_execution")), mapping(record.get("agent_result"))
        verdict = record.get("verifier_result")
        error = str(mapping(record.get("exception_info")).get("exception_type") or "")
        return JobTrial(
            job=path.parent.parent,
            key=f"{record.get('id') or path} {record['task_name']}",
            task=item_of("", record["task_name"]),
            dataset=str(record.get("source") or NO_DATASET),
            about=about,
            started=str(record.get("started_at") or ""),
            checksum=str(record.get("task_checksum") or "") or None,
            rewards=None if verdict is None else mapping(mapping(verdict).get("rewards")) or None,
            error=error,
            has_ended=record.get("finished_at") is not None and error != CANCELLED,
            costs={
                **{unit: usage.get(key) for key, unit in COSTS.items()},
                "seconds": seconds_between(run.get("started_at"), run.get("finished_at")),
            },
            limits=time_limits(config),
        )


def time_limits(config: Mapping[str, Any]) -> str:
    """Write the factors of time limits that a trial, or a job, is configured with; empty where it tells none."""
    return entries_text(
        {key: value for key, value in config.items() if key.endswith("timeout_multiplier") and value is not None}
    )


def _reward(trial: JobTrial, spec: ReadingSpec) -> tuple[float | None, str | None]:
    """Reward of a trial, None where there is no verdict; and its name, where one was asked for."""
    rewards = trial.rewards
    if rewards is None:
        return None, None
    wanted = choices_for(spec.scenario or trial.dataset, spec.metric)
    only = [*rewards] if len(rewards) == 1 else []
    name = next((one for one in wanted or (USUAL, *only) if one in rewards), None)
    if name is None:
        raise DataError(
            f"{trial.job}: task {trial.task!r} has the rewards {shown(list(rewards))}"
            f"{f', and not {shown(wanted)}' if wanted else ''}. Say which counts: {how(metric=(next(iter(rewards)),))}."
        )
    with laid_out(trial.job / trial.task, "a trial of Harbor"):
        return reward_of(rewards[name]), name if wanted else None


def _rows(
    model_id: str,
    trials: Sequence[JobTrial],
    chosen: Sequence[tuple[float | None, str | None]],
    version: str | None,
    spec: ReadingSpec,
) -> ResponseRows:
    """Make rows of the trials of one job, model and dataset that have ended."""
    ended = [
        Trial(one.task, value, one.error, one.started, one.costs, one.checksum, metric)
        for one, (value, metric) in zip(trials, chosen, strict=True)
        if one.has_ended
    ]
    about, limits = trials[0], " or ".join(dict.fromkeys(one.limits for one in trials if one.limits))
    return rows_of_trials(
        str(about.job),
        {"model_id": model_id, **about.about},
        about.dataset,
        ended,
        spec,
        settings={"timeouts": limits or None, "version": version},
        run=about.job.name,
    )


def _of_job(job: Path, name: str) -> Record:
    """Return a file that Harbor keeps beside the trials; nothing where it is not there."""
    path = job / name
    return mapping(read_json(path)) if path.is_file() else {}


def _versions(job: Path) -> dict[str, str]:
    """Version of each dataset that a job was started on, as far as its configuration tells."""
    told = [mapping(one) for one in listed(_of_job(job, "config.json").get("datasets"))]
    return {str(one["name"]): str(one["version"]) for one in told if one.get("name") and one.get("version")}


def _compare(
    groups: Mapping[Group, Sequence[JobTrial]], values: Mapping[Group, Sequence[float | None]], spec: ReadingSpec
) -> None:
    """Say what trials without a verdict change, and warn of means that are not those that the jobs state.

    Harbor's means are over all trials, those without a verdict counting 0; ours are over tasks.
    """
    most = spec.max_response
    stated = {job: mapping(mapping(_of_job(job, "result.json").get("stats")).get("evals")) for job, *_ in groups}
    other, silent, kinds = [], [], Counter[str]()
    for (job, model, dataset), trials in groups.items():
        own = values[job, model, dataset]
        by_task: dict[str, list[float]] = {}
        for one, value in zip(trials, own, strict=True):
            if value is not None:
                by_task.setdefault(one.task, []).append(value / most)
        theirs = sum(map(sum, by_task.values())) / len(own)
        ours = fmean(map(fmean, by_task.values())) if by_task else 0.0
        ended = [one.error for one, value in zip(trials, own, strict=True) if value is None and one.has_ended]
        kinds.update(error or "no exception" for error in ended)
        if ended:
            silent.append((f"{model} on {dataset}", theirs, ours))
        about = trials[0].about
        name = "__".join(filter(None, (about["agent"], (about["llm"] or "").rpartition("/")[2], dataset)))
        means = [mapping(one).get("mean") for one in listed(mapping(stated[job].get(name)).get("metrics"))]
        told = means[0] if len(means) == 1 and set(spec.metric) <= {USUAL} else None  # they are of no other reward
        mean = 100.0 * as_float(told) / most if isinstance(told, int | float) else 100.0 * theirs
        if abs(mean - 100.0 * theirs) > 100.0 * AGREEMENT:
            other.append(f"{job}: {name} {mean:.1f}, its trials {100.0 * theirs:.1f}")
    tell_of_own_means("trials", "Harbor's means over trials count", kinds, silent, spec)
    if other:
        warn(
            f"means over trials must be those that the jobs state, in points, and differ: {first_few(other)}. Are all "
            "trials there?",
            DataWarning,
        )
