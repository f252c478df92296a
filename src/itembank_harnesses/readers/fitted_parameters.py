"""Files of item parameters that programs of others fitted: py-irt's JSON and tinyBenchmarks' pickle."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from itembank.errors import DataError, ParameterError, remedy, shown
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.json_files import first_record
from itembank.readers.known_parameters import ACCEPTED, LAMBDA, KnownItems
from itembank.responses.opening import Table, file_kind, open_binary, translated
from itembank.responses.score_names import SELECTION_WEIGHT
from itembank_harnesses.readers.pickled_arrays import Array, read_pickled

TASKS = {
    "alpaca_v2": "tinyAlpacaEval",
    "arc": "tinyArc",
    "gsm8k": "tinyGSM8k",
    "harness_truthfulqa_mc_0": "tinyTruthfulQA",
    "hellaswag": "tinyHellaswag",
    "mmlu": "tinyMMLU",
    "truthfulqa": "tinyTruthfulQA",
    "winogrande": "tinyWinogrande",
}
"""Tasks of lm-evaluation-harness that ask the items to run, in their order."""


def read_fitted(path: Path, benchmark: str = "") -> KnownItems | Table | None:
    """Read ``best_parameters.json`` of py-irt or ``tinyBenchmarks.pkl``, nothing of which is run; None: another file.

    Raises `DataError` for a file of theirs that is not as they write it; `ParameterError` when it holds several
    benchmarks and none of this name.
    """
    with translated(path), open_binary(path) as file:
        is_pickle = file.read(1) == b"\x80"
    if is_pickle:
        return _tiny_benchmark(path, benchmark)
    if file_kind(path) == "json" and {"diff", "item_ids"} <= set(record := first_record(path)):
        return _py_irt(path, record)
    return None


def _py_irt(path: Path, record: Mapping[str, Any]) -> Table:
    """Read py-irt's parameters: lists in the order of `item_ids`, whose slopes this release has exponentiated."""
    ids, asymptote = record["item_ids"], {"3pl": "lower", "4pl": "upper"}.get(str(record.get("irt_model")))
    columns = {"difficulty": record["diff"], "discrimination": record.get("disc")}
    if asymptote is not None:
        columns[asymptote] = record.get("lambdas")
    columns = {name: values for name, values in columns.items() if values is not None}
    names = [ids.get(str(place)) for place in range(len(ids))] if isinstance(ids, dict) else ids
    if not all(
        isinstance(values, list) and len(values) == len(names) and not any(isinstance(one, list) for one in values)
        for values in columns.values()
    ):
        raise DataError(
            f"{path}: parameters of py-irt must be lists of one number an item. Of several abilities, releases differ "
            f"in what they mean: write a table of loading_1, loading_2, ... and intercept. {ACCEPTED}."
        )
    if any(not (isinstance(one, int | float) and one > 0.0) for one in columns.get("discrimination", [])):
        raise DataError(
            f"{path}: disc must be above 0, and is not, as in releases of py-irt that wrote its logarithm. Write a "
            f"table with its exponential. {ACCEPTED}."
        )
    try:
        columns["item_id"] = [name and str(name) for name in names]
        return Table(str(path), pl.DataFrame(columns, strict=False))
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: parameters of py-irt must be lists of numbers: {error}.") from error


def _tiny_benchmark(path: Path, benchmark: str) -> KnownItems:
    """Read one benchmark of tinyBenchmarks' file, the items to run first, in the order of its tiny data set.

    Theirs is ``logit = sum_k (A_k theta_k - B_k)``, one B a dimension. A subscenario weighs the same as any other.
    """
    content = read_pickled(path)
    try:
        scenarios_of = {str(name): one["scenarios_position"].keys() for name, one in content.items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} must hold benchmarks with irt_parameters, seen_examples and scenarios_position, as "
            f"tinyBenchmarks.pkl does, and does not. {ACCEPTED}."
        ) from error
    if not benchmark and len(content) == 1:
        benchmark = next(iter(scenarios_of))
    if benchmark not in content:
        names = "; ".join(f"{name!r} (scenarios {shown([*scenarios])})" for name, scenarios in scenarios_of.items())
        how = remedy("benchmark=...", "--benchmark NAME")
        got = f", got {benchmark!r}" if benchmark else ""
        raise ParameterError(f"one benchmark of {path} must be named ({how}){got}. There are {names}.")
    try:
        return _benchmark(content[benchmark])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{path}: benchmark {benchmark!r} must be one of tinyBenchmarks, with parameters, positions and weights of "
            f"the same items, and is not: {error}."
        ) from error


def _benchmark(one: Mapping[str, Any]) -> KnownItems:
    """Make sense of one benchmark; raises as reading what is not there does."""
    slopes = _numbers(one["irt_parameters"]["A"])
    levels = np.broadcast_to(_numbers(one["irt_parameters"]["B"]), slopes.shape)
    n_sets, n_dims, n_items = slopes.shape
    if n_sets != 1 or n_dims < 1 or not (np.isfinite(slopes).all() and np.isfinite(levels).all()):
        raise ValueError("parameters must be finite, of one set of items and one ability at least")
    scenario, part = np.full(n_items, "", dtype=object), np.full(n_items, "", dtype=object)
    weight, own_weight, share = np.zeros(n_items), np.full(n_items, np.nan), np.full(n_items, np.nan)
    ids = np.full(n_items, "", dtype=object)
    seen = _places(one["seen_examples"], n_items)
    for name, where in one["scenarios_position"].items():
        places = _places(where, n_items)
        if (scenario[places] != "").any():
            raise ValueError("an item is in two scenarios")
        parts = one["subscenarios_position"][name]
        scenario[places], share[places] = str(name), _numbers(one["optimal_lambdas"][name]).item()
        ids[places] = [f"{name}/{number}" for number in range(places.size)]
        for label, inside in parts.items():
            members = _places(inside, n_items)
            if (part[members] != "").any() or (scenario[members] != str(name)).any():
                raise ValueError("an item must be in one subscenario, of its scenario")
            part[members], weight[members] = str(label), places.size / (len(parts) * members.size)
        chosen = seen[np.isin(seen, places)]
        weights = _numbers(one["examples_weights"][name]).ravel()
        if weights.size != chosen.size or not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
            raise ValueError("each item to run must have a weight, finite and >= 0, and not all of them zero")
        own_weight[chosen] = weights
        ids[chosen] = [f"{TASKS.get(name, f'tiny {name}')}/{number}" for number in range(chosen.size)]
    if (scenario == "").any() or not (weight > 0.0).all() or not ((share >= 0.0) & (share < 1.0)).all():
        raise ValueError("every item must be in a scenario and a subscenario, and every lambda in [0, 1)")
    order = np.concatenate([seen, np.setdiff1d(np.arange(n_items), seen)])
    columns: dict[str, npt.NDArray[Any]] = {
        "item_id": ids,
        "scenario": scenario,
        "subscenario": part,
        "weight": weight,
        SELECTION_WEIGHT: own_weight,
        LAMBDA: share,
    }
    items = pl.DataFrame({name: [values[row] for row in order.tolist()] for name, values in columns.items()})
    items = items.with_columns(pl.col(SELECTION_WEIGHT).fill_nan(None))
    return KnownItems(items, ItemParameters.create(slopes[0].T[order], -levels[0].sum(axis=0)[order]))


def _numbers(given: Any) -> FloatArray:
    """Return an array, or a list of numbers: of others, which numpy would unfold, there may be no end."""
    if isinstance(given, Array):
        return given.numbers
    if not all(isinstance(one, int | float) for one in (given if isinstance(given, list) else [given])):
        raise ValueError("there must be numbers where others are")
    return np.array(given, dtype=np.float64)


def _places(given: Any, n_items: int) -> IntArray:
    """Positions of items, each once."""
    found = _numbers(given)
    places = found.astype(np.int64)
    if found.ndim != 1 or (places != found).any() or np.unique(places).size < places.size:
        raise ValueError("positions must be whole numbers, each once")
    if places.size and not 0 <= places.min() <= places.max() < n_items:
        raise ValueError(f"positions must be from 0 to {n_items - 1}")
    return places
