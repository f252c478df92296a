"""The page of transfers: how well the ability that some items give predicts scores on others."""

from collections.abc import Sequence

import numpy as np

from itembank.errors import ParameterError
from itembank.pages.blocks import Answer, Answers, Block, Caution, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import Spec, layers, tips
from itembank.pages.common import Pair, columns_of, plural
from itembank.pages.panels import across, in_order, panels
from itembank.pages.render import Page
from itembank.pages.theme import count, level_words, percent, points
from itembank.scaling.transfers.transfers import Transfer

MOST_PANELS = 24
TOO_NARROW = 0.05
"""How far below their level intervals may hold before a reader is told."""
UNINFORMED = "uninformed"


def transfer_page(found: Sequence[Transfer], *, title: str = "", command: str = "") -> Page:
    """Return the page of one transfer, or of several: easy to hard items of every scenario.

    Raises
    ------
    ParameterError
        Without any transfer.
    """
    if not found:
        raise ParameterError("a page of transfers needs at least one, got none.")
    first = found[0]
    single = len(found) == 1
    sections = [Section("Predicted and actual", (agreement_chart(found), _models(found)))]
    if not single:
        sections.insert(0, Section("Errors", (transfer_errors_chart(found),)))
    if len(first.k) > 1:
        sections.append(Section("Curves", (transfer_curves_chart(found),)))
    sections.append(
        Section("Methods", (_methods(found),), "What each method was worth; 'uninformed' knows no answer at all.")
    )
    return Page(
        title=title
        or (f"From {first.source} to {first.target}" if single else f"{len(found)} transfers from easy to hard items"),
        kind="Transfer",
        lead=(*_lead(found), *_cautions(found)),
        sections=tuple(sections),
        provenance=_provenance(first),
        command=command,
    )


def _row(found: Transfer, method: str = "") -> dict[str, float]:
    """Return what a method was worth, the prediction's own by default."""
    wanted = method or found.method
    return next(row for row in found.method_rows() if row["method"] == wanted)


def _lead(found: Sequence[Transfer]) -> tuple[Block, ...]:
    """Say how far off predictions were, and what no answer at all would give."""
    if len(found) > 1:
        errors = np.array([_row(one)["error"] for one in found])
        without = np.array([_row(one, UNINFORMED)["error"] for one in found])
        best, worst = found[int(np.nanargmin(errors))], found[int(np.nanargmax(errors))]
        return (
            Text(
                f"The ability on a scenario's easy items predicts the score on its hard ones within "
                f"{points(float(np.nanmean(errors)))} on average; without any answer it would be "
                f"{points(float(np.nanmean(without)))}. It works best on {best.source}, and worst on {worst.source}."
            ),
        )
    one = found[0]
    own, nothing = _row(one), _row(one, UNINFORMED)
    validity = one.to_dict()
    what = "score" if one.k == (1,) else "pass@k"
    sentence = (
        f"From the ability on {one.source}, the {what} on {one.target} is predicted within {points(own['error'])} on "
        f"average; without any answer it would be {points(nothing['error'])}. The two abilities correlate by "
        f"{one.correlation:.2f} ({validity['correlation_lower']:.2f} to {validity['correlation_upper']:.2f})."
    )
    level = level_words(one.level)
    answers = (
        Answer(
            "Mean error",
            points(own["error"]),
            f"± {100.0 * own['error_standard_error']:.2f}",
            f"{plural(len(one.model_ids), 'model')}, by {one.method}",
        ),
        Answer(
            "Correlation of abilities",
            f"{one.correlation:.2f}",
            f"{validity['correlation_lower']:.2f} to {validity['correlation_upper']:.2f}",
            f"without errors of measurement {one.disattenuated:.2f}",
        ),
        Answer(f"{level} intervals that held", percent(own["coverage"]), words=f"mean width {points(own['width'])}"),
    )
    return (Text(sentence), Answers(answers))


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


def transfer_errors_chart(found: Sequence[Transfer]) -> Chart:
    """Draw the error of every transfer beside that of no answer at all."""
    order = sorted(found, key=lambda one: _row(one)["error"])
    own, without = ([_row(one, method)["error"] for one in order] for method in ("", UNINFORMED))
    data = Data(
        "transfer-errors",
        {
            "transfer": [_name(one) for one in order],
            "place": list(range(len(order))),
            "error": [100.0 * value for value in own],
            "without": [100.0 * value for value in without],
            "correlation": [one.correlation for one in order],
        },
    )
    y = in_order("transfer", "place", labelLimit=230)
    shown = tips(
        transfer="Transfer",
        error=("Mean error (points)", ".2f"),
        without=("Without any answer", ".2f"),
        correlation=("Correlation of abilities", ".2f"),
    )
    title = "Mean error (points)"
    spec = layers(
        {
            "mark": {"type": "rule", "color": "@soft", "strokeWidth": 2},
            "encoding": {"y": y, "x": across("error", title), "x2": {"field": "without"}},
        },
        {
            "mark": {"type": "point", "color": "@muted", "size": 45, "filled": False},
            "encoding": {"y": y, "x": across("without", title), "tooltip": shown},
        },
        {
            "mark": {"type": "point", "color": "@main", "size": 60, "opacity": 1},
            "encoding": {"y": y, "x": across("error", title, scale={"zero": True}), "tooltip": shown},
        },
        height=22 * len(order),
    )
    columns = (
        Column("transfer", "Transfer"),
        Column("error", "Mean error (points)", "number", digits=2),
        Column("without", "Without any answer", "number", digits=2),
        Column("correlation", "Correlation of abilities", "number", digits=2),
    )
    words = "; ".join(
        f"{_name(one)} {100.0 * value:.1f} against {100.0 * other:.1f}"
        for one, value, other in zip(order, own, without, strict=True)
    )
    gain = sum(value < other for value, other in zip(own, without, strict=True))
    return Chart(
        f"{gain} of {plural(len(order), 'transfer')} are closer than a guess without any answer",
        spec,
        (data,),
        f"Mean error in points, predicted against uninformed: {words}.",
        table=Table("Errors of transfers", data, columns, n_shown=60),
        note="Filled: predicted from the ability on the easy items. Hollow: the mean of other models.",
    )


def agreement_chart(found: Sequence[Transfer]) -> Chart:
    """Draw predicted against actual scores with intervals, a panel a transfer."""
    drawn = found[:MOST_PANELS]
    columns: dict[str, list[object]] = {
        name: [] for name in ("panel", "place", "model_id", "group", "actual", "value", "low", "high")
    }
    for place, one in enumerate(drawn):
        prediction = one.prediction
        known = np.flatnonzero(np.isfinite(one.actual[:, 0]) & np.isfinite(prediction.value[:, 0])).tolist()
        columns["panel"] += [f"{one.target}, r = {one.correlation:.2f}"] * len(known)
        columns["place"] += [place] * len(known)
        columns["model_id"] += [one.model_ids[k] for k in known]
        columns["group"] += ["" if one.groups is None else one.groups[k] for k in known]
        for name, values in (
            ("actual", one.actual),
            ("value", prediction.value),
            ("low", prediction.lower),
            ("high", prediction.upper),
        ):
            columns[name] += values[known, 0].tolist()
    data = Data("agreement", columns)
    what = "score" if drawn[0].k[0] == 1 else f"pass@{drawn[0].k[0]}"
    x = across("actual", f"Actual {what}", form=".0%", scale={"zero": False})
    y = across("value", f"Predicted {what}", form=".0%", scale={"zero": False})
    group = {} if drawn[0].groups is None else {"group": "Group"}
    shown = tips(
        model_id="Model",
        **group,
        actual=("Actual", ".1%"),
        value=("Predicted", ".1%"),
        low=("From", ".1%"),
        high=("To", ".1%"),
    )
    ends = {**y, "field": "low"}
    same: Spec = {
        "mark": {"type": "line", "color": "@muted", "strokeDash": [4, 3], "strokeWidth": 1},
        "encoding": {"x": x, "y": {**y, "field": "actual"}},
    }
    parts: list[Spec] = [
        {
            "mark": {"type": "rule", "color": "@soft", "opacity": 0.6},
            "encoding": {"x": x, "y": ends, "y2": {"field": "high"}},
        },
        same,
        {
            "mark": {"type": "point", "size": 26, "color": "@main", "opacity": 0.85},
            "encoding": {"x": x, "y": y, "tooltip": shown},
        },
    ]
    single = len(drawn) == 1
    spec = (
        layers(*parts, height=340)
        if single
        else panels("panel", "place", *parts, height=200, resolve={"scale": {"x": "independent", "y": "independent"}})
    )
    words = "; ".join(
        f"{_name(one)}: mean error {points(_row(one)['error'])}, intervals held {percent(_row(one)['coverage'])}"
        for one in drawn
    )
    return Chart(
        f"Predicted from {drawn[0].source} against actual on {drawn[0].target}"
        if single
        else "Predicted against actual scores on the hard items",
        spec,
        (data,),
        f"{words}.",
        note=f"On the dashed line the prediction is right. Bars are {level_words(drawn[0].level)} intervals; r is the "
        "correlation of the two abilities. "
        "No model calibrated the items of its own prediction.",
    )


def transfer_curves_chart(found: Sequence[Transfer]) -> Chart:
    """Draw pass@k of one model, predicted and actual, chosen from a menu, a panel a transfer."""
    drawn = found[:MOST_PANELS]
    columns: dict[str, list[object]] = {
        name: [] for name in ("panel", "place", "model_id", "k", "actual", "value", "low", "high")
    }
    for place, one in enumerate(drawn):
        n_models, n_k = one.actual.shape
        columns["panel"] += [_name(one)] * (n_models * n_k)
        columns["place"] += [place] * (n_models * n_k)
        columns["model_id"] += [name for name in one.model_ids for _ in range(n_k)]
        columns["k"] += list(one.k) * n_models
        prediction = one.prediction
        for name, values in (
            ("actual", one.actual),
            ("value", prediction.value),
            ("low", prediction.lower),
            ("high", prediction.upper),
        ):
            columns[name] += values.ravel().tolist()
    models = list(dict.fromkeys(name for one in drawn for name in one.model_ids))
    x = across("k", "Samples k", form="~s", scale={"type": "log"}, axis={"tickCount": 4})
    y = across("value", "pass@k", form=".1f", scale={"domain": [0.0, 1.0]})
    own = {"filter": "datum.model_id === model"}
    shown = tips(
        k=("k", ",d"),
        value=("Predicted", ".3f"),
        low=("From", ".3f"),
        high=("To", ".3f"),
        actual=("Actual", ".3f"),
    )
    parts: list[Spec] = [
        {
            "transform": [own],
            "mark": {"type": "area", "color": "@main", "opacity": 0.18},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "transform": [own],
            "mark": {"type": "line", "color": "@main"},
            "encoding": {"x": x, "y": y, "tooltip": shown},
        },
        {
            "transform": [own],
            "mark": {"type": "point", "color": "@ink", "size": 34, "opacity": 1},
            "encoding": {"x": x, "y": {**y, "field": "actual"}, "tooltip": shown},
        },
    ]
    choice: Spec = {
        "name": "model",
        "value": models[0],
        "bind": {"input": "select", "options": models, "name": "Model"},
    }
    spec = (
        layers(*parts, height=320, params=[choice])
        if len(drawn) == 1
        else panels("panel", "place", *parts, params=[choice])
    )
    first = drawn[0]
    words = ", ".join(f"{value:.2f} at k = {k:,d}" for k, value in zip(first.k, first.prediction.value[0], strict=True))
    return Chart(
        "pass@k, predicted and actual",
        spec,
        (Data("transfer-curves", columns),),
        f"Predicted pass@k of {models[0]} on {first.target}: {words}.",
        note=f"The line is predicted, the band its {level_words(first.level)} interval, points are actual.",
    )


def _models(found: Sequence[Transfer]) -> Table:
    rows = [{"transfer": _name(one), **row} for one in found for row in one.rows()]
    for row in rows:
        row["error"] = 100.0 * (row["predicted"] - row["actual"])
    level = level_words(found[0].level)
    columns = [
        *([Column("transfer", "Transfer", has_menu=True)] if len(found) > 1 else []),
        Column("model_id", "Model", "id"),
        *([Column("group", "Group", has_menu=True)] if "group" in rows[0] else []),
        *([Column("k", "k", "count", has_menu=True)] if len(found[0].k) > 1 else []),
        Column("ability", "Ability", "number", digits=2),
        Column("predicted", "Predicted", "percent"),
        Column("lower", f"{level} from", "percent"),
        Column("upper", "to", "percent"),
        Column("actual", "Actual", "percent"),
        Column("error", "Error (points)", "number"),
    ]
    data = Data("transfer-models", columns_of(rows, columns))
    return Table("Every model", data, tuple(columns))


def _methods(found: Sequence[Transfer]) -> Table:
    rows = [{"transfer": _name(one), **row} for one in found for row in one.method_rows()]
    for row in rows:
        for name in ("error", "error_standard_error", "bias", "width"):
            row[name] = 100.0 * row[name]
    columns = (
        Column("transfer", "Transfer", has_menu=True),
        Column("method", "Method", has_menu=True),
        Column("error", "Mean error (points)", "number", digits=2),
        Column("error_standard_error", "±", "number", digits=2, explanation="Standard error, over groups or models"),
        Column("bias", "Bias (points)", "number", digits=2),
        Column("correlation", "Correlation", "number", digits=2, explanation="Of predicted and actual scores"),
        Column("coverage", "Held", "percent"),
        Column("width", "Width (points)", "number", explanation="Mean width of the intervals"),
    )
    return Table("Methods", Data("transfer-methods", columns_of(rows, columns)), columns)


def _provenance(one: Transfer) -> tuple[Pair, ...]:
    groups = "" if one.groups is None else f" in {len(set(one.groups))} groups"
    return (
        ("Models predicted", f"{count(len(one.model_ids))}{groups}"),
        ("Calibration models", count(one.to_dict()["n_calibration_models"])),
        ("Items", f"{count(one.n_source_items)} of {one.source}, {count(one.n_target_items)} of {one.target}"),
        ("Method", one.method),
        ("Level", level_words(one.level)),
    )
