"""`ScoreEstimates`: estimated scores with their intervals, and how typical the answers are that they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from itembank.errors import DataError, did_you_mean, shown, visible
from itembank.estimation.estimator_specs import RUN
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import normal_reach, probability_above, wilson_ends
from itembank.responses.error_kinds import Errors
from itembank.responses.score_names import OVERALL
from itembank.tabular import Note, Tabular, notes_on


class Scores(NamedTuple):
    """Scores of n_models models, or differences of pairs of models, on n_targets targets; NaN where one is unknown."""

    # (n_models, n_targets): Estimates and the ends of their intervals lie in [0, 1], differences in [-1, 1].
    value: FloatArray
    standard_error: FloatArray  # (n_models, n_targets)
    low: FloatArray  # (n_models, n_targets)
    high: FloatArray  # (n_models, n_targets)

    @classmethod
    def unknown(cls, n_models: int, n_targets: int) -> Self:
        """Return scores that are all unknown (NaN)."""
        return cls(*(np.full((n_models, n_targets), np.nan) for _ in cls._fields))

    def where(self, is_other: BoolArray, other: "Scores") -> "Scores":
        """Return the other scores of some of the models, (n_models,), and these of all else."""
        return Scores(*(np.where(is_other[:, None], theirs, ours) for ours, theirs in zip(self, other, strict=True)))

    def take(self, models: IntArray) -> "Scores":
        """Return the scores of some of the models."""
        return Scores(*(array[models] for array in self))

    def targets(self, columns: slice | IntArray) -> "Scores":
        """Return the scores on some of the targets."""
        return Scores(*(array[:, columns] for array in self))

    def with_targets(self, more: "Scores") -> "Scores":
        """Return these scores with those on further targets behind them."""
        return Scores(*(np.column_stack(pair) for pair in zip(self, more, strict=True)))


FLAGGED = 0.1
"""A model is flagged if fewer of the past models than this answered at least as unusually."""

PREDICTED = "predicted"
"""Kind of the note on scores of which no item was answered; only their records have it."""


class Typicality(NamedTuple):
    """How typical the answers of n_models models are; NaN where it is not known."""

    # (n_models,): Squared distance of a model's answers from what the factor model of past answers expects: 1 on
    # average for models like the past models, more for others.
    misfit: FloatArray
    # (n_models,): Fraction of the past models, cross-validated, that fitted no better: 0 is unlike them all.
    typicality: FloatArray
    # (n_models,): Months that a model is newer than the newest past one, as columns of dates tell; negative if older.
    months_ahead: FloatArray

    @classmethod
    def unknown(cls, n_models: int) -> Self:
        """Return that of models of which nothing is known."""
        return cls(*(np.full(n_models, np.nan) for _ in cls._fields))

    @property
    def is_flagged(self) -> BoolArray:
        """Models that answered unlike the past models, (n_models,)."""
        return self.typicality < FLAGGED


Each = TypeVar("Each", Scores, Typicality)


def joined(parts: Sequence[Each]) -> Each:
    """Put the scores, or what is typical, of several groups of models together, in their order."""
    return type(parts[0])(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def placed(parts: Sequence[tuple[IntArray, Each]], n_models: int) -> Each:
    """Put those of several groups of models at their rows among n_models; NaN for models of no group."""
    together, rows = joined([one for _, one in parts]), np.concatenate([rows for rows, _ in parts])

    def spread(array: FloatArray) -> FloatArray:
        result = np.full((n_models, *array.shape[1:]), np.nan)
        result[rows] = array
        return result

    return type(together)(*(spread(array) for array in together))


def typicality_among(past: FloatArray, misfit: FloatArray) -> FloatArray:
    """Fraction of past models, cross-validated, that fitted no better than each new one; NaN where unknown, (n_new,).

    Misfit of past models is NaN where it is not known.
    """
    known = np.sort(past[~np.isnan(past)])
    if known.size == 0:
        return np.full(misfit.shape, np.nan)
    n_above = known.size - np.searchsorted(known, misfit, side="left")
    # 3 of 30 must be 0.1 exactly, as FLAGGED is
    return np.where(np.isnan(misfit), np.nan, n_above / known.size)


@dataclass(frozen=True, slots=True)
class LostScores:
    """Answers of n_models models that were lost, and what the scores are whatever they would have been.

    Attributes
    ----------
    errors : {'missing', 'wrong', 'bounds'}
        What they count as in the estimates beside.
    n : (n_models,)
        How many of the items that were asked for were lost.
    in_words : tuple of n_models texts
        Counted by kind: '2 time-outs'.
    if_wrong, if_right : (n_models, n_targets)
        Estimates if all are wrong, and if all are right; NaN for models that lost none.
    """

    errors: Errors
    n: IntArray
    in_words: tuple[str, ...]
    if_wrong: FloatArray
    if_right: FloatArray


@dataclass(frozen=True, slots=True, repr=False)
class ScoreEstimates(Tabular):
    """Estimated scores of n_models models on n_targets targets.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    targets : tuple of n_targets names
        Every scenario, then 'overall' or a headline score in its place.
    scores : Scores
        `value`, `standard_error`, `low` and `high`, each (n_models, n_targets), also attributes of the estimates
        themselves. Values are NaN where the method has nothing to go by. The standard error is the root of the expected
        squared error: the item model's (see `score_posterior`); if intervals are calibrated, scaled to the errors
        on past models. The interval has the given level and is cut to [0, 1].
    n_items : (n_models, n_targets)
        Observed responses behind each target.
    n_total : (n_targets,)
        Items of each target.
    n_missing : (n_models,)
        Items of the selection that a model has no response to; 0 without a selection.
    level : float
    method : str
        The method taken, also if 'auto' was asked for.
    explanation : str
        Why, if 'auto' was asked for; else empty.
    bank_id : str
    target_id : str
        Which set of items, with which weights, the scores are of: `Bank.target_id`.
    interval_kind : str
        'calibrated': from cross-validated errors on past models. 'model-based': from the item model
        alone. 'design': from how the items were drawn.
    by_item_model : tuple of names
        Targets of which fewer than two past models have a known score: their intervals are model-based where those of
        the others are calibrated.
    sample_share : (n_models, n_scenarios) or None
        gp-IRT's lambda: the share of the weighted mean, the rest being p-IRT's.
    abilities : (n_models, n_dims)
        MAP ability of each model from all its responses.
    ability_covariance : (n_models, n_dims, n_dims)
    typicality : Typicality
        How typical each model's answers are of the past models; unknown (NaN) where intervals are not calibrated.
    estimand : str
        Which score the intervals are for: 'run' or 'repeated' (`itembank.estimation.estimands`).
    parents : tuple of n_models ids
        If a parent was asked for: the past model that each model's scores rest on most, '' if none served. Else
        empty.
    cross_validated_error : float
        Mean absolute error of the method's last score, from 0 to 1, for past models scored as if they were new: of
        those who answered as most of the models did. NaN where intervals are not calibrated.
    lost : LostScores or None
        Answers that were lost; None where none were.
    degrees : float
        Degrees of freedom of the Student's t that calibrated intervals rest on; infinite for others.
    overall_is : str
        Which mean the overall score is: 'micro', 'macro' or 'custom' (`ScoreTargets.overall_is`); '' of another score.
    is_graded : bool
        Whether some answers are neither right nor wrong: their variance is not that of shares.
    notes : tuple of Note
        What a reader must know. Every table, page, console and file says it.
    """

    main_columns = ("model_id", "target", "estimate", "low", "high", "level", "n_items", "n_total", "typicality")
    header = (
        *("method", "interval=main_interval", "estimand", "level", "bank=bank_id", "target_id", "overall_is"),
        *("sentence", "notes=notes_in_words"),
    )

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    scores: Scores
    n_items: IntArray
    n_total: IntArray
    n_missing: IntArray
    level: float
    method: str
    explanation: str
    bank_id: str
    interval_kind: str
    sample_share: FloatArray | None
    abilities: FloatArray
    ability_covariance: FloatArray
    typicality: Typicality
    estimand: str = RUN
    target_id: str = ""
    parents: tuple[str, ...] = ()
    cross_validated_error: float = np.nan
    lost: LostScores | None = None
    degrees: float = np.inf
    overall_is: str = ""
    is_graded: bool = False
    by_item_model: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def value(self) -> FloatArray:
        """Estimated scores, (n_models, n_targets)."""
        return self.scores.value

    @property
    def standard_error(self) -> FloatArray:
        """Standard errors of the estimates, (n_models, n_targets)."""
        return self.scores.standard_error

    @property
    def low(self) -> FloatArray:
        """Lower ends of the intervals, (n_models, n_targets)."""
        return self.scores.low

    @property
    def high(self) -> FloatArray:
        """Upper ends of the intervals, (n_models, n_targets)."""
        return self.scores.high

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.model_ids)

    @property
    def flagged_models(self) -> tuple[str, ...]:
        """Models that answered unlike the past models (`Typicality`): their intervals deserve care."""
        return tuple(self.model_ids[row] for row in np.flatnonzero(self.typicality.is_flagged).tolist())

    @property
    def is_exact(self) -> BoolArray:
        """Models whose main score is known without error, (n_models,)."""
        at = self.targets.index(self.main_target)
        result: BoolArray = self.low[:, at] == self.high[:, at]
        return result

    @property
    def main_target(self) -> str:
        """Name of the score above those of scenarios: 'overall', or the headline score in its place."""
        return OVERALL if OVERALL in self.targets else self.targets[-1]

    def interval_of(self, target: str) -> str:
        """Say what the interval of a target rests on: as `interval_kind`, or 'model-based' if it is `by_item_model`."""
        return "model-based" if target in self.by_item_model else self.interval_kind

    @property
    def main_interval(self) -> str:
        """What the interval of the main score rests on (`interval_of`)."""
        return self.interval_of(self.main_target)

    @property
    def is_predicted(self) -> BoolArray:
        """Scores of scenarios of which a model answered nothing, from its other answers, (n_models, n_targets)."""
        result: BoolArray = (self.n_items == 0) & (self.n_items[:, -1:] > 0) & ~np.isnan(self.value)
        return result

    def said_of_predicted(self) -> str:
        """Name the scenarios of `is_predicted` in a sentence; empty if there are none."""
        names = [
            name for name, some in zip(self.targets, np.any(self.is_predicted, axis=0).tolist(), strict=True) if some
        ]
        rest = "no item was answered, and the score is predicted from the other answers."
        return f"{shown(names)}: {rest}" if names else ""

    @property
    def notes_in_words(self) -> tuple[str, ...]:
        """What a reader must know, each with the models that it is about."""
        return tuple(one.in_words() for one in self.notes)

    @property
    def sentence(self) -> str:
        """The main score in a sentence, or where those of several models are."""
        at, target, name = self.targets.index(self.main_target), visible(self.main_target), visible(self.model_ids[0])
        n_items = self.n_items[:, at]
        count = " to ".join(f"{one:,}" for one in sorted({int(n_items.min()), int(n_items.max())}))
        behind = f"from {count} of {self.n_total[at]:,} items"
        known = self.value[~np.isnan(self.value[:, at]), at]
        if self.n_models > 1:
            ends = f"{100.0 * known.min():.1f} to {100.0 * known.max():.1f} points" if known.size else "unknown"
            return f"{self.n_models:,} models: {target} scores {ends}, {behind} each"
        if not known.size:
            return f"{name}: {target} score unknown, {behind}"
        low, high = (f"{100.0 * one[0, at]:.1f}" for one in (self.low, self.high))
        reach = "exactly" if self.is_exact[0] else f"{100.0 * self.level:g} % interval {low} to {high}"
        plain = self.plain_half_width
        beside = "" if np.isnan(plain) else f"; a plain random sample would say ±{100.0 * plain:.1f}"
        return f"{name}: {target} score {100.0 * known[0]:.1f} points ({reach}), {behind}{beside}"

    @property
    def plain_half_width(self) -> float:
        """Half of the interval that the mean of as many random items would have, at the first model's main score.

        Wilson's (1927) with the finite number of items; NaN where all or none were answered, and for graded answers,
        which vary less than right and wrong ones of the same mean.
        """
        at = self.targets.index(self.main_target)
        n, n_total, value = int(self.n_items[0, at]), int(self.n_total[at]), self.value[:1, at]
        if self.is_graded or not 0 < n < n_total or np.isnan(value).any():
            return np.nan
        worth = n * (n_total - 1.0) / (n_total - n)
        low, high = wilson_ends(value, np.array([normal_reach(self.level) ** 2 / worth]))
        return float(high[0] - low[0]) / 2.0

    def __len__(self) -> int:
        """Return the number of records: of models and targets."""
        return len(self.rows())

    def __getitem__(self, name: str) -> Scores:
        """Return the scores of a target, each (n_models,), or those of a model, each (n_targets,)."""
        if name in self.targets:
            at = self.targets.index(name)
            return Scores(*(array[:, at] for array in self.scores))
        if name in self.model_ids:
            row = self.model_ids.index(name)
            return Scores(*(array[row] for array in self.scores))
        raise DataError(
            f"scores are asked for by the name of a target, {shown(self.targets)}, or of a model, "
            f"{shown(self.model_ids)}, got {name!r}.{did_you_mean(str(name), (*self.targets, *self.model_ids))} "
            "For records, take rows()."
        )

    def column(self, target: str) -> FloatArray:
        """Estimates of one target, (n_models,)."""
        return self.value[:, self.targets.index(target)]

    def main_rows(self) -> list[dict[str, Any]]:
        """Return the records of one model; of several those of their main scores."""
        return [row for row in self.rows() if self.n_models == 1 or row["target"] == self.main_target]

    def rows(self) -> list[dict[str, Any]]:
        """One record for each model and target, as the command line prints them."""
        is_predicted = self.is_predicted.astype(int).tolist()
        of_others = [one for one in self.notes if one.kind != PREDICTED]
        notes = [[notes_on(some, model) for some in (of_others, self.notes)] for model in self.model_ids]
        # of one scenario alone the overall score is that of the scenario
        is_single = len(self.targets) == 2 and self.main_target == OVERALL
        return [
            {
                "model_id": model,
                "target": target,
                "estimate": float(self.value[l, t]),
                "low": float(self.low[l, t]),
                "high": float(self.high[l, t]),
                "level": self.level,
                "standard_error": float(self.standard_error[l, t]),
                "interval": self.interval_of(target),
                "estimand": self.estimand,
                "n_items": int(self.n_items[l, t]),
                "n_total": int(self.n_total[t]),
                "n_missing": int(self.n_missing[l]),
                "n_lost": 0 if self.lost is None else int(self.lost.n[l]),
                "errors": None if self.lost is None else self.lost.errors,
                "if_lost_are_wrong": None if self.lost is None else known_number(self.lost.if_wrong[l, t]),
                "if_lost_are_right": None if self.lost is None else known_number(self.lost.if_right[l, t]),
                "typicality": known_number(self.typicality.typicality[l]),
                "months_ahead": known_number(self.typicality.months_ahead[l]),
                "method": self.method,
                "bank": self.bank_id,
                "target_id": self.target_id,
                "overall_is": self.overall_is or None,
                "note": notes[l][is_predicted[l][t]],
                **({"parent": self.parents[l] or None} if self.parents else {}),
            }
            for l, model in enumerate(self.model_ids)  # noqa: E741 (l is the model index of the formulas)
            for t, target in enumerate(self.targets)
            if not (is_single and target != OVERALL)
        ]

    def probability_above(self, row: int, limits: FloatArray) -> FloatArray:
        """Probability that a model's main score is above each of these, (n,), by its estimate and interval."""
        at = self.targets.index(self.main_target)
        ends = (float(one[row, at]) for one in (self.value, self.low, self.high))
        return probability_above(limits, *ends, level=self.level, degrees=self.degrees)


def known_number(value: float) -> float | None:
    """Return a number, or None where it is not known."""
    return None if np.isnan(value) else float(value)


def checked(estimates: ScoreEstimates, is_owed: BoolArray) -> ScoreEstimates:
    """Return estimates, or raise `DataError` where one is infinite, or unknown though owed (n_models, n_targets)."""
    value = estimates.value
    wrong = np.isinf(value) | np.isinf(estimates.low) | np.isinf(estimates.high) | (np.isnan(value) & is_owed)
    if not wrong.any():
        return estimates
    rows, columns = np.nonzero(wrong)
    names = [
        f"{estimates.model_ids[row]} on {estimates.targets[column]}"
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    raise DataError(
        f"every score must be a finite number, got {value[wrong][0]:g} and the like for {len(names)} of {value.size}: "
        f"{shown(names)}. The bank's numbers are probably extreme: calibrate it again, or take another method."
    )
