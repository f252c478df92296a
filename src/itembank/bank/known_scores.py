"""Which calibration models' full scores are known, and how well, from the items that each answered."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import RELATIVE
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets

KNOWN_FROM = 0.8
"""A score is known from answers to this fraction of its items, by their weight.

The mean of a random fraction f of N items has the sampling variance ``(1 - f) / f`` in units of ``S^2 / N``. From four
fifths it is 1/4; a random fifth has 4, sixteen times as much, and an estimate from a fifth of the items about 1. So
what is missing adds a tenth or a quarter to the squared errors that are to be measured, which `variance` takes out
again. A model that answered fewer items would answer too few of those chosen for a trial, besides."""
KNOWN_FROM_IF_FEW = 0.5
"""The same where fewer than `ENOUGH` models answered four fifths: half of the squared errors may then be taken out."""
ENOUGH = 10
"""Models that are enough to leave some out in turn."""


@dataclass(frozen=True, slots=True)
class KnownScores:
    """Full scores of n_models calibration models on n_targets targets, as far as they are known.

    A model that answered 60 of 1,500 items has no known score: the mean of these is off by more than an estimate that
    it would have to judge. Its answers count for item parameters all the same. A score may be known in one scenario
    and not in another. Items that were not answered count as missing at random within their scenario.
    """

    # (n_models, n_targets): Mean of the answered items, with the weights of the target; NaN where it is not known.
    # Targets are `ScoreTargets.names`.
    value: FloatArray
    # (n_models, n_targets): Of the value about the full score, for items drawn without replacement: 0 where all were
    # answered, NaN where the score is not known.
    variance: FloatArray

    @classmethod
    def of(cls, responses: ResponseMatrix, targets: ScoreTargets) -> Self:
        """Decide which scores are known, from raw responses."""
        parts = [_answered(part.responses, targets) for part in responses.parts()]
        observed, fraction, variance = (np.concatenate(column) for column in zip(*parts, strict=True))
        is_known = _is_answered(fraction) & ~np.isnan(variance)
        unknown = np.where(is_known, 0.0, np.nan)
        # NaN plus anything is NaN, and a scenario that weighs nothing in the overall score cannot spoil it
        weighing = targets.scenario_weights > 0.0
        of_overall = unknown[:, weighing].sum(axis=1)
        value = targets.with_overall(np.where(np.isnan(observed), 0.0, observed))
        squares = np.where(is_known, variance, 0.0) @ targets.scenario_weights**2
        missing = np.column_stack([unknown, of_overall])
        return cls(value + missing, np.column_stack([np.where(is_known, variance, 0.0), squares]) + missing)

    @property
    def is_known(self) -> BoolArray:
        """Whether each score is known, (n_models, n_targets)."""
        result: BoolArray = ~np.isnan(self.value)
        return result

    @property
    def models(self) -> IntArray:
        """Models with any known score, (n_known,), rising: these can be left out to see how estimates do."""
        return np.flatnonzero(self.is_known.any(axis=1))

    @property
    def n_known(self) -> IntArray:
        """Number of models whose score is known, by target, (n_targets,)."""
        return np.asarray(self.is_known.sum(axis=0), dtype=np.int64)


def _answered(responses: FloatArray, targets: ScoreTargets) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Observed scores of some models, the fraction they rest on, and their variance, (n_models, n_scenarios) each."""
    fraction = fraction_answered(responses, targets)
    observed = targets.scenario_means(responses, missing=True)
    return observed, fraction, sampling_variance(responses, targets, fraction)


def fraction_answered(responses: FloatArray, targets: ScoreTargets) -> FloatArray:
    """Weight of the answered items in each scenario's score, (n_models, n_scenarios), one where all were answered."""
    missing = np.isnan(responses)
    is_whole = np.ones((responses.shape[0], targets.n_scenarios), dtype=bool)
    rows, items = np.nonzero(missing & (targets.weights != 0.0))
    is_whole[rows, targets.scenario_index[items]] = False
    if is_whole.all():
        return np.ones(is_whole.shape)
    return np.where(is_whole, 1.0, targets.scenario_means((~missing).astype(np.float64)))


def sampling_variance(responses: FloatArray, targets: ScoreTargets, fraction: FloatArray | None = None) -> FloatArray:
    """Variance of each model's observed scenario mean about its full score, (n_models, n_scenarios).

    ``(1 - f) S^2 sum a^2`` with f the weight of the answered items in the score, a their weights scaled to sum to one,
    and ``S^2 = sum a (y - ybar)^2 / (1 - sum a^2)``: for equal weights ``(1 - n / N) S^2 / n`` (Cochran 1977, eq.
    2.12). 0 where all were answered; NaN where fewer than two were, of more. `fraction` is `fraction_answered`, where
    that is known already.
    """
    fraction = fraction_answered(responses, targets) if fraction is None else fraction
    is_whole = fraction == 1.0
    result = np.where(is_whole, 0.0, np.nan)
    for scenario in np.flatnonzero(~is_whole.all(axis=0)).tolist():
        items = np.flatnonzero(targets.scenario_index == scenario)
        rows = np.flatnonzero(~is_whole[:, scenario])
        result[rows, scenario] = (1.0 - fraction[rows, scenario]) * _mean_variance(
            responses[np.ix_(rows, items)], targets.weights[items]
        )
    return result


def _mean_variance(responses: FloatArray, weights: FloatArray) -> FloatArray:
    """Variance of weighted means of responses (n_models, n_items) drawn from many, (n_models,); NaN of fewer than 2."""
    seen = ~np.isnan(responses)
    shares = seen * weights
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    filled = np.where(seen, responses, 0.0)
    mean = np.sum(shares * filled, axis=1, keepdims=True)
    squares = np.sum(shares**2, axis=1)
    spread = np.sum(shares * (filled - mean) ** 2, axis=1)
    freedom = 1.0 - squares
    is_enough = (freedom > 1e-9) & (squares > 0.0)
    result: FloatArray = np.divide(spread * squares, freedom, out=np.full(spread.shape, np.nan), where=is_enough)
    return result


def _is_answered(fraction: FloatArray) -> BoolArray:
    """Whether enough of each scenario was answered, (n_models, n_scenarios), given the fractions."""
    fraction = fraction + RELATIVE  # four of five items are four fifths, whatever their weights add up to
    well = fraction >= KNOWN_FROM
    result: BoolArray = np.where(well.sum(axis=0) >= ENOUGH, well, fraction >= KNOWN_FROM_IF_FEW)
    return result
