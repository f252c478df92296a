"""Drawing what each response costs in tokens."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.costs import INPUT_TOKENS, OUTPUT_TOKENS
from itembank.numerics.arrays import FloatArray
from itembank.studies.simulation.simulation_specs import SimulationSpec
from itembank.studies.simulation.tasks import ItemDraw, TaskDraw

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
    # each item's two factors stand together, so that the models' are the same for other numbers of items
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
    result: FloatArray = spec.cheapest_task_tokens * spec.task_cost_ratio**position
    return result


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
