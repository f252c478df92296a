"""The page of convergent validity: how far scenarios measure the same ability; and how tables of correlations look."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Chart, Data, Section, Text
from itembank.pages.grammar import Spec, cells, marks, nominal, number, picture, ramp, span, tips, when
from itembank.pages.render import Page
from itembank.pages.theme import level_words, plural, shortened
from itembank.scaling.transfers.convergent import ConvergentValidity, CorrelationTable

TITLES = {
    "observed": "Correlations of measured abilities",
    "disattenuated": "The same without the errors of the abilities",
    "beyond_compute": "What is left when training compute is taken out",
}
MOST_WRITTEN = 16
"""Names up to which each cell of a table of correlations states its number."""


def validity_page(found: ConvergentValidity, *, title: str = "", command: str = "") -> Page:
    """Return the page of correlations between the abilities that scenarios measure."""
    charts = []
    for name in TITLES:
        one: CorrelationTable | None = getattr(found, name)
        if one is not None and np.isfinite(one.value[np.triu_indices(one.value.shape[0], k=1)]).any():
            charts.append(validity_chart(found, table=name))
    return Page(
        title=title or f"How far {plural(len(found.scenarios), 'scenario')} measure the same",
        kind="Convergent validity",
        lead=(Text(_words(found)), Text(found.message)),
        sections=(Section("Every pair of scenarios", tuple(charts)),),
        provenance=(("Models", f"{len(found.model_ids)}"),),
        command=command,
    )


def _words(found: ConvergentValidity) -> str:
    """Say how far scenarios correlate, and which most and least."""
    rows = [row for row in found.rows() if np.isfinite(row["correlation"])]
    if not rows:
        return "No pair of scenarios has enough models in common for a correlation."
    first, last = rows[0], rows[-1]
    median = float(np.median([row["correlation"] for row in rows]))
    return (
        f"Abilities on two scenarios correlate by {median:.2f} in the middle of all pairs; {first['first']} and "
        f"{first['second']} agree most ({first['correlation']:.2f}), {last['first']} and {last['second']} least "
        f"({last['correlation']:.2f})."
    )


def validity_chart(found: ConvergentValidity, *, table: str = "observed") -> Chart:
    """Draw correlations of abilities, scenarios that agree side by side (IRSL Figures 22 and 23).

    Raises `ParameterError` for another table than those of `TITLES`, or one that was not made.
    """
    chosen = getattr(found, table) if table in TITLES else None
    if chosen is None:
        raise ParameterError(f"table must be one of {', '.join(TITLES)} that was made, got {table!r}.")
    matrices = (chosen.value, chosen.lower, chosen.upper)
    data, spec = correlations(f"validity-{table.replace('_', '-')}", found.scenarios, found.order, matrices)
    row, column, known = (data.columns[one] for one in ("row", "column", "value"))
    if not len(data):
        words = "No two scenarios have models in common"
        return Chart(words, spec, (data,), f"{words}.")
    above = sum(one == "clear" for one in data.columns["clear"]) // 2
    top = np.argsort(-known, kind="stable")[::2][:5].tolist()
    words = "; ".join(f"{row[k]} and {column[k]} {known[k]:.2f}" for k in top)
    return Chart(
        f"{TITLES[table]}: {above} of {plural(len(data) // 2, 'pair')} are clearly above 0",
        spec,
        (data,),
        f"The highest: {words}. The median is {np.median(known):.2f}.",
        note="Scenarios that agree stand side by side. Blue: positive; orange: negative. Pale: not clearly above 0 at "
        f"{level_words(found.level)}.",
    )


def correlations(
    data: str, names: Sequence[str], order: IntArray, tables: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[Data, Spec]:
    """Return the known cells of a table of correlations without its diagonal, in this order, and their picture.

    `tables` are the correlations and the ends of their intervals, each (n_names, n_names).
    """
    value, low, high = (one[np.ix_(order, order)] for one in tables)
    names = [names[k] for k in order.tolist()]
    row, column = np.nonzero(np.isfinite(value) & ~np.eye(len(names), dtype=bool))
    known = Data(
        data,
        {
            "row": [names[k] for k in row.tolist()],
            "column": [names[k] for k in column.tolist()],
            "row_place": row,
            "column_place": column,
            "value": value[row, column],
            "low": low[row, column],
            "high": high[row, column],
            "clear": ["clear" if one > 0.0 else "not clear" for one in low[row, column]],
        },
    )
    tip = tips(row="Scenario", column="and", value=("Correlation", ".2f"), low=("From", ".2f"), high=("To", ".2f"))
    step = int(np.clip(620 // len(names), 15, 54))
    spec = cells(
        nominal("column", "column_place", labelLimit=130),
        nominal("row", "row_place", labelLimit=130),
        ramp("value", "Correlation", domain=[-1, 1]),
        tip,
        step=(step, min(step, 30)),
        form=".2f" if len(names) <= MOST_WRITTEN else "",
        ink=when("datum.clear === 'clear' && datum.value > 0.7", "@paper", "@ink"),
        opacity=when("datum.clear === 'clear'", 1, 0.4),
    )
    return known, spec


def ability_pair_chart(found: ConvergentValidity, first: str, second: str) -> Chart:
    """Draw the abilities on two scenarios against each other, one dot a model (IRSL Figure 21).

    Raises
    ------
    ParameterError
        For a scenario that is not among those found.
    """
    absent = [name for name in (first, second) if name not in found.scenarios]
    if absent:
        raise ParameterError(f"scenarios must be among {', '.join(found.scenarios)}, got {', '.join(absent)}.")
    i, j = found.scenarios.index(first), found.scenarios.index(second)
    theta, error = found.theta, found.standard_errors
    columns: dict[str, Any] = {"model": found.model_ids}
    for name, k in (("x", i), ("y", j)):
        ends = {f"{name}_low": theta[:, k] - error[:, k], f"{name}_high": theta[:, k] + error[:, k]}
        columns |= {name: theta[:, k], **ends}
    x, y = number("x", f"Ability on {first}"), number("y", f"Ability on {second}")
    spec = picture(
        marks("rule", x, span(y, "y_low", "y_high"), color="@soft", opacity=0.6),
        marks("rule", span(x, "x_low", "x_high"), y, color="@soft", opacity=0.6),
        marks("point", x, y, tip=tips(model="Model"), opacity=0.85),
        height=440,
    )
    low, value, high = (table[i, j] for table in (found.observed.lower, found.observed.value, found.observed.upper))
    words = f"{shortened(first)} and {shortened(second)} correlate {value:.2f} ({low:.2f} to {high:.2f}) over models"
    note = f"Bars: one standard error to each side. In brackets: {level_words(found.level)} interval."
    return Chart(words, spec, (Data("abilities", columns),), f"{words}.", note=note)
