"""The page of transfers: how well the ability that some items give predicts scores on others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from itembank.errors import ParameterError
from itembank.pages.blocks import Block, Caution, Chart, Column, Data, Section, Table, Text
from itembank.pages.grammar import PRECISE, marks, menu, number, of, panels, score, span, tips
from itembank.pages.render import Page
from itembank.pages.theme import level_words, percent, points
from itembank.scaling.transfers.transfers import Transfer

MOST_PANELS = 24
TOO_NARROW = 0.05
"""How far below their level intervals may hold before a reader is told."""
UNINFORMED = "uninformed"
ALONE = 340


def transfer_page(found: Sequence[Transfer], *, title: str = "", command: str = "") -> Page:
    """Return the page of one transfer, or of several: easy to hard items of every scenario.

    Raises
    ------
    ParameterError
        Without any transfer.
    """
    if not found:
        raise ParameterError("a page of transfers needs at least one, got none.")
    first, single = found[0], len(found) == 1
    charts = (agreement_chart(found), *((transfer_curves_chart(found),) if len(first.k) > 1 else ()))
    words = "What each method was worth; 'uninformed' knows no answer at all."
    return Page(
        title=title
        or (f"From {first.source} to {first.target}" if single else f"{len(found)} transfers from easy to hard items"),
        kind="Transfer",
        lead=(Text(_words_of_one(first) if single else _words_of_many(found)), *_cautions(found)),
        sections=(Section("Predicted and actual", charts), Section("Methods", (_methods(found),), words)),
        command=command,
    )


def _row(found: Transfer, method: str = "") -> dict[str, float]:
    """Return what a method was worth, the prediction's own by default."""
    wanted = method or found.method
    return next(row for row in found.method_rows() if row["method"] == wanted)


def _words_of_many(found: Sequence[Transfer]) -> str:
    """Say how far off predictions were, and what no answer at all would give."""
    errors = np.array([_row(one)["error"] for one in found])
    without = np.array([_row(one, UNINFORMED)["error"] for one in found])
    best, worst = found[int(np.nanargmin(errors))], found[int(np.nanargmax(errors))]
    return (
        f"The ability on a scenario's easy items predicts the score on its hard ones within "
        f"{points(float(np.nanmean(errors)))} on average; without any answer it would be "
        f"{points(float(np.nanmean(without)))}. It works best on {best.source}, and worst on {worst.source}."
    )


def _words_of_one(one: Transfer) -> str:
    """Say how far off a prediction was, and how alike the abilities are."""
    own, nothing, validity = _row(one), _row(one, UNINFORMED), one.to_dict()
    what = "score" if one.k == (1,) else "pass@k"
    return (
        f"From the ability on {one.source}, the {what} on {one.target} is predicted within {points(own['error'])} on "
        f"average; without any answer it would be {points(nothing['error'])}. The two abilities correlate by "
        f"{one.correlation:.2f} ({validity['correlation_lower']:.2f} to {validity['correlation_upper']:.2f})."
    )


def _cautions(found: Sequence[Transfer]) -> list[Block]:
    low = [one for one in found if _row(one)["coverage"] < one.level - TOO_NARROW]
    made: list[Block] = [
        Caution(
            f"{_name(one)}: {level_words(one.level)} intervals held only {percent(_row(one)['coverage'])} of the "
            "scores."
        )
        for one in low[:3]
    ]
    useless = [one for one in found if _row(one)["error"] >= _row(one, UNINFORMED)["error"]]
    if useless:
        names = ", ".join(_name(one) for one in useless[:3])
        made.append(Caution(f"The prediction is no better than the mean of other models: {names}."))
    return made


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
        alone=ALONE,
        height=200,
        resolve={"scale": {"x": "independent", "y": "independent"}},
    )
    words = "; ".join(
        f"{_name(one)}: mean error {points(_row(one)['error'])}, intervals held {percent(_row(one)['coverage'])}"
        for one in drawn
    )
    return Chart(
        f"Predicted from {first.source} against actual on {first.target}"
        if single
        else "Predicted against actual scores on the hard items",
        spec,
        (Data("agreement", {name: [row[k] for row in rows] for k, name in enumerate(names)}),),
        f"{words}.",
        note=f"On the dashed line the prediction is right. Bars are {level_words(first.level)} intervals; r is the "
        "correlation of the two abilities. "
        "No model calibrated the items of its own prediction.",
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


def _methods(found: Sequence[Transfer]) -> Table:
    rows = [{"transfer": _name(one), **row} for one in found for row in one.method_rows()]
    for row in rows:
        row |= {name: 100.0 * row[name] for name in ("error", "error_standard_error", "bias", "width")}
    columns = (
        Column("transfer", "Transfer", has_menu=True),
        Column("method", "Method", has_menu=True),
        Column("error", "Mean error (points)", "number", 2),
        Column("error_standard_error", "±", "number", 2, "Standard error, over groups or models"),
        Column("bias", "Bias (points)", "number", 2),
        Column("correlation", "Correlation", "number", 2, "Of predicted and actual scores"),
        Column("coverage", "Held", "percent"),
        Column("width", "Width (points)", "number", 1, "Mean width of the intervals"),
    )
    return Table.of("Methods", "transfer-methods", rows, columns)
