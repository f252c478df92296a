"""Tasks of Inspect that run chosen samples of another task; loaded by Inspect only."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from inspect_ai import SampleSource, Task, task, task_with
from inspect_ai._eval.loader import load_tasks
from inspect_ai.dataset import MemoryDataset

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError, shown
from itembank.files.digests import RECORD_KEY, with_digest
from itembank.files.hub_names import is_hub_name
from itembank.harnesses.inspect.answers import MODEL
from itembank.harnesses.inspect.estimates import known_bank, known_pool
from itembank.harnesses.inspect.feed import SessionFeed, StagesFeed
from itembank.harnesses.inspect.prompts import arguments_told, check_prompts
from itembank.harnesses.inspect.scoring import estimating
from itembank.harnesses.inspect.stages import check_routing
from itembank.harnesses.inspect.task_items import TaskItems, samples_by_item, task_items
from itembank.readers.inspect_samples import OWN_SCORER
from itembank.responses.score_names import OVERALL
from itembank.selection.recipes import stages_of
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec

BATCH = 8


@task
def adaptive(
    task: str,
    bank: str,
    *,
    half_width: float | None = None,
    max_items: int | None = None,
    batch: int = BATCH,
    seed: int = 0,
    scorer: str | None = None,
    session: dict[str, Any] | None = None,
    task_args: dict[str, Any] | None = None,
    ignore_prompts: bool = False,
) -> Task:
    """Ask a model the samples of a task one batch after the other, until the score is known well enough.

    Parameters
    ----------
    task : str
        Name or file of the task, as `inspect eval` takes it.
    bank : str
        Path of the bank.
    half_width : float, optional
        Stop when the 95 % interval of the score is as narrow as ± this. The score is the task's, or the overall score
        of a bank of one task.
    max_items : int, optional
        Samples at most.
    batch : int
        Samples asked at once.
    seed : int
    scorer : str, optional
        Whose scores are the responses; by default the one that the bank was made with.
    session : dict, optional
        Every choice of a session, instead of `half_width`, `max_items` and `seed`: `SessionSpec.to_dict`.
    task_args : dict, optional
        Arguments of the task.
    ignore_prompts : bool
        Run also where these, or the task's version, are others than in the bank's runs.
    """
    loaded = _Loaded.of(task, task_args, bank, scorer, ignore_prompts=ignore_prompts)
    known = loaded.known
    spec = _spec(known, half_width, max_items, seed) if session is None else SessionSpec.from_dict(session)
    samples = samples_by_item(loaded.bank, known, loaded.inner.dataset, list(known.items.values()))
    text = json.dumps(spec.to_dict(), sort_keys=True)
    trace: list[dict[str, float]] = []
    feed = SessionFeed(
        AdaptiveSession(known_pool(loaded.place, "", known.task, text), model_id=MODEL),
        samples,
        task=known.task,
        scorer=loaded.scorer,
        batch=batch,
        trace=trace,
    )
    source = SampleSource.from_samples(feed.initial(), next_samples=feed.next, sample_complete=feed.complete)
    about = {"session": spec.to_dict(), "trace": trace}
    return loaded.with_estimate(source, about, session=text)


@task
def subset(
    task: str,
    bank: str,
    selection: str,
    *,
    scorer: str | None = None,
    task_args: dict[str, Any] | None = None,
    ignore_prompts: bool = False,
) -> Task:
    """Ask a model the samples of a task that a selection holds.

    Parameters
    ----------
    task, bank, scorer, task_args, ignore_prompts
        As of `adaptive`.
    selection : str
        File of the selection (`itembank select`).
    """
    loaded = _Loaded.of(task, task_args, bank, scorer, ignore_prompts=ignore_prompts)
    chosen = Selection.load(selection)
    loaded.check_items(chosen)
    wanted = [item_id for item_id in chosen.item_ids if item_id in set(loaded.known.items.values())]
    if not wanted:
        raise DataError(f"the selection must hold items of the task {loaded.known.task!r}, got none: {selection}.")
    every = loaded.inner.dataset
    samples = samples_by_item(loaded.bank, loaded.known, every, wanted)
    dataset = MemoryDataset(list(samples.values()), name=every.name, location=every.location)
    return loaded.with_estimate(
        dataset, {**_about(selection, chosen), "n_items": len(wanted)}, selection=_place(selection)
    )


@task
def stages(
    task: str,
    bank: str,
    selection: str,
    *,
    scorer: str | None = None,
    task_args: dict[str, Any] | None = None,
    ignore_prompts: bool = False,
) -> Task:
    """Ask a model the samples of a task in stages, each chosen from its answers to those before (multistage testing).

    Parameters
    ----------
    task, bank, scorer, task_args, ignore_prompts
        As of `adaptive`.
    selection : str
        File of the first stage (`itembank select --stages 2`).
    """
    loaded = _Loaded.of(task, task_args, bank, scorer, ignore_prompts=ignore_prompts)
    known, routing = loaded.known, Selection.load(selection)
    check_routing(routing, known)
    loaded.check_items(routing)
    samples = samples_by_item(loaded.bank, known, loaded.inner.dataset, list(known.items.values()))
    feed = StagesFeed(loaded.bank, routing, samples, task=known.task, scorer=loaded.scorer)
    source = SampleSource.from_samples(feed.initial(), next_samples=feed.next, sample_complete=feed.complete)
    sizes, _ = stages_of(routing)
    about = {**_about(selection, routing), "n_items": sum(sizes), "stages": list(sizes)}
    return loaded.with_estimate(source, about, routing=_place(selection))


def _about(path: str, selection: Selection) -> dict[str, Any]:
    """Say in the log which selection was run."""
    return {"selection": path, "selection_digest": with_digest(selection.to_dict())[RECORD_KEY]}


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The task that is to be run, the bank, and the items that they share."""

    inner: Task
    known: TaskItems
    bank: Bank
    place: str  # Where the bank lies
    scorer: str | None  # Whose scores are the responses

    @classmethod
    def of(
        cls, name: str, arguments: Mapping[str, Any] | None, bank: str, scorer: str | None, *, ignore_prompts: bool
    ) -> Self:
        """Load the task, find its items in the bank, and compare its arguments with those of the bank's runs."""
        # Inspect takes no absolute path that has no @NAME.
        name = os.path.relpath(name) if Path(name).is_absolute() and "@" not in name else name
        found = load_tasks([name], dict(arguments or {}))
        if len(found) != 1:
            raise DataError(
                f"task must name one task, got {len(found)} for {name!r}: {shown([one.name for one in found])}. Write "
                "FILE@NAME, or PACKAGE/NAME."
            )
        if not found[0].scorer:
            raise DataError(f"the task {name!r} must have a scorer, got none.")
        place = _place(bank)
        loaded = known_bank(place, "")
        known = task_items(loaded, found[0].name)
        check_prompts(loaded, known, arguments_told(found[0]), is_ignored=ignore_prompts)
        return cls(found[0], known, loaded, place, scorer or known.scorer)

    def check_items(self, selection: Selection) -> None:
        """Refuse a selection whose items are not in the bank."""
        known_ids = set(self.bank.responses.item_ids)
        foreign = [item_id for item_id in selection.item_ids if item_id not in known_ids]
        if foreign:
            raise DataError(
                f"every item of the selection must be in the bank, got {len(foreign)} that are not: {shown(foreign)}."
            )

    def with_estimate(self, dataset: Any, about: Mapping[str, Any], **chosen: str) -> Task:
        """Return the task with other samples, with a scorer more, and with what they are in its metadata."""
        bank_id = self.bank.bank_id
        ours = {"task": self.known.task, "bank": bank_id, "n_items_full": len(self.known.items), **about}
        own = estimating(bank=self.place, task=self.known.task, scorer_name=self.scorer, bank_id=bank_id, **chosen)
        metadata = {**(self.inner.metadata or {}), OWN_SCORER: ours}
        return task_with(self.inner, dataset=dataset, scorer=[*self.inner.scorer, own], metadata=metadata)


def _place(path: str) -> str:
    """Return a path, or a name of the Hub, that holds wherever the log is read."""
    return path if is_hub_name(path) else str(Path(path).resolve())


def _spec(known: TaskItems, half_width: float | None, max_items: int | None, seed: int) -> SessionSpec:
    """Return the session of the plain arguments."""
    if half_width is None and max_items is None:
        raise ParameterError("half_width or max_items must be given: when is the run to stop?")
    target = known.scenarios[0] if known.others and len(known.scenarios) == 1 else OVERALL
    widths = {} if half_width is None else {target: half_width}
    return SessionSpec(target=target, budget=Budget(max_items), stopping=Stopping(half_width=widths), seed=seed)
