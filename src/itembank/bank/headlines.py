"""`Headline`: a score that stands in place of the overall one, and is no weighted mean of items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.bank.known_scores import ENOUGH
from itembank.errors import DataError, IntegrityError, ParameterError, did_you_mean, shown
from itembank.numerics.arrays import FloatArray
from itembank.responses.score_names import EXTERNAL, OVERALL, WIN_RATE
from itembank.responses.targets import mean_win_rate
from itembank.tabular import Compact

POINTS = 100.0
"""In a score of one, where a column holds hundredths."""


@dataclass(frozen=True, slots=True, repr=False)
class Headline(Compact):
    """A score of whole models that the items of a bank do not add up to."""

    name: str  # 'mean_win_rate', or that of an external score
    past: FloatArray  # (n_models,): Of the calibration models, from 0 to 1; NaN where not known
    # (n_models, n_scenarios): Of a win rate, scenario scores of the calibration models that others are ranked against;
    # rows of NaN are not. None of an external score, which the bank knows of past models and of no others.
    reference: FloatArray | None = None

    def without(self, rows: Sequence[int]) -> "Headline":
        """Rank models against none of the calibration models at these rows."""
        if self.reference is None or not len(rows):
            return self
        reference = self.reference.copy()
        reference[list(rows)] = np.nan
        return Headline(self.name, self.past, reference)

    @property
    def follows_answers(self) -> bool:
        """Whether answers to all items give it."""
        return self.reference is not None

    @property
    def in_words(self) -> str:
        """What the score is."""
        n_known = int((~np.isnan(self.past)).sum())
        if self.follows_answers:
            return (
                f"the mean win rate is the share of the bank's {n_known} models whose scenario score is lower, ties "
                "counting half, averaged over scenarios"
            )
        return f"the score {self.name!r} is known of {n_known} of the bank's models, and learnt from these"

    def win_rates(self, scenario_scores: FloatArray) -> FloatArray:
        """Mean win rates of exact scenario scores (n_new, n_scenarios), (n_new,); NaN of an external score.

        NaN, too, of a model without a score in some scenario.
        """
        unknown = np.isnan(scenario_scores).any(axis=1)
        if self.reference is None or unknown.all():
            return np.full(scenario_scores.shape[0], np.nan)
        reference = self.reference[~np.isnan(self.reference).any(axis=1)]
        return np.where(unknown, np.nan, mean_win_rate(np.nan_to_num(scenario_scores), reference))


def win_rate_headline(scenario_scores: FloatArray) -> Headline:
    """Return the mean win rate among calibration models of these known scenario scores (n_models, n_scenarios).

    Each model's own is against all others: with itself among n, which counts as a tie, the rate would be
    ``((n - 1) W + 1/2) / n``.
    """
    is_known = np.asarray(~np.isnan(scenario_scores).any(axis=1))
    n_known = int(is_known.sum())
    _check_enough(WIN_RATE, n_known, "scores in all scenarios are known")
    reference = np.where(is_known[:, None], scenario_scores, np.nan)
    past = np.full(is_known.size, np.nan)
    with_itself = mean_win_rate(scenario_scores[is_known], scenario_scores[is_known])
    past[is_known] = (n_known * with_itself - 0.5) / (n_known - 1)
    return Headline(WIN_RATE, past, reference)


def external_headline(models: pl.DataFrame, name: str, can_be_tried: FloatArray) -> Headline:
    """Return the external score of this name, which a bank's model table keeps.

    Parameters
    ----------
    models : DataFrame
    name : str
    can_be_tried : (n_models,)
        Overall scores; the external score of a model without one, which answered too little, teaches nothing.

    Raises
    ------
    IntegrityError
        When the table holds what is no score.
    DataError
        When too few models have one.
    """
    column = models[f"{EXTERNAL}{name}"]
    values = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    if not column.dtype.is_numeric() or np.any((values < 0.0) | (values > 1.0)):
        raise IntegrityError(
            f"the bank's external score {name!r} must hold numbers from 0 to 1, and holds others: something else than "
            "itembank wrote it. Get the bank from another place, or add the scores again."
        )
    past = np.where(np.isnan(can_be_tried), np.nan, values)
    _check_enough(name, int((~np.isnan(past)).sum()), "external score is known, and who answered enough of its items")
    return Headline(name, past)


def external_names(models: pl.DataFrame) -> tuple[str, ...]:
    """Names of the external scores that a bank's model table keeps."""
    return tuple(name.removeprefix(EXTERNAL) for name in models.columns if name.startswith(EXTERNAL))


def with_external_scores(models: pl.DataFrame, table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Add external scores to a model table, as fractions of one.

    A column with a number above 1 is taken to hold points (hundredths).

    Parameters
    ----------
    models : DataFrame
        With `model_id`.
    table : DataFrame
        With `model_id` and a column of each name; models that it lacks have no such score.
    names : sequence of str

    Raises
    ------
    ParameterError
        For a name that a score of the bank has.
    DataError
        When a column is absent or holds other things than numbers from 0 to 100, a model stands twice, or the table
        knows none of the models.
    """
    _check_columns(table, names)
    scores = table.select("model_id", **{f"{EXTERNAL}{name}": _fractions(table[name], name) for name in names})
    scores = scores.with_columns(pl.col("model_id").cast(pl.String))
    known = set(models["model_id"].to_list())
    if not known & set(scores["model_id"].to_list()):
        raise DataError(
            f"external scores must be of the bank's models, {shown(models['model_id'].to_list())}, got those of "
            f"{shown(scores['model_id'].to_list())}. Check that both name models alike."
        )
    kept = models.select(column for column in models.columns if column not in scores.columns or column == "model_id")
    order = kept.with_columns(pl.col("model_id").cast(pl.String))
    return order.join(scores, on="model_id", how="left", maintain_order="left")


def check_external_names(names: Sequence[str], scenarios: Sequence[str]) -> None:
    """Refuse names of external scores that a bank's own scores have."""
    taken = [name for name in names if name in (*scenarios, OVERALL, WIN_RATE, "all")]
    if taken:
        raise ParameterError(
            f"an external score needs a name of its own, got {shown(taken)}, which the bank's items make. Rename the "
            "column."
        )


def _check_columns(table: pl.DataFrame, names: Sequence[str]) -> None:
    absent = [name for name in ("model_id", *names) if name not in table.columns]
    if absent:
        raise DataError(
            f"a table of external scores must have the columns model_id and {shown(list(names))}, got no "
            f"{shown(absent)}; there are {shown(table.columns)}.{did_you_mean(absent, table.columns)}"
        )
    twice = table.filter(table["model_id"].is_duplicated())["model_id"].unique(maintain_order=True).to_list()
    if twice:
        raise DataError(f"a table of external scores must have one line a model, got more for {shown(twice)}.")


def _fractions(column: pl.Series, name: str) -> pl.Series:
    """Return scores from 0 to 1."""
    numbers = column.cast(pl.Float64, strict=False).fill_nan(None)
    bad = (numbers.is_null() & column.is_not_null() & ~_is_nan(column)) | ~numbers.fill_null(0.0).is_between(
        0.0, POINTS
    )
    if bad.any():
        raise DataError(
            f"the external score {name!r} must hold numbers from 0 to 1, or points up to 100, got "
            f"{shown([str(value) for value in column.filter(bad).to_list()])}. Leave unknown ones empty."
        )
    largest = numbers.max()
    is_in_points = isinstance(largest, float) and largest > 1.0
    return numbers / POINTS if is_in_points else numbers


def _is_nan(column: pl.Series) -> pl.Series:
    return column.is_nan().fill_null(False) if column.dtype.is_float() else pl.repeat(False, column.len(), eager=True)


def _check_enough(name: str, n_known: int, what: str) -> None:
    if n_known < ENOUGH:
        raise DataError(
            f"the score {name!r} needs at least {ENOUGH} past models whose {what}, got {n_known}: their errors, when "
            "they are left out, give its intervals. Add models to the bank."
        )
