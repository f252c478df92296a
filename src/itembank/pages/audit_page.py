"""The page of an item audit: what may be wrong with each item, the worst first."""

from collections.abc import Iterator

import polars as pl

from itembank.auditing.differential_items import DifferentialItems
from itembank.auditing.item_audit import ItemAudit, LabelCheck
from itembank.auditing.item_audit_names import SAME_FOR_ALL
from itembank.pages.audit_blocks import items_table, reasons_table, said
from itembank.pages.blocks import Answer, Answers, Block, Caution, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import Spec, brushed, layer, number_axis, tips
from itembank.pages.common import plural
from itembank.pages.render import Page
from itembank.pages.theme import count, percent, points

MOST_ROWS = 5_000
"""Flagged items that the page lists, and items without a reason that it draws."""
NO_REASON = "none"
COLOURS = {
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
    sections = [_items(audit), *_known(audit.labels), *_groups(audit.differential)]
    return Page(
        title=title or "Item audit",
        kind="Item audit",
        lead=(_answers(audit), *(Caution(one) for one in audit.cautions)),
        sections=tuple(sections),
        provenance=(("Models", count(audit.n_models)), ("Items", count(audit.table.height))),
        command=command,
    )


def _answers(audit: ItemAudit) -> Answers:
    counts = audit.counts
    main = ", ".join(f"{count(n)} {name}" for name, n in counts.items() if n and name not in SAME_FOR_ALL)
    return Answers(
        (
            Answer(
                "Flagged items",
                count(audit.flagged.height),
                words=f"of {plural(audit.table.height, 'item')}{': ' if main else ''}{main}",
            ),
            Answer(
                "Items that tell nothing",
                count(counts["dead"] + counts["saturated"]),
                words=f"Nobody solves {count(counts['dead'])}, everybody {count(counts['saturated'])}",
            ),
        )
    )


def _items(audit: ItemAudit) -> Section:
    flagged = audit.flagged
    left = flagged.height - MOST_ROWS
    note = "All items stand in what -o FILE.csv writes, also those that nobody solves."
    if left > 0:
        note = f"{plural(left, 'flagged item')} did not fit in the page. {note}"
    table = items_table(audit, flagged.head(MOST_ROWS), "Flagged items", note)
    blocks = (reasons_table(audit), _picture(audit, table), table) if flagged.height else (_picture(audit, None),)
    return Section("Items", blocks, said(audit))


def _picture(audit: ItemAudit, table: Table | None) -> Chart:
    """P(defect) against the item-rest correlation."""
    rows = audit.table.with_columns(pl.col("reason").fill_null(NO_REASON))
    plain = rows.filter(reason=NO_REASON)
    drawn = pl.concat([plain.head(MOST_ROWS), rows.filter(pl.col("reason") != NO_REASON).reverse()])
    title = "Probability of a defect, and whether better models are right more often"
    n_negative = int((rows["item_rest"] < 0.0).sum())
    words = (
        f"Of {plural(rows.height, 'item')}, better models fail more often on {count(n_negative)}: their item-rest "
        "correlation is below zero."
    )
    left = rows.height - drawn.height
    note = "Draw a rectangle to see its flagged items in the table below. " if table is not None else ""
    note += f"{plural(left, 'item')} without a reason, the least suspicious, are not drawn." if left else ""
    names = {"item": "item_id", "reason": "reason", "evidence": "evidence"}
    columns = {name: drawn[source] for name, source in names.items()}
    numbers = {name: drawn[name].round(4) for name in ("probability", "item_rest")}
    reasons = [name for name in COLOURS if name in set(drawn["reason"])]
    return Chart(title, _picture_spec(reasons), (Data("drawn", columns | numbers),), words, note=note, filters=table)


def _picture_spec(reasons: list[str]) -> Spec:
    colour = {
        "field": "reason",
        "type": "nominal",
        "title": "Reason",
        "sort": reasons,
        "scale": {"domain": reasons, "range": [COLOURS[name] for name in reasons]},
        "legend": {"orient": "top", "columns": 4, "title": None},
    }
    tooltip = tips(
        item="Item",
        reason="Reason",
        probability=("P(defect)", ".2f"),
        item_rest=("Item-rest", ".2f"),
        evidence="Evidence",
    )
    points_part = layer(
        {"type": "point", "size": 30},
        x=number_axis("item_rest", "Item-rest correlation"),
        y=number_axis("probability", "Probability of a defect", scale={"domain": [0, 1]}),
        color=colour,
        opacity={"condition": {"param": "brush", "value": 0.75}, "value": 0.1},
        tooltip=tooltip,
    )
    return {"width": "container", "height": 300, **brushed(points_part)}


def _known(labels: LabelCheck | None) -> Iterator[Section]:
    """How well known bad items are found, by what had not seen their group."""
    if labels is None:
        return
    first = ", ".join(f"{percent(share, 0)} of the first {n}" for n, share in labels.first.items())
    lead = (
        f"{plural(labels.n_bad, 'item')} were known to be bad. A bad item is ranked before a good one with probability "
        f"{labels.area:.3f}; bad are {first}."
    )
    said_, real, n_items = (list(one) for one in zip(*labels.calibration, strict=True))
    data = Data("known_bad", {"said": said_, "real": real, "items": n_items})
    columns = (
        Column("said", "Probability said", "percent"),
        Column("real", "Share that was bad", "percent"),
        Column("items", "Items", "count"),
    )
    yield Section("Items known to be bad", (Table("What came true of the probabilities", data, columns),), lead)


def _groups(found: DifferentialItems | None) -> Iterator[Section]:
    """Say what items that differ between groups of models do to scores, and which they are."""
    if found is None:
        return
    scores = found.scores
    data = Data(
        "group_scores",
        {
            name: scores[name]
            for name in ("group", "scenario", "score_effect", "n_flagged", "n_items", "flagged_effect")
        },
    )
    columns = (
        Column("group", "Group", has_menu=True),
        Column("scenario", "Scenario"),
        Column("score_effect", "Points at equal ability", "points", explanation="How much higher the group scores"),
        Column("n_flagged", "Items that differ", "count"),
        Column("n_items", "Of items", "count"),
        Column("flagged_effect", "Points by these", "points"),
    )
    largest = scores[int(scores["score_effect"].abs().fill_nan(0.0).arg_max() or 0)].to_dicts() if scores.height else []
    lead = "".join(
        f"At equal ability, models of {row['group']} differ most in {row['scenario']}: "
        f"{points(row['score_effect'], is_signed=True)}."
        for row in largest
    )
    blocks: list[Block] = [Table(f"Scores by {found.column}", data, columns), *(Text(one) for one in found.notes)]
    flagged = found.flagged.head(MOST_ROWS)
    if flagged.height:
        blocks.insert(1, _differing(flagged))
    yield Section(f"Models by {found.column}", tuple(blocks), lead)


def _differing(flagged: pl.DataFrame) -> Table:
    names = ("item_id", "scenario", "group", "effect", "adjusted_p", "mh_class")
    data = Data("differing", {name.removesuffix("_id"): flagged[name] for name in names})
    columns = (
        Column("item", "Item", "id"),
        Column("scenario", "Scenario", has_menu=True),
        Column("group", "Group", has_menu=True),
        Column("effect", "Points at equal ability", "points"),
        Column("adjusted_p", "Adjusted p", "number", 4),
        Column("mh_class", "Size", explanation="Of Mantel and Haenszel: A small, B middling, C large"),
    )
    return Table("Items easier or harder for a group than its ability says", data, columns)
