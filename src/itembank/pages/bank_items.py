"""The items of a bank: how hard they are, what they tell, and where the models are, on one axis."""

from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.numerics.arrays import FloatArray
from itembank.pages.ability_axis import AbilityAxis
from itembank.pages.blocks import Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import Spec, brushed, layer, layers, number_axis, row_axis, row_height, tips
from itembank.pages.common import in_words, plural
from itembank.pages.theme import count, percent

N_GRID = 61
MOST_POINTS = 5_000
"""Items that are drawn one by one; of more, the map shows how many lie in each cell."""
CELLS = (60, 36)
MOST_IN_MENU = 60
MOST_SCENARIO_LINES = 6
FEW_MODELS = 5
"""Past models below which a range of them says nothing."""
SHORT = 3
"""Decimal places of numbers in the table of items."""
AXIS = "Ability and difficulty"


def items_section(bank: Bank) -> Section:
    """Return the item map and the table of items."""
    if not bank.calibration.is_fitted:
        table = _table(bank, Data("items", _known(bank)))
        why = "Past models are too few for an item model, so there is no difficulty or discrimination yet."
        return Section("Items", (Text(why), table))
    axis = AbilityAxis.of(bank)
    place, slope = axis.difficulties(bank.calibration).value, axis.slopes(bank.calibration)
    grid = axis.grid(N_GRID)
    information = axis.information(bank.calibration, grid)
    numbers = {"place": place, "slope": slope, "information": _at_models(information, grid, axis.positions)}
    data = Data("items", _known(bank) | {name: np.round(values, SHORT) for name, values in numbers.items()})
    table = _table(bank, data)
    blocks: list[Block] = [_map(bank, axis, data, information.sum(axis=1), table), table]
    if bank.targets.n_scenarios > 1:
        blocks.insert(1, _by_scenario(bank, axis, place, slope))
    return Section("Items", tuple(blocks), _lead(bank, axis, place, slope))


def _lead(bank: Bank, axis: AbilityAxis, place: FloatArray, slope: FloatArray) -> str:
    against = int((slope < 0.0).sum())
    where = in_words(float(np.median(place)), 1, is_signed=True)
    middle = f"The middle item lies at {where} standard deviations of ability"
    if axis.positions.size:
        middle += f", the middle past model at {in_words(float(np.median(axis.positions)), 1, is_signed=True)}"
    verb, number = "is" if against < 2 else "are", plural(against, "item") if against else "No item"
    return f"{middle}. {number} of {count(bank.n_items)} {verb} solved less often by stronger models."


def _known(bank: Bank) -> dict[str, Any]:
    """Columns of the table of items that ask for no item model."""
    items = bank.responses.items
    known: dict[str, Any] = {"item": bank.item_ids, "scenario": items["scenario"].to_list()}
    if items["subscenario"].drop_nulls().n_unique() > 1:
        known["subscenario"] = items["subscenario"].to_list()
    return known | {"right": np.round(bank.mean_responses, SHORT)}


def _table(bank: Bank, data: Data) -> Table:
    mean = "Right" if bank.n_models == 0 or bank.responses.is_binary else "Mean"
    columns = (
        Column("item", "Item", "id"),
        Column("scenario", "Scenario", has_menu=bank.targets.n_scenarios > 1),
        Column("subscenario", "Part", has_menu=True),
        Column("right", mean, "percent", explanation="Mean response of past models"),
        Column("place", "Difficulty", "number", 2, "The ability at which the item is half solved, guessing apart"),
        Column("slope", "Discrimination", "number", 2, "How fast the chance to solve it rises with ability"),
        Column("information", "Information", "number", 3, "What an answer tells of a past model, on the mean"),
    )
    held = tuple(one for one in columns if one.name in data.columns)
    return Table(
        "Items", data, held, note="Draw a rectangle in the map to see its items here." * ("place" in data.columns)
    )


def _at_models(information: FloatArray, grid: FloatArray, positions: FloatArray) -> FloatArray:
    """Mean information of each item at the models' abilities; at the prior's where there is no model, (n_items,)."""
    weights = np.exp(-0.5 * grid**2)
    if positions.size:
        step = grid[1] - grid[0]
        weights = np.histogram(positions, np.append(grid - 0.5 * step, grid[-1] + 0.5 * step))[0].astype(np.float64)
    result: FloatArray = (weights / weights.sum()) @ information
    return result


def _map(bank: Bank, axis: AbilityAxis, data: Data, total: FloatArray, table: Table) -> Chart:
    """Items, models above them and the information of all items below, on the same axis."""
    grid = axis.grid(N_GRID)
    reach = float(grid[-1])
    models = _histogram(axis.positions, reach)
    told = Data("told", {"ability": np.round(grid, SHORT), "error": 1.0 / np.sqrt(1.0 + total)})
    place, slope = np.asarray(data.columns["place"]), np.asarray(data.columns["slope"])
    outside = np.abs(place) > reach
    is_dense = place.size > MOST_POINTS
    drawn = _cells(place, slope, reach) if is_dense else data
    names = sorted(bank.targets.scenarios) if 1 < bank.targets.n_scenarios <= MOST_IN_MENU and not is_dense else []
    spec = _map_spec(reach, names, is_dense=is_dense, has_models=len(models) > 0)
    within = _within(place, axis.positions)
    title = f"{percent(within, 0)} of the items lie between the weakest and the strongest past model"
    if axis.positions.size < FEW_MODELS:
        title = "Items by difficulty and discrimination"
    best = int(np.argmin(told.columns["error"]))
    middle, where = in_words(float(np.median(slope))), in_words(float(grid[best]), 1)
    words = (
        f"{title}. Discrimination is {middle} for the middle item and below zero for {count((slope < 0).sum())}. All "
        f"items together tell most of abilities around {where}."
    )
    notes = [
        "Top: past models by ability." * (len(models) > 0),
        f"Middle: of more than {count(MOST_POINTS)} items, how many lie in each cell; the table has each."
        if is_dense
        else "Middle: items; orange ones are solved less often by stronger models.",
        "Bottom: the standard error of an ability by answers to all items, as the item model has it. All in standard "
        "deviations of ability.",
    ]
    if outside.any():
        verb = "is" if outside.sum() == 1 else "are"
        notes.append(f"{plural(int(outside.sum()), 'item')} beyond ± {reach:.1f} {verb} not drawn.")
    used = tuple(one for one in (drawn, models, told) if len(one))
    return Chart(title, spec, used, words, note=" ".join(filter(None, notes)), filters=table)


def _within(place: FloatArray, positions: FloatArray) -> float:
    if not positions.size:
        return np.nan
    return float(np.mean((place >= positions.min()) & (place <= positions.max())))


def _histogram(positions: FloatArray, reach: float) -> Data:
    if not positions.size:
        return Data("model_counts", {})
    counts, ends = np.histogram(positions, np.linspace(-reach, reach, 41))
    return Data("model_counts", {"low": np.round(ends[:-1], SHORT), "high": np.round(ends[1:], SHORT), "n": counts})


def _cells(place: FloatArray, slope: FloatArray, reach: float) -> Data:
    """Count items in cells of the map, those without any left out."""
    low, high = float(slope.min()), float(np.quantile(slope, 0.999))
    counts, x, y = np.histogram2d(
        place, np.clip(slope, low, high), bins=CELLS, range=[[-reach, reach], [low, max(high, low + 1e-6)]]
    )
    rows, columns = np.nonzero(counts)
    return Data(
        "item_cells",
        {
            "place": np.round(x[rows], SHORT),
            "place_end": np.round(x[rows + 1], SHORT),
            "slope": np.round(y[columns], SHORT),
            "slope_end": np.round(y[columns + 1], SHORT),
            "n": counts[rows, columns].astype(np.int64),
        },
    )


def _map_spec(reach: float, names: list[str], *, is_dense: bool, has_models: bool) -> Spec:
    x = {"scale": {"domain": [-reach, reach], "nice": False}, "axis": {"tickCount": 7}}
    parts = [
        *([_models_part(x)] if has_models else []),
        _dense_part(x) if is_dense else _points_part(x, names),
        _error_part(x),
    ]
    for part in parts:
        part |= {"widthOf": 1, "aside": 64}
    return {"vconcat": parts, "spacing": 8, "autosize": "pad", "resolve": {"legend": {"color": "independent"}}}


def _models_part(x: Spec) -> Spec:
    bar = layer(
        {"type": "bar", "color": "@soft"},
        "model_counts",
        x=number_axis("low", "", bin={"binned": True}, **x | {"axis": {"labels": False}}),
        x2={"field": "high"},
        y=number_axis("n", "Models", axis={"tickCount": 2}),
        tooltip=tips(low=("Ability from", ".2f"), high=("to", ".2f"), n=("Models", "d")),
    )
    return {**bar, "height": 60}


def _points_part(x: Spec, names: list[str]) -> Spec:
    tooltip = tips(
        item="Item",
        scenario="Scenario",
        right=("Mean of past models", ".1%"),
        place=("Difficulty", ".2f"),
        slope=("Discrimination", ".2f"),
        information=("Information", ".3f"),
    )
    against = {"test": {"field": "slope", "lt": 0}, "value": "@other"}
    part = brushed(
        layer(
            {"type": "point", "size": 22, "clip": True},
            x=number_axis("place", "", **x | {"axis": {"labels": False}}),
            y=number_axis("slope", "Discrimination"),
            color={"condition": against, "value": "@main"},
            opacity={"condition": {"param": "brush", "value": 0.55}, "value": 0.08},
            tooltip=tooltip,
        )
    )
    if names:
        menu = {"input": "select", "options": [None, *names], "labels": ["all", *names], "name": "Scenario "}
        part["params"].append({"name": "scenario", "select": {"type": "point", "fields": ["scenario"]}, "bind": menu})
        shown = {"and": [{"param": "brush"}, {"param": "scenario"}]}
        part["encoding"]["opacity"] = {"condition": {"test": shown, "value": 0.55}, "value": 0.06}
    return {**part, "height": 280}


def _dense_part(x: Spec) -> Spec:
    scale = {"type": "log"}
    cell = layer(
        {"type": "rect"},
        x=number_axis("place", "", bin={"binned": True}, **x | {"axis": {"labels": False}}),
        x2={"field": "place_end"},
        y=number_axis("slope", "Discrimination", bin={"binned": True}),
        y2={"field": "slope_end"},
        color=number_axis("n", "Items in a cell", scale=scale, legend={"orient": "top", "format": "d"}),
        tooltip=tips(n=("Items", ",d"), place=("Difficulty from", ".2f"), slope=("Discrimination from", ".2f")),
    )
    return {**brushed(cell), "height": 280}


def _error_part(x: Spec) -> Spec:
    line = layer(
        {"type": "line", "color": "@ink"},
        "told",
        x=number_axis("ability", AXIS, **x),
        y=number_axis("error", "Error", axis={"tickCount": 3}),
        tooltip=tips(ability=("Ability", ".2f"), error=("Standard error", ".3f")),
    )
    return {**line, "height": 80}


def _by_scenario(bank: Bank, axis: AbilityAxis, place: FloatArray, slope: FloatArray) -> Chart:
    """Where each scenario's items lie, beside the models."""
    inside = [bank.targets.scenario_index == j for j in range(bank.targets.n_scenarios)]
    rows = [
        _scenario_row(name, place[own], slope[own]) for name, own in zip(bank.targets.scenarios, inside, strict=True)
    ]
    rows.sort(key=lambda row: -row["middle"])
    if axis.positions.size:
        rows.insert(
            0, _scenario_row("past models", axis.positions, np.full(axis.positions.size, np.nan)) | {"kind": "models"}
        )
    data = Data("scenario_places", {name: [row[name] for row in rows] for name in rows[0]})
    reach = float(axis.grid(2)[-1])
    scale = {"scale": {"domain": [-reach, reach], "nice": False}, "axis": {"tickCount": 7}}
    y = row_axis("scenario", [row["scenario"] for row in rows])
    colour = {"condition": {"test": {"field": "kind", "equal": "models"}, "value": "@other"}, "value": "@main"}
    tooltip = tips(
        scenario="Scenario", n=("Items", ",d"), middle=("Middle difficulty", ".2f"), slope=("Discrimination", ".2f")
    )
    wide = layer(
        {"type": "rule", "clip": True}, x=number_axis("least", AXIS, **scale), x2={"field": "most"}, y=y, color=colour
    )
    half = layer(
        {"type": "bar", "height": 8, "opacity": 0.45, "clip": True},
        x=number_axis("low", AXIS, **scale),
        x2={"field": "high"},
        y=y,
        color=colour,
    )
    dot = layer(
        {"type": "point", "size": 45}, x=number_axis("middle", AXIS, **scale), y=y, color=colour, tooltip=tooltip
    )
    spec = {"width": "container", "height": row_height(len(rows), 22), "layer": [wide, half, dot]}
    of_items = [row for row in rows if row["kind"] == "items"]
    hardest, easiest = of_items[0], of_items[-1]
    title = f"{hardest['scenario']} is the hardest scenario, {easiest['scenario']} the easiest"
    places = [in_words(row["middle"], 1, is_signed=True) for row in (hardest, easiest)]
    words = f"{title}: their middle items lie at {' and '.join(places)}."
    columns = (
        Column("scenario", "Scenario"),
        Column("n", "Items", "count"),
        Column("middle", "Middle difficulty", "number", 2),
        Column("low", "Lower quarter", "number", 2),
        Column("high", "Upper quarter", "number", 2),
        Column("slope", "Middle discrimination", "number", 2),
    )
    note = "Dot: the middle item (or model), bar: the middle half, line: the middle nine tenths."
    table = Table("Difficulty by scenario", data, columns)
    return Chart(title, spec, (data,), words, table, note)


def _scenario_row(name: str, place: FloatArray, slope: FloatArray) -> dict[str, Any]:
    least, low, middle, high, most = np.quantile(place, [0.05, 0.25, 0.5, 0.75, 0.95]).round(SHORT).tolist()
    return {
        "scenario": name,
        "kind": "items",
        "n": place.size,
        "least": least,
        "low": low,
        "middle": middle,
        "high": high,
        "most": most,
        "slope": float(np.median(slope)),
    }


def information_chart(bank: Bank, *, selection: Selection | None = None) -> Chart:
    """Draw how much a bank's items tell of a model of each ability, over the calibration models' abilities.

    With more than one dimension, ability varies along the direction in which the overall score rises fastest, from the
    prior mean. One line a scenario (up to six), one for all, and one for a selection if given; below the lines stands
    one tick for each calibration model.

    Raises
    ------
    DataError
        When the selection names items that are not in the bank.
    """
    bank.check_responses("The figure of information needs")
    axis, names = AbilityAxis.of(bank), bank.targets.scenarios
    grid = axis.grid(3 * N_GRID)
    information = axis.information(bank.calibration, grid)  # (n_grid, n_items)
    lines = {f"all {count(bank.n_items)} items": ("@ink", information.sum(axis=1))}
    if selection is not None:
        chosen = bank.responses.item_indices(selection.item_ids)
        label = f"selection of {selection.n_items} ({selection.method})"
        lines[label] = ("@main", information[:, chosen].sum(axis=1))
    best = int(next(iter(lines.values()))[1].argmax())
    told = ", the ".join(
        f"{name} leave{'s' * name.startswith('selection')} a standard error of {values[best] ** -0.5:.2f}"
        for name, (_, values) in lines.items()
    )
    if 1 < len(names) <= MOST_SCENARIO_LINES:
        by_scenario = information @ (bank.targets.scenario_index[:, None] == np.arange(len(names)))
        lines |= {name: (f"@c{j + 1}", by_scenario[:, j]) for j, name in enumerate(names)}
    top = max(float(values.max()) for _, values in lines.values())
    drawn = Data(
        "information",
        {
            "line": [name for name in lines for _ in grid],
            "ability": np.tile(grid, len(lines)),
            "information": np.concatenate([values for _, values in lines.values()]),
        },
    )
    kind = "Ability" if bank.calibration.n_dims == 1 else "Ability along the direction in which the score rises"
    scale = {"domain": [-float(grid[-1]), float(grid[-1])], "nice": False}
    x = number_axis("ability", f"{kind} (calibration models' standard deviations)", scale=scale)
    height = {"type": "log", "domain": [top / 3e3, 2.0 * top], "nice": False}
    shade = {
        "field": "line",
        "type": "nominal",
        "scale": {"domain": list(lines), "range": [colour for colour, _ in lines.values()]},
        "legend": {"title": None, "orient": "top", "columns": 3, "labelLimit": 260, "symbolType": "stroke"},
    }
    y = number_axis("information", "Test information", scale=height, axis={"format": "~g"})
    curves = layer({"type": "line", "clip": True}, x=x, y=y, color=shade)
    places = number_axis("place", "", scale=scale)
    ticks = layer({"type": "tick", "color": "@muted"}, "models", x=places, y={"value": 352}, size={"value": 10})
    words = f"The items tell most at an ability of {grid[best]:+.1f}: there {told}"
    return Chart(
        words,
        layers(curves, ticks, height=360),
        (drawn, Data("models", {"place": axis.positions})),
        f"{words}.",
        note="Ticks at the bottom: calibration models. The standard error of an ability is one over the root of the "
        "information.",
    )
