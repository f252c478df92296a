"""`simulate`: responses of made-up models to made-up items, with all that they were made from, and its file."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from itembank.bank.costs import INPUT_TOKENS, OUTPUT_TOKENS
from itembank.errors import DataError
from itembank.files.atomic import replacing_file
from itembank.files.documents import BLANK, is_sealed, parse_json, seal, seal_holds
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.random import as_generator
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Compact
from itembank_studies.simulation.simulation_specs import SimulationSpec


@dataclass(frozen=True, slots=True)
class Truth:
    """What responses were drawn from; models and items in the order of the responses."""

    spec: SimulationSpec
    task_names: tuple[str, ...]  # The scenarios of the items
    parameters: ItemParameters  # In n_dims dimensions, the general ability first, then the specific ones
    abilities: FloatArray  # (n_models, n_dims)
    task_scores: FloatArray  # (n_models, n_tasks): Mean probability of a correct response over the items of each task


@dataclass(frozen=True, slots=True, repr=False)
class Simulated(Compact):
    """Simulated responses and their truth."""

    responses: ResponseMatrix
    truth: Truth


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


def draw_tasks(spec: SimulationSpec, rng: np.random.Generator) -> TaskDraw:
    """Draw tasks: sizes lognormal, difficulties and loading profiles normal."""
    sizes = task_sizes(spec, rng)
    difficulty = spec.mean_difficulty + spec.task_spread * rng.normal(size=spec.n_tasks)
    profile = spec.specific_spread * rng.normal(size=(spec.n_tasks, spec.n_dims))
    return TaskDraw(sizes, difficulty, profile)


def task_sizes(spec: SimulationSpec, rng: np.random.Generator) -> IntArray:
    """Draw sizes that sum to n_items, (n_tasks,)."""
    # log sizes are cut 2.75 standard deviations from their mean: WILD's largest task has some 47 times the median
    draws = np.clip(rng.normal(size=spec.n_tasks), -2.75, 2.75)
    relative = np.exp(spec.size_spread * draws)
    # half of the items at most go into making tasks large enough; the other half keeps their sizes apart
    least = max(1, min(spec.smallest_task, spec.n_items // (2 * spec.n_tasks)))
    # the factor at which the relative sizes, none below `least`, sum to n_items, by bisection: halving a double's
    # range to its last digit takes some 75 rounds
    low, high = 0.0, spec.n_items / float(relative.min())
    for _ in range(100):
        middle = (low + high) / 2.0
        if np.maximum(middle * relative, least).sum() > spec.n_items:
            high = middle
        else:
            low = middle
    shares = low * relative
    sizes: IntArray = np.maximum(np.floor(shares).astype(np.int64), least)
    short = spec.n_items - int(sizes.sum())  # not negative: the shares, none below `least`, sum to no more
    order = np.argsort(np.floor(shares) - shares, kind="stable")  # largest remainder first
    sizes += short // len(sizes)
    sizes[order[: short % len(sizes)]] += 1
    return sizes


def draw_items(spec: SimulationSpec, tasks: TaskDraw, rng: np.random.Generator) -> tuple[ItemParameters, FloatArray]:
    """Draw items around their tasks, as WILD's nested item model has them (eq. 7).

    Returns parameters, relative_difficulty: In n_dims + 1 dimensions, the general one first; (n_items,), over that of
    the item's task.
    """
    of_item = tasks.of_item
    relative = spec.item_spread * rng.normal(size=spec.n_items)
    slope = np.exp(spec.slope_spread * rng.normal(size=spec.n_items))
    specific = tasks.profile[of_item] + spec.specific_item_spread * rng.normal(size=(spec.n_items, spec.n_dims))
    # WILD's eq. 7 multiplies the whole bracket by the slope: general and specific loadings share it
    loadings = slope[:, None] * np.column_stack([np.ones(spec.n_items), specific])  # (n_items, n_dims + 1)
    intercept = -slope * (tasks.difficulty[of_item] + relative)
    return ItemParameters.create(loadings, intercept, spec.guessing), relative


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


def draw_costs(
    spec: SimulationSpec, tasks: TaskDraw, relative_difficulty: FloatArray, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Draw whole tokens of every response, each (n_models, n_items): input as expected, output around it.

    Expected tokens are products of an item's and a model's part: level and input share of tasks, factors of items,
    tokeniser and verbosity of models.
    """
    of_parts, of_responses = rng.spawn(2)
    of_tasks, of_items, of_models = of_parts.spawn(3)
    level = task_levels(spec, of_tasks)
    share = of_tasks.beta(2.0, 2.0, size=spec.n_tasks)  # the part of a task's tokens that is input
    of_item = tasks.of_item
    # each item's two factors are together, so that the models' are the same for other numbers of items
    factors = _mean_one(spec.item_cost_spread, of_items.standard_normal((spec.n_items, 2)))
    harder = np.exp(spec.difficulty_cost * relative_difficulty)
    # a lognormal of mean exp(s^2 / 2): divided by it, mean tokens stay those of the task whatever `difficulty_cost` is
    harder /= np.exp((spec.difficulty_cost * spec.item_spread) ** 2 / 2.0)
    input_of_item = (level * share)[of_item] * factors[:, 0]
    output_of_item = (level * (1.0 - share))[of_item] * factors[:, 1] * harder
    models = of_models.standard_normal((spec.n_models, 2))
    tokeniser_spread = 0.1  # of log input tokens over models: the same text, cut into pieces by other tokenisers
    tokens = of_responses.standard_normal((spec.n_models, spec.n_items))  # worked on in place: the largest array
    tokens *= spec.response_cost_spread
    tokens -= spec.response_cost_spread**2 / 2.0
    np.exp(tokens, out=tokens)
    tokens *= output_of_item
    tokens *= _mean_one(spec.verbosity_spread, models[:, 1])[:, None]
    return {
        INPUT_TOKENS: _whole(np.outer(_mean_one(tokeniser_spread, models[:, 0]), input_of_item)),
        OUTPUT_TOKENS: _whole(tokens),
    }


def task_levels(spec: SimulationSpec, rng: np.random.Generator) -> FloatArray:
    """Draw mean tokens of a response in each task, (n_tasks,): lognormal between its bounds, both of which occur."""
    draws = rng.normal(size=spec.n_tasks)
    spread = float(np.ptp(draws))
    # stretched to [0, 1] by the extremes, so that the ratio of dearest to cheapest task is exactly the one asked for
    position = (draws - draws.min()) / spread if spread > 0.0 else np.zeros(spec.n_tasks)
    return spec.cheapest_task_tokens * spec.task_cost_ratio**position


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
    parameters, relative_difficulty = draw_items(spec, tasks, of_items)
    abilities = of_models.standard_normal((spec.n_models, spec.n_dims + 1))
    answers, task_scores = draw_answers(parameters, abilities, tasks.first_item, of_answers)
    costs = draw_costs(spec, tasks, relative_difficulty, of_costs) if spec.has_costs else {}
    if spec.missing > 0.0:
        missing = draw_missing(spec.n_models, spec.n_items, spec.missing, of_gaps)
        for values in (answers, *costs.values()):
            values[missing] = np.nan
    names = task_names(spec.n_tasks)
    width = len(str(spec.n_models))
    models = pl.DataFrame({"model_id": [f"model-{number:0{width}d}" for number in range(1, spec.n_models + 1)]})
    width, of_item = len(str(tasks.sizes.max())), tasks.of_item
    places = np.arange(spec.n_items) - tasks.first_item[of_item] + 1
    scenarios = [names[task] for task in of_item.tolist()]
    ids = [f"{name}/{place:0{width}d}" for name, place in zip(scenarios, places.tolist(), strict=True)]
    table = pl.DataFrame({"item_id": ids, "scenario": scenarios})
    if spec.guessing > 0.0:
        table = table.with_columns(chance=pl.lit(spec.guessing))
    responses = ResponseMatrix.create(answers, models=models, items=table, costs=costs)
    return Simulated(responses, Truth(spec, names, parameters, abilities, task_scores))


def task_names(n_tasks: int) -> tuple[str, ...]:
    """Name tasks so that their order is that of the alphabet."""
    return tuple(f"task-{number:0{len(str(n_tasks))}d}" for number in range(1, n_tasks + 1))


SUFFIX = ".truth.safetensors"
SCHEMA_VERSION = 1
KEY = "itembank.simulated"
"""The only one of the file's metadata, for they are written in no fixed order."""


def truth_path(responses: Path) -> Path:
    """Where the truth of a response file is: ``responses.parquet`` has ``responses.truth.safetensors``."""
    return responses.with_name(responses.stem + SUFFIX)


def save_truth(truth: Truth, path: str | Path) -> None:
    """Write the truth, whole or not at all."""
    arrays = {
        "loadings": truth.parameters.loadings,
        "intercept": truth.parameters.intercept,
        "lower_asymptote": truth.parameters.lower_asymptote,
        "upper_asymptote": truth.parameters.upper_asymptote,
        "abilities": truth.abilities,
        "task_scores": truth.task_scores,
    }
    record = {
        "schema_version": SCHEMA_VERSION,
        "spec": dataclasses.asdict(truth.spec),
        "task_names": truth.task_names,
        "digest": BLANK,
    }
    with replacing_file(Path(path)) as temporary:
        save_file(
            {name: np.ascontiguousarray(array) for name, array in arrays.items()}, temporary, {KEY: json.dumps(record)}
        )
        seal(temporary)


def load_truth(path: str | Path) -> Truth:
    """Read the truth of simulated responses.

    Raises
    ------
    DataError
        When the file is not what was written or holds something else.
    """
    try:
        if is_sealed(Path(path)) and not seal_holds(Path(path)):
            raise DataError("its bytes are not those that were written")
        with safe_open(path, framework="numpy") as file:
            record = parse_json((file.metadata() or {}).get(KEY, "{}"))
            if record.get("schema_version") != SCHEMA_VERSION:
                raise DataError(f"{path} must hold the truth of a simulation, schema version {SCHEMA_VERSION}.")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        parameters = ItemParameters(
            *(arrays[name] for name in ("loadings", "intercept", "lower_asymptote", "upper_asymptote"))
        )
        spec = SimulationSpec(**record["spec"])
        names = tuple(record["task_names"])
        return Truth(spec, names, parameters, arrays["abilities"], arrays["task_scores"])
    except (OSError, SafetensorError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{path} must hold the truth of a simulation, and cannot be read: {error}.") from error
