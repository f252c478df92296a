"""The items of a bank: how hard they are, what they tell, and where the models are."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from itembank.auditing.outlook import outlook
from itembank.bank.banks import Bank, Calibration
from itembank.irt.abilities import Difficulties, expected_difficulties
from itembank.irt.bernoulli import logit, probability
from itembank.irt.families import information_weights
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Block, Chart, Column, Data, Section, Table, Text, bank_argument
from itembank.pages.grammar import IN_BRUSH, Spec, below, brushed, marks, number, span, tips, when
from itembank.pages.theme import count, in_words, percent, plural

MOST_MODELS = 60
"""Calibration models at whose abilities the gradient is taken; of more, evenly spread ones."""
N_GRID = 61
MOST_POINTS = 5_000
"""Items that are drawn one by one; of more, the map shows how many lie in each cell."""
CELLS = (60, 36)
MOST_IN_MENU = 60
FEW_MODELS = 5
"""Past models below which a range of them says nothing."""
SHORT = 3
"""Decimal places of numbers in the table of items."""
AXIS = "Ability and difficulty"


@dataclass(frozen=True, slots=True)
class AbilityAxis:
    """The line ``theta = origin + t direction`` from the prior mean to where the overall score rises fastest.

    With S the prior's Cholesky factor and u a unit vector, the direction is ``S u``, so that t counts standard
    deviations of the prior. u follows the mean gradient of the expected overall score, ``sum_i omega_i p_i'  S' a_i``,
    at the calibration models' abilities (of many, some). With one ability the line is the ability itself.
    """

    origin: FloatArray  # (n_dims,)
    direction: FloatArray  # (n_dims,)
    positions: FloatArray  # (n_models,): Of the calibration models on the line, with standard errors
    errors: FloatArray  # (n_models,)

    @classmethod
    def of(cls, bank: Bank) -> Self:
        """Find the line of a bank."""
        calibration = bank.calibration
        factor = np.linalg.cholesky(calibration.prior.covariance)
        rise = factor.T @ _gradient(bank)
        length = float(np.linalg.norm(rise))
        unit = rise / length if length > 0.0 else np.eye(rise.shape[0])[0]
        white = np.linalg.solve(factor, (calibration.abilities - calibration.prior.mean).T).T  # (n_models, n_dims)
        across = np.linalg.solve(factor.T, unit)
        variance = np.einsum("i,nij,j->n", across, calibration.ability_covariance, across)
        return cls(calibration.prior.mean, factor @ unit, white @ unit, np.sqrt(variance))

    def grid(self, n_points: int) -> FloatArray:
        """Return places from the weakest calibration model to the strongest, at least from -3 to 3, (n_points,)."""
        reach = max(3.0, float(np.abs(self.positions).max(initial=0.0)))
        return np.linspace(-reach, reach, n_points)

    def slopes(self, calibration: Calibration) -> FloatArray:
        """How fast each item's logit rises along the line, (n_items,)."""
        return calibration.parameters.loadings @ self.direction

    def difficulties(self, calibration: Calibration) -> Difficulties:
        """Places on the line at which the items' logits are zero, with standard errors."""
        parameters, n_dims = calibration.parameters, calibration.n_dims
        onto = np.zeros((2, n_dims + 1))  # (slope, intercept on the line) from (loadings, intercept)
        onto[0, :n_dims], onto[1, :n_dims], onto[1, n_dims] = self.direction, self.origin, 1.0
        covariance = np.einsum("ai,nij,bj->nab", onto, calibration.item_covariance, onto)
        intercept = parameters.loadings @ self.origin + parameters.intercept
        return expected_difficulties(self.slopes(calibration), intercept, covariance)

    def information(self, calibration: Calibration, grid: FloatArray) -> FloatArray:
        """Information of each item on t, of counts that of one trial, (n_grid, n_items): ``w (a . S u)^2``."""
        parameters = calibration.parameters
        theta = self.origin + grid[:, None] * self.direction  # (n_grid, n_dims)
        return information_weights(parameters, logit(parameters, theta)) * self.slopes(calibration) ** 2


def _gradient(bank: Bank) -> FloatArray:
    """Mean gradient of the expected overall score in ability, (n_dims,)."""
    parameters, abilities = bank.parameters, bank.calibration.abilities
    if abilities.shape[0]:
        theta = abilities[:: -(-abilities.shape[0] // MOST_MODELS)]
    else:
        theta = bank.calibration.prior.mean[None, :]
    lower, upper = parameters.lower_asymptote, parameters.upper_asymptote
    p = probability(parameters, theta)  # (n_models, n_items)
    rises = (p - lower) * (upper - p) / np.maximum(upper - lower, np.finfo(np.float64).tiny)
    result: FloatArray = (bank.targets.overall_weights * rises.mean(axis=0)) @ parameters.loadings
    return result


def items_section(bank: Bank) -> Section:
    """Return the item map and the table of items."""
    items = bank.responses.items
    known: dict[str, Any] = {"item": bank.item_ids, "scenario": items["scenario"].to_list()}
    if items["subscenario"].drop_nulls().n_unique() > 1:
        known["subscenario"] = items["subscenario"].to_list()
    known["right"] = np.round(bank.mean_responses, SHORT)
    if not bank.calibration.is_fitted:
        why = "Past models are too few for an item model, so there is no difficulty or discrimination yet."
        return Section("Questions", (Text(why), _table(bank, Data("items", known))))
    axis = AbilityAxis.of(bank)
    place, slope = axis.difficulties(bank.calibration).value, axis.slopes(bank.calibration)
    grid = axis.grid(N_GRID)
    information = axis.information(bank.calibration, grid)
    weights = np.exp(-0.5 * grid**2)  # of the prior, where there is no model
    if axis.positions.size:
        step = grid[1] - grid[0]
        counts = np.histogram(axis.positions, np.append(grid - 0.5 * step, grid[-1] + 0.5 * step))[0]
        weights = counts.astype(np.float64)
    numbers = {"place": place, "slope": slope, "information": (weights / weights.sum()) @ information}
    data = Data("items", known | {name: np.round(values, SHORT) for name, values in numbers.items()})
    table = _table(bank, data)
    blocks: list[Block] = [_map(bank, axis, data, information.sum(axis=1), table), table]
    if said := outlook(bank).in_words:
        blocks.insert(-1, Text(said))
    against = int((slope < 0.0).sum())
    where = in_words(float(np.median(place)), 1, is_signed=True)
    middle = f"The median question has difficulty {where}, in standard deviations of ability"
    if axis.positions.size:
        middle += f"; the median past model has ability {in_words(float(np.median(axis.positions)), 1, is_signed=True)}"
    verb, number = "is" if against < 2 else "are", plural(against, "question") if against else "No question"
    lead = f"{middle}. {number} of {count(bank.n_items)} {verb} solved less often by stronger models."
    if bank.published is None:
        lead += f" To find questions that may be faulty: itembank check {bank_argument(bank)} --report audit.html."
    return Section("Questions", tuple(blocks), lead)


def _table(bank: Bank, data: Data) -> Table:
    mean = "Right" if bank.n_models == 0 or bank.responses.is_binary else "Mean"
    columns = (
        Column("item", "Question", "id"),
        Column("scenario", "Scenario", has_menu=bank.targets.n_scenarios > 1),
        Column("subscenario", "Part", has_menu=True),
        Column("right", mean, "percent", 0, "Mean answer of past models"),
        Column(
            "place", "Difficulty", "number", 2, "The ability at which half the models solve it, apart from guessing"
        ),
        Column("slope", "Discrimination", "number", 2, "How fast the chance to solve it rises with ability"),
        Column("information", "Information", "number", 3, "How much an answer tells about a past model, on average"),
    )
    held = tuple(one for one in columns if one.name in data.columns)
    note = "Draw a rectangle in the map to see its questions here." * ("place" in data.columns)
    return Table("Questions", data, held, note=note)


def _map(bank: Bank, axis: AbilityAxis, data: Data, total: FloatArray, table: Table) -> Chart:
    """Items, models above them and the information of all items below, on the same axis."""
    grid = axis.grid(N_GRID)
    reach = float(grid[-1])
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
    names = sorted(bank.targets.scenarios) if 1 < bank.targets.n_scenarios <= MOST_IN_MENU and not is_dense else []
    title = "Questions by difficulty and discrimination"
    if axis.positions.size >= FEW_MODELS:
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
        place, np.clip(slope, low, high), bins=CELLS, range=[[-reach, reach], [low, max(high, low + 1e-6)]]
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
    n_models = number("n", "Models", tickCount=2)
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
    shown = [{**one, "height": height, "widthOf": 1, "aside": 64} for one, height in parts[0 if has_models else 1 :]]
    return below(*shown, spacing=8, autosize="pad", resolve={"legend": {"color": "independent"}})
