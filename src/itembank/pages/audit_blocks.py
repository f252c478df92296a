"""What pages say of items that may be wrong."""

import polars as pl

from itembank.diagnostics.item_audit_names import REASONS
from itembank.diagnostics.item_audit_results import ItemAudit
from itembank.pages.blocks import Column, Data, Table
from itembank.pages.common import plural
from itembank.reports.theme import count

LONGEST_TEXT = 240
"""Characters of an item's text that a page shows."""
NO_REASON = "none"

COLUMNS = (
    Column("item", "Item", "id"),
    Column("scenario", "Scenario", has_menu=True),
    Column("reason", "Reason", has_menu=True, explanation="The gravest; 'All reasons' has the others"),
    Column("reasons", "All reasons"),
    Column("evidence", "Evidence", "prose"),
    Column("text", "Text", "prose"),
    Column("probability", "P(defect)", "number", 2, "Probability that the item is defective"),
    Column("mean", "Mean", "number", 2, "Mean response of all models"),
    Column(
        "item_rest", "Item-rest", "number", 2, "Correlation with the other items: below zero, better models fail more"
    ),
    Column("best", "Best right", "text", explanation="How many of the best models that answered it are right"),
    Column("worth", "Worth", "number", 2, "To the ranking of models: 1 as an average item, below 0 it does harm"),
    Column("repeats", "Repeats", "id", explanation="The item that it seems to repeat"),
    Column("differs_for", "Differs for", explanation="The group of models for which it is easier (+) or harder (-)"),
    Column("differs_by", "By points", "points"),
    Column("rival", "Rival answer", explanation="The answer that better models choose rather than the key"),
)


def reasons_table(audit: ItemAudit) -> Table:
    """Return how many items have each reason, and what it means."""
    counts = {name: n for name, n in audit.counts.items() if was_looked_for(audit, name)}
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
    order = f"In the order of {audit.order}. Answers alone were looked at: a person has to read what is flagged. "
    return Table(caption, data, held, note=order + note)


def said(audit: ItemAudit) -> str:
    """Return in a sentence how many items are flagged."""
    n_flagged = audit.table["reason"].count()
    if not n_flagged:
        return f"None of {plural(audit.table.height, 'item')} is flagged."
    main = ", ".join(f"{count(n)} {name}" for name, n in audit.counts.items() if n)
    return f"{count(n_flagged)} of {plural(audit.table.height, 'item')} should be looked at: {main}."


def was_looked_for(audit: ItemAudit, reason: str) -> bool:
    """Return whether the audit looked for a reason: duplicates and groups may have been left out."""
    if reason == "duplicate":
        return "duplicate_of" in audit.table.columns
    return reason != "differs" or audit.differential is not None


def _columns(table: pl.DataFrame) -> dict[str, object]:
    """Return the columns that are known of any item, by our names."""
    best = [
        None if right is None else f"{right:g} of {n}"
        for right, n in zip(table["n_best_right"].to_list(), table["n_best"].to_list(), strict=True)
    ]
    found = {
        "item": table["item_id"],
        "scenario": table["scenario"] if table["scenario"].n_unique() > 1 else None,
        "reason": table["reason"].fill_null(NO_REASON),
        "reasons": table["reasons"] if table["reasons"].str.contains(",", literal=True).any() else None,
        **{name: table[name].round(4) for name in ("probability", "mean", "item_rest", "worth")},
        "best": best,
        "repeats": table.get_column("duplicate_of", default=None),
        "evidence": table["evidence"],
        **{name: table.get_column(name, default=None) for name in ("differs_for", "differs_by", "rival")},
    }
    if "text" in table.columns:
        found["text"] = [_cut(text) for text in table["text"].to_list()]
    return {name: values for name, values in found.items() if values is not None and not _is_empty(values)}


def _is_empty(values: object) -> bool:
    return isinstance(values, pl.Series) and values.null_count() == values.len() > 0


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
