"""Whether items were asked as the bank's were: contents, prompts, versions and harnesses, as the tables tell."""

from collections.abc import Iterator, Sequence

import polars as pl

from itembank.data.banks import Bank
from itembank.data.readers.agreement import CONTENT, in_both, only_items, other_in
from itembank.data.responses import ResponseMatrix
from itembank.errors import DataError, shown

ITEM_CONDITIONS = ("prompt_hash", "task_version", "n_shot", "num_fewshot", "metric", "filter", "harness")
MODEL_CONDITIONS = ("prompt_hash", "task_version", "n_shot", "num_fewshot", "harness", "chat_template", "system_prompt")
_ENDING = "_version"


def with_same_content(bank: Bank, new: ResponseMatrix) -> tuple[ResponseMatrix, tuple[str, ...]]:
    """Leave out items whose content is not that of the bank's item, and say all that is known to have changed.

    Raises
    ------
    DataError
        When no item has the bank's content.
    """
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
    left_out = f"the content of {n} is not the bank's, they are left out: {shown(changed)}."
    same, _ = only_items(new, sorted(set(new.item_ids) - set(changed)))
    return same, (left_out, *conditions)


def changed_conditions(new: ResponseMatrix, bank: ResponseMatrix) -> Iterator[str]:
    """Say of each column that both tables have what differs from the bank's.

    An item is compared with the bank's item of the same id, a model with all models of the bank: versions and harnesses
    that none of these was run with. Columns of items: `prompt_hash`, `task_version`, `n_shot`, `num_fewshot`, `metric`,
    `filter`, `harness`; of models: those that say how it was run, and all that end in `_version`.
    """
    for column in _shared(new.items, bank.items, ITEM_CONDITIONS):
        changed = other_in(in_both(new.items, bank.items, column), column)
        if changed:
            yield f"{column} is another than the bank's for {len(changed)} of {new.n_items} items: {shown(changed)}."
    for column in _shared(new.models, bank.models, MODEL_CONDITIONS):
        known = bank.models[column].cast(pl.String).drop_nulls().unique().sort().to_list()
        values = new.models.select("model_id", pl.col(column).cast(pl.String)).drop_nulls()
        other = values.filter(~pl.col(column).is_in(known))
        if known and other.height:
            found = ", ".join(map(repr, other[column].unique().sort().to_list()[:5]))
            yield (
                f"{column} is {found} for {shown(other['model_id'].to_list())}, and for the bank's models "
                f"{', '.join(map(repr, known[:5]))}{', ...' if len(known) > 5 else ''}."
            )


def _shared(new: pl.DataFrame, known: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Columns of both tables that say how something was run."""
    return [name for name in new.columns if name in known.columns and (name in names or name.endswith(_ENDING))]
