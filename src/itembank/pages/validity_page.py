"""The page of convergent validity: how far scenarios measure the same ability."""

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Answer, Answers, Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import Spec, tips
from itembank.pages.common import Pair, columns_of, plural
from itembank.pages.panels import in_order
from itembank.pages.render import Page
from itembank.pages.theme import level_words
from itembank.scaling.transfers.convergent_results import ConvergentValidity, CorrelationTable

MOST_WRITTEN = 16
"""Scenarios up to which each cell of a matrix states its number."""
TITLES = {
    "observed": "Correlations of measured abilities",
    "disattenuated": "The same without the errors of the abilities",
    "beyond-compute": "What is left when training compute is taken out",
}


def validity_page(found: ConvergentValidity, *, title: str = "", command: str = "") -> Page:
    """Return the page of correlations between the abilities that scenarios measure."""
    tables = {"observed": found.observed, "disattenuated": found.disattenuated, "beyond-compute": found.beyond_compute}
    charts: list[Block] = []
    for name, one in tables.items():
        if one is not None and np.isfinite(_off(one)).any():
            charts.append(_matrix(found, one, name))
    return Page(
        title=title or f"How far {plural(len(found.scenarios), 'scenario')} measure the same",
        kind="Convergent validity",
        lead=_lead(found),
        sections=(
            Section("Every pair of scenarios", (*charts, _pairs(found))),
            Section("How well each is measured", (_reliability(found),)),
        ),
        provenance=_provenance(found),
        command=command,
    )


def _off(table: CorrelationTable) -> FloatArray:
    result: FloatArray = table.value[np.triu_indices(table.value.shape[0], k=1)]
    return result


def _lead(found: ConvergentValidity) -> tuple[Block, ...]:
    rows = [row for row in found.rows() if np.isfinite(row["correlation"])]
    if not rows:
        return (Text("No pair of scenarios has enough models in common for a correlation."), Text(found.message))
    first, last = rows[0], rows[-1]
    median = float(np.median([row["correlation"] for row in rows]))
    unclear = sum(not row["lower"] > 0.0 for row in rows)
    level = level_words(found.level)
    answers = [Answer("Median correlation", f"{median:.2f}", words=f"over {plural(len(rows), 'pair')} of scenarios")]
    for label, row in (("Most alike", first), ("Least alike", last)):
        interval = f"{row['lower']:.2f} to {row['upper']:.2f}, {level} interval"
        answers.append(Answer(f"{label}: {row['first']} and {row['second']}", f"{row['correlation']:.2f}", interval))
    words = (
        f"Abilities on two scenarios correlate by {median:.2f} in the middle of all pairs; {first['first']} and "
        f"{first['second']} agree most ({first['correlation']:.2f}), {last['first']} and {last['second']} least "
        f"({last['correlation']:.2f}). "
        + (f"Of {plural(unclear, 'pair')}, none is clearly above 0." if unclear else "All are clearly above 0.")
    )
    return (Text(words), Answers(tuple(answers)))


def _matrix(found: ConvergentValidity, table: CorrelationTable, name: str) -> Chart:
    order = found.order.tolist()
    names = [found.scenarios[k] for k in order]
    value, lower, upper = (one[np.ix_(order, order)] for one in (table.value, table.lower, table.upper))
    row, column = np.nonzero(np.isfinite(value) & ~np.eye(len(names), dtype=bool))
    data = Data(
        f"validity-{name}",
        {
            "row": [names[k] for k in row],
            "column": [names[k] for k in column],
            "row_place": row,
            "column_place": column,
            "value": value[row, column],
            "low": lower[row, column],
            "high": upper[row, column],
            "clear": ["clear" if one > 0.0 else "not clear" for one in lower[row, column]],
        },
    )
    known = value[row, column]
    above = sum(one == "clear" for one in data.columns["clear"]) // 2
    top = np.argsort(-known, kind="stable")[::2][:5].tolist()
    words = "; ".join(f"{names[row[k]]} and {names[column[k]]} {known[k]:.2f}" for k in top)
    return Chart(
        f"{TITLES[name]}: {above} of {plural(len(data) // 2, 'pair')} are clearly above 0",
        _heat(len(names)),
        (data,),
        f"The highest: {words}. The median is {np.median(known):.2f}.",
        note="Scenarios that agree stand side by side. Blue: positive; orange: negative. Pale: not clearly above 0 at "
        f"{level_words(found.level)}.",
    )


def _heat(n_scenarios: int) -> Spec:
    step = int(np.clip(620 // n_scenarios, 15, 54))
    shown = tips(
        row="Scenario",
        column="and",
        value=("Correlation", ".2f"),
        low=("From", ".2f"),
        high=("To", ".2f"),
    )
    colour = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [-1, 1], "range": "diverging"},
        "legend": {"title": "Correlation", "orient": "bottom", "gradientLength": 200},
    }
    opacity = {"condition": {"test": "datum.clear === 'clear'", "value": 1}, "value": 0.4}
    parts: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": "@paper"},
            "encoding": {"color": colour, "opacity": opacity, "tooltip": shown},
        }
    ]
    if n_scenarios <= MOST_WRITTEN:
        ink = {
            "condition": {"test": "datum.clear === 'clear' && datum.value > 0.7", "value": "@paper"},
            "value": "@ink",
        }
        text = {"field": "value", "type": "quantitative", "format": ".2f"}
        parts.append({"mark": {"type": "text", "fontSize": 10}, "encoding": {"text": text, "color": ink}})
    look: Spec = {"grid": False, "domain": False, "labelLimit": 130}
    x, y = (
        in_order("column", "column_place", labelAngle=-45, orient="top", **look),
        in_order("row", "row_place", **look),
    )
    return {
        "autosize": "pad",
        "width": {"step": step},
        "height": {"step": min(step, 30)},
        "encoding": {"x": x, "y": y},
        "layer": parts,
    }


def _pairs(found: ConvergentValidity) -> Table:
    rows = found.rows()
    level = level_words(found.level)
    columns = [
        Column("first", "Scenario", has_menu=True),
        Column("second", "and", has_menu=True),
        Column("n_models", "Models", "count"),
        Column("correlation", "Correlation", "number", digits=2),
        Column("lower", f"{level} from", "number", digits=2),
        Column("upper", "to", "number", digits=2),
        Column(
            "disattenuated", "Without errors", "number", digits=2, explanation="Of the abilities themselves (Spearman)"
        ),
    ]
    if found.beyond_compute is not None:
        columns.append(
            Column("beyond_compute", "Beyond compute", "number", digits=2, explanation="Training compute taken out")
        )
    data = Data("validity-pairs", columns_of(rows, columns))
    return Table("Pairs of scenarios", data, tuple(columns))


def _reliability(found: ConvergentValidity) -> Table:
    columns = (
        Column("scenario", "Scenario"),
        Column(
            "reliability",
            "Reliability",
            "number",
            digits=2,
            explanation="Share of the variance of ability that is no error of its estimate",
        ),
    )
    return Table(
        "Reliability",
        Data("reliability", {"scenario": list(found.scenarios), "reliability": found.reliability}),
        columns,
        n_shown=60,
    )


def _provenance(found: ConvergentValidity) -> tuple[Pair, ...]:
    drawn = "" if found.n_groups is None else f", {found.n_groups} groups"
    by = {"fisher": "Fisher's z", "bootstrap": "models drawn anew"}.get(found.interval, found.interval)
    return (
        ("Models", f"{len(found.model_ids)}"),
        ("Intervals", f"{level_words(found.level)}, by {by}{drawn}"),
        *((("Remark", found.message),) if found.message else ()),
    )
