"""What a simulation gives: responses, and the truth they were drawn from."""

from dataclasses import dataclass

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix
from itembank.studies.simulation.simulation_specs import SimulationSpec
from itembank.tabular import Compact


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
