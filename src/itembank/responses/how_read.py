"""`HowRead`: how the answers to some items were read, and the one comparison of two such readings.

Columns of the item table tell it, and so it travels with responses and banks: what lost answers counted as (`lost_as`),
of how many trials a response is the power (`pass_k`), which metric and filter were taken, and the prompt, the judge and
the reward that counts as one (`itembank.responses.prompts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from typing import cast

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, ItembankError, remedy, shell_word, shown, warn
from itembank.numerics.arrays import IntArray
from itembank.responses.error_kinds import Errors
from itembank.responses.prompts import prompt_differences, warn_of_versions
from itembank.responses.responses import DEFAULT_SCENARIO
from itembank.tables import plural

CONTENT = "content_hash"
"""Item column: a digest of what was asked and what is right."""
ATTEMPT_VARIANCE = "attempt_variance"
"""Item column: the variance of graded attempts of one model at an item, where responses are means of such; or null."""
LOST_AS = "lost_as"
"""Item column of a bank: what lost answers to an item counted as, where they did; null, or no column: not at all."""
PASS_K = "pass_k"  # noqa: S105 (no password)
"""Item column: the k of responses that are pass^k; null, or no column, where they are means of trials."""


@dataclass(frozen=True, slots=True)
class HowRead:
    """How the answers to n_items items were read, as far as their table says."""

    items: pl.DataFrame  # Table of n_items rows

    @property
    def lost_as(self) -> Errors | None:
        """What lost answers counted as; None where they did not, or not all alike."""
        found = self.items[LOST_AS].drop_nulls().unique().to_list() if LOST_AS in self.items.columns else []
        return cast("Errors", found[0]) if len(found) == 1 else None

    @property
    def powers(self) -> IntArray:
        """The k of each item, (n_items,); 0 where responses are means of trials."""
        if PASS_K not in self.items.columns:
            return np.zeros(self.items.height, dtype=np.int64)
        return self.items[PASS_K].cast(pl.Int64).fill_null(0).to_numpy()

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metric of each task, of each scenario where items came from tables, as 'task=name'."""
        return self._choices("metric", "{}")

    @property
    def filters(self) -> tuple[str, ...]:
        """Filter of each task, in the same way."""
        return self._choices("filter", "{}")

    @property
    def power_names(self) -> tuple[str, ...]:
        """What makes these responses of counted trials: 'pass^4', or 'task=pass^4' where tasks differ."""
        known = np.unique(self.powers).tolist()
        return tuple(f"pass^{k}" for k in known if k) if len(known) < 2 else self._choices(PASS_K, "pass^{}")

    def _choices(self, column: str, form: str) -> tuple[str, ...]:
        if column not in self.items.columns:
            return ()
        owner = "task" if "task" in self.items.columns else "scenario"
        pairs = self.items.select(owner, column).drop_nulls().unique(maintain_order=True)
        return tuple(f"{escape(task)}={form.format(name)}" for task, name in pairs.iter_rows())


LEAST_NAME = 4
"""Letters of an id of a known item that tell of which benchmark it is."""


def check_one_power(tables: Sequence[pl.DataFrame]) -> None:
    """Raise `DataError` where responses to an item are pass^k in one table of items and another score in the next."""
    if not any(PASS_K in table.columns for table in tables):
        return
    found = pl.concat([table.select("item_id", pl.Series("k", HowRead(table).powers)) for table in tables])
    scores = found.group_by("item_id", maintain_order=True).agg(pl.col("k").unique().sort())
    other = scores.filter(pl.col("k").list.len() > 1)
    if other.height:
        names = [f"pass^{k}" if k else "the mean of trials" for k in other["k"][0]]
        option = remedy(f"metric={names[-1]!r}", f"--metric {shell_word(names[-1])}")
        raise DataError(
            f"responses to an item must be of one score, got {' and '.join(names)} for {plural(other.height, 'item')}: "
            f"{shown(other['item_id'].to_list())}. Import all from their counted trials, with {option} or all without."
        )


def check_one_answer_each(items: pl.DataFrame, what: str) -> None:
    """Raise `DataError` where responses to some items are pass^k, of which a session is told one answer at a time."""
    k = int(HowRead(items).powers.max(initial=0))
    if k:
        raise DataError(
            f"{what} takes one answer an item, and responses of the bank are pass^{k}, of {k} trials each. Run some "
            f"items ({remedy('select(bank, ...)', 'itembank select')}) so often, and estimate or gate from the results."
        )


def check_read_alike(
    items: pl.DataFrame,
    known: pl.DataFrame,
    *,
    whose: str = "the bank's runs",
    advice: str,
    is_ignored: bool = False,
    error: type[ItembankError] = DataError,
) -> str:
    """Compare how answers to items were read with the known items of the same ids, `whose` the message says.

    Parameters
    ----------
    items, known : tables of items
    advice : str
        What to do about other prompts, rewards or judges (`prompt_differences`).
    is_ignored : bool
        Whether these may differ. Another version of a task whose prompts are the same is a `DataWarning` always.
    error : type
        What is raised of them.

    Returns
    -------
    str
        Half a sentence on what differs and is ignored; empty where nothing does.

    Raises
    ------
    DataError
        Where responses to an item are pass^k in one table and another score in the other.
    """
    check_one_power([items, known])
    _warn_of_scenarios(items, known, whose)
    words = prompt_differences(items, known, whose=whose)
    if words and not is_ignored:
        raise error(f"{words}. {advice}")
    if not words:
        warn_of_versions(items, known, whose=whose)
    return words


def _warn_of_scenarios(items: pl.DataFrame, known: pl.DataFrame, whose: str) -> None:
    """Warn where items are in none of the scenarios, subscenarios and tasks of the known items of the same ids.

    Ids may be those of another benchmark that numbers its items alike; names with numbers (django-11099) are of one
    alone. Contents that both tell are compared instead.
    """
    names = known["item_id"].cast(pl.String).str.replace_all(r"\P{L}", "").unique()
    if names.len() > 1 and bool((names.str.len_chars() >= LEAST_NAME).all()):
        return
    both = _places(items).join(_places(known), on="item_id", suffix="_known")
    both = both.filter(~(pl.col("has_content") & pl.col("has_content_known")))
    here, there = both["places"], both["places_known"]
    is_other = (here.list.len() > 0) & (there.list.len() > 0) & (here.list.set_intersection(there).list.len() == 0)
    other = both.filter(is_other)
    if other.height:
        item, had, have = other.select("item_id", "places_known", "places").row(0)
        warn(
            f"{other.height} of {both.height} items are in another scenario than those of {whose}: {item!r} is in "
            f"{have[0]!r}, and was in {had[0]!r}. Are they the same questions? Ids that only number them do not tell.",
            DataWarning,
        )


def _places(items: pl.DataFrame) -> pl.DataFrame:
    """Where each item is, as far as its table says by name: `places`, and whether its content is told."""
    names = [name for name in ("scenario", "subscenario", "task") if name in items.columns]
    content = pl.col(CONTENT).is_not_null() if CONTENT in items.columns else pl.lit(value=False)
    told = [pl.col(name).cast(pl.String).replace(DEFAULT_SCENARIO, None) for name in names]
    places = pl.concat_list(*told, pl.lit(None, pl.String)).list.drop_nulls()
    return items.select("item_id", content.alias("has_content"), places.alias("places"))
