"""What pages say of items that may be wrong."""

import polars as pl

from itembank.auditing.item_audit import ItemAudit
from itembank.auditing.item_audit_names import REASONS, SAME_FOR_ALL
from itembank.pages.blocks import Column, Data, Table
from itembank.pages.theme import count

LONGEST_TEXT = 240
"""Characters of an item's text that a page shows."""

COLUMNS = (
    Column("item", "Item", "id"),
    Column("scenario", "Scenario", has_menu=True),
    Column("reason", "Reason", has_menu=True, explanation="The gravest; the evidence is of all"),
    Column("evidence", "Evidence", "prose"),
    Column("text", "Text", "prose"),
    Column("probability", "P(defect)", "number", 2, "Probability that the item is defective"),
    Column("mean", "Mean", "number", 2, "Mean response of all models"),
    Column(
        "item_rest", "Item-rest", "number", 2, "Correlation with the other items: below zero, better models fail more"
    ),
)
"""What a page has room for beside the evidence; the written table (-o FILE.csv) has the rest."""


def reasons_table(audit: ItemAudit) -> Table:
    """Return how many flagged items have each reason, and what it means."""
    counts = {name: n for name, n in audit.counts.items() if name not in SAME_FOR_ALL and was_looked_for(audit, name)}
    data = Data(
        "reasons",
        {"reason": list(counts), "items": list(counts.values()), "meaning": [REASONS[name] for name in counts]},
    )
    columns = (Column("reason", "Reason"), Column("items", "Items", "count"), Column("meaning", "What it means"))
    return Table("Reasons to look at an item", data, columns)


def items_table(audit: ItemAudit, table: pl.DataFrame, caption: str, note: str = "") -> Table:
    """Return rows of an audit's table, in its order."""
    data = Data("audit", _columns(table))
    held = tuple(one for one in COLUMNS if one.name in data.columns)
    words = f"In the order of {audit.order}. Answers alone were looked at: a person has to read what is flagged. "
    if "text" not in data.columns:
        words += "No texts of items are shown, for none were given: itembank import --items FILE takes them in. "
    return Table(caption, data, held, note=words + note)


def said(audit: ItemAudit) -> str:
    """Return in sentences how many items are flagged, and how many tell nothing."""
    counts = audit.counts
    return (
        f"Flagged: {audit.said}. Nobody solves {count(counts['dead'])} items, everybody {count(counts['saturated'])}: "
        "these tell nothing of models, and are not flagged for it."
    )


def was_looked_for(audit: ItemAudit, reason: str) -> bool:
    """Return whether the audit looked for a reason: duplicates and groups may have been left out."""
    if reason == "duplicate":
        return "duplicate_of" in audit.table.columns
    return reason != "differs" or audit.differential is not None


def _columns(table: pl.DataFrame) -> dict[str, object]:
    """Return the columns that are known of any item, by our names."""
    found = {
        "item": table["item_id"],
        "scenario": table["scenario"] if table["scenario"].n_unique() > 1 else None,
        "reason": table["reason"],
        **{name: table[name].round(4) for name in ("probability", "mean", "item_rest")},
        "evidence": table["evidence"],
    }
    if "text" in table.columns:
        found["text"] = pl.Series([_cut(text) for text in table["text"].to_list()], dtype=pl.String)
    return {name: values for name, values in found.items() if values is not None and not _is_empty(values)}


def _is_empty(values: object) -> bool:
    return isinstance(values, pl.Series) and values.null_count() == values.len() > 0


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
