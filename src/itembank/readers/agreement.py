"""Reading new results as the items of a bank were read: the same metric and filter, the same content."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, remedy, shown, warn
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import CONTENT_FIELDS
from itembank.responses.how_read import CONTENT, HowRead, check_one_power, check_read_alike
from itembank.responses.prompts import how_to_mix
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural

if TYPE_CHECKING:
    from itembank.readers.matching import Document


def read_new_responses(
    paths: Sequence[str | Path], items_of_bank: pl.DataFrame, *, spec: ReadingSpec | None = None, match: str = "auto"
) -> ResponseMatrix:
    """Read results of new models, which hold no more than the items that were run, as the bank's items were read.

    Documents of logs are found among the bank's items by the rule `match` (`itembank.readers.matching`), and have the
    ids that they have in the bank then. By default that is done where the bank has no item of the logs' tasks.
    """
    from itembank.readers import matching  # noqa: PLC0415 (a session needs no more than `only_items`)
    from itembank.readers.read import read_matrix  # noqa: PLC0415

    sources = [Path(path) for path in paths]
    spec = spec or ReadingSpec()
    is_asked = match != matching.AUTO or CONTENT_FIELDS in items_of_bank.columns
    documents = matching.logged_documents(sources, spec, None if is_asked else items_of_bank)
    if match != matching.AUTO and not documents:
        raise DataError(
            f"items are matched in logs of lm-evaluation-harness and Inspect, got {shown(list(map(str, sources)))} and "
            f"{match!r}. Leave {remedy('match', '--match')} out, or give the logs."
        )
    found = matching.find_logged(items_of_bank, documents, match) if documents else {}
    places = {item: (one.task, one.name) for item, one in found.items()}
    if match == matching.AUTO and CONTENT not in items_of_bank.columns and any(k != d.place for k, d in found.items()):
        tasks = shown(sorted({one.task for one in found.values()}))
        message = f"{tasks}: {plural(len(found), 'document', 'are')} taken for the bank's items by their ids alone"
        warn(
            f"{message}: it has no content hashes to compare. Name the field ({remedy('match', '--match')}).",
            DataWarning,
        )
    known = matching.in_harness(items_of_bank, places) if found else items_of_bank
    matrix = read_matrix(sources, spec_like(known, spec))
    return _by_bank_ids(matrix, items_of_bank, found) if found else matrix


def _by_bank_ids(
    matrix: ResponseMatrix, items_of_bank: pl.DataFrame, found: "Mapping[str, Document]"
) -> ResponseMatrix:
    """Return responses to documents by the ids of the items that they are; others keep theirs.

    Contents are hashed as the bank's are.
    """
    ids = {one.place: item for item, one in found.items()}
    table = matrix.items.with_columns(pl.col("item_id").replace(ids))
    if CONTENT_FIELDS in items_of_bank.columns:
        named = items_of_bank.filter(pl.col("item_id").is_in(list(found)) & pl.col(CONTENT_FIELDS).is_not_null())
        fields = dict(named.select("item_id", CONTENT_FIELDS).iter_rows())
        hashes = {item: found[item].content(text) for item, text in fields.items()}
        table = table.with_columns(
            pl.col("item_id").replace_strict(hashes, default=pl.col(CONTENT), return_dtype=pl.String).alias(CONTENT),
            pl.col("item_id").replace_strict(fields, default=None, return_dtype=pl.String).alias(CONTENT_FIELDS),
        )
    return matrix.with_tables(items=table)


def only_items(responses: ResponseMatrix, item_ids: pl.Series | Sequence[str]) -> tuple[ResponseMatrix, list[str]]:
    """Return the responses to these items, and the ids of the others."""
    ids = responses.items["item_id"]
    is_wanted = ids.is_in(pl.Series(item_ids, dtype=pl.String).implode())
    if is_wanted.all():
        return responses, []
    return responses.take(items=np.flatnonzero(is_wanted.to_numpy())), ids.filter(~is_wanted).to_list()


def without_unattempted(responses: ResponseMatrix, item_ids: pl.Series) -> ResponseMatrix:
    """Leave out items that are not among these and that nobody answered: those of a bank lack what all models lost."""
    kept = responses.items["item_id"].is_in(item_ids.implode()).to_numpy() | responses.observed.any(axis=0)
    return responses.take(items=np.flatnonzero(kept)) if kept.any() and not kept.all() else responses


def spec_like(items: pl.DataFrame, spec: ReadingSpec) -> ReadingSpec:
    """Fill in how these items were read, where `spec` chooses nothing: metric and filter of each task, lost answers.

    Items that came from harness logs tell them, with their task; without, another default might be taken from
    the new logs, which then would not be comparable.
    """
    read = HowRead(items)
    metrics = sorted(set(items["metric"].drop_nulls())) if "metric" in items.columns else []
    if spec.response != "metric" and metrics:
        raise DataError(
            f"new logs must be read as the bank's were, by metric {shown(metrics)}, got response={spec.response!r}. "
            "Leave response=... out, or calibrate a bank with it."
        )
    metric, filter_name = (
        chosen if any("=" not in one for one in chosen) else (*chosen, *own)
        for chosen, own in ((spec.metric, read.metrics), (spec.filter_name, read.filters))
    )
    return replace(spec, metric=(*metric, *read.power_names), filter_name=filter_name, usual_errors=read.lost_as)


def check_same_content(items: pl.DataFrame, known: pl.DataFrame) -> None:
    """Raise `DataError` when an item has another content hash than the known item of the same id, or another score.

    Items without a hash in either table are not compared, nor those whose hash is of fields that one alone names.
    """
    check_one_power([items, known])
    both = in_both(items, known, CONTENT)
    changed = other_in(both, CONTENT)
    if changed:
        raise DataError(
            f"items must have the content the bank was calibrated on, got {len(changed)} of {both.height} with "
            f"another: {shown(changed)}. The benchmark changed, another harness ran it, or unsorted ids were given to "
            "lm_eval --samples; run the version of the bank, or calibrate a new one."
        )


def check_same_prompts(
    items: pl.DataFrame, known: pl.DataFrame, *, advice: str | None = None, is_ignored: bool = False
) -> None:
    """Raise `DataError` when items were read otherwise than the bank's (`check_read_alike`).

    `advice` says how those with other prompts are taken anyway.
    """
    unlike = "Scores under other prompts, judges or scales are not comparable: run the items as the bank's runs did."
    check_read_alike(items, known, advice=f"{unlike} {advice or how_to_mix()}", is_ignored=is_ignored)


def in_both(items: pl.DataFrame, known: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the items that both tables have: `item_id`, the column as text, and the known one as `column_known`.

    Without rows where either table lacks the column. Content hashes of named fields are compared where both name them.
    """
    if column == CONTENT and CONTENT_FIELDS in known.columns and CONTENT_FIELDS not in items.columns:
        known = known.filter(pl.col(CONTENT_FIELDS).is_null())
    if column not in items.columns or column not in known.columns:
        return pl.DataFrame(schema=dict.fromkeys(("item_id", column, f"{column}_known"), pl.String))
    ours, theirs = (table.select("item_id", pl.col(column).cast(pl.String)) for table in (items, known))
    return ours.join(theirs, on="item_id", suffix="_known")


def other_in(both: pl.DataFrame, column: str) -> list[str]:
    """Ids of the items of `in_both` whose values are known and differ."""
    return both.filter(pl.col(column) != pl.col(f"{column}_known"))["item_id"].to_list()
