"""A page of an item audit: one HTML file that needs nothing else."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from itembank.diagnostics.item_audit_names import REASONS
from itembank.diagnostics.item_audit_results import ItemAudit
from itembank.errors import visible

MOST_ROWS = 500
"""Flagged items that the page lists; a benchmark with more has other troubles, and a table (.csv) holds all."""
STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1a1a1a}
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;padding:.3rem .6rem;vertical-align:top;
border-bottom:1px solid #ddd}th{border-bottom:2px solid #888}
td.number{text-align:right;font-variant-numeric:tabular-nums}
td.id{font-family:ui-monospace,monospace;overflow-wrap:anywhere}td.text{max-width:28rem;color:#444}
.caution{background:#fff4d6;padding:.6rem 1rem;border-left:4px solid #d9a400}"""


def item_audit_page(audit: ItemAudit) -> str:
    """Write an audit as HTML: counts, cautions, how well known bad items are found, and the flagged items.

    Everything that comes from the data is escaped.
    """
    flagged = audit.table.filter(audit.table["reason"].is_not_null())
    parts = [
        f"<h1>Item audit</h1><p>{audit.table.height} items, answered by {audit.n_models} models.</p>",
        *(f'<p class="caution">{_safe(one)}</p>' for one in audit.cautions),
        _counts(audit),
        _known(audit),
        _groups(audit),
        f"<h2>Flagged items, by {_safe(audit.order)}</h2>",
        f"<p>The first {MOST_ROWS} of {flagged.height}.</p>" if flagged.height > MOST_ROWS else "",
        _items(flagged.head(MOST_ROWS).iter_rows(named=True), has_text="text" in flagged.columns),
    ]
    body = "\n".join(part for part in parts if part)
    head = f'<meta charset="utf-8"><title>Item audit</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _counts(audit: ItemAudit) -> str:
    rows = [[_cell(name), _cell(str(count), "number"), _cell(REASONS[name])] for name, count in audit.counts.items()]
    return _table(["reason", "items", "what it means"], rows)


def _known(audit: ItemAudit) -> str:
    """How well known bad items are found, by what had not seen their group."""
    if audit.labels is None:
        return ""
    first = ", ".join(f"{share:.0%} of the first {n}" for n, share in audit.labels.first.items())
    rows = [
        [_cell(f"{said:.2f}", "number"), _cell(f"{real:.2f}", "number"), _cell(str(count), "number")]
        for said, real, count in audit.labels.calibration
    ]
    text = f"<h2>Items known to be bad</h2><p>{audit.labels.n_bad} items; AUC {audit.labels.area:.3f}; bad are {first}."
    return f"{text}</p>{_table(['probability said', 'share bad', 'items'], rows)}"


def _groups(audit: ItemAudit) -> str:
    """Say what items that differ do to scores."""
    if audit.differential is None:
        return ""
    rows = [
        [
            _cell(row["group"]),
            _cell(row["scenario"]),
            _cell(f"{100.0 * row['score_effect']:+.1f}", "number"),
            _cell(f"{row['n_flagged']} of {row['n_items']}", "number"),
            _cell(f"{100.0 * row['flagged_effect']:+.1f}", "number"),
        ]
        for row in audit.differential.scores.to_dicts()
    ]
    heading = f"<h2>Scores by {_safe(audit.differential.column)}</h2>"
    names = ["group", "scenario", "points at equal ability", "items that differ", "points by these"]
    notes = "".join(f"<p>{_safe(one)}</p>" for one in audit.differential.notes)
    return heading + _table(names, rows) + notes


def _items(rows: Iterable[Mapping[str, Any]], *, has_text: bool) -> str:
    names = ["item", "reasons", "P(defect)", "mean", "item-rest", "best right", "worth", "evidence"]
    return _table([*names, *(["text"] if has_text else [])], [_item(row, has_text=has_text) for row in rows])


def _item(row: Mapping[str, Any], *, has_text: bool) -> list[str]:
    mean, worth = ("-" if row[name] is None else f"{row[name]:.2f}" for name in ("mean", "worth"))
    return [
        _cell(row["item_id"], "id"),
        _cell(row["reasons"]),
        _cell(f"{row['probability']:.2f}", "number"),
        _cell(mean, "number"),
        _cell(f"{row['item_rest']:.2f}", "number"),
        _cell(f"{row['n_best_right']:g}/{row['n_best']}", "number"),
        _cell(worth, "number"),
        _cell(row["evidence"]),
        *([_cell(row["text"] or "", "text")] if has_text else []),
    ]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_safe(name)}</th>" for name in names)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{''.join(cells)}</tr>\n" for cells in rows) + "</table>"


def _cell(text: str, kind: str = "") -> str:
    return f'<td class="{kind}">{_safe(text)}</td>' if kind else f"<td>{_safe(text)}</td>"


def _safe(text: str) -> str:
    return html.escape(visible(text))
