"""The page of convergent validity: how far scenarios measure the same ability."""

from typing import Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Answer, Answers, Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import layers, tips
from itembank.pages.common import Pair, columns_of, plural
from itembank.pages.heat import correlation_data, heat
from itembank.pages.panels import across, ends, marked
from itembank.pages.render import Page
from itembank.pages.theme import level_words, shortened
from itembank.scaling.transfers.convergent import ConvergentValidity, CorrelationTable

TITLES = {
    "observed": "Correlations of measured abilities",
    "disattenuated": "The same without the errors of the abilities",
    "beyond_compute": "What is left when training compute is taken out",
}


def validity_page(found: ConvergentValidity, *, title: str = "", command: str = "") -> Page:
    """Return the page of correlations between the abilities that scenarios measure."""
    charts: list[Block] = []
    for name in TITLES:
        one: CorrelationTable | None = getattr(found, name)
        if one is not None and np.isfinite(_off(one)).any():
            charts.append(validity_chart(found, table=name))
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


def validity_chart(found: ConvergentValidity, *, table: str = "observed") -> Chart:
    """Draw correlations of abilities as a heat map, scenarios that agree side by side (IRSL Figures 22 and 23).

    Parameters
    ----------
    found : ConvergentValidity
    table : {'observed', 'disattenuated', 'beyond_compute'}

    Raises
    ------
    ParameterError
        For another table, or one that was not made.
    """
    chosen = getattr(found, table) if table in TITLES else None
    if chosen is None:
        raise ParameterError(f"table must be one of {', '.join(TITLES)} that was made, got {table!r}.")
    order = found.order.tolist()
    names = [found.scenarios[k] for k in order]
    value, lower, upper = (one[np.ix_(order, order)] for one in (chosen.value, chosen.lower, chosen.upper))
    data = correlation_data(f"validity-{table.replace('_', '-')}", names, value, lower, upper)
    row, column, known = (data.columns[one] for one in ("row_place", "column_place", "value"))
    if not len(data):
        words = "No two scenarios have models in common"
        return Chart(words, heat(len(names)), (data,), f"{words}.")
    above = sum(one == "clear" for one in data.columns["clear"]) // 2
    top = np.argsort(-known, kind="stable")[::2][:5].tolist()
    words = "; ".join(f"{names[row[k]]} and {names[column[k]]} {known[k]:.2f}" for k in top)
    return Chart(
        f"{TITLES[table]}: {above} of {plural(len(data) // 2, 'pair')} are clearly above 0",
        heat(len(names)),
        (data,),
        f"The highest: {words}. The median is {np.median(known):.2f}.",
        note="Scenarios that agree stand side by side. Blue: positive; orange: negative. Pale: not clearly above 0 at "
        f"{level_words(found.level)}.",
    )


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
        columns |= {
            name: theta[:, k],
            f"{name}_low": theta[:, k] - error[:, k],
            f"{name}_high": theta[:, k] + error[:, k],
        }
    x, y = across("x", f"Ability on {first}"), across("y", f"Ability on {second}")
    parts = [
        marked("rule", {"x": x, **ends(y, "y_low", "y_high")}, color="@soft", opacity=0.6),
        marked("rule", {"y": y, **ends(x, "x_low", "x_high", along="x")}, color="@soft", opacity=0.6),
        marked("point", {"x": x, "y": y, "tooltip": tips(model="Model")}, opacity=0.85),
    ]
    low, value, high = (table[i, j] for table in (found.observed.lower, found.observed.value, found.observed.upper))
    words = f"{shortened(first)} and {shortened(second)} correlate {value:.2f} ({low:.2f} to {high:.2f}) over models"
    note = f"Bars: one standard error to each side. In brackets: {level_words(found.level)} interval."
    return Chart(words, layers(*parts, height=440), (Data("abilities", columns),), f"{words}.", note=note)


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
