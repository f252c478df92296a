"""Columns of an item table as numbers: what is known of items before anyone has answered them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from itembank.errors import DataError, did_you_mean, remedy, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.model_features import CategoryFeature, NumberFeature

MOST_CATEGORIES = 300
"""Of a column of words; regression on so many takes as long as the fit."""
MOST_COMPONENTS = 50
"""Of an embedding: its leading principal components, which hold most of what a few hundred items can tell about."""


@dataclass(frozen=True, slots=True)
class EmbeddingFeature:
    """A column of vectors: their leading principal components, of total variance one; 0 where unknown.

    Attributes
    ----------
    column : str
    centre : (n_numbers,)
    axes : (n_numbers, n_components)
    """

    column: str
    centre: FloatArray
    axes: FloatArray

    @classmethod
    def fit(cls, column: pl.Series) -> Self:
        """Learn from a column of lists or arrays.

        Raises
        ------
        DataError
            When vectors have different lengths, or hold something else than numbers.
        """
        known = column.drop_nulls()
        vectors = _vectors(known, int(known.list.len()[0]) if known.len() else 0)
        centre = vectors.mean(axis=0) if known.len() else np.zeros(0)
        _, sizes, axes = np.linalg.svd(vectors - centre, full_matrices=False)
        total = float(np.sqrt(np.sum(sizes**2) / max(known.len(), 1)))
        count = min(MOST_COMPONENTS, int(np.sum(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300))))
        return cls(column.name, centre, axes[:count].T / (total if total > 0.0 else 1.0))

    def of(self, column: pl.Series) -> FloatArray:
        """Return the features of items, (n_items, n_components)."""
        as_lists = _as_lists(column)
        is_known = as_lists.is_not_null().to_numpy()
        result = np.zeros((column.len(), self.axes.shape[1]))
        result[is_known] = (_vectors(as_lists.drop_nulls(), self.centre.size) - self.centre) @ self.axes
        return result


@dataclass(frozen=True, slots=True)
class ItemFeatures:
    """What some columns of an item table say, as features; made with `fit`.

    Attributes
    ----------
    parts : tuple of NumberFeature, CategoryFeature or EmbeddingFeature
        Of the columns that tell items apart.
    """

    parts: tuple[NumberFeature | CategoryFeature | EmbeddingFeature, ...]

    @classmethod
    def fit(cls, items: pl.DataFrame, columns: Sequence[str]) -> Self:
        """Learn centres, spreads, categories and axes from a table.

        Numbers count in standard deviations, sizes and lengths that span a factor of 20 by their logarithm, words as
        categories where at least two items share one, and vectors by their leading principal components.

        Raises
        ------
        DataError
            When a column is not in the table, or cannot be used.
        """
        parts = (_part(item_column(items, name)) for name in columns)
        return cls(tuple(part for part in parts if part is not None))

    def of(self, items: pl.DataFrame) -> FloatArray:
        """Return the features of items, (n_items, n_features).

        Raises
        ------
        DataError
            When a column is not in the table, or holds values of another kind.
        """
        found = [part.of(_usable(item_column(items, part.column))) for part in self.parts]
        return np.column_stack([np.zeros((items.height, 0)), *found])

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that tell items apart."""
        return tuple(part.column for part in self.parts)

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Column, and category or component, of each feature."""
        return tuple((part.column, level) for part in self.parts for level in _levels(part))

    @property
    def column_index(self) -> IntArray:
        """Which of `columns` each feature comes from, (n_features,)."""
        sizes = [len(_levels(part)) for part in self.parts]
        return np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)

    @property
    def contrasts(self) -> FloatArray:
        """Features of items that stand out in one thing, (n_features, n_features).

        An item of one category beside the average item, one that is a standard deviation longer, and so on.
        """
        from scipy.linalg import block_diag  # noqa: PLC0415 (a session fits nothing)

        found: FloatArray = block_diag(*(_contrasts(part) for part in self.parts))
        return found


def covariate_features(items: pl.DataFrame, columns: Sequence[str]) -> ItemFeatures | None:
    """Return what columns say of items, and which scenario these belong to; None where no column tells them apart."""
    features = ItemFeatures.fit(items, tuple(dict.fromkeys(["scenario", *columns]))) if columns else None
    return features if features is not None and features.parts else None


def item_column(items: pl.DataFrame, name: str) -> pl.Series:
    """Return a column, or raise `DataError` with those there are."""
    if name not in items.columns:
        raise DataError(
            f"an item covariate must be a column of the item table, among {shown(items.columns)}, got {name!r}."
            f"{did_you_mean(name, items.columns)} What is known of items comes with their responses"
            f" ({remedy('read_responses(..., items=FILE)', 'itembank import --items FILE')})."
        )
    return items[name]


def _part(column: pl.Series) -> NumberFeature | CategoryFeature | EmbeddingFeature | None:
    """Learn from one column; None where it does not tell items apart."""
    column = _usable(column)
    if column.dtype == pl.List:
        found = EmbeddingFeature.fit(column)
        return found if found.axes.shape[1] else None
    number = NumberFeature.fit(column)
    if number is not None:
        return number if number.spread > 0.0 else None
    shared = column.cast(pl.String)
    # a category of one item says nothing of any other item
    kept = shared.drop_nulls().value_counts().filter(pl.col("count") > 1)[column.name].sort()
    if kept.len() > MOST_CATEGORIES:
        raise DataError(
            f"an item covariate of words must have at most {MOST_CATEGORIES} categories, column {column.name!r} has "
            f"{kept.len()}: {shown(kept.to_list())}. Merge those of few items."
        )
    return CategoryFeature.fit(shared.set(~shared.is_in(kept.implode()), None)) if kept.len() > 1 else None


def _usable(column: pl.Series) -> pl.Series:
    """Let vectors be lists, and leave other columns as they are."""
    return _as_lists(column) if column.dtype in (pl.List, pl.Array) else column


def _as_lists(column: pl.Series) -> pl.Series:
    if column.dtype not in (pl.List, pl.Array):
        raise DataError(f"column {column.name!r} holds vectors, so that its values must be vectors too.")
    try:
        return column.cast(pl.List(pl.Float64))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"vectors of an item covariate must hold numbers, column {column.name!r} does not.") from error


def _vectors(lists: pl.Series, size: int) -> FloatArray:
    """Return lists without nulls as rows, (n_rows, size)."""
    numbers = lists.explode().drop_nulls().to_numpy() if lists.len() else np.zeros(0)
    if np.any(lists.list.len().to_numpy() != size) or numbers.size != lists.len() * size:
        raise DataError(
            f"vectors of an item covariate must all have the same length, and a number in every place; column "
            f"{lists.name!r} has vectors of {shown(sorted(set(lists.list.len().to_list())))} places."
        )
    if not np.isfinite(numbers).all():
        raise DataError(f"vectors of an item covariate must hold finite numbers, column {lists.name!r} does not.")
    return np.asarray(numbers, dtype=np.float64).reshape(lists.len(), size)


def _contrasts(part: NumberFeature | CategoryFeature | EmbeddingFeature) -> FloatArray:
    """Features of a column for items that stand out in one of them."""
    alone = np.eye(len(_levels(part)))
    return alone - part.frequency if isinstance(part, CategoryFeature) else alone


def _levels(part: NumberFeature | CategoryFeature | EmbeddingFeature) -> tuple[str, ...]:
    """Names of a column's features."""
    if isinstance(part, CategoryFeature):
        return part.categories
    if isinstance(part, EmbeddingFeature):
        return tuple(f"component {number + 1}" for number in range(part.axes.shape[1]))
    return ("",)
