"""`simulate`: responses of made-up models to made-up items, with all that they were made from."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.bank.costs import INPUT_TOKENS, OUTPUT_TOKENS
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.random import as_generator
from itembank.responses.responses import ResponseMatrix
from itembank_studies.simulation.simulation_results import Simulated, Truth
from itembank_studies.simulation.simulation_specs import SimulationSpec

LARGEST = 2.75
"""Log sizes are cut this many standard deviations from their mean: WILD's largest task has some 47 times the median."""


@dataclass(frozen=True, slots=True)
class TaskDraw:
    """Tasks as drawn."""

    sizes: IntArray  # (n_tasks,): Items of each
    difficulty: FloatArray  # (n_tasks,)
    # (n_tasks, n_specific): Loadings on the specific abilities, around which those of its items lie.
    profile: FloatArray

    @property
    def of_item(self) -> IntArray:
        """Task of each item, (n_items,); items of a task are together."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def first_item(self) -> IntArray:
        """First item of each task, (n_tasks,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])


@dataclass(frozen=True, slots=True)
class ItemDraw:
    """Items as drawn."""

    parameters: ItemParameters  # In n_dims + 1 dimensions, the general one first
    relative_difficulty: FloatArray  # (n_items,): Difficulty over that of the item's task


def draw_tasks(spec: SimulationSpec, rng: np.random.Generator) -> TaskDraw:
    """Draw tasks: sizes lognormal, difficulties and loading profiles normal."""
    sizes = task_sizes(spec, rng)
    difficulty = spec.mean_difficulty + spec.task_spread * rng.normal(size=spec.n_tasks)
    profile = spec.specific_spread * rng.normal(size=(spec.n_tasks, spec.n_dims))
    return TaskDraw(sizes, difficulty, profile)


def task_sizes(spec: SimulationSpec, rng: np.random.Generator) -> IntArray:
    """Draw sizes that sum to n_items, (n_tasks,)."""
    draws = np.clip(rng.normal(size=spec.n_tasks), -LARGEST, LARGEST)
    relative = np.exp(spec.size_spread * draws)
    # half of the items at most go into making tasks large enough; the other half keeps their sizes apart
    least = max(1, min(spec.smallest_task, spec.n_items // (2 * spec.n_tasks)))
    shares = _scale(relative, spec.n_items, least) * relative
    sizes: IntArray = np.maximum(np.floor(shares).astype(np.int64), least)
    short = spec.n_items - int(sizes.sum())  # not negative: the shares, none below `least`, sum to no more
    order = np.argsort(np.floor(shares) - shares, kind="stable")  # largest remainder first
    sizes += short // len(sizes)
    sizes[order[: short % len(sizes)]] += 1
    return sizes


def draw_items(spec: SimulationSpec, tasks: TaskDraw, rng: np.random.Generator) -> ItemDraw:
    """Draw items around their tasks, as WILD's nested item model has them (eq. 7)."""
    of_item = tasks.of_item
    relative = spec.item_spread * rng.normal(size=spec.n_items)
    slope = np.exp(spec.slope_spread * rng.normal(size=spec.n_items))
    specific = tasks.profile[of_item] + spec.specific_item_spread * rng.normal(size=(spec.n_items, spec.n_dims))
    # WILD's eq. 7 multiplies the whole bracket by the slope: general and specific loadings share it
    loadings = slope[:, None] * np.column_stack([np.ones(spec.n_items), specific])  # (n_items, n_dims + 1)
    intercept = -slope * (tasks.difficulty[of_item] + relative)
    return ItemDraw(ItemParameters.create(loadings, intercept, spec.guessing), relative)


def _scale(relative: FloatArray, total: int, least: int) -> float:
    """Find the factor at which the relative sizes, none below `least`, sum to `total` (bisection)."""
    low, high = 0.0, total / float(relative.min())
    # halving a double's range to its last digit takes some 75 rounds
    for _ in range(100):
        middle = (low + high) / 2.0
        if np.maximum(middle * relative, least).sum() > total:
            high = middle
        else:
            low = middle
    return low


def draw_answers(
    parameters: ItemParameters, abilities: FloatArray, first_item: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw Bernoulli responses, block of models after block.

    Returns task_scores : (n_models, n_tasks): Mean true probability over the items of each task; `first_item`
    (n_tasks,) says where they begin.
    """
    n_models, n_items = abilities.shape[0], parameters.n_items
    responses = np.empty((n_models, n_items))
    scores = np.empty((n_models, len(first_item)))
    sizes = np.diff(np.append(first_item, n_items))
    for rows in row_blocks(n_models, n_items, times=4):
        chances = probability(parameters, abilities[rows])
        scores[rows] = np.add.reduceat(chances, first_item, axis=1) / sizes
        # one block draws after the other, row by row: the answers do not depend on the size of a block
        responses[rows] = rng.random(chances.shape) < chances
    return responses, scores


def draw_missing(n_models: int, n_items: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Draw which responses are missing, (n_models, n_items); every model and every item keeps one."""
    missing: BoolArray = rng.random((n_models, n_items)) < share
    items = np.flatnonzero(missing.all(axis=0))
    missing[rng.integers(n_models, size=len(items)), items] = False
    models = np.flatnonzero(missing.all(axis=1))
    missing[models, rng.integers(n_items, size=len(models))] = False
    return missing


TOKENISER_SPREAD = 0.1
"""Of log input tokens over models: the same text, cut into pieces by other tokenisers."""
INPUT_SHARE = (2.0, 2.0)
"""Beta distribution of the part of a task's tokens that is input."""


@dataclass(frozen=True, slots=True)
class CostDraw:
    """What costs are made of; expected tokens are products of an item's and a model's part."""

    input_of_item: FloatArray  # (n_items,): Mean tokens over models of mean verbosity
    output_of_item: FloatArray  # (n_items,)
    input_of_model: FloatArray  # (n_models,): Tokeniser and verbosity, lognormal of mean 1
    output_of_model: FloatArray  # (n_models,)


def draw_cost_parts(spec: SimulationSpec, tasks: TaskDraw, items: ItemDraw, rng: np.random.Generator) -> CostDraw:
    """Draw the parts of costs: level and input share of tasks, factors of items, verbosity of models."""
    of_tasks, of_items, of_models = rng.spawn(3)
    level = task_levels(spec, of_tasks)
    share = of_tasks.beta(*INPUT_SHARE, size=spec.n_tasks)
    of_item = tasks.of_item
    # each item's two factors are together, so that the models' are the same for other numbers of items
    factors = _mean_one(spec.item_cost_spread, of_items.standard_normal((spec.n_items, 2)))
    harder = np.exp(spec.difficulty_cost * items.relative_difficulty)
    # a lognormal of mean exp(s^2 / 2): divided by it, mean tokens stay those of the task whatever `difficulty_cost` is
    harder /= np.exp((spec.difficulty_cost * spec.item_spread) ** 2 / 2.0)
    models = of_models.standard_normal((spec.n_models, 2))
    return CostDraw(
        (level * share)[of_item] * factors[:, 0],
        (level * (1.0 - share))[of_item] * factors[:, 1] * harder,
        _mean_one(TOKENISER_SPREAD, models[:, 0]),
        _mean_one(spec.verbosity_spread, models[:, 1]),
    )


def task_levels(spec: SimulationSpec, rng: np.random.Generator) -> FloatArray:
    """Draw mean tokens of a response in each task, (n_tasks,): lognormal between its bounds, both of which occur."""
    draws = rng.normal(size=spec.n_tasks)
    spread = float(np.ptp(draws))
    # stretched to [0, 1] by the extremes, so that the ratio of dearest to cheapest task is exactly the one asked for
    position = (draws - draws.min()) / spread if spread > 0.0 else np.zeros(spec.n_tasks)
    return spec.cheapest_task_tokens * spec.task_cost_ratio**position


def draw_costs(spec: SimulationSpec, parts: CostDraw, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Draw whole tokens of every response, each (n_models, n_items): input as expected, output around it."""
    tokens = rng.standard_normal((spec.n_models, spec.n_items))  # worked on in place: the largest array there is
    tokens *= spec.response_cost_spread
    tokens -= spec.response_cost_spread**2 / 2.0
    np.exp(tokens, out=tokens)
    tokens *= parts.output_of_item
    tokens *= parts.output_of_model[:, None]
    return {
        INPUT_TOKENS: _whole(np.outer(parts.input_of_model, parts.input_of_item)),
        OUTPUT_TOKENS: _whole(tokens),
    }


def _mean_one(spread: float, normals: FloatArray) -> FloatArray:
    """Lognormals of mean 1 from standard normals."""
    result: FloatArray = np.exp(spread * normals - spread**2 / 2.0)
    return result


def _whole(tokens: FloatArray) -> FloatArray:
    """Round to whole tokens, at least one; in place."""
    np.rint(tokens, out=tokens)
    np.maximum(tokens, 1.0, out=tokens)
    return tokens


def simulate(spec: SimulationSpec | None = None, rng: np.random.Generator | int | None = 0) -> Simulated:
    """Draw responses of known truth; without a spec, of the shape of WILD's data.

    Tasks, items, models, answers, gaps and costs each have a random stream of their own: the same seed gives the
    same items whatever the number of models, and the same answers with costs and without.

    Parameters
    ----------
    spec : SimulationSpec, optional
    rng : Generator, int or None

    Examples
    --------
    >>> from itembank_studies import SimulationSpec
    >>> from itembank_studies import simulate
    >>> made = simulate(SimulationSpec(n_models=20, n_items=500, n_tasks=5), rng=0)
    >>> made.responses.responses.shape, made.truth.task_scores.shape
    ((20, 500), (20, 5))
    """
    spec = spec or SimulationSpec()
    of_tasks, of_items, of_models, of_answers, of_gaps, of_costs = as_generator(rng).spawn(6)
    tasks = draw_tasks(spec, of_tasks)
    items = draw_items(spec, tasks, of_items)
    abilities = of_models.standard_normal((spec.n_models, spec.n_dims + 1))
    answers, task_scores = draw_answers(items.parameters, abilities, tasks.first_item, of_answers)
    costs: dict[str, FloatArray] = {}
    if spec.has_costs:
        of_parts, of_responses = of_costs.spawn(2)
        costs = draw_costs(spec, draw_cost_parts(spec, tasks, items, of_parts), of_responses)
    if spec.missing > 0.0:
        missing = draw_missing(spec.n_models, spec.n_items, spec.missing, of_gaps)
        for values in (answers, *costs.values()):
            values[missing] = np.nan
    names = task_names(spec.n_tasks)
    width = len(str(spec.n_models))
    models = pl.DataFrame({"model_id": [f"model-{number:0{width}d}" for number in range(1, spec.n_models + 1)]})
    responses = ResponseMatrix.create(answers, models=models, items=_items(spec, tasks, names), costs=costs)
    return Simulated(responses, Truth(spec, names, items.parameters, abilities, task_scores))


def task_names(n_tasks: int) -> tuple[str, ...]:
    """Name tasks so that their order is that of the alphabet."""
    return tuple(f"task-{number:0{len(str(n_tasks))}d}" for number in range(1, n_tasks + 1))


def _items(spec: SimulationSpec, tasks: TaskDraw, names: tuple[str, ...]) -> pl.DataFrame:
    """Ids, tasks as scenarios, and the chance of guessing where there is one."""
    width = len(str(tasks.sizes.max()))
    number = np.arange(spec.n_items) - tasks.first_item[tasks.of_item] + 1
    scenarios = [names[task] for task in tasks.of_item.tolist()]
    ids = [f"{name}/{index:0{width}d}" for name, index in zip(scenarios, number.tolist(), strict=True)]
    table = pl.DataFrame({"item_id": ids, "scenario": scenarios})
    return table.with_columns(chance=pl.lit(spec.guessing)) if spec.guessing > 0.0 else table
