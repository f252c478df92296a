"""Training compute of models: floating-point operations, parameters, tokens, recipe, and which runs are finished."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, first_few, shown, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.columns import MISSING_WORDS, TRUTH_WORDS
from itembank.readers.matrix import read_known
from itembank.responses.model_features import FINAL_COLUMN, PARAMETER_COLUMNS, RECIPE_COLUMNS, TOKEN_COLUMNS
from itembank.tabular import Compact

COUNT_SUFFIXES = {"": 0, "k": 3, "m": 6, "b": 9, "t": 12}
"""Powers of ten of the letters after a number of parameters or tokens: 70M, 1.4B, 15T."""
_COUNT = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<suffix>[kmbt]?)", re.IGNORECASE)

LEAST_OPERATIONS = 1e6
"""Less than any training: 6 x 100 parameters x 1,000 tokens is 6e5."""
FAR_FROM_IMPLIED = 2.5
"""Powers of ten from 6 x params x tokens that no mixture of experts (1.5 at most) explains."""
LEAST_COUNT = 1e3
"""Fewer parameters or tokens than any language model: the column counts millions or billions of them."""

_UNITS = "Write operations (FLOP) in all rows: 2.1 exaFLOP are 2.1e18."


def counts(column: pl.Series) -> tuple[FloatArray, IntArray]:
    """Numbers of a column (text may end in K, M, B or T), and the rows that hold something else."""
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        return column.cast(pl.Float64).fill_null(np.nan).to_numpy().copy(), np.zeros(0, dtype=np.int64)
    texts = [None if text is None else text.strip() for text in column.cast(pl.String, strict=False).to_list()]
    values: list[float | None] = []
    for text in texts:
        if text is None or text.lower() in MISSING_WORDS:
            values.append(math.nan)
        else:
            found = _COUNT.fullmatch(text)
            values.append(float(found["number"]) * 10.0 ** COUNT_SUFFIXES[found["suffix"].lower()] if found else None)
    bad = np.array([row for row, value in enumerate(values) if value is None], dtype=np.int64)
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64), bad


def check_operations(names: Sequence[str], flops: FloatArray, implied: FloatArray) -> list[str]:
    """Say what is wrong with the training compute of these models.

    `implied` are 6 x params x train_tokens; numbers are NaN where unknown.
    """
    problems: list[str] = []
    missing = np.isnan(flops)
    if missing.any():
        absent = shown([names[row] for row in np.flatnonzero(missing).tolist()])
        problems.append(
            f"every model must have its flops, or params and train_tokens, got neither for {np.count_nonzero(missing)} "
            f"of {missing.size} models: {absent}. "
            "Fill them in, or leave the models out (drop_unknown=True, --drop-unknown)."
        )
    known = ~missing
    with np.errstate(invalid="ignore"):
        low = known & ~((flops > 0.0) & (flops < np.inf))
    if low.any():
        problems.append(
            f"flops must be finite and above zero, got {_values(names, flops, np.flatnonzero(low))}. A law is in the "
            "logarithm of compute: leave out models before the first step of training."
        )
    usable = known & ~low
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.flatnonzero(usable & (np.abs(np.log10(flops / implied)) >= FAR_FROM_IMPLIED))
        small = np.flatnonzero(usable & (flops < LEAST_OPERATIONS))
    if far.size:
        parts = [f"{names[row]!r} = {flops[row]:.3g} for {implied[row]:.3g}" for row in far[:N_SHOWN].tolist()]
        problems.append(
            f"flops must be near 6 x params x train_tokens, got {far.size} of {flops.size} models that are "
            f"powers of ten away: {first_few(parts, far.size)}. {_UNITS}"
        )
    elif small.size:
        problems.append(f"flops must be floating-point operations, got {_values(names, flops, small)}. {_UNITS}")
    return problems


def check_counts(column: str, names: Sequence[str], values: FloatArray, known: BoolArray) -> list[str]:
    """Say which of the known parameters or tokens (n_models,) are none."""
    advice = f"Write {column} out, or with its unit: 70M, 1.4B, 300B."
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(known & ~((values >= LEAST_COUNT) & (values < np.inf)))
    if not bad.size:
        return []
    return [f"{column} must be a finite number of at least 1,000, got {_values(names, values, bad)}. {advice}"]


def _values(names: Sequence[str], values: FloatArray, rows: IntArray) -> str:
    """Name the first few models with their compute."""
    parts = [f"{names[row]!r} = {values[row]:g}" for row in rows[:N_SHOWN].tolist()]
    return f"{rows.size} of {values.size} models: {first_few(parts, rows.size)}"


FLOP_PER_PARAMETER_AND_TOKEN = 6.0
"""Training a transformer costs about six operations a parameter and token (Kaplan et al. 2020, 2.1)."""


@dataclass(frozen=True, slots=True, repr=False)
class TrainingCompute(Compact):
    """What training each model cost.

    Attributes
    ----------
    model_ids : tuple of str
    flops : (n_models,)
        Floating-point operations of the training so far; finite and above zero.
    params, train_tokens : (n_models,)
        NaN where unknown.
    recipe : tuple of str or None
        How each model was trained (data mixture, model family); None when nothing tells.
    is_final : (n_models,)
        Whether the model is the end of its training run, not a checkpoint on the way.
    """

    model_ids: tuple[str, ...]
    flops: FloatArray
    params: FloatArray
    train_tokens: FloatArray
    recipe: tuple[str, ...] | None
    is_final: BoolArray

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.model_ids)

    @property
    def recipes(self) -> tuple[str, ...]:
        """Every recipe once, in order of first appearance; one named 'all' when nothing tells them apart."""
        return ("all",) if self.recipe is None else tuple(dict.fromkeys(self.recipe))

    def in_recipe(self, name: str) -> BoolArray:
        """Flag of each model of a recipe, (n_models,)."""
        if self.recipe is None:
            return np.full(self.n_models, name == "all")
        return np.array([one == name for one in self.recipe], dtype=bool)

    def take(self, models: IntArray) -> "TrainingCompute":
        """Return the models at these indices, in that order."""
        rows = np.asarray(models)
        return TrainingCompute(
            tuple(self.model_ids[row] for row in rows.tolist()),
            self.flops[rows],
            self.params[rows],
            self.train_tokens[rows],
            None if self.recipe is None else tuple(self.recipe[row] for row in rows.tolist()),
            self.is_final[rows],
        )


def read_model_table(path: str | Path) -> pl.DataFrame:
    """Read a table of one row a model (CSV, Parquet or JSON Lines, column `model_id`), for `training_compute`.

    Raises
    ------
    DataError
        When it cannot be read, or an id is missing or repeated.
    """
    return read_known(Path(path), "model_id")[0]


def training_compute(
    models: pl.DataFrame,
    model_ids: Sequence[str] | None = None,
    *,
    recipe_column: str | None = None,
    drop_unknown: bool = False,
) -> TrainingCompute:
    """Find the training compute of models in a table of what is known of them.

    Parameters
    ----------
    models : table of one row a model
        Columns `model_id`; `flops`, or `params` and `train_tokens` (``1.4B`` is understood), of which it is
        6 x params x train_tokens if `flops` is absent or empty; and maybe `recipe` (else `mixture`,
        `family_or_data`, `family`) and `is_final`.
    model_ids : sequence of str, optional
        The models wanted, in this order; all by default.
    recipe_column : str, optional
        Column that tells recipes apart, instead of those above.
    drop_unknown : bool
        Leave out models without known compute, or with none (checkpoints before the first step), with a
        `DataWarning`, instead of refusing them.

    Returns
    -------
    TrainingCompute
        Without a column `is_final`, the checkpoint of the most operations of each recipe and number of parameters
        is final; a model of unknown parameters is.

    Raises
    ------
    DataError
        When a model is not in the table; when its compute is unknown, zero, negative or infinite, or seems to be in
        another unit than that of the others.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"model_id": ["a", "b"], "params": ["70M", "1.4B"], "train_tokens": ["300B", "300B"]})
    >>> training_compute(table).flops
    array([1.26e+20, 2.52e+21])
    """
    table = _rows_of(models, model_ids)
    columns = table.columns
    parts = [next((name for name in names if name in columns), "") for names in (PARAMETER_COLUMNS, TOKEN_COLUMNS)]
    if "flops" not in columns and not all(parts):
        lacks = "train_tokens" if parts[0] else "params"
        got = f"{''.join(parts)} without {lacks}" if any(parts) else "none of them"
        raise DataError(
            "training compute: the table of models must have a column flops, or params and train_tokens, got "
            f"{got}; it has {shown(columns, 12)}."
        )
    names = table["model_id"].to_list()
    problems: list[str] = []
    found = []
    for options in (PARAMETER_COLUMNS, TOKEN_COLUMNS):
        column, values = _numbers(table, options, "(K, M, B and T are understood)", names, problems)
        # tokens may be none, before the first step; parameters may not
        known = ~np.isnan(values) & ~((values == 0.0) & (column in TOKEN_COLUMNS))
        problems.extend(check_counts(column, names, values, known))
        found.append(values)
    params, tokens = found
    _, stated = _numbers(table, ("flops",), "of floating-point operations, such as 3e20", names, problems)
    implied = FLOP_PER_PARAMETER_AND_TOKEN * params * tokens
    flops = np.where(np.isnan(stated), implied, stated)
    used = np.flatnonzero(~(np.isnan(flops) | (flops == 0.0)) if drop_unknown else np.ones(flops.shape, dtype=bool))
    if not problems:
        problems.extend(check_operations([names[row] for row in used.tolist()], flops[used], implied[used]))
    recipe = _recipes(table, recipe_column, names, problems)
    is_final = _final_column(table, names, problems)
    if problems:
        raise DataError("training compute: " + " ".join(problems))
    if is_final is None:
        runs = pl.DataFrame({"recipe": recipe or [""] * flops.size, "params": params, "flops": flops})
        is_largest = runs.select(pl.col("flops") == pl.col("flops").max().over("recipe", "params")).to_series()
        is_final = is_largest.to_numpy() | np.isnan(params)
    compute = TrainingCompute(tuple(names), flops, params, tokens, recipe, is_final)
    if used.size == flops.size:
        return compute
    left_out = [name for row, name in enumerate(names) if row not in set(used.tolist())]
    if used.size == 0:
        raise DataError(f"training compute must be known of at least one model, got none: {shown(left_out)}.")
    warn(
        f"{len(left_out)} of {len(names)} models of unknown or no training compute are left out: {shown(left_out)}.",
        DataWarning,
    )
    return compute.take(used)


def _rows_of(models: pl.DataFrame, model_ids: Sequence[str] | None) -> pl.DataFrame:
    if "model_id" not in models.columns:
        raise DataError(f"the table of models must have a column 'model_id'; it has {shown(models.columns, 10)}.")
    table = models.with_columns(pl.col("model_id").cast(pl.String))
    known = table["model_id"]
    if known.is_duplicated().any() or known.null_count():
        repeated = known.filter(known.is_duplicated()).unique(maintain_order=True).to_list()
        raise DataError(
            f"model_id must be unique and not empty in the table of models, got more than once: {shown(repeated)}."
        )
    if model_ids is None:
        return table
    wanted = pl.DataFrame({"model_id": list(model_ids)}, schema={"model_id": pl.String})
    absent = wanted.join(table, on="model_id", how="anti", maintain_order="left")["model_id"].to_list()
    if absent:
        raise DataError(
            f"every model must be in the table of models, whose training compute is needed: {len(absent)} of "
            f"{wanted.height} are not: {shown(absent)}. Add their rows, or leave the models out."
        )
    return wanted.join(table, on="model_id", how="left", maintain_order="left")


def _numbers(
    table: pl.DataFrame, columns: Sequence[str], must_be: str, names: list[str], problems: list[str]
) -> tuple[str, FloatArray]:
    """Return the first of these columns that the table has, and its numbers, (n_models,); NaN where unknown."""
    column = next((name for name in columns if name in table.columns), None)
    if column is None:
        return "", np.full(table.height, np.nan)
    values, bad = counts(table[column])
    if bad.size:
        given = _with_values(names, table[column], bad)
        problems.append(f"{column} must be a number {must_be}, got something else for {given}.")
    return column, values


def _recipes(table: pl.DataFrame, column: str | None, names: list[str], problems: list[str]) -> tuple[str, ...] | None:
    """Recipe of each model; None when no column tells."""
    if column is not None and column not in table.columns:
        raise DataError(
            f"the recipe column {column!r} must be in the table of models; it has {shown(table.columns, 12)}."
        )
    column = column or next((name for name in RECIPE_COLUMNS if name in table.columns), None)
    if column is None or table[column].is_null().all():
        return None
    labels = table[column].cast(pl.String)
    empty = [names[row] for row in (labels.is_null() | (labels == "")).arg_true().to_list()]
    if empty:
        problems.append(f"{column} must say how every model was trained, got nothing for {len(empty)}: {shown(empty)}.")
    return tuple(labels.fill_null("").to_list())


def _final_column(table: pl.DataFrame, names: list[str], problems: list[str]) -> BoolArray | None:
    """Return what a column `is_final` says, (n_models,); None when there is none."""
    if FINAL_COLUMN not in table.columns:
        return None
    words = table[FINAL_COLUMN].cast(pl.String).str.to_lowercase().to_list()
    truth = {**TRUTH_WORDS, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
    bad = np.array([row for row, word in enumerate(words) if word not in truth], dtype=np.int64)
    if bad.size:
        problems.append(
            f"{FINAL_COLUMN} must be true or false, got something else for "
            f"{_with_values(names, table[FINAL_COLUMN], bad)}."
        )
    return np.array([truth.get(word, 0.0) == 1.0 for word in words], dtype=bool)


def _with_values(names: list[str], column: pl.Series, rows: IntArray) -> str:
    first = rows[:N_SHOWN].tolist()
    parts = [f"{names[row]!r} = {column[row]!r}" for row in first]
    return f"{rows.size} {'model' if rows.size == 1 else 'models'}: {first_few(parts, rows.size)}"
