"""Whether items were asked as the bank's were: contents, prompts, versions and harnesses, as the tables tell; marks."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, shown
from itembank.files.documents import digest_of
from itembank.numerics.arrays import BoolArray
from itembank.readers.agreement import in_both, only_items, other_in
from itembank.responses.how_read import CONTENT
from itembank.responses.prompts import joined_settings, prompt_differences, settings_by_task, settings_in_words
from itembank.responses.responses import ResponseMatrix

_OF_ITEMS = ("task_version", "n_shot", "num_fewshot", "metric", "filter", "harness")
_OF_MODELS = ("prompt_hash", "task_version", "n_shot", "num_fewshot", "harness", "chat_template", "system_prompt")
_ENDING = "_version"


def with_same_content(bank: Bank, new: ResponseMatrix) -> tuple[ResponseMatrix, tuple[str, ...]]:
    """Leave out items whose content is not that of the bank's item, and say all that is known to have changed."""
    conditions = tuple(changed_conditions(new, bank.responses))
    changed = other_in(in_both(new.items, bank.responses.items, CONTENT), CONTENT)
    if not changed:
        return new, conditions
    if len(changed) == new.n_items:
        raise DataError(
            f"at least one item must have the content the bank was calibrated on, got {len(changed)} with another: "
            f"{shown(changed)}. The benchmark changed: run the version of the bank, or calibrate a new one."
        )
    n = f"{len(changed)} of {new.n_items} items"
    left_out = f"the content of {n} is not the bank's; they are left out: {shown(changed)}."
    same, _ = only_items(new, sorted(set(new.item_ids) - set(changed)))
    return same, (left_out, *conditions)


def changed_conditions(new: ResponseMatrix, bank: ResponseMatrix) -> Iterator[str]:
    """Say of each column that both tables have what differs from the bank's.

    An item is compared with the bank's item of the same id, a model with all models of the bank: versions and harnesses
    that none of these was run with. Of items: prompts (`prompt_differences`) and the columns `task_version`, `n_shot`,
    `num_fewshot`, `metric`, `filter`, `harness`; of models: those that say how it was run, and all that end in
    `_version`.
    """
    words = prompt_differences(new.items, bank.items)
    if words:
        yield f"{words}."
    for column in _shared(new.items, bank.items, _OF_ITEMS):
        changed = other_in(in_both(new.items, bank.items, column), column)
        if changed:
            yield f"{column} differs from the bank's for {len(changed)} of {new.n_items} items: {shown(changed)}."
    for column in _shared(new.models, bank.models, _OF_MODELS):
        known = bank.models[column].cast(pl.String).drop_nulls().unique().sort().to_list()
        values = new.models.select("model_id", pl.col(column).cast(pl.String)).drop_nulls()
        other = values.filter(~pl.col(column).is_in(known))
        if known and other.height:
            found = ", ".join(map(repr, other[column].unique().sort().to_list()[:5]))
            yield (
                f"{column} is {found} for {shown(other['model_id'].to_list())}, and for past models "
                f"{', '.join(map(repr, known[:5]))}{', ...' if len(known) > 5 else ''}."
            )


def told_conditions(new: ResponseMatrix) -> dict[str, str]:
    """Sum up what the tables tell of how results were made: prompts, versions and harnesses, as a history keeps it.

    Of eight columns at most the first three values, and how many more there are; of long ones the digest's beginning.
    """
    words = settings_in_words(joined_settings(settings_by_task(new.items).values()))
    found = {"prompts": words} if words else {}
    for table, names in ((new.models, _OF_MODELS), (new.items, _OF_ITEMS)):
        for column in (name for name in table.columns if name in names or name.endswith(_ENDING)):
            values = table[column].cast(pl.String).drop_nulls().unique().sort().to_list()
            if values and column not in found and len(found) < 8:
                more = f" and {len(values) - 3} more" if len(values) > 3 else ""
                kept = (one if len(one) <= 40 else f"sha256 {digest_of(one.encode())[:12]}" for one in values[:3])
                found[column] = ", ".join(kept) + more
    return found


def marked_otherwise(bank: Bank, new: ResponseMatrix) -> str:
    """Say that new answers are graded where all of the past models are right or wrong; nothing where they are not.

    A probability, or a mean of attempts, is nearer to what is expected than any single answer: a model that misfits
    would seem to fit. Items are compared by their scenario, and must be the bank's.
    """
    scenario_of = bank.targets.scenario_index
    is_graded = np.zeros(bank.targets.n_scenarios, dtype=bool)
    is_graded[scenario_of[_graded(bank.responses)]] = True
    of_items = scenario_of[bank.responses.item_indices(new.item_ids)]
    other = [new.item_ids[column] for column in np.flatnonzero(_graded(new) & ~is_graded[of_items])]
    if not other:
        return ""
    return (
        f"answers must be right or wrong (0 or 1) where those of all past models are, and {len(other)} of "
        f"{new.n_items} items have others: {shown(other)}"
    )


def check_marked_alike(bank: Bank, new: ResponseMatrix) -> None:
    """Refuse graded answers where the bank's are right or wrong (`marked_otherwise`)."""
    reason = marked_otherwise(bank, new)
    if reason:
        raise DataError(
            f"{reason}. Their fit cannot be compared. Give single answers as 0 or 1, or calibrate a bank on answers "
            "like these."
        )


def _graded(responses: ResponseMatrix) -> BoolArray:
    """Which items have an answer other than 0 and 1, (n_items,)."""
    result = np.zeros(responses.n_items, dtype=np.bool_)
    if not responses.is_binary:
        for part in responses.parts():
            values = part.responses
            result |= (~np.isnan(values) & (values != 0.0) & (values != 1.0)).any(axis=0)
    return result


def _shared(new: pl.DataFrame, known: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Columns of both tables that say how something was run."""
    return [name for name in new.columns if name in known.columns and (name in names or name.endswith(_ENDING))]
