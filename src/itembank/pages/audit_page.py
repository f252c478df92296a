"""The page of an item audit: what may be wrong with each item, the worst first."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from itembank.auditing.differential_items import DifferentialItems
from itembank.auditing.item_audit import ItemAudit
from itembank.auditing.item_audit_names import REASONS, SAME_FOR_ALL
from itembank.pages.blocks import Answer, Answers, Block, Caution, Chart, Column, Data, Section, Table, Text, heads
from itembank.pages.grammar import IN_BRUSH, brushed, marks, number, picture, shade, tips, when
from itembank.pages.render import Page
from itembank.pages.theme import count, percent, points
from itembank.tables import plural

LONGEST_TEXT = 240
"""Characters of an item's text that a page shows."""
BELOW_ZERO = "Correlation with the other questions: below zero, better models fail more often"
COLUMNS = (
    *heads("item", "probability", "reason", "evidence", "text"),
    Column("item_rest", "Item-rest", "number", 2, BELOW_ZERO),
    *heads("mean", "scenario"),
)
"""What a page has room for beside the evidence; the written table (-o FILE.csv) has the rest."""
MOST_ROWS = 5_000
"""Flagged items that the page lists, and items without a reason that it draws."""
NO_REASON = "no reason"
TONES = {
    "wrong-key": "@c1",
    "best-fail": "@c2",
    "noise": "@c4",
    "duplicate": "@c0",
    "differs": "@c5",
    "dead": "@c7",
    "saturated": "@c6",
    NO_REASON: "@soft",
}


def audit_page(audit: ItemAudit, *, title: str = "", command: str = "") -> Page:
    """Return the page of an audit: counts, cautions, a picture of all items and a table to filter by reason."""
    counts, flagged = audit.counts, audit.flagged
    answers = (
        Answer(
            "Flagged as possibly faulty", count(flagged.height), words=f"of {plural(audit.table.height, 'question')}"
        ),
        Answer(
            "All models answer alike",
            count(counts["dead"] + counts["saturated"]),
            words=f"{count(counts['dead'])} solved by no model (dead), {count(counts['saturated'])} by all (saturated)",
        ),
    )
    table = _items_table(audit)
    blocks = (_reasons_table(audit), _chart(audit, table), table) if flagged.height else (_chart(audit, None),)
    return Page(
        title=title or "Item audit",
        kind="Item audit",
        lead=(Text(_sentence(audit)), Answers(answers), *(Caution(one) for one in audit.cautions)),
        sections=(Section("Questions", blocks), *_known(audit.labels), *_groups(audit.differential)),
        provenance=(("Models", count(audit.n_models)), ("Questions", count(audit.table.height))),
        command=command,
    )


_MEANS = {name: words.replace("item", "question") for name, words in REASONS.items()}


def _sentence(audit: ItemAudit) -> str:
    counts = {name: n for name, n in audit.counts.items() if n and name not in SAME_FOR_ALL}
    if not counts:
        return "No question is flagged: the answers give no reason to doubt any of them."
    gravest = max(counts, key=counts.__getitem__)
    return (
        f"{count(audit.flagged.height)} of {plural(audit.table.height, 'question')} may be faulty and should be read, "
        f"most probable first. The most frequent reason is {gravest} ({count(counts[gravest])}): {_MEANS[gravest]}."
    )


def _reasons_table(audit: ItemAudit) -> Table:
    """Return how many flagged items have each reason that was looked for, and what it means."""
    left_out = set(SAME_FOR_ALL)
    left_out |= set() if "duplicate_of" in audit.table.columns else {"duplicate"}
    left_out |= set() if audit.differential is not None else {"differs"}
    rows = [
        {"reason": name, "items": n, "meaning": _MEANS[name]}
        for name, n in audit.counts.items()
        if name not in left_out
    ]
    columns = (Column("reason", "Reason"), *heads("items", "meaning"))
    return Table.of("Reasons to read a question", "reasons", rows, columns)


def _items_table(audit: ItemAudit) -> Table:
    """Return the flagged items, in the audit's order, with the columns that are known of any item."""
    table = audit.flagged.head(MOST_ROWS)
    known = table.select("scenario", "reason", "evidence", pl.col("probability", "mean", "item_rest").round(4))
    if known["scenario"].n_unique() <= 1:
        known = known.drop("scenario")
    found = {"item": table["item_id"], **known.to_dict()}
    if "text" in table.columns:
        texts = [
            text if text is None or len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
            for text in table["text"].to_list()
        ]
        found["text"] = pl.Series(texts, dtype=pl.String)
    data = Data("audit", {name: one for name, one in found.items() if not one.null_count() == one.len() > 0})
    words = f"In the order of {audit.order}. Only answers were examined: a person has to read what is flagged. "
    if "text" not in data.columns:
        words += "Texts are missing: itembank import --items FILE adds them. "
    left = audit.flagged.height - MOST_ROWS
    words += f"{plural(left, 'flagged question')} did not fit in the page. " if left > 0 else ""
    words += "itembank check -o FILE.csv writes all questions, flagged or not."
    return Table("Flagged questions", data, tuple(one for one in COLUMNS if one.name in data.columns), note=words)


def _chart(audit: ItemAudit, table: Table | None) -> Chart:
    """P(defect) against the item-rest correlation."""
    rows = audit.table.with_columns(pl.col("reason").fill_null(NO_REASON))
    drawn = pl.concat(
        [rows.filter(reason=NO_REASON).head(MOST_ROWS), rows.filter(pl.col("reason") != NO_REASON).reverse()]
    )
    n_negative = int((rows["item_rest"] < 0.0).sum())
    words = (
        f"Better models fail more often on {count(n_negative)} of {plural(rows.height, 'question')}: the item-rest "
        "correlation of these is below zero."
    )
    left = rows.height - drawn.height
    note = "Draw a rectangle to see its flagged questions in the table below. " if table is not None else ""
    note += f"{plural(left, 'question')} without a reason, the least suspicious, are not drawn." if left else ""
    columns = {"item": drawn["item_id"], "reason": drawn["reason"], "evidence": drawn["evidence"]}
    columns |= {name: drawn[name].round(4) for name in ("probability", "item_rest")}
    there = set(drawn["reason"])
    tip = tips(
        item="Question",
        reason="Reason",
        probability=("P(defect)", ".2f"),
        item_rest=("Item-rest", ".2f"),
        evidence="Evidence",
    )
    points = marks(
        "point",
        number("item_rest", "Item-rest correlation"),
        number("probability", "Probability of a defect", domain=[0, 1]),
        tip=tip,
        color=shade("reason", {name: tone for name, tone in TONES.items() if name in there}, columns=4),
        opacity=when(IN_BRUSH, 0.75, 0.1),
        size=30,
    )
    title = f"Better models fail more often on {count(n_negative)} of {plural(rows.height, 'question')}"
    spec = picture(brushed(points), height=300)
    return Chart(title, spec, (Data("drawn", columns),), words, note=note, filters=table)


def _known(labels: Mapping[str, Any] | None) -> Iterator[Section]:
    """Say how well known bad items are found, cross-validated by group."""
    if labels is None:
        return
    first = ", ".join(f"{percent(share, 0)} of the first {n}" for n, share in labels["first"].items())
    lead = (
        f"{plural(labels['n_bad'], 'question')} were known to be faulty. The audit ranks a faulty question before a "
        f"good one with probability {labels['area']:.3f}.{f' Of its ranking, {first} are faulty.' if first else ''}"
    )
    columns = heads("said", "real", "items")
    bins = zip(*(one.values() for one in labels["calibration"]), strict=True)
    rows = {one.name: list(values) for one, values in zip(columns, bins, strict=True)}
    table = Table.of("Predicted probabilities against the truth", "known_bad", rows, columns)
    yield Section("Questions known to be faulty", (table,), lead)


def _groups(found: DifferentialItems | None) -> Iterator[Section]:
    """Say what items that differ between groups of models do to scores, and which they are."""
    if found is None:
        return
    scores = found.scores
    columns = (
        *heads("group"),
        Column("scenario", "Scenario"),
        *heads("score_effect", "n_flagged"),
        Column("n_items", "Of", "count"),
        *heads("flagged_effect"),
    )
    largest = scores[int(scores["score_effect"].abs().fill_nan(0.0).arg_max() or 0)].to_dicts() if scores.height else []
    lead = "".join(
        f"At equal ability, models of {row['group']} differ most from the others, in {row['scenario']}: "
        f"{points(row['score_effect'], is_signed=True)}."
        for row in largest
    )
    blocks: list[Block] = [
        Table.of(f"Scores by {found.column}", "group_scores", scores, columns),
        *(Text(one) for one in found.notes),
    ]
    flagged = found.flagged.head(MOST_ROWS).rename({"item_id": "item"})
    if flagged.height:
        columns = heads("item", "group", "effect", "adjusted_p", "mh_class", "scenario")
        caption = "Questions easier or harder for a group than its ability predicts"
        blocks.insert(1, Table.of(caption, "differing", flagged, columns))
    yield Section(f"Models by {found.column}", tuple(blocks), lead)
