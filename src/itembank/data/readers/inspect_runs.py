"""Runs of Inspect: the logs of one run and of its retries, put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from itembank.data.readers.inspect_files import LogFile
from itembank.data.readers.inspect_samples import Sample, sample_of
from itembank.data.readers.inspect_scores import OWN_SCORER
from itembank.data.readers.specs import ReadingSpec
from itembank.data.secrets import arguments_text, without_homes
from itembank.errors import DataError, quoted, shown


@dataclass(frozen=True, slots=True)
class InspectRun:
    """One model on one task.

    Attributes
    ----------
    path : Path
        Of the last log.
    run_id : str
        The same for a run and its retries.
    created : str
    task, model_name, model_id : str
    n_items : int or None
        Of the whole task.
    is_finished : bool
    about : mapping of column to value
        What the model table keeps.
    samples : mapping of (id, epoch) to Sample
    """

    path: Path
    run_id: str
    created: str
    task: str
    model_name: str
    model_id: str
    n_items: int | None
    is_finished: bool
    about: Mapping[str, Any]
    samples: Mapping[tuple[str, int], Sample]


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
