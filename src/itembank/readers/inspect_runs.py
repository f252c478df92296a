"""Runs of Inspect: the logs of one run and of its retries, put together."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from itembank.errors import DataError, quoted, shown
from itembank.readers.inspect_files import LogFile
from itembank.readers.inspect_samples import Sample, sample_of
from itembank.readers.inspect_scores import OWN_SCORER
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.prompts import entries_text, short_digest
from itembank.responses.secrets import arguments_text, without_homes

SYSTEM = "system_message"
"""Solver that puts a system prompt before the question."""
NO_PROMPT = frozenset(
    {"kwargs", "max_tokens", "temperature", "top_p", "top_k", "seed", "timeout", "cache", "tool_calls"}
)
"""Arguments of solvers that change no prompt."""
MOST_NAMES = 60
"""Characters of the solvers' names that are kept; of longer ones it is the digest."""
_WORD = re.compile(r"[\w .+-]{0,24}")
"""Arguments that are kept: words. Of paths, keys and longer texts it is the digest, as settings are published."""


@dataclass(frozen=True, slots=True)
class InspectRun:
    """One model on one task."""

    path: Path  # Of the last log
    run_id: str  # The same for a run and its retries
    created: str
    task: str
    model_name: str
    model_id: str
    n_items: int | None  # Of the whole task
    is_finished: bool
    about: Mapping[str, Any]  # What the model table keeps
    samples: Mapping[tuple[str, int], Sample]  # mapping of (id, epoch) to Sample
    # How it was asked, as `itembank.responses.prompts` names it.
    settings: Mapping[str, Any] = field(default_factory=dict)


def run_of(log: LogFile, spec: ReadingSpec) -> InspectRun:
    """Make a run of one log.

    Raises
    ------
    DataError
        When the log does not tell task or model, or two samples have ids that are the same text.
    """
    about = log.header["eval"]
    ours = _mapping(_mapping(about.get("metadata")).get(OWN_SCORER))
    task, name = str(ours.get("task") or about.get("task") or ""), str(about.get("model") or "")
    if not task or not name:
        raise DataError(f"{log.path}: a log must tell its task and its model, got {quoted(task)} and {quoted(name)}.")
    arguments = arguments_text(dict(sorted(_mapping(about.get("model_args")).items())))
    ids = {"name": name, "args": f"{name},{arguments}" if arguments else name, "folder": log.path.parent.name}
    size = ours.get("n_items_full", _mapping(about.get("dataset")).get("samples"))
    return InspectRun(
        log.path,
        str(about.get("task_id") or log.path),
        str(about.get("created") or ""),
        task,
        name,
        spec.model_id or ids[spec.model_id_from],
        size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None,
        log.header.get("status") == "success",
        {
            "run_date": about.get("created") and str(about["created"]),
            "model_args": without_homes(arguments) or None,
            "inspect_version": _text(_mapping(about.get("packages")).get("inspect_ai")),
        },
        _by_id(log),
        _settings(log.header, about, is_ours=bool(ours)),
    )


def together(runs: Sequence[InspectRun]) -> list[InspectRun]:
    """Put retries together with what they retried, oldest run first.

    A retry takes over what was scored before. Of a sample and epoch that several logs of one run hold, the last log's
    counts, unless only an earlier one was scored: a retry may have been killed in its turn.
    """
    merged: dict[tuple[str, str, str], InspectRun] = {}
    for run in sorted(runs, key=lambda one: (one.created, str(one.path))):
        key = (run.run_id, run.task, run.model_id)
        samples = dict(merged[key].samples) if key in merged else {}
        for place, sample in run.samples.items():
            if sample.is_scored or place not in samples or not samples[place].is_scored:
                samples[place] = sample
        merged[key] = replace(run, samples=samples)
    return list(merged.values())


def _settings(header: Mapping[str, Any], about: Mapping[str, Any], *, is_ours: bool) -> dict[str, Any]:
    """Say how a run asked: version and arguments of the task, its solvers and theirs, and system prompts.

    In a run that itembank started, the arguments of the task itself are one argument of ours.
    """
    arguments = _mapping(about.get("task_args"))
    arguments = _mapping(arguments.get("task_args")) if is_ours else arguments
    version, plan = about.get("task_version"), _mapping(header.get("plan"))
    settings = {
        "version": str(version) if isinstance(version, int | str) else None,
        "task_args": entries_text({_short(name): _short(value) for name, value in arguments.items()}) or None,
    }
    steps = [one for one in plan.get("steps") or () if isinstance(one, dict)]
    if steps:
        given = [(str(one.get("solver")), _mapping(one.get("params"))) for one in steps]
        configs = (_mapping(plan.get("config")), _mapping(about.get("model_generate_config")))
        system = [str(one["system_message"]) for one in configs if one.get("system_message")]
        system += [str(params.get("template", "")) for name, params in given if name.endswith(SYSTEM)]
        names = " > ".join(name for name, _ in given)
        settings["solver"] = names if len(names) <= MOST_NAMES else short_digest(names)
        settings["system_prompt"] = short_digest("\n".join(system))
        own = {
            f"{_short(name)}.{_short(key)}": _short(value)
            for name, params in given
            for key, value in params.items()
            if key not in NO_PROMPT and not (name.endswith(SYSTEM) and key == "template")
        }
        settings["solver_args"] = entries_text(own) or None
    return {name: value for name, value in settings.items() if value is not None}


def _short(value: Any) -> str:
    """Return an argument as a log's settings keep it: words and numbers, of anything else the digest."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if _WORD.fullmatch(text) else short_digest(text)


def _by_id(log: LogFile) -> dict[tuple[str, int], Sample]:
    """Return the samples by their ids as text."""
    samples: dict[tuple[str, int], Sample] = {}
    alike: set[str] = set()
    for record in log.samples:
        try:
            sample = sample_of(record)
        except DataError as error:
            raise DataError(f"{log.path}: {error}") from error
        place = (str(sample.id), sample.epoch)
        if place in samples and type(samples[place].id) is not type(sample.id):
            alike.add(place[0])
        samples[place] = sample
    if alike:
        raise DataError(
            f"{log.path}: ids of samples must differ as text, got {len(alike)} that are a whole number and text too: "
            f"{shown(sorted(alike))}."
        )
    return samples


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
