"""Charts of transfers, and of how far scenarios measure the same ability; and how tables of correlations look."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Chart, Column, Data, Table, heads
from itembank.pages.grammar import (
    PRECISE,
    Spec,
    cells,
    marks,
    menu,
    nominal,
    number,
    of,
    panels,
    picture,
    ramp,
    score,
    span,
    tips,
    when,
)
from itembank.pages.theme import count, level_words, percent, points, shortened
from itembank.tables import plural
from itembank_scaling.transfers.convergent import ConvergentValidity
from itembank_scaling.transfers.transfers import Transfer

TITLES = {
    "observed": "Correlations of measured abilities",
    "disattenuated": "The same without the errors of the abilities",
    "beyond_compute": "What is left when training compute is taken out",
}
MOST_PANELS = 24


def _row(found: Transfer) -> dict[str, float]:
    return next(row for row in found.method_rows() if row["method"] == found.method)


def _name(one: Transfer) -> str:
    return f"{one.source} to {one.target}"


def agreement_chart(found: Sequence[Transfer]) -> Chart:
    """Draw predicted against actual scores with intervals, a panel a transfer."""
    drawn = found[:MOST_PANELS]
    single, first = len(drawn) == 1, drawn[0]
    rows = []
    for place, one in enumerate(drawn):
        panel = (f"{one.target}, r = {one.correlation:.2f}", place)
        groups = one.groups or [""] * len(one.model_ids)
        values = (one.actual, one.prediction.value, one.prediction.lower, one.prediction.upper)
        numbers = np.array([value[:, 0] for value in values])  # (4, n_models)
        known = np.flatnonzero(np.isfinite(numbers[:2]).all(axis=0)).tolist()
        rows += [(*panel, one.model_ids[k], groups[k], *numbers[:, k].tolist()) for k in known]
    names = ("panel", "place", "model_id", "group", "actual", "value", "low", "high")
    what = "score" if first.k[0] == 1 else f"pass@{first.k[0]}"
    x, y = score("actual", f"Actual {what}"), score("value", f"Predicted {what}")
    group = {} if first.groups is None else {"group": "Group"}
    told = {"actual": "Actual", "value": "Predicted", "low": "From", "high": "To"}
    tip = tips(model_id="Model", **group, **{name: (title, PRECISE) for name, title in told.items()})
    spec = panels(
        "panel",
        "place",
        marks("rule", x, span(y), color="@soft", opacity=0.6),
        marks("line", x, of(y, "actual"), color="@muted", strokeDash=[4, 3], strokeWidth=1),
        marks("point", x, y, tip=tip, size=26, color="@main", opacity=0.85),
        n=len(drawn),
        alone=340,
        height=200,
        resolve={"scale": {"x": "independent", "y": "independent"}},
    )
    words = "; ".join(
        f"{_name(one)}: mean error {points(_row(one)['error'])}, coverage {percent(_row(one)['coverage'], 0)}"
        for one in drawn
    )
    related = "r is the correlation of the two abilities."
    if single:
        related = f"The two abilities have a correlation of {first.correlation:.2f}."
    return Chart(
        f"Predicted from {first.source} against actual on {first.target}"
        if single
        else "Predicted against actual scores on the hard items",
        spec,
        (Data("agreement", {name: [row[k] for row in rows] for k, name in enumerate(names)}),),
        f"{words}.",
        note=f"On the dashed line the prediction is right. Bars are {level_words(first.level)} intervals. "
        f"{related} No model calibrated the items of its own prediction.",
    )


def transfer_curves_chart(found: Sequence[Transfer]) -> Chart:
    """Draw pass@k of one model, predicted and actual, chosen from a menu, a panel a transfer."""
    drawn = found[:MOST_PANELS]
    first = drawn[0]
    columns: dict[str, list[Any]] = {}
    for place, one in enumerate(drawn):
        n_models, n_k = one.actual.shape
        made = one.prediction
        numbers = {"actual": one.actual, "value": made.value, "low": made.lower, "high": made.upper}
        own = {
            "panel": [_name(one)] * (n_models * n_k),
            "place": [place] * (n_models * n_k),
            "model_id": [name for name in one.model_ids for _ in range(n_k)],
            "k": list(one.k) * n_models,
            **{name: values.ravel().tolist() for name, values in numbers.items()},
        }
        columns = {name: columns.get(name, []) + values for name, values in own.items()}
    models = list(dict.fromkeys(name for one in drawn for name in one.model_ids))
    x = number("k", "Samples k", "~s", log=True, tickCount=4)
    y = number("value", "pass@k", ".1f", domain=[0.0, 1.0])
    own_model = "datum.model_id === model"
    told = {"value": "Predicted", "low": "From", "high": "To", "actual": "Actual"}
    tip = tips(k=("k", ",d"), **{name: (title, ".3f") for name, title in told.items()})
    spec = panels(
        "panel",
        "place",
        marks("area", x, span(y), where=own_model, color="@main", opacity=0.18),
        marks("line", x, y, tip=tip, where=own_model, color="@main"),
        marks("point", x, of(y, "actual"), tip=tip, where=own_model, color="@ink", size=34, opacity=1),
        n=len(drawn),
        params=menu("model", models, models[0]),
    )
    words = ", ".join(f"{value:.2f} at k = {k:,d}" for k, value in zip(first.k, first.prediction.value[0], strict=True))
    return Chart(
        "pass@k, predicted and actual",
        spec,
        (Data("transfer-curves", columns),),
        f"Predicted pass@k of {models[0]} on {first.target}: {words}.",
        note=f"The line is predicted, the band its {level_words(first.level)} interval, points are actual.",
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
    be = "is" if len(data) == 2 else "are"
    top = np.argsort(-known, kind="stable")[::2][:5].tolist()
    highest = [f"{row[k]} and {column[k]} {known[k]:.2f}" for k in top]
    columns = (
        *heads("row", "column"),
        Column("value", "Correlation", "number", 2),
        Column("low", "From", "number", 2),
        Column("high", "To", "number", 2),
    )
    return Chart(
        f"{TITLES[table]}: {count(above)} of {plural(len(data) // 2, 'pair')} {be} clearly above 0",
        spec,
        (data,),
        f"The highest: {'; '.join(highest)}. The median is {np.median(known):.2f}.",
        table=Table(TITLES[table], data, columns),
        note=f"Most alike: {highest[0]}. Scenarios that agree are side by side. Blue: positive; orange: "
        f"negative. Pale: not clearly above 0 at {level_words(found.level)}.",
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
        form=".2f" if len(names) <= 16 else "",  # cells of larger tables have no room for their numbers
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
    note = f"Bars: ± one standard error. In brackets: {level_words(found.level)} interval."
    return Chart(words, spec, (Data("abilities", columns),), f"{words}.", note=note)


def charts_of_validity(found: ConvergentValidity) -> tuple[Chart, ...]:
    """Draw every table of correlations that was made."""
    return tuple(validity_chart(found, table=name) for name in TITLES if getattr(found, name) is not None)


def charts_of_transfer(found: Transfer) -> tuple[Chart, ...]:
    """Draw predicted against actual scores, and pass@k where there is more than one k."""
    return (agreement_chart([found]), *((transfer_curves_chart([found]),) if len(found.k) > 1 else ()))
