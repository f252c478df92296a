"""`BankCheck`: estimates from few items beside the scores of models that ran everything."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from scipy.special import bdtrc

from itembank.responses.score_names import OVERALL
from itembank.tabular import Tabular

RARE: Final = 0.05
"""So seldom chance alone leaves as many scores outside their intervals, where a check says that the bank does."""
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class CheckedScore:
    """One score of one model, estimated from some items.

    Attributes
    ----------
    model_id, target : str
    n_chosen : int
        Items that were chosen in all.
    n_items, n_total : int
        Items of the target that were used, of how many.
    truth : float
        From all items; NaN where the model did not run all of them.
    estimate, low, high : float
        From the chosen items alone, with the interval.
    expected_error : float
        Mean absolute error of the bank's own models, left out in turn, with items chosen in the same way; NaN where it
        is not known.
    """

    model_id: str
    target: str
    n_chosen: int
    n_items: int
    n_total: int
    truth: float
    estimate: float
    low: float
    high: float
    expected_error: float

    @property
    def error(self) -> float:
        """Estimate less truth."""
        return self.estimate - self.truth

    @property
    def is_known(self) -> bool:
        """Whether there are a truth and an interval to compare."""
        return not math.isnan(self.truth + self.low + self.high)

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low - ROUNDING <= self.truth <= self.high + ROUNDING

    @property
    def verdict(self) -> str:
        """What to make of it, in a word."""
        return "unknown" if not self.is_known else "within" if self.held else "outside"

    def in_words(self, level: float) -> str:
        """Say it in a sentence, in points."""
        half = 50.0 * (self.high - self.low)
        own = (
            ""
            if math.isnan(self.expected_error)
            else (f"; its own models, left out, erred by {100.0 * self.expected_error:.1f} on average")
        )
        bank_says = f"what the bank expects ({half:.1f} at {100.0 * level:g} %{own})"
        start = f"{self.model_id}, {self.n_chosen} items: the error of {100.0 * abs(self.error):.1f} points is"
        if self.held:
            return f"{start} within {bank_says}."
        return (
            f"{start} outside {bank_says}. The bank does not suit this model: calibrate it with models like this one, "
            "or take more items."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record; scores and errors run from 0 to 1."""
        return {
            "model_id": self.model_id,
            "target": self.target,
            "n_chosen": self.n_chosen,
            "n_items": self.n_items,
            "n_total": self.n_total,
            "truth": self.truth,
            "estimate": self.estimate,
            "error": self.error,
            "expected_error": self.expected_error,
            "low": self.low,
            "high": self.high,
            "held": self.held if self.is_known else None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True, repr=False)
class BankCheck(Tabular):
    """How good a bank's estimates are for models that ran everything.

    Attributes
    ----------
    bank_id : str
    level : float
        Of the intervals.
    scores : tuple of CheckedScore
        By number of items, model and target.
    hints : tuple of str
        What about the models may make them unlike those of the bank.
    """

    bank_id: str
    level: float
    scores: tuple[CheckedScore, ...]
    hints: tuple[str, ...]

    @property
    def verdicts(self) -> tuple[str, ...]:
        """A sentence on the overall score of each model and number of items."""
        return tuple(one.in_words(self.level) for one in self._overall())

    @property
    def suits(self) -> bool:
        """Whether, with every number of items, chance alone may leave so many overall scores outside their intervals.

        A single model is outside by chance one time in twenty (at level 0.95), and that is taken for no chance.
        """
        sizes = sorted({one.n_chosen for one in self.scores})
        return all(self._is_chance([one for one in self._overall() if one.n_chosen == size]) for size in sizes)

    def _overall(self) -> list[CheckedScore]:
        return [one for one in self.scores if one.target == OVERALL and one.is_known]

    def _is_chance(self, scores: Sequence[CheckedScore]) -> bool:
        """Whether so many misses come oftener than one time in twenty, by the binomial distribution."""
        n_outside = sum(not one.held for one in scores)
        if n_outside == 0:
            return True
        by_chance = float(bdtrc(n_outside - 1, len(scores), max(1.0 - self.level, RARE)))
        return by_chance > RARE + ROUNDING

    def rows(self) -> list[dict[str, Any]]:
        """One record a number of items, model and target."""
        return [one.to_dict() for one in self.scores]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "bank": self.bank_id,
            "level": self.level,
            "suits": self.suits,
            "verdicts": list(self.verdicts),
            "hints": list(self.hints),
        }
