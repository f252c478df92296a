"""What items asked in each run, told by hashes: the same id must mean the same content and the same prompt."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, first_few, quoted, remedy, shown, warn
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.readers.reading_specs import ReadingSpec, how
from itembank.responses.labels import first_in_group, first_told
from itembank.responses.prompts import (
    DIFFERS,
    IN_WORDS,
    MAY_CHANGE,
    NO_HASH,
    PROMPT_HASH,
    PROMPT_SETTINGS,
    VERSION,
    hash_texts,
    how_to_mix,
    joined_settings,
    settings_apart,
    settings_in_words,
    settings_text,
)
from itembank.tables import plural


def item_contents(
    rows: pl.DataFrame, items: IntArray, names: pl.Series, spec: ReadingSpec, *, what: str, advice: str
) -> pl.Series:
    """Return the content hash of each item, (n_items,); those that differ between models are refused, or have none.

    `rows` have a `model_id` and a `content`, and `items`, (n_rows,), are the places of their items among the `names`.
    `what` the hash is of, and the `advice` why it may differ, are for the message of the refusal.
    """
    contents, differing = first_told(items, names.len(), rows["content"])
    if not differing.size:
        return contents
    changed, first = np.unique(items[differing], return_index=True)
    if not spec.ignore_content:
        where = []
        for item, row in zip(changed[:N_SHOWN].tolist(), differing[first].tolist(), strict=False):
            one, other = rows["model_id"][[int(np.argmax(items == item)), row]].to_list()
            where.append(f"{names[item]!r} for {one!r} and {other!r}")
        how = remedy("ignore_content=True", "ignore_content = true in the file of --spec")
        raise DataError(
            f"an item must have the same content ({what}) in all runs, got {changed.size} of {names.len()} items "
            f"that differ: {first_few(where, changed.size)}. {advice} Run the older models again, or if the items are "
            f"the same nevertheless, say so ({how})."
        )
    message = f"{changed.size} of {names.len()} items have another content in some runs and are taken as the same."
    warn(message, DataWarning)
    return contents.scatter(changed, None)


@dataclass(frozen=True, slots=True)
class Prompted:
    """How one model was asked the items of one task."""

    model_id: str
    task: str
    settings: Mapping[str, Any]  # As `itembank.responses.prompts` names them
    items: IntArray  # (n_rows,): Index of each row's item, among the items of all runs
    hashes: IntArray  # (n_rows,): As `hash_numbers` makes them

    @property
    def is_told_by_hash(self) -> bool:
        """Whether the hashes tell the prompts; not where the model's own chat template is in them."""
        return self.settings.get("chat_template") is not True and bool((self.hashes != NO_HASH).any())


def item_prompts(runs: Sequence[Prompted], tasks: pl.Series, spec: ReadingSpec) -> list[pl.Series]:
    """Return the columns that say how each item, whose task is told, was asked; none where nobody tells."""
    rows, hashes = np.concatenate([run.items for run in runs]), np.concatenate([run.hashes for run in runs])
    first, differing = first_in_group(rows, tasks.len(), hashes)
    is_mixed = np.zeros(tasks.len(), dtype=np.bool_)
    is_mixed[rows[differing]] = True
    by_task: dict[str, list[Prompted]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run)
    if not spec.allow_mixed_prompts:
        mixtures = {task: _mixture(group, is_mixed) for task, group in by_task.items()}
        told = [f"task {quoted(task)}: {words}" for task, words in mixtures.items() if words]
        if told:
            raise DataError(
                f"all models of a task must have been asked with the same prompts, and in {len(told)} they differ. "
                f"{_first_tasks(told)} Give the logs of one kind alone, or leave the tasks out "
                f"({how(exclude_tasks=['NAME'])}). {how_to_mix()}"
            )
        versions = {task: {run.settings.get(VERSION) for run in group} - {None} for task, group in by_task.items()}
        told = [
            f"task {quoted(task)}: {_in_groups(by_task[task], [0] * len(by_task[task]))}"
            for task, found in versions.items()
            if len(found) > 1
        ]
        if told:
            warn(f"models ran a task in different versions. {_first_tasks(told)} {MAY_CHANGE}", DataWarning)
    columns = []
    if (first >= 0).any():
        hashed = pl.Series(PROMPT_HASH, hash_texts(first), dtype=pl.String)
        columns.append(hashed.scatter(np.flatnonzero(is_mixed), DIFFERS))
    texts = {task: settings_text(joined_settings(run.settings for run in group)) for task, group in by_task.items()}
    if any(texts.values()):
        columns.append(tasks.replace_strict(texts, return_dtype=pl.String).alias(PROMPT_SETTINGS))
    return columns


def _first_tasks(told: Sequence[str]) -> str:
    """Join what is said of the first few tasks, and say how many more there are."""
    more = f" And {plural(len(told) - N_SHOWN, 'more task')}." if len(told) > N_SHOWN else ""
    return f"{'. '.join(told[:N_SHOWN])}.{more}"


def _mixture(runs: Sequence[Prompted], is_mixed: BoolArray) -> str:
    """Say how the prompts of a task differ between models; nothing where they do not, or where nobody tells.

    Where hashes tell prompts, those that most models had are the usual ones. What hashes do not tell, settings do.
    """
    has_other = any(is_mixed[run.items].any() for run in runs)
    if not has_other and all((run.hashes != NO_HASH).all() for run in runs):
        return ""
    hashed = [run for run in runs if run.is_told_by_hash]
    rest = [run for run in runs if not run.is_told_by_hash]
    n_other = _n_other(hashed) if has_other and hashed else [0] * len(hashed)
    usual = [run.settings for run, n in zip(hashed, n_other, strict=True) if not n] or _commonest(rest or hashed)
    is_apart = any(all(settings_apart(run.settings, one) for one in usual) for run in rest)
    if not is_apart and not any(n_other):
        return ""
    return _in_groups([*hashed, *rest], [*n_other, *([0] * len(rest))])


def _n_other(runs: Sequence[Prompted]) -> list[int]:
    """Count the items of each run that had another prompt than in most runs."""
    rows = pl.DataFrame(
        {
            "run": np.repeat(np.arange(len(runs)), [run.items.size for run in runs]),
            "item": np.concatenate([run.items for run in runs]),
            "hash": np.concatenate([run.hashes for run in runs]),
        }
    ).filter(pl.col("hash") != NO_HASH)
    counted = rows.group_by("item", "hash", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    usual = counted.unique("item", keep="first", maintain_order=True).select("item", usual="hash")
    other = rows.join(usual, on="item").filter(pl.col("hash") != pl.col("usual"))
    counts = Counter(other.unique(["run", "item"])["run"].to_list())
    return [counts[run] for run in range(len(runs))]


def _commonest(runs: Sequence[Prompted]) -> list[Mapping[str, Any]]:
    """Return the settings that most runs have, as a list of one."""
    texts = [settings_text(run.settings) for run in runs]
    return [runs[texts.index(Counter(texts).most_common(1)[0][0])].settings]


def _in_groups(runs: Sequence[Prompted], n_other: Sequence[int]) -> str:
    """Say how many models were asked in which way, the largest group first; the models of others are named."""
    told = [{name: run.settings.get(name) for name in IN_WORDS} for run in runs]
    varying = [name for name in IN_WORDS if len({str(one[name]) for one in told} - {"None"}) > 1]
    groups: dict[tuple[str, bool], dict[str, int]] = {}
    for run, one, n in zip(runs, told, n_other, strict=True):
        words = settings_in_words({name: one[name] for name in varying}, is_whole=True)
        groups.setdefault((words, n > 0), {}).setdefault(run.model_id, n)
    ordered = sorted(groups.items(), key=lambda pair: -len(pair[1]))
    parts = []
    for place, ((words, is_other), models) in enumerate(ordered):
        n_models = plural(len(models), "model")
        names = f" ({shown(list(models))})" if place else ""
        is_alike = is_other and (not words or (words, False) in groups)
        other = f"other prompts for {plural(max(models.values()), 'item')}" if is_alike else ""
        parts.append(f"{n_models}{names} {', '.join(filter(None, (words, other))) or 'the usual prompts'}")
    return "; ".join(parts)
