"""`simulate`: responses of made-up models to made-up items, with all that they were made from."""

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.responses.responses import ResponseMatrix
from itembank.studies.simulation.answers import draw_answers, draw_missing
from itembank.studies.simulation.costs import draw_cost_parts, draw_costs
from itembank.studies.simulation.simulation_results import Simulated, Truth
from itembank.studies.simulation.simulation_specs import SimulationSpec
from itembank.studies.simulation.tasks import ItemDraw, TaskDraw, draw_items, draw_tasks


def simulate(spec: SimulationSpec | None = None, rng: np.random.Generator | int | None = None) -> Simulated:
    """Draw responses of known truth; without a spec, of the shape of WILD's data.

    Tasks, items, models, answers, gaps and costs each have a random stream of their own: the same seed gives the
    same items whatever the number of models, and the same answers with costs and without.

    Parameters
    ----------
    spec : SimulationSpec, optional
    rng : Generator, int or None

    Examples
    --------
    >>> from itembank.simulation import SimulationSpec
    >>> from itembank import simulate
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
    costs = _costs(spec, tasks, items, of_costs)
    if spec.missing > 0.0:
        missing = draw_missing(spec.n_models, spec.n_items, spec.missing, of_gaps)
        for values in (answers, *costs.values()):
            values[missing] = np.nan
    names = task_names(spec.n_tasks)
    responses = ResponseMatrix.create(answers, models=_models(spec), items=_items(spec, tasks, names), costs=costs)
    return Simulated(responses, Truth(spec, names, items.parameters, abilities, task_scores))


def task_names(n_tasks: int) -> tuple[str, ...]:
    """Name tasks so that their order is that of the alphabet."""
    return tuple(f"task-{number:0{len(str(n_tasks))}d}" for number in range(1, n_tasks + 1))


def _costs(spec: SimulationSpec, tasks: TaskDraw, items: ItemDraw, rng: np.random.Generator) -> dict[str, FloatArray]:
    if not spec.has_costs:
        return {}
    of_parts, of_responses = rng.spawn(2)
    return draw_costs(spec, draw_cost_parts(spec, tasks, items, of_parts), of_responses)


def _models(spec: SimulationSpec) -> pl.DataFrame:
    width = len(str(spec.n_models))
    return pl.DataFrame({"model_id": [f"model-{number:0{width}d}" for number in range(1, spec.n_models + 1)]})


def _items(spec: SimulationSpec, tasks: TaskDraw, names: tuple[str, ...]) -> pl.DataFrame:
    """Ids, tasks as scenarios, and the chance of guessing where there is one."""
    width = len(str(tasks.sizes.max()))
    number = np.arange(spec.n_items) - tasks.first_item[tasks.of_item] + 1
    scenarios = [names[task] for task in tasks.of_item.tolist()]
    ids = [f"{name}/{index:0{width}d}" for name, index in zip(scenarios, number.tolist(), strict=True)]
    table = pl.DataFrame({"item_id": ids, "scenario": scenarios})
    return table.with_columns(chance=pl.lit(spec.guessing)) if spec.guessing > 0.0 else table
