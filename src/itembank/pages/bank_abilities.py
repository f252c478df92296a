"""The abilities that a bank's item model found: how many, what they are, which items ask for each."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Chart, Column, Data, Section, Table, Text
from itembank.pages.charts import Spec, number_axis, row_axis, row_height, tips
from itembank.pages.common import in_words, plural
from itembank.pages.theme import percent

MOST_ABILITIES = 6
TOP_ITEMS = 5
MIDDLE = 0.3
"""Share of the largest loading that the colours between none and all stand for, so that small loadings show too."""
FAR = 0.55
"""Share of the largest loading from which a cell is so dark that its number is written in the paper's colour."""
NAMED = ("nested", "bifactor")
"""Item models whose abilities are told apart by their form; those of others may be turned at will."""


def abilities_section(bank: Bank) -> Section | None:
    """Return what the abilities are; None where there is no item model."""
    if not bank.calibration.is_fitted:
        return None
    loadings, share = _abilities(bank)
    n_dims = bank.calibration.n_dims
    if n_dims == 1:
        text = "All items ask for one ability; the item map shows how much each does."
        return Section("Abilities", (Text(text), _top_items(bank, loadings)))
    shown = min(n_dims, MOST_ABILITIES)
    names = [f"{k + 1} ({percent(share[k], 0)})" for k in range(shown)]
    return Section(
        "Abilities",
        (
            Text(_how(bank)),
            *([_by_scenario(bank, loadings[:, :shown], names, share)] if bank.targets.n_scenarios > 1 else []),
            _top_items(bank, loadings[:, :shown]),
        ),
        f"The item model tells {n_dims} abilities apart. The first explains {percent(share[0], 0)} of what items "
        f"have in common, the second {percent(share[1], 0)}.",
    )


def _abilities(bank: Bank) -> tuple[FloatArray, FloatArray]:
    """Return loadings (n_items, n_dims) on abilities of variance one, those that explain most first, and their shares.

    With S the prior's Cholesky factor, ``A S`` are loadings on uncorrelated abilities, and their singular vectors are
    the only axes that no turn of the abilities changes. Each axis points to where more items are solved.
    """
    calibration = bank.calibration
    loadings = calibration.parameters.loadings @ np.linalg.cholesky(calibration.prior.covariance)
    if calibration.item_model not in NAMED:
        turn = np.linalg.svd(loadings, full_matrices=False)[2].T
        loadings = loadings @ turn
    square = np.sum(loadings**2, axis=0)
    order = np.argsort(-square, kind="stable")
    signs = np.where(loadings.sum(axis=0) < 0.0, -1.0, 1.0)
    return (loadings * signs)[:, order], square[order] / max(float(square.sum()), np.finfo(np.float64).tiny)


def _how(bank: Bank) -> str:
    if bank.calibration.item_model in NAMED:
        return (
            "A loading says how fast an item's chance to be solved rises with an ability. Shares are of the squared "
            "loadings of all items."
        )
    return (
        "A loading says how fast an item's chance to be solved rises with an ability. Abilities stand in the order of "
        "how much they explain: the first is what nearly all items ask for, each other one tells items apart that "
        "those before it do not. Shares are of the squared loadings of all items."
    )


def _by_scenario(bank: Bank, loadings: FloatArray, names: list[str], share: FloatArray) -> Chart:
    index, sizes = bank.targets.scenario_index, bank.targets.scenario_sizes
    means = np.column_stack([np.bincount(index, one, minlength=sizes.size) for one in loadings.T]) / sizes[:, None]
    scenarios = list(bank.targets.scenarios)
    data = Data(
        "loadings",
        {
            "scenario": [name for name in scenarios for _ in names],
            "ability": names * len(scenarios),
            "loading": means.ravel(),
        },
    )
    title = _contrast(means, scenarios)
    words = [_extremes(name, means[:, k], scenarios) for k, name in enumerate(names)]
    wide = Data("loadings_wide", {"scenario": scenarios, **{f"ability_{k}": means[:, k] for k in range(len(names))}})
    columns = (
        Column("scenario", "Scenario"),
        *(Column(f"ability_{k}", f"Ability {name}", "number", digits=2) for k, name in enumerate(names)),
    )
    table = Table("Mean loadings of the scenarios' items", wide, columns)
    rest = (
        f" {plural(share.size - len(names), 'ability', 'abilities')} that explain less are left out."
        if share.size > len(names)
        else ""
    )
    note = f"Mean loading of a scenario's items. Blue: who is strong in it solves more; orange: fewer.{rest}"
    spec = _heat_map(scenarios, names, float(np.abs(means).max()))
    return Chart(title, spec, (data,), " ".join(words), table, note)


def _extremes(name: str, means: FloatArray, scenarios: list[str]) -> str:
    high, low = int(means.argmax()), int(means.argmin())
    return (
        f"Ability {name}: highest in {scenarios[high]} ({in_words(means[high])}), lowest in {scenarios[low]} "
        f"({in_words(means[low])})."
    )


def _contrast(means: FloatArray, scenarios: list[str]) -> str:
    """Say which scenarios the second ability sets apart."""
    high, low = scenarios[int(means[:, 1].argmax())], scenarios[int(means[:, 1].argmin())]
    return f"The second ability sets {high} apart from {low}"


def _heat_map(scenarios: list[str], names: list[str], reach: float) -> Spec:
    x: Spec = {"field": "ability", "type": "nominal", "sort": names, "title": "Ability (share explained)"}
    x["axis"] = {"orient": "top", "labelAngle": 0}
    domain = [-reach, -MIDDLE * reach, 0, MIDDLE * reach, reach]
    scale = {"domain": domain, "range": "diverging", "interpolate": "lab"}
    colour = number_axis("loading", "Mean loading", scale=scale, legend=None)
    tooltip = tips(scenario="Scenario", ability="Ability", loading=("Mean loading", ".2f"))
    shared = {"x": x, "y": row_axis("scenario", scenarios)}
    cells = [{"mark": {"type": "rect"}, "encoding": {**shared, "color": colour, "tooltip": tooltip}}]
    number = {"field": "loading", "type": "quantitative", "format": ".2f"}
    is_far = {"or": [{"field": "loading", "gt": FAR * reach}, {"field": "loading", "lt": -FAR * reach}]}
    ink = {"condition": {"test": is_far, "value": "@paper"}, "value": "@ink"}
    cells.append({"mark": {"type": "text", "fontSize": 10}, "encoding": {**shared, "text": number, "color": ink}})
    return {"width": "container", "height": row_height(len(scenarios), 24), "layer": cells}


def _top_items(bank: Bank, loadings: FloatArray) -> Table:
    """Return the items that ask for each ability most."""
    order = np.argsort(-np.abs(loadings), axis=0, kind="stable")[:TOP_ITEMS]  # (n_top, n_abilities)
    rows = order.T.ravel()
    ability = np.repeat(np.arange(1, loadings.shape[1] + 1), order.shape[0])
    scenario = bank.responses.items["scenario"]
    data = Data(
        "top_items",
        {
            "ability": ability,
            "item": [bank.item_ids[row] for row in rows.tolist()],
            "scenario": [scenario[row] for row in rows.tolist()],
            "loading": loadings[rows, ability - 1],
            "right": bank.mean_responses[rows],
        },
    )
    columns = (
        Column("ability", "Ability", "count", has_menu=loadings.shape[1] > 1),
        Column("item", "Item", "id"),
        Column("scenario", "Scenario"),
        Column("loading", "Loading", "number", digits=2),
        Column("right", "Mean of past models", "percent"),
    )
    return Table("Items that ask for an ability most", data, columns, n_shown=2 * TOP_ITEMS)
