"""How good estimates from a few items are, as a part of a bank's page."""

from typing import NamedTuple

import numpy as np

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Answer, Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import Spec, layer, number_axis, score_axis, tips
from itembank.pages.common import plural, unit_words
from itembank.pages.theme import count, level_words, percent, points
from itembank.planning.accuracy import Accuracy, can_be_measured

TITLE = "How good estimates are"
USUAL_SIZE = 100
GOALS = (0.1, 0.075, 0.05, 0.04, 0.03, 0.025, 0.02, 0.015, 0.01, 0.0075, 0.005)
"""Half-widths whose number of items is told, as far as these were tried."""

ROOM_FOR_LABELS = 3.2
"""How many times as far as the last number of items the axis goes, so that the lines' names stand behind them."""


class Typical(NamedTuple):
    """The number of items nearest to a hundred that was tried."""

    place: int  # Among the sizes
    n_items: int
    half_width: float


def typical(found: Accuracy) -> Typical:
    """Return what is told of about a hundred items."""
    place = int(np.argmin(np.abs(np.log(found.sizes / USUAL_SIZE))))
    return Typical(place, int(found.sizes[place]), float(found.expected_half_widths[place]))


def accuracy_answer(found: Accuracy) -> Answer:
    """Return the precision of a usual number of items as one of the page's answers."""
    usual = typical(found)
    covered, error = found.coverage[usual.place, -1], found.mean_absolute_errors[usual.place, -1]
    return Answer(
        f"A score from {count(usual.n_items)} items",
        f"± {points(usual.half_width)}",
        f"{level_words(found.level)} interval; it held for {percent(covered, 0)} of past models left out",
        f"Mean error {points(error)}. {percent(1.0 - usual.n_items / found.n_total, 1)} of the items need not be run.",
    )


def accuracy_section(bank: Bank, found: Accuracy | None) -> Section:
    """Return errors, intervals and coverage by number of items; without trials, what is known in their place."""
    if found is not None:
        return Section(TITLE, tuple(_measured(bank, found)), _lead(found))
    if bank.published is not None:
        return Section(TITLE, _published(bank))
    return Section(TITLE, (Text(_why_not(bank)),))


def _lead(found: Accuracy) -> str:
    usual = typical(found)
    low, high = (percent(one, 0) for one in (found.coverage[:, -1].min(), found.coverage[:, -1].max()))
    covered = low if low == high else f"{low} to {high}"
    return (
        f"{count(usual.n_items)} items place a new model's score within {points(usual.half_width)} up or down. "
        f"{level_words(found.level)} intervals held for {covered} of past models, by the "
        "number of items."
    )


def _measured(bank: Bank, found: Accuracy) -> list[Block]:
    usual = typical(found)
    return [
        Text(
            "Each part of the past models in turn played the new models: items were chosen, estimates and intervals "
            "made without them. Items are chosen as itembank select chooses that many where no method is named. "
            "A point is a hundredth of the way from 0 % to 100 %."
        ),
        _precision_chart(found),
        _goals(found),
        _left_out_chart(bank, found, usual),
        *([_by_scenario(bank, found, usual)] if bank.targets.n_scenarios > 1 else []),
    ]


def _precision_chart(found: Accuracy) -> Chart:
    half = found.expected_half_widths
    error, margin = found.mean_absolute_errors[:, -1], 2.0 * found.standard_errors[:, -1]
    data = Data(
        "precision",
        {
            "items": found.sizes,
            "share": found.sizes / found.n_total,
            "half_width": 100.0 * half,
            "error": 100.0 * error,
            "error_low": 100.0 * np.maximum(error - margin, 0.0),
            "error_high": 100.0 * (error + margin),
            "coverage": found.coverage[:, -1],
            "difference": 100.0 * found.differences,
            **{f"cost_{k}": cost for k, cost in enumerate(found.costs.values())},
        },
    )
    usual = typical(found)
    title = (
        f"{count(usual.n_items)} items give an interval of ± {points(usual.half_width)}; the mean error is "
        f"{points(error[usual.place])}"
    )
    first, last = (int(found.sizes[k]) for k in (0, -1))
    words = (
        f"From {first} to {last} items the half-width of the {level_words(found.level)} interval falls from "
        f"{points(half[0])} to {points(half[-1])}, the mean error from {points(error[0])} to "
        f"{points(error[-1])}."
    )
    note = "Orange bars: mean error ± 2 standard errors, over past models left out."
    return Chart(title, _precision_spec(found), (data,), words, _precision_table(found, data), note)


def _precision_spec(found: Accuracy) -> Spec:
    first, last = (int(found.sizes[k]) for k in (0, -1))
    scale = {"type": "log", "nice": False, "domain": [first, ROOM_FOR_LABELS * last]}
    x = number_axis("items", "Items run", scale=scale, axis={"values": found.sizes.tolist(), "format": "d"})
    half, error = (number_axis(name, "Points of the score") for name in ("half_width", "error"))
    end = {"filter": {"field": "items", "equal": last}}
    tooltip = tips(
        items=("Items", ",d"), half_width=("Half-width", ".2f"), error=("Mean error", ".2f"), coverage=("Held", ".0%")
    )
    at_end = {"type": "text", "align": "left", "dx": 8, "fontWeight": 600}
    return {
        "width": "container",
        "height": 260,
        "layer": [
            layer({"type": "line", "color": "@main", "point": {"color": "@main"}}, x=x, y=half, tooltip=tooltip),
            layer({"type": "rule", "color": "@other"}, x=x, y=number_axis("error_low", ""), y2={"field": "error_high"}),
            layer({"type": "line", "color": "@other", "point": {"color": "@other"}}, x=x, y=error, tooltip=tooltip),
            {**layer({**at_end, "color": "@main", "text": "± interval"}, x=x, y=half), "transform": [end]},
            {**layer({**at_end, "color": "@other", "text": "mean error"}, x=x, y=error), "transform": [end]},
        ],
    }


def _precision_table(found: Accuracy, data: Data) -> Table:
    columns = (
        Column("items", "Items", "count"),
        Column("share", "Of all items", "percent"),
        Column("half_width", "Interval, ± points", "number", digits=2),
        Column("error", "Mean error, points", "number", digits=2),
        Column("coverage", "Intervals that held", "percent", explanation="Of past models left out"),
        Column(
            "difference",
            "Difference that shows, points",
            "number",
            digits=2,
            explanation="Between two models that run the same items; found significant with probability 80 %",
        ),
        *(Column(f"cost_{k}", f"Cost, {unit_words(unit)}", "number", digits=2) for k, unit in enumerate(found.costs)),
    )
    return Table("Precision by number of items", data, columns)


def _goals(found: Accuracy) -> Table | Text:
    """Tell what buys which interval, as far as so many items were tried."""
    curve, sizes = found.curve, found.sizes
    reach = curve.at(np.array([sizes[0], sizes[-1]]))
    goals = [goal for goal in GOALS if reach[1] <= goal <= reach[0]]
    if not goals:
        return Text("")
    items = np.array([curve.fewest(goal) for goal in goals])
    data = Data(
        "goals",
        {
            "goal": [f"± {points(goal)}" for goal in goals],
            "items": items,
            "share": items / found.n_total,
            "saved": 1.0 - items / found.n_total,
        },
    )
    columns = (
        Column("goal", f"{level_words(found.level)} interval"),
        Column("items", "Items needed", "count"),
        Column("share", "Of all items", "percent"),
        Column("saved", "Saved", "percent"),
    )
    note = (
        f"Read off the curve of itembank plan, through trials of {sizes[0]} to {sizes[-1]} items. With a goal, "
        "itembank plan tries the answer too."
    )
    return Table("How many items buy which interval", data, columns, note=note)


def _left_out_chart(bank: Bank, found: Accuracy, usual: Typical) -> Chart:
    """Estimates of models left out against their full scores."""
    error, half = found.errors[usual.place, :, -1], found.half_widths[usual.place, :, -1]
    rows = np.flatnonzero(~np.isnan(error))
    error, half = error[rows], half[rows]
    true = bank.known_scores.value[rows, -1]
    estimate, has_held = true + error, np.abs(error) <= half
    ids = bank.responses.model_ids
    data = Data(
        "left_out",
        {
            "model": [ids[row] for row in rows.tolist()],
            "true": true,
            "estimate": estimate,
            "low": np.clip(estimate - half, 0.0, 1.0),
            "high": np.clip(estimate + half, 0.0, 1.0),
            "error": error,
            "held": has_held,
        },
    )
    missed = int((~has_held).sum())
    n_items, n_intervals = count(usual.n_items), count(rows.size)
    title = f"From {n_items} items, {percent(has_held.mean(), 0)} of {n_intervals} intervals hold the full score"
    largest = int(np.argmax(np.abs(error)))
    words = (
        f"Estimates lie {points(np.abs(error).mean())} from the full scores on the mean, at most "
        f"{points(abs(float(error[largest])))} ({data.columns['model'][largest]}). {plural(missed, 'interval')} "
        f"{'misses' if missed == 1 else 'miss'} the full score."
    )
    columns = (
        Column("model", "Past model", "id"),
        Column("true", "Full score", "percent"),
        Column("estimate", "Estimate", "percent"),
        Column("low", "From", "percent"),
        Column("high", "To", "percent"),
        Column("error", "Error, points", "points"),
        Column("held", "Held", "flag", has_menu=True),
    )
    table = Table(f"Past models left out, from {usual.n_items} items", data, columns)
    note = (
        "Each line is an interval; orange ones miss the full score. On the diagonal estimate and full score are equal."
    )
    return Chart(title, _left_out_spec(true, estimate), (data,), words, table, note)


def _left_out_spec(true: FloatArray, estimate: FloatArray) -> Spec:
    ends = [float(min(true.min(), estimate.min())), float(max(true.max(), estimate.max()))]
    x, y = score_axis("true", "Full score"), score_axis("estimate", "Estimate")
    colour = {"condition": {"test": {"field": "held", "equal": True}, "value": "@main"}, "value": "@other"}
    tooltip = tips(
        model="Model", true=("Full score", ".1%"), estimate=("Estimate", ".1%"), low=("From", ".1%"), high=("To", ".1%")
    )
    diagonal = {
        "data": {"values": [{"true": end, "estimate": end} for end in ends]},
        "mark": {"type": "line", "color": "@muted", "strokeWidth": 1},
        "encoding": {"x": x, "y": y},
    }
    bars = layer(
        {"type": "rule", "opacity": 0.35}, x=x, y=score_axis("low", "Estimate"), y2={"field": "high"}, color=colour
    )
    dots = layer({"type": "point", "opacity": 0.8, "size": 22}, x=x, y=y, color=colour, tooltip=tooltip)
    return {"width": "container", "height": 360, "layer": [bars, diagonal, dots]}


def _by_scenario(bank: Bank, found: Accuracy, usual: Typical) -> Table:
    place = usual.place
    data = Data(
        "accuracy_by_scenario",
        {
            "scenario": list(bank.targets.scenarios),
            "items": bank.targets.scenario_sizes,
            "error": 100.0 * found.mean_absolute_errors[place, :-1],
            "half_width": 100.0 * found.mean_half_widths[place, :-1],
            "coverage": found.coverage[place, :-1],
        },
    )
    columns = (
        Column("scenario", "Scenario"),
        Column("items", "Items", "count"),
        Column("error", "Mean error, points", "number", digits=2),
        Column("half_width", "Mean interval, ± points", "number", digits=2),
        Column("coverage", "Intervals that held", "percent"),
    )
    note = f"All from the same {count(usual.n_items)} items of all scenarios together."
    return Table("Scores of single scenarios", data, columns, note=note)


def _published(bank: Bank) -> tuple[Block, ...]:
    """Tell what the whole bank measured for the items that the published one asks to be run."""
    subset = None if bank.published is None else bank.published.subset
    if subset is None or not subset.errors.size:
        return (Text("The bank was published without past models' responses and without errors measured on them."),)
    known = ~np.isnan(subset.errors)
    error = np.where(known, np.abs(subset.errors), 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    first = 1 if bank.targets.n_scenarios == 1 else 0  # an only scenario's score is the overall one
    errors = 100.0 * np.where(known.any(axis=0), error, np.nan)[first:]
    data = Data("published_errors", {"target": list(bank.targets.names)[first:], "error": errors})
    columns = (Column("target", "Score"), Column("error", "Mean error, points", "number", digits=2))
    said = (
        f"Before the bank was published, each of {count(subset.errors.shape[0])} past models in turn played the new "
        f"model, estimated from the {count(subset.selection.n_items)} items to run. The mean error of the overall "
        f"score was {points(error[-1])}."
    )
    return (Text(said), Table("Errors on past models left out", data, columns))


def _why_not(bank: Bank) -> str:
    if not can_be_measured(bank):
        return (
            "This cannot be measured with fewer than ten past models whose full scores are known: some have to be left "
            "out to play the new ones. Intervals then rest on how items are drawn, and are wide."
        )
    return "This was not measured yet: itembank report BANK -o FILE does, unless --no-accuracy is given."
