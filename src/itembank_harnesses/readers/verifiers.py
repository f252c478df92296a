"""Results of verifiers: rollouts, one a line, in ``results.jsonl``; of version 1 episodes, in ``traces.jsonl``.

Beside results in ``outputs/evals/ENV--MODEL/RUN/`` is ``metadata.json``; a run of version 1 has ``configs/eval.json``.
An episode has a trace of every agent in it. Of those that a training would train, as verifiers' own mean has it, each
is a trial, and its reward the sum of all its rewards, score times weight.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from itembank.errors import DataError, shown
from itembank.files.documents import read_json
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record, finished_records, listed, mapping
from itembank.readers.reading_specs import ReadingSpec, how_to_name_model
from itembank.readers.rows import ResponseRows, content_digest
from itembank.responses.error_kinds import error_kind
from itembank.responses.prompts import entries_text
from itembank_harnesses.readers.trials import Agent, Trial, item_of, reward_of, rows_of_agents, rows_of_trials

ROLLOUT, EPISODE = {"example_id", "reward", "completion"}, {"env", "task", "traces"}
"""Keys of a line of results, and of one of version 1."""


def is_verifiers(record: Record) -> bool:
    """Whether an object is a rollout or an episode of verifiers."""
    return record.keys() >= ROLLOUT or record.keys() >= EPISODE


def verifiers_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read results: a model and environment a file, whose rollouts of an example are its trials."""
    return rows_of_agents("verifiers", paths, lambda file: _rows(file, spec), spec, progress)


def _rows(file: Path, spec: ReadingSpec) -> tuple[Agent, ResponseRows]:
    """Read a file: its model, and its rows."""
    lines = finished_records(file)
    keys = EPISODE if lines and lines[0].keys() >= EPISODE else ROLLOUT
    if not lines or not all(one.keys() >= keys for one in lines):
        raise DataError(f"{file}: every line must have {', '.join(sorted(keys))}, got one without.")
    with laid_out(file, "results of verifiers"):
        read = _of_episodes if keys == EPISODE else _of_rollouts
        model, environment, sampling, arguments, trials = read(file, lines)
    name = spec.model_id or model
    if not name:
        raise DataError(f"{file}: the model is unknown: nothing beside it names one. Name it: {how_to_name_model()}.")
    about = {"model_id": name, "agent_args": _entries(sampling)}
    settings = {"task_args": _entries(arguments)}
    return (name, about["agent_args"], file), rows_of_trials(
        str(file), about, environment or None, trials, spec, settings=settings
    )


def _entries(arguments: Mapping[str, Any]) -> str | None:
    """Arguments that are not left to their defaults, as text."""
    return entries_text({name: one for name, one in arguments.items() if one not in (None, "", [], {})}) or None


def _of_rollouts(file: Path, lines: Sequence[Record]) -> tuple[str, str, Record, Record, list[Trial]]:
    """Tell model, environment, sampling and arguments of a file of rollouts, and its trials.

    The metadata beside it tell, or else the folder ``ENV--MODEL`` above its run.
    """
    beside = file.with_name("metadata.json")
    told = mapping(read_json(beside)) if beside.is_file() else {}
    environment, _, model = file.absolute().parent.parent.name.partition("--")
    environment = str(told.get("env_id") or (environment if model else ""))
    trials = []
    for one in lines:
        is_lost = bool(error_kind(one.get("error")))
        trial = Trial(
            item_of(environment, one["example_id"]),
            None if is_lost else reward_of(one["reward"]),
            str(one["error"]) if is_lost else "",
            content_digest(one["completion"], one.get("timing")),  # a copy of a run says the same, another does not
            costs=mapping(one.get("token_usage")),
            content=content_digest(one.get("prompt"), one.get("answer")),
        )
        trials.append(trial)
    name = str(told.get("model") or model.replace("--", "/", 1))
    return name, environment, mapping(told.get("sampling_args")), mapping(told.get("env_args")), trials


def _of_episodes(file: Path, lines: Sequence[Record]) -> tuple[str, str, Record, Record, list[Trial]]:
    """Tell the same of a file of episodes."""
    configs = sorted((file.parent / "configs").glob("*.json"))
    config = mapping(read_json(configs[0])) if configs else {}
    models: dict[str, None] = {}
    environments: dict[str, None] = {}
    trials = []
    for episode in lines:
        environment, task = str(mapping(episode["env"]).get("id") or ""), mapping(episode["task"])
        environments[environment] = None
        content = str(task.get("hash") or content_digest(task.get("data")))
        item = item_of(environment, task.get("key") or content)
        every = [mapping(one) for one in listed(episode["traces"])]
        traces = [one for one in every if mapping(one.get("agent")).get("trainable", True)] or every
        for trace in traces or [{}]:
            models |= dict.fromkeys(_models(trace, config))
            reward, error = _verdict(episode, trace)
            trials.append(Trial(item, reward, error, costs=_costs(trace), content=content))
    for what, names in (("model", models), ("environment", environments)):
        if len(names) > 1:
            raise DataError(f"{file}: all episodes must be of one {what}, got {shown([*names])}. Read them apart.")
    taskset = {**mapping(mapping(config.get("env")).get("taskset"))}
    taskset.pop("id", None)
    model = next(iter(models), str(config.get("model") or ""))
    return model, next(iter(environments)), mapping(config.get("sampling")), taskset, trials


def _models(trace: Record, config: Record) -> Iterator[str]:
    """Name the model that said something in a trace: its own, or that of the run, or whichever was called."""
    agent = mapping(mapping(trace.get("agent")).get("config"))
    called = (mapping(call).get("model") for call in listed(trace.get("calls")))
    name = agent.get("model") or config.get("model") or next(filter(None, called), None)
    if name:
        yield str(name)


def _verdict(episode: Record, trace: Record) -> tuple[float | None, str]:
    """Return the reward of a trace, and what it ended in where it has none."""
    rewards = [one for one in mapping(trace.get("rewards")).values() if one is not None]
    are_scored = bool(rewards) and all(one["score"] is not None for one in rewards)
    if episode.get("ok") is True and trace.get("ok", True) is not False and are_scored:
        return reward_of(sum(float(one["score"]) * float(one.get("weight", 1.0)) for one in rewards)), ""
    failed = [*listed(trace.get("errors")), *listed(episode.get("errors"))]
    last = mapping(failed[-1]) if failed else {}
    return None, ": ".join(str(last[key]) for key in ("type", "message") if last.get(key))


def _costs(trace: Record) -> dict[str, float | None]:
    """Return tokens, money and seconds of a trace; what one call does not tell is not known."""
    usages = [mapping(mapping(call).get("usage")) for call in listed(trace.get("calls"))]
    span = mapping(mapping(trace.get("timing")).get("agent"))
    keys = {"input_tokens": ("prompt_tokens", "cached_input_tokens"), "output_tokens": ("completion_tokens",)}
    amounts = {
        unit: [one.get(name) or 0 for one in usages for name in names] if all(names[0] in one for one in usages) else []
        for unit, names in {**keys, "cost_usd": ("cost",)}.items()
    }
    if span.get("end") and span.get("start"):
        amounts["seconds"] = [span["end"], span["start"]]
    known = {unit: own for unit, own in amounts.items() if own and all(isinstance(one, int | float) for one in own)}
    return {unit: float(own[0] - own[1] if unit == "seconds" else sum(own)) for unit, own in known.items()}
