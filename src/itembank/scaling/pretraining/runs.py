"""Training runs: which models belong to which recipe, and which of them a line is fitted to."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.errors import DataError, ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.splits import places_within
from itembank.readers.compute import TrainingCompute

ABSURD = 1e6
FAR_BEYOND = 1e3
"""Times the compute of the models fitted from which a target is refused, and from which it is doubted."""

BEYOND_BY_DEFAULT = 10.0
"""Times the largest training compute for which scores are forecast unless a target is given."""

SAME_SIZE = 0.01
"""Difference in log FLOP below which two finished models count as one size."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The models that take part, by recipe."""

    recipes: tuple[str, ...]
    recipe_index: IntArray  # (n_models,)
    log_flops: FloatArray  # (n_models,)
    is_final: BoolArray  # (n_models,)
    # (n_recipes, n_most): Rows of a recipe's finished models, and of all its models, by rising compute; -1 where there
    # are no more.
    finals: IntArray
    every: IntArray  # (n_recipes, n_most)
    n_sizes: IntArray  # (n_recipes,): Finished models of different compute
    is_enough: BoolArray  # (n_recipes,): Recipes with as many sizes as the settings ask for
    message: str  # Which recipes have too few

    def of_finals(self, values: FloatArray) -> FloatArray:
        """Spread values (n_models,) over recipes with enough sizes, (n_recipes, n_most); NaN elsewhere."""
        return self._spread(values, self.finals)

    def of_every(self, values: FloatArray) -> FloatArray:
        """Spread values (n_models,) of all models over recipes with enough sizes, (n_recipes, n_most)."""
        return self._spread(values, self.every)

    def among(self, is_present: BoolArray, fewest_sizes: int) -> "Runs":
        """Return the runs as they are when only these models (n_models,) count."""
        if is_present.all():
            return self
        n_recipes = len(self.recipes)
        finals = _rows_by_recipe(self.recipe_index, self.log_flops, n_recipes, self.is_final & is_present)
        every = _rows_by_recipe(self.recipe_index, self.log_flops, n_recipes, is_present)
        n_sizes = _n_sizes(finals, self.log_flops)
        return replace(self, finals=finals, every=every, n_sizes=n_sizes, is_enough=n_sizes >= fewest_sizes)

    def _spread(self, values: FloatArray, rows: IntArray) -> FloatArray:
        is_there = (rows >= 0) & self.is_enough[:, None]
        return np.where(is_there, values[np.maximum(rows, 0)], np.nan)


def training_runs(compute: TrainingCompute, largest_flops: float | None, fewest_sizes: int) -> tuple[IntArray, Runs]:
    """Find the models of at most `largest_flops`, and their runs.

    Raises
    ------
    DataError
        When no recipe has `fewest_sizes` sizes.
    """
    flops = compute.flops
    used = np.arange(compute.n_models) if largest_flops is None else np.flatnonzero(flops <= largest_flops)
    labels = ["all"] * len(flops) if compute.recipe is None else list(compute.recipe)
    recipes = compute.recipes
    index = np.array([recipes.index(labels[row]) for row in used.tolist()], dtype=np.int64)
    log_flops, is_final = np.log(flops[used]), compute.is_final[used]
    finals = _rows_by_recipe(index, log_flops, len(recipes), is_final)
    n_sizes = _n_sizes(finals, log_flops)
    is_enough = n_sizes >= fewest_sizes
    message = _too_few(recipes, n_sizes, (fewest_sizes, largest_flops))
    every = _rows_by_recipe(index, log_flops, len(recipes), np.ones(len(used), dtype=bool))
    return used, Runs(recipes, index, log_flops, is_final, finals, every, n_sizes, is_enough, message)


def aligned(compute: TrainingCompute, model_ids: list[str]) -> IntArray:
    """Row in `compute` of each model, (n_models,).

    Raises
    ------
    DataError
        When some are absent.
    """
    rows = {name: row for row, name in enumerate(compute.model_ids)}
    absent = [name for name in model_ids if name not in rows]
    if absent:
        raise DataError(
            f"the training compute of every model must be known: it is not of {len(absent)} of {len(model_ids)}: "
            f"{shown(absent)}. Add them to the table of models, or leave them out of the responses."
        )
    return np.array([rows[name] for name in model_ids], dtype=np.int64)


def checked_target(target_flops: float | None, runs: Runs) -> tuple[float, str]:
    """Return the target, or ten times the largest compute that a line is fitted to, and what is doubtful about it.

    Raises
    ------
    ParameterError
        When it is not a positive number, or a million times larger or smaller than what lines are fitted to.
    """
    flops = np.exp(runs.log_flops[runs.is_final])
    smallest, largest = float(flops.min()), float(flops.max())
    if target_flops is None:
        return BEYOND_BY_DEFAULT * largest, ""
    if not (np.isfinite(target_flops) and target_flops > 0.0):
        raise ParameterError(f"target_flops must be finite and > 0, got {target_flops}.")
    fitted = f"the models fitted ({smallest:.3g} to {largest:.3g} FLOP)"
    if not smallest / ABSURD < target_flops < largest * ABSURD:
        raise ParameterError(
            f"target_flops must lie within a factor of {ABSURD:.0e} of {fitted}, got {target_flops:.3g}. Check "
            "the units: it and the models' compute are in FLOP."
        )
    if target_flops > largest * FAR_BEYOND:
        return float(target_flops), (
            f"The target is {target_flops / largest:.3g} times the compute of the largest of {fitted}: nothing shows "
            "that the laws hold so far beyond them."
        )
    if target_flops < smallest:
        return float(target_flops), f"The target lies below {fitted}: laws are made to look ahead, not back."
    return float(target_flops), ""


def _rows_by_recipe(index: IntArray, log_flops: FloatArray, n_recipes: int, is_wanted: BoolArray) -> IntArray:
    """Rows of each recipe by rising compute, (n_recipes, n_most), -1 where there are no more."""
    rows = np.flatnonzero(is_wanted)
    order = rows[np.lexsort((log_flops[rows], index[rows]))]
    counts = np.bincount(index[order], minlength=n_recipes)
    places = places_within(counts)
    result = np.full((n_recipes, max(1, int(counts.max(initial=0)))), -1, dtype=np.int64)
    result[index[order], places] = order
    return result


def _n_sizes(finals: IntArray, log_flops: FloatArray) -> IntArray:
    """Count each recipe's finished models of different compute."""
    x = np.where(finals >= 0, log_flops[np.maximum(finals, 0)] if log_flops.size else 0.0, np.nan)
    with np.errstate(invalid="ignore"):
        steps = np.diff(x, axis=1) > SAME_SIZE
    result: IntArray = (finals >= 0).any(axis=1).astype(np.int64) + steps.sum(axis=1)
    return result


def _too_few(recipes: tuple[str, ...], n_sizes: IntArray, wanted: tuple[int, float | None]) -> str:
    """Say which recipes have too few sizes; raise when all have."""
    fewest, largest = wanted
    lacking = [f"{name} ({count})" for name, count in zip(recipes, n_sizes, strict=True) if count < fewest]
    limit = "" if largest is None else f" of at most {largest:.3g} FLOP"
    if len(lacking) == len(recipes):
        raise DataError(
            f"a law needs finished models of at least {fewest} sizes of one recipe{limit}, got "
            f"{shown(lacking)}. Add sizes, or check the columns recipe and is_final of the table of models."
        )
    return f"Fewer than {fewest} sizes{limit}, no law: {shown(lacking)}." if lacking else ""
