"""Which items speak for one of two models, and how hard they were for past models."""

import warnings

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.compared_models import ComparedModels
from itembank.errors import DataWarning
from itembank.estimation.observations import known_items
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Block, Chart, Column, Data, Section, Table
from itembank.pages.charts import layers, tips
from itembank.pages.panels import across, ruled
from itembank.pages.theme import points
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

N_BINS = 10


def deciding_items(
    bank: Bank,
    responses: ResponseMatrix,
    selection: Selection | None,
    pair: tuple[str, str],
    target: str = OVERALL,
) -> Data:
    """Return the items that two models answered differently, those with the most say first.

    ``contribution_i = 100 t_s w_i d_i / sum w`` with ``d_i`` the first model's response less the second's, ``w_i`` the
    item's weight, the sum over the items of its scenario s that both answered, and ``t_s`` the weight of the scenario
    in the target: over all items they add up to the raw difference, in points.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # given when the models were compared
        known = known_items(bank, responses, selection, ignore_unknown=True)
        both = known.take(models=known.model_indices(pair))
        compared = ComparedModels.create(bank, both, selection, target)
    contribution = 100.0 * _contributions(compared)
    table = bank.items[compared.observations.positions.tolist()]
    easy = table["mean_response"].to_numpy()
    # of items with equal say, hard ones that the first model got right and easy ones that it got wrong come first
    surprise = np.where(contribution > 0.0, easy, -easy)
    order = np.lexsort((surprise, -np.abs(np.round(contribution, 9))))
    order = order[np.abs(np.nan_to_num(contribution[order])) > 0.0]
    answers = compared.observations.responses[:, order]
    columns = {
        "item_id": table["item_id"].to_list(),
        "scenario": table["scenario"].to_list(),
        "past": easy,
        "contribution": contribution,
        "speaks_for": [pair[0] if value > 0.0 else pair[1] for value in contribution],
    }
    chosen = {name: [values[k] for k in order.tolist()] for name, values in columns.items()}
    return Data("deciding", {**chosen, "first": answers[0], "second": answers[1]})


def _contributions(compared: ComparedModels) -> FloatArray:
    observations, scenarios = compared.observations, compared.scenarios()
    difference = observations.responses[0] - observations.responses[1]
    weights = np.where(np.isnan(difference), 0.0, observations.weights)
    totals = np.bincount(scenarios, weights=weights, minlength=compared.bank.targets.n_scenarios)[scenarios]
    share = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0.0)
    result: FloatArray = compared.target_weights()[0][scenarios] * share * np.nan_to_num(difference)
    return result


def items_section(items: Data, pair: tuple[str, str], target: str) -> Section:
    """Return the section on the items that decide between two models."""
    total = float(np.sum(items.columns["contribution"]))
    speaking = [[value for value in items.columns["contribution"] if sign * value > 0.0] for sign in (1.0, -1.0)]
    lead = (
        f"{pair[0]} did better than {pair[1]} on {len(speaking[0])} items and worse on {len(speaking[1])}. "
        f"Together they make a raw difference of {points(0.01 * total, is_signed=True)} on the {target} score; "
        "the estimate above also uses what past models tell of these items."
    )
    blocks: list[Block] = []
    if len(items):
        if np.isfinite(np.asarray(items.columns["past"], dtype=np.float64)).any():
            blocks.append(_by_difficulty(items, pair))
        blocks.append(_table(items, pair))
    return Section("Items that decide", tuple(blocks), lead)


def _table(items: Data, pair: tuple[str, str]) -> Table:
    columns = (
        Column("item_id", "Item", "id"),
        Column("scenario", "Scenario", has_menu=True),
        Column("speaks_for", "Speaks for", has_menu=True),
        Column("contribution", "Points", "number", digits=2, explanation=f"Positive for {pair[0]}"),
        Column("first", pair[0], "number", digits=2, explanation="Its response, from 0 to 1"),
        Column("second", pair[1], "number", digits=2, explanation="Its response, from 0 to 1"),
        Column("past", "Past models right", "percent", digits=0),
    )
    note = "Items with the most say come first; of equal ones, those that surprise most."
    return Table("Items that the two answered differently", items, columns, note=note)


def _by_difficulty(items: Data, pair: tuple[str, str]) -> Chart:
    """Draw what items of each difficulty add to the difference, upwards for the first model."""
    bins = _bins(items, pair)
    sums = [
        sum(bins.columns["points"][k] for k in range(len(bins)) if bins.columns["side"][k] == side) for side in (0, 1)
    ]
    bar = {
        "mark": {"type": "rect", "stroke": "@paper", "strokeWidth": 2},
        "encoding": {
            "x": across("low", "Share of past models that got the item right", form=".0%", scale={"domain": [0, 1]}),
            "x2": {"field": "high"},
            "y": across("points", "Points of the difference"),
            "y2": {"datum": 0},
            "color": {
                "field": "for_whom",
                "type": "nominal",
                "scale": {"domain": list(pair), "range": ["@main", "@other"]},
                "legend": {"orient": "top", "title": "For", "labelLimit": 260},
            },
            "tooltip": tips(for_whom="For", points=("Points", "+.2f"), n=("Items", "d")),
        },
    }
    words = "; ".join(
        f"items with {low:.0%} to {high:.0%} of past models right: {value:+.1f}"
        for low, high, value in zip(*(bins.columns[name] for name in ("low", "high", "points")), strict=True)
    )
    return Chart(
        "Where each of the two gains, from hard items (left) to easy ones (right)",
        layers(bar, ruled("y", 0.0, strokeDash=[1, 0]), height=240),
        (bins,),
        f"{pair[0]} gains {sums[0]:.1f} points in all, {pair[1]} {-sums[1]:.1f}. Points by difficulty: {words}.",
        note=f"Bars above the line speak for {pair[0]}, bars below it for {pair[1]}.",
    )


def _bins(items: Data, pair: tuple[str, str]) -> Data:
    past = np.asarray(items.columns["past"], dtype=np.float64)
    contribution = np.asarray(items.columns["contribution"], dtype=np.float64)
    known = np.isfinite(past)
    place = np.minimum((past[known] * N_BINS).astype(np.int64), N_BINS - 1)
    rows: list[tuple[float, float, float, int, int, str]] = []
    for side, name in enumerate(pair):
        own = contribution[known] > 0.0 if side == 0 else contribution[known] < 0.0
        sums = np.bincount(place[own], weights=contribution[known][own], minlength=N_BINS)
        counts = np.bincount(place[own], minlength=N_BINS)
        rows += [
            (k / N_BINS, (k + 1) / N_BINS, float(sums[k]), int(counts[k]), side, name)
            for k in range(N_BINS)
            if counts[k]
        ]
    names = ("low", "high", "points", "n", "side", "for_whom")
    return Data("deciding-bins", dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
