"""The items of a bank: how hard they are, what they tell, and where the models are."""

from typing import Any

import numpy as np

from itembank.auditing.outlook import outlook
from itembank.bank.ability_axis import AbilityAxis
from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Block, Chart, Column, Data, Section, Table, Text, bank_argument, heads
from itembank.pages.given_answers import item_entries
from itembank.pages.grammar import IN_BRUSH, Spec, below, brushed, marks, number, span, tips, when
from itembank.pages.theme import count, in_words, percent
from itembank.tables import plural

MOST_POINTS = 5_000
"""Items that are drawn one by one; of more, the map shows how many lie in each cell."""
SHORT = 3
"""Decimal places of numbers in the table of items."""
AXIS = "Ability and difficulty"


def items_section(bank: Bank) -> Section:
    """Return the item map and the table of items."""
    if not bank.calibration.is_fitted:
        why = "Past models are too few for an item model, so there is no difficulty or discrimination yet."
        return Section("Questions", (Text(why), _table(bank, np.arange(bank.n_items), {})))
    axis = AbilityAxis.of(bank)
    place, slope = axis.difficulties(bank.calibration).value, axis.slopes(bank.calibration)
    grid = axis.grid(61)
    information = axis.information(bank.calibration, grid)
    weights = np.exp(-0.5 * grid**2)  # of the prior, where there is no model
    if axis.positions.size:
        step = grid[1] - grid[0]
        counts = np.histogram(axis.positions, np.append(grid - 0.5 * step, grid[-1] + 0.5 * step))[0]
        weights = counts.astype(np.float64)
    told = (weights / weights.sum()) @ information
    order = np.argsort(-told, kind="stable")
    table = _table(bank, order, {"place": place[order], "slope": slope[order], "information": told[order]})
    blocks: list[Block] = [_map(bank, axis, grid, information.sum(axis=1), table), table]
    if said := outlook(bank).in_words:
        blocks.insert(-1, Text(said.replace("Items", "Questions").replace("items", "questions")))
    against = int((slope < 0.0).sum())
    where = in_words(float(np.median(place)), 1, is_signed=True)
    middle = f"The median question has difficulty {where}, in standard deviations of ability"
    if axis.positions.size:
        middle += f"; the median past model has ability {in_words(float(np.median(axis.positions)), 1, is_signed=True)}"
    verb, number = "is" if against < 2 else "are", plural(against, "question") if against else "no question"
    lead = f"{middle}. By the item model {number} of {count(bank.n_items)} {verb} solved less often by stronger models."
    if bank.published is None:
        lead += f" To find questions that may be faulty: itembank check {bank_argument(bank)} --report audit.html."
    return Section("Questions", tuple(blocks), lead)


def _table(bank: Bank, order: IntArray, numbers: dict[str, FloatArray]) -> Table:
    """List the items in this order; the first lead to their text and to who was right."""
    items = bank.responses.items[order.tolist()]
    known: dict[str, Any] = {"item": items["item_id"].to_list(), "scenario": items["scenario"].to_list()}
    if items["subscenario"].drop_nulls().n_unique() > 1:
        known["subscenario"] = items["subscenario"].to_list()
    numbers = {"right": bank.mean_responses[order], **numbers}
    data = Data("items", known | {name: np.round(values, SHORT) for name, values in numbers.items()})
    scores = bank.best_known_scores[:, -1]
    ranked = np.argsort(-scores, kind="stable")[: np.isfinite(scores).sum()].tolist()
    spread = dict.fromkeys([*ranked[:1], *ranked[len(ranked) // 2 :][:1], *ranked[-1:]])  # best, middle and last
    mean = "Right" if bank.n_models == 0 or bank.responses.is_binary else "Mean"
    columns = (
        *heads("item"),
        *[*heads("scenario")] * (bank.targets.n_scenarios > 1),
        *heads("subscenario"),
        Column("right", mean, "percent", 0, "Mean answer of past models"),
        *heads("place", "slope", "information"),
    )
    held = tuple(one for one in columns if one.name in data.columns)
    note = "Draw a rectangle in the map to see its questions here." * ("place" in data.columns)
    entries = item_entries(bank, order, {}, [bank.responses.model_ids[k] for k in spread]) if spread else ()
    return Table("Questions", data, held, note=note, entries=entries)


def _map(bank: Bank, axis: AbilityAxis, grid: FloatArray, total: FloatArray, table: Table) -> Chart:
    """Items, models above them and the information of all items below (on a grid), on the same axis."""
    data, reach = table.data, float(grid[-1])
    models = Data("model_counts", {})
    if axis.positions.size:
        counts, ends = np.histogram(axis.positions, np.linspace(-reach, reach, 41))
        low, high = np.round(ends[:-1], SHORT), np.round(ends[1:], SHORT)
        models = Data("model_counts", {"low": low, "high": high, "n": counts})
    told = Data("told", {"ability": np.round(grid, SHORT), "error": 1.0 / np.sqrt(1.0 + total)})
    place, slope = np.asarray(data.columns["place"]), np.asarray(data.columns["slope"])
    outside = np.abs(place) > reach
    is_dense = place.size > MOST_POINTS
    drawn = _cells(place, slope, reach) if is_dense else data
    names = sorted(bank.targets.scenarios) if 1 < bank.targets.n_scenarios <= 60 and not is_dense else []
    title = "Questions by difficulty and discrimination"
    if axis.positions.size >= 5:  # a range of fewer models says nothing
        within = np.mean((place >= axis.positions.min()) & (place <= axis.positions.max()))
        title = f"{percent(float(within), 0)} of the questions lie between the weakest and the strongest past model"
    best = int(np.argmin(told.columns["error"]))
    middle, where = in_words(float(np.median(slope))), in_words(float(grid[best]), 1)
    words = (
        f"{title}. Median discrimination is {middle}; {count((slope < 0).sum())} are below zero. Together the "
        f"questions tell most about abilities around {where}."
    )
    place_of_items = "Middle" if len(models) else "Top"
    notes = [
        "Top: past models by ability." * (len(models) > 0),
        f"{place_of_items}: how many questions lie in each cell; the table has each."
        if is_dense
        else f"{place_of_items}: questions; orange ones are solved less often by stronger models.",
        "Bottom: standard error of an ability estimated from all questions. All in standard deviations of ability.",
    ]
    if outside.any():
        verb = "is" if outside.sum() == 1 else "are"
        notes.append(f"{plural(int(outside.sum()), 'question')} beyond ± {reach:.1f} {verb} not drawn.")
    used = tuple(one for one in (drawn, models, told) if len(one))
    spec = _map_spec(reach, names, is_dense=is_dense, has_models=len(models) > 0)
    return Chart(title, spec, used, words, note=" ".join(filter(None, notes)), filters=table)


def _cells(place: FloatArray, slope: FloatArray, reach: float) -> Data:
    """Count items in cells of the map, those without any left out."""
    low, high = float(slope.min()), float(np.quantile(slope, 0.999))
    counts, x, y = np.histogram2d(
        place, np.clip(slope, low, high), bins=(60, 36), range=[[-reach, reach], [low, max(high, low + 1e-6)]]
    )
    rows, columns = np.nonzero(counts)
    ends = {"place": x[rows], "place_end": x[rows + 1], "slope": y[columns], "slope_end": y[columns + 1]}
    rounded = {name: np.round(values, SHORT) for name, values in ends.items()}
    return Data("item_cells", {**rounded, "n": counts[rows, columns].astype(np.int64)})


def _map_spec(reach: float, names: list[str], *, is_dense: bool, has_models: bool) -> Spec:
    """Return models, items (or cells of them) and errors below each other; a rectangle filters the items' table."""
    scale = {"domain": [-reach, reach], "nice": False}
    x, bare = number("ability", AXIS, scale=scale, tickCount=7), number("place", scale=scale, labels=False)
    y, binned = number("slope", "Discrimination"), {"bin": {"binned": True}}
    tip = tips(low=("Ability from", ".2f"), high=("to", ".2f"), n=("Models", "d"))
    n_models = number("n", "Models", tickCount=2, tickMinStep=1)
    models = marks("bar", {**span(bare), **binned}, n_models, tip=tip, data="model_counts", color="@soft")
    if is_dense:
        tip = tips(n=("Questions", ",d"), place=("Difficulty from", ".2f"), slope=("Discrimination from", ".2f"))
        legend = {"title": "Questions in a cell", "orient": "top", "format": "d"}
        color = {"field": "n", "type": "quantitative", "scale": {"type": "log"}, "legend": legend}
        along, up = ({**span(one, one["field"], f"{one['field']}_end"), **binned} for one in (bare, y))
        items = brushed(marks("rect", along, up, tip=tip, color=color))
    else:
        tip = tips(
            item="Question",
            scenario="Scenario",
            right=("Past models right (%)", ".0%"),
            place=("Difficulty", ".2f"),
            slope=("Discrimination", ".2f"),
            information=("Information", ".3f"),
        )
        color = when({"field": "slope", "lt": 0}, "@other", "@main")
        opacity = when({"and": [IN_BRUSH, {"param": "scenario"}]}, 0.55, 0.06) if names else when(IN_BRUSH, 0.55, 0.08)
        items = brushed(marks("point", bare, y, tip=tip, color=color, opacity=opacity, size=22, clip=True))
        if names:
            bind = {"input": "select", "options": [None, *names], "labels": ["all", *names], "name": "Scenario "}
            chosen = {"name": "scenario", "select": {"type": "point", "fields": ["scenario"]}, "bind": bind}
            items["params"].append(chosen)
    tip = tips(ability=("Ability", ".2f"), error=("Standard error", ".3f"))
    errors = marks("line", x, number("error", "Error", tickCount=3), tip=tip, data="told", color="@ink")
    parts = ((models, 60), (items, 280), (errors, 80))
    shown = [{**one, "height": height, "widthOf": 1, "aside": 70} for one, height in parts[0 if has_models else 1 :]]
    return below(*shown, spacing=8, autosize="pad", resolve={"legend": {"color": "independent"}})
