"""Item parameters that others fitted: tables, R's mirt, py-irt's JSON, the file of tinyBenchmarks, told by content.

Whatever their names, they become ours: ``logit = loadings . theta + intercept``, so that ``a (theta - b)`` has the
intercept ``-a b``.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from itembank.errors import DataError, ParameterError, remedy, shown
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.columns import numbers
from itembank.readers.json_files import first_record
from itembank.readers.matrix import known_table
from itembank.readers.pickled_arrays import Array, read_pickled
from itembank.readers.read import to_polars
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.table import with_usual_names
from itembank.readers.table_files import probable_header, read_table_file
from itembank.responses.opening import Table, file_kind, open_binary, translated
from itembank.responses.score_names import SELECTION_WEIGHT

LAMBDA = "gp_irt_lambda"
"""Column: gp-IRT's lambda of the item's scenario where all items to run are answered, as it was published."""
NAMES = {
    "difficulty": ("difficulty", "b", "diff"),
    "discrimination": ("discrimination", "a", "disc", "slope"),
    "intercept": ("intercept", "d"),
    "lower": ("lower", "lower_asymptote", "c", "g", "guessing", "guess"),
    "upper": ("upper", "upper_asymptote", "u", "feasibility"),
}
"""What tables call each parameter; d beside a difficulty is the upper asymptote of a, b, c and d."""
LOADING = re.compile(r"(?:loading_|a)([1-9][0-9]?)", re.IGNORECASE)
ACCEPTED = (
    "Columns of a table of items that are right or wrong may be: difficulty (b) and discrimination (a, 1 where there "
    "is none); or loading_1, loading_2, ... and intercept (a1, a2, ... and d of R's mirt); and lower (c, g, guessing) "
    "and upper (u) asymptotes"
)
ROW_NAMES = ("", "Unnamed: 0", "rownames")
"""What a column of row names is called that R or pandas wrote."""
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


class KnownItems(NamedTuple):
    """Items with parameters that others fitted."""

    items: pl.DataFrame  # Without the columns that held the parameters
    parameters: ItemParameters  # In the order of the items


def read_known_parameters(given: Any, benchmark: str = "") -> KnownItems:
    """Read items with their parameters from a table in memory, or from a file of any layout that is known here.

    Given is a table (CSV, Parquet, JSON Lines) whose columns have usual names (`NAMES`), with ids in `item_id` or in a
    column of row names; ``best_parameters.json`` of py-irt; ``tinyBenchmarks.pkl``, nothing of which is run. Of a file
    that holds several benchmarks, `benchmark` is the one to take.

    Raises `DataError` when the layout is not known, or parameters are no numbers or impossible; `ParameterError` when a
    file holds several benchmarks and none of this name, or only one and a name is given.
    """
    if not isinstance(given, str | Path):
        return _of_table(Table("the table of items", to_polars(given)), benchmark)
    path = Path(given)
    with translated(path), open_binary(path) as file:
        is_pickle = file.read(1) == b"\x80"
    if is_pickle:
        return _tiny_benchmark(path, benchmark)
    kind = file_kind(path)
    if kind == "json" and {"diff", "item_ids"} <= set(record := first_record(path)):
        return _of_table(_py_irt(path, record), benchmark)
    ids = _id_column(probable_header(path)) if kind == "csv" else "item_id"
    return _of_table(read_table_file(path, text=(ids, "scenario", "subscenario"), infer=True), benchmark)


def _id_column(columns: Sequence[str]) -> str:
    name = with_usual_names(columns, ReadingSpec()).column("item_id")
    return next((one for one in (name, *ROW_NAMES) if one in columns), name)


def _of_table(table: Table, benchmark: str) -> KnownItems:
    """Make sense of the columns of a table."""
    if benchmark:
        raise ParameterError(f"{table.source} holds one benchmark, got the name {benchmark!r} of one. Leave it out.")
    frame = table.frame.rename({_id_column(table.frame.columns): "item_id"}, strict=False)
    items, _ = known_table(Table(table.source, frame, table.is_typed, table.found), "item_id")
    if not items.height:
        raise DataError(f"{table.source}: the table of items must have at least one row, got none.")
    columns = _parameter_columns(table.source, items.columns)
    values = {role: _finite(table.source, items, name) for role, name in columns.items()}
    lower, upper = values.pop("lower", np.zeros(items.height)), values.pop("upper", np.ones(items.height))
    wrong = items["item_id"].filter(pl.Series(~((lower >= 0.0) & (lower < upper) & (upper <= 1.0)))).to_list()
    if wrong:
        raise DataError(f"{table.source}: asymptotes must keep 0 <= lower < upper <= 1, and do not for {shown(wrong)}.")
    if "difficulty" in values:
        slope = values.get("discrimination", np.ones(items.height))
        loadings, intercept = slope[:, None], np.negative(slope) * values["difficulty"]
    else:
        intercept = values.pop("intercept")
        loadings = np.column_stack([*values.values()])
    return KnownItems(items.drop(columns.values()), ItemParameters.create(loadings, intercept, lower, upper))


def _parameter_columns(source: str, columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each parameter that a table has; loadings by their numbers, in order."""
    by_name = {name.lower(): name for name in columns}
    # of several names of one role the first counts
    found = {role: by_name[one] for role, names in NAMES.items() for one in reversed(names) if one in by_name}
    asymptotes = {role: found[role] for role in ("lower", "upper") if role in found}
    loadings = {int(match[1]): name for name in columns if (match := LOADING.fullmatch(name))}
    is_ours = "intercept" in found and bool(loadings)  # a difficulty beside them says the same again
    if not loadings and "discrimination" in found:
        loadings = {1: found["discrimination"]}
    is_numbered = sorted(loadings) == [*range(1, len(loadings) + 1)]
    if "difficulty" in found and not is_ours and is_numbered and len(loadings) <= 1:
        slope = {"discrimination": loadings[1]} if loadings else {}
        upper = {"upper": by_name["d"]} if "d" in by_name else {}
        return {"difficulty": found["difficulty"]} | slope | upper | asymptotes
    if not loadings or not is_numbered or "intercept" not in found:
        raise DataError(f"{source}: item parameters must be named, got the columns {shown(columns, 12)}. {ACCEPTED}.")
    return {str(k): loadings[k] for k in sorted(loadings)} | {"intercept": found["intercept"]} | asymptotes


def _finite(source: str, items: pl.DataFrame, name: str) -> FloatArray:
    """Return a column as finite numbers, (n_items,)."""
    found = numbers(items.select(name))[0].ravel()
    wrong = items.filter(~np.isfinite(found))
    if wrong.height:
        ids = shown(wrong["item_id"].to_list())
        raise DataError(f"{source}: {name} must be a finite number for every item, and is not for {ids}.")
    return found


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
