"""Drawing tasks and their items: sizes, difficulties, loading profiles."""

from dataclasses import dataclass

import numpy as np

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.studies.simulation.simulation_specs import SimulationSpec

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
        """Task of each item, (n_items,); items of a task stand together."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def first_item(self) -> IntArray:
        """First item of each task, (n_tasks,)."""
        result: IntArray = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return result


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
    return _whole_with_sum(relative, spec.n_items, least)


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


def _whole_with_sum(relative: FloatArray, total: int, least: int) -> IntArray:
    """Turn relative sizes into whole numbers >= `least` of a given sum, the remainders largest first."""
    shares = _scale(relative, total, least) * relative
    sizes: IntArray = np.maximum(np.floor(shares).astype(np.int64), least)
    short = total - int(sizes.sum())  # not negative: the shares, none below `least`, sum to no more than the total
    order = np.argsort(np.floor(shares) - shares, kind="stable")  # largest remainder first
    sizes += short // len(sizes)
    sizes[order[: short % len(sizes)]] += 1
    return sizes


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
