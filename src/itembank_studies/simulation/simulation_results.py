"""What a simulation gives: responses, and the truth they were drawn from, with its safetensors file."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from itembank.errors import DataError
from itembank.files.atomic import replacing_file
from itembank.files.documents import BLANK, is_sealed, parse_json, seal, seal_holds
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
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
