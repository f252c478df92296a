"""Logs of one model on one task, whatever program wrote them: what their runs tell, and which of them are wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from itembank.errors import DataError, shown
from itembank.readers.collecting import natural_order
from itembank.readers.reading_specs import ReadingSpec, how_to_name_model
from itembank.readers.refusals import NoTaskLeftError, is_wanted, no_task_left
from itembank.responses.prompts import TASK_NAME
from itembank.responses.secrets import arguments_text, without_homes

RunKey: TypeAlias = tuple[Path, str]
"""Folder and date, which the files of one run share."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the results file of a run tells."""

    model_name: str = ""  # Empty where not told
    model_arguments: str = ""
    n_items: Mapping[str, int] = field(default_factory=dict)
    is_limited: bool | None = None  # Whether a limit was set, None where not told
    higher_is_better: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    # mapping of task to names of its filters, in order
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    delimiters: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    # How it was asked, as `itembank.responses.prompts` names it.
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)  # What the model table keeps


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One samples file: the results of one model on one task."""

    path: Path
    task: str
    date: str
    run: Run
    model_id: str

    @property
    def run_key(self) -> RunKey:
        """Folder and date, which the files of one run share."""
        return self.path.parent, self.date

    @property
    def model_name(self) -> str:
        """What the log calls the model."""
        return self.run.model_name


File = TypeVar("File", bound=SampleFile)


def renamed(file: File, names: Mapping[str, str]) -> File:
    """Give the task of a file the name that it is to have, and with it what its run tells of the task."""
    old, new = file.task, names.get(file.task)
    if new is None:
        return file
    told = {one.name: getattr(file.run, one.name) for one in fields(file.run) if one.name != "about"}
    by_task = {name: value for name, value in told.items() if isinstance(value, Mapping) and old in value}
    changed: dict[str, Any] = {name: {**value, new: value[old]} for name, value in by_task.items()}
    changed["settings"] = {**file.run.settings, new: {TASK_NAME: old, **file.run.settings.get(old, {})}}
    run = replace(file.run, **changed)
    if run.groups.get(new) == old:
        run = replace(run, groups={**run.groups, new: new})
    return replace(file, task=new, run=run)


def oldest_first(files: Sequence[File]) -> list[File]:
    """Sort files by the date of their run."""
    return sorted(files, key=lambda file: (file.date, natural_order(str(file.path))))


def wanted(logs: Sequence[File], spec: ReadingSpec) -> list[File]:
    """Return the logs of the tasks that were asked for, oldest first; ids of models are without secrets and homes."""
    kept = oldest_first([one for one in logs if is_wanted(one.task, spec)])
    if logs and not kept:
        raise NoTaskLeftError(no_task_left(sorted({one.task for one in logs}), spec))
    names = sorted({one.model_name for one in kept if one.model_name})
    if spec.model_id is not None and len(names) > 1:
        raise DataError(f"model_id={spec.model_id!r} was given for logs of {len(names)} models: {shown(names)}.")
    if spec.model_id is not None:
        return kept
    # secrets and home folders are taken out of the ids of models, which are published with a bank
    told = {one.model_id: arguments_text(one.model_id) for one in kept}
    owners: dict[str, set[str]] = {}
    for text in told.values():
        owners.setdefault(without_homes(text), set()).add(text)
    alike = [name for name, texts in owners.items() if len(texts) > 1]
    if alike:
        raise DataError(
            f"models must have ids that differ without home folders (~), got {shown(alike)} for several. Read each "
            f"model's logs by themselves, and say its name ({how_to_name_model()})."
        )
    return [replace(one, model_id=without_homes(told[one.model_id])) for one in kept]
