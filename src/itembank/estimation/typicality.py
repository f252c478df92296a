"""How typical the answers of new models are of the calibration models."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from itembank.errors import shown, visible
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.gamma import log_beta

FLAGGED = 0.1
"""A model is flagged where fewer of the calibration models than this answered at least as unusually."""

OUTSIDE_GUARANTEE = "outside the guarantee"
"""What is said of intervals of such models: they are calibrated on models that answer otherwise."""

MOST_FLAGGED = 0.25
"""Fraction of the new models beyond which it is not some models that are unusual, but all new ones that differ."""
CHANCE = 0.05
"""Of as many flagged models among typical ones: two flagged models of three are no shift yet."""


class Typicality(NamedTuple):
    """How typical the answers of n_models models are; NaN where it is not known."""

    # (n_models,): Squared distance of a model's answers from what the factor model of past answers expects: 1 on
    # average for models like the calibration models, more for others.
    misfit: FloatArray
    # (n_models,): Fraction of the calibration models, left out in turn, that fitted no better: 0 is unlike them all.
    typicality: FloatArray
    # (n_models,): Mean absolute error of the overall score of calibration models left out that would have been flagged
    # on these items, and of the others.
    past_error_flagged: FloatArray
    past_error_others: FloatArray  # (n_models,)

    @classmethod
    def unknown(cls, n_models: int) -> Self:
        """Return that of models of which nothing is known."""
        return cls(*(np.full(n_models, np.nan) for _ in cls._fields))

    @classmethod
    def joined(cls, parts: Sequence["Typicality"]) -> Self:
        """Put those of several groups of models together, in their order."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    @property
    def is_flagged(self) -> BoolArray:
        """Models that answered unlike the calibration models, (n_models,)."""
        result: BoolArray = self.typicality < FLAGGED
        return result

    def is_shift(self, n_past: int) -> bool:
        """Whether more than a quarter of the models are flagged, and more than chance would flag of typical ones.

        Where new and past models answer alike, every order of their misfits is as likely as another. Then the number of
        flagged models of n is beta-binomial with parameters k and ``n_past + 1 - k``, where a model is flagged when
        fewer than k past models fit no better.

        Parameters
        ----------
        n_past : int
            Calibration models that the new ones are compared with.
        """
        n_known, n_flagged = int(np.sum(~np.isnan(self.typicality))), int(np.sum(self.is_flagged))
        k = int(np.ceil(FLAGGED * n_past))
        return n_flagged > MOST_FLAGGED * n_known and _at_least(n_flagged, n_known, k, n_past + 1 - k) < CHANCE

    def flagged_in_words(self, model_ids: Sequence[str], n_past: int) -> str:
        """Say which of the models are flagged, and how large the errors of such past models were; '' where none is."""
        rows = np.flatnonzero(self.is_flagged).tolist()
        if not rows:
            return ""
        return (
            f"{visible(shown([model_ids[row] for row in rows]))}: answered unlike most of the {n_past} past models "
            f"(typicality below {FLAGGED:g}). The interval is {OUTSIDE_GUARANTEE}: {self._errors_in_words(rows[0])}. "
            "What does not fit: itembank check."
        )

    def _errors_in_words(self, row: int) -> str:
        """Say how large errors of past models were that would have been flagged, where they are known."""
        unlike, others = 100.0 * self.past_error_flagged[row], 100.0 * self.past_error_others[row]
        if np.isnan(unlike):
            return "how large errors of such past models were is not known"
        rest = "" if np.isnan(others) else f", of others {others:.1f}"
        return f"errors of such past models were {unlike:.1f} points on average{rest}"

    def set_rows(self, rows: IntArray, other: "Typicality") -> None:
        """Write those of some of the models in place."""
        for ours, theirs in zip(self, other, strict=True):
            ours[rows] = theirs


class PastMisfit(NamedTuple):
    """Misfit of calibration models left out, on items like those of new models, and the errors that went with it."""

    misfit: FloatArray  # (n_models,): Ascending, where it is known
    # Mean absolute error of the overall score of those that would have been flagged, and of the others; NaN where there
    # are none.
    error_flagged: float
    error_others: float

    @classmethod
    def of(cls, misfit: FloatArray, error: FloatArray) -> Self:
        """Gather them from models left out.

        Parameters
        ----------
        misfit, error : (n_models,)
            NaN where unknown. Errors are those of the overall score.
        """
        known = np.sort(misfit[~np.isnan(misfit)])
        if known.size == 0:
            return cls(known, np.nan, np.nan)
        was_flagged = _fraction_above(known, misfit) <= FLAGGED
        sizes = [np.abs(error[rows & ~np.isnan(error)]) for rows in (was_flagged, ~was_flagged)]
        return cls(known, *(float(size.mean()) if size.size else np.nan for size in sizes))

    def typicality_of(self, misfit: FloatArray) -> Typicality:
        """Compare the misfit of new models (n_new,) with these."""
        if self.misfit.size == 0:
            return Typicality.unknown(misfit.size)
        typicality = np.where(np.isnan(misfit), np.nan, _fraction_above(self.misfit, misfit))
        errors = (np.full(misfit.size, error) for error in (self.error_flagged, self.error_others))
        return Typicality(misfit, typicality, *errors)


def _fraction_above(ordered: FloatArray, values: FloatArray) -> FloatArray:
    """Fraction of the ordered numbers that are no less than each value."""
    n_above = ordered.size - np.searchsorted(ordered, values, side="left")
    result: FloatArray = n_above / ordered.size  # 3 of 30 must be 0.1 exactly, as FLAGGED is
    return result


def _at_least(n: int, n_trials: int, a: float, b: float) -> float:
    """Probability of n or more under the beta-binomial distribution."""
    count = np.arange(n, n_trials + 1)
    rest = n_trials - count
    choices = gammaln(n_trials + 1) - gammaln(count + 1) - gammaln(rest + 1)
    return float(np.exp(choices + log_beta(count + a, rest + b) - log_beta(a, b)).sum())
