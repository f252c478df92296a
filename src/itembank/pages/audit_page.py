"""The page of an item audit: what may be wrong with each item, the worst first."""

from collections.abc import Iterator

import polars as pl

from itembank.diagnostics.differential_results import DifferentialItems
from itembank.diagnostics.item_audit_names import REASONS
from itembank.diagnostics.item_audit_results import ItemAudit, LabelCheck
from itembank.pages.audit_blocks import NO_REASON, items_table, reasons_table, said, was_looked_for
from itembank.pages.blocks import Answer, Answers, Block, Caution, Chart, Column, Data, Page, Section, Table, Text
from itembank.pages.charts import Spec, brushed, layer, number_axis, tips
from itembank.pages.common import plural
from itembank.reports.theme import count, percent, points

MOST_ROWS = 5_000
"""Items that the page holds: the flagged ones, then those that come first."""
GRAVEST = ("wrong-key", "best-fail", "noise")
"""Reasons that speak of a fault in the item; the others may be meant so."""


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
    n_faulty = audit.having(GRAVEST).height
    probability = audit.table["probability"]
    return Answers(
        (
            Answer(
                "Items that may be faulty",
                count(n_faulty),
                words=f"{', '.join(GRAVEST[:-1])} or {GRAVEST[-1]}, of {plural(audit.table.height, 'item')}. By the "
                f"probabilities, faults to be expected in all: {_expected(probability)}.",
            ),
            *([_repeats(audit)] if was_looked_for(audit, "duplicate") else []),
            Answer(
                "Items that tell nothing",
                count(audit.counts["dead"] + audit.counts["saturated"]),
                words=f"No model solves {count(audit.counts['dead'])}, all solve {count(audit.counts['saturated'])}",
            ),
        )
    )


def _repeats(audit: ItemAudit) -> Answer:
    return Answer("Items that repeat another", count(audit.counts["duplicate"]), words=REASONS["duplicate"])


def _expected(probability: pl.Series) -> str:
    total = float(probability.sum() or 0.0)
    return f"{total:.1f}" if total < 10.0 else count(total)


def _items(audit: ItemAudit) -> Section:
    held = _held(audit.table)
    left = audit.table.height - held.height
    note = (
        f"{plural(left, 'item')} without a reason {'is' if left == 1 else 'are'} left out: -o FILE.csv writes all."
        if left
        else ""
    )
    table = items_table(audit, held, "Items, the worst first", note)
    return Section("Items", (reasons_table(audit), _picture(audit, table), table), said(audit))


def _held(table: pl.DataFrame) -> pl.DataFrame:
    """Rows that the page holds, flagged ones before others."""
    flagged = table.filter(pl.col("reason").is_not_null())
    return pl.concat([flagged, table.filter(pl.col("reason").is_null()).head(max(MOST_ROWS - flagged.height, 0))])


def _picture(audit: ItemAudit, table: Table) -> Chart:
    """P(defect) against the item-rest correlation."""
    rows = audit.table
    n_likely, n_negative = (
        int(rows.filter(one).height) for one in (pl.col("probability") >= 0.5, pl.col("item_rest") < 0)
    )
    verb = "is" if n_likely == 1 else "are"
    title = f"{plural(n_likely, 'item')} of {count(rows.height)} {verb} more probably defective than not"
    words = (
        f"{title}. On {plural(n_negative, 'item')} better models fail more often (item-rest correlation below zero)."
    )
    reasons = [name for name in (*REASONS, NO_REASON) if name in set(table.data.columns["reason"])]
    note = "Draw a rectangle to see its items in the table below."
    return Chart(title, _picture_spec(reasons), (table.data,), words, note=note, filters=table)


def _picture_spec(reasons: list[str]) -> Spec:
    colours = {
        **dict(zip(REASONS, ("@other", "@third", "@warn", "@main", "@ink", "@muted", "@muted"), strict=True)),
        NO_REASON: "@soft",
    }
    colour = {
        "field": "reason",
        "type": "nominal",
        "title": "Reason",
        "sort": reasons,
        "scale": {"domain": reasons, "range": [colours[name] for name in reasons]},
        "legend": {"orient": "top", "columns": 4, "title": None},
    }
    tooltip = tips(
        item="Item",
        reasons="Reasons",
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
