"""Which samples of a task are which items of a bank; checked before the first call of a model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, IntegrityError, did_you_mean, quoted, shown
from itembank.harnesses.protocol import check_same_content, contents_of
from itembank.readers.inspect_samples import content_hash
from itembank.responses.prompts import names_in_harness


@dataclass(frozen=True, slots=True)
class TaskItems:
    """The items of one task."""

    task: str  # As the bank names it
    items: Mapping[str, str]  # Sample ids as text, as logs tell them; in the bank's order
    scorer: str | None  # Whose scores the bank's responses are
    scenarios: tuple[str, ...]  # Of these items
    others: tuple[str, ...]  # Items of the bank's other tasks


def task_items(bank: Bank, task: str) -> TaskItems:
    """Find the items of a task in a bank, by the task's name with or without its package, or the one before a renaming.

    Raises
    ------
    DataError
        When the bank was not made from logs of Inspect, or has no such task.
    """
    table = bank.responses.items
    if not {"task", "sample_id"} <= set(table.columns):
        raise DataError(
            "the bank must be made from logs of Inspect, so that it knows task and sample_id of each item (itembank "
            f"import); its items have the columns {shown(table.columns, 20)}."
        )
    named = [one for one in table["task"].unique(maintain_order=True).to_list() if one is not None]
    unqualified = [one for one in named if _bare(one) == _bare(task)]
    if not unqualified:
        unqualified = [name for name, own in names_in_harness(table).items() if _bare(own) == _bare(task)]
    if task not in named and len(unqualified) != 1:
        raise DataError(
            f"the bank must hold items of the task {quoted(task)}, got the tasks {shown(named)}."
            f"{did_you_mean(task, named)}"
        )
    name = task if task in named else unqualified[0]
    own = table.filter(pl.col("task") == name)
    scorers = own["metric"].unique().to_list() if "metric" in own.columns else [None]
    return TaskItems(
        name,
        dict(zip(own["sample_id"].to_list(), own["item_id"].to_list(), strict=True)),
        scorers[0] if len(scorers) == 1 else None,
        tuple(own["scenario"].unique(maintain_order=True).to_list()),
        tuple(table.filter(pl.col("task").ne_missing(name))["item_id"].to_list()),
    )


def _bare(task: str) -> str:
    return task.rpartition("/")[2]


def samples_by_item(bank: Bank, known: TaskItems, samples: Iterable[Any], wanted: Sequence[str]) -> dict[str, Any]:
    """Return the sample of each wanted item, with the id that logs will tell.

    Parameters
    ----------
    bank : Bank
    known : TaskItems
    samples : iterable of Inspect's samples
        The whole data set of the task. Samples without an id are numbered from 1, as Inspect does.
    wanted : sequence of item ids

    Raises
    ------
    IntegrityError
        When an item has no sample, or one that asks something else than it asked the models of the bank.
    """
    found: dict[str, Any] = {}
    for number, sample in enumerate(samples, start=1):
        sample.id = number if sample.id is None else sample.id
        item_id = known.items.get(str(sample.id))
        if item_id is not None:
            found[item_id] = sample
    absent = [item_id for item_id in wanted if item_id not in found]
    if absent:
        raise IntegrityError(
            f"every item must be a sample of the task {quoted(known.task)}, got {len(absent)} of {len(wanted)} that "
            f"are none: {shown(absent)}. Was the task given other arguments, or a limit, when the bank's models ran it?"
        )
    asked = {item_id: found[item_id] for item_id in wanted}
    check_same_content(known.task, asked, contents_of(bank.responses.items), hash_of)
    return asked


def hash_of(sample: Any) -> str:
    """Return the content hash of one of Inspect's samples."""
    asked = sample.input if isinstance(sample.input, str) else [one.model_dump() for one in sample.input]
    return content_hash(asked, sample.target)
