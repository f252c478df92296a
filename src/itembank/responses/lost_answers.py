"""`LostAnswers`: attempts that were asked for and ended without an answer, and what they count as."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.errors import DataError, remedy
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.error_kinds import KINDS, Errors


@dataclass(frozen=True, slots=True)
class LostAnswers:
    """Attempts without an answer: asked for, and ended by an error, or logged without a response.

    Attributes
    ----------
    n : (n_models, n_items), or (n_rows,)
        How many attempts at an item were lost; a cell may have answers beside them.
    kind : like `n`
        Code in `KINDS` of what they ended in, the largest where they differ; 0 where none was lost.
    errors : {'missing', 'wrong', 'bounds'}
        What the responses and trials beside them count them as, and what verbs make of them unless told otherwise:
        'missing' not at all; 'wrong' as wrong answers; 'bounds' not at all, but intervals hold whichever they are.
    """

    n: IntArray
    kind: IntArray
    errors: Errors = "missing"

    def __getitem__(self, index: Any) -> "LostAnswers":
        """Return those of some cells or rows."""
        return LostAnswers(self.n[index], self.kind[index], self.errors)

    @property
    def value(self) -> float:
        """What the responses count each as, NaN for not at all."""
        return 0.0 if self.errors == "wrong" else np.nan

    @property
    def in_words(self) -> str:
        """Count them by kind: '30 time-outs, 6 harness errors'."""
        counts = np.bincount(self.kind.ravel(), weights=self.n.ravel(), minlength=len(KINDS)).astype(np.int64)
        order = [code for code in np.argsort(-counts, kind="stable").tolist() if counts[code]]
        said = []
        for kind, n in ((KINDS[code], int(counts[code])) for code in order):
            word = kind if kind in {"error", "time-out"} else f"{kind} error"
            alone = {"no answer": "without a response", "limit": "stopped by a limit"}
            said.append(f"{n} {alone.get(kind) or word + 's' * (n != 1)}")
        return ", ".join(said)


def one_policy(sides: Iterable[LostAnswers | None], errors: Errors | None) -> Errors:
    """Return what lost answers of several results count as: what was asked for, or what those say that have some."""
    told: set[Errors] = {lost.errors for lost in sides if lost is not None and lost.n.any()}
    if errors is None and len(told) > 1:
        ways = remedy("errors='missing', 'wrong' or 'bounds'", "--errors missing, wrong or bounds")
        raise DataError(
            f"lost answers must count as the same in all results, got {' and '.join(sorted(told))}. Say which: {ways}."
        )
    return next(iter(told), "missing") if errors is None else errors


def counted_as(
    responses: FloatArray, n_trials: IntArray | None, lost: LostAnswers, value: float
) -> tuple[FloatArray, IntArray | None]:
    """Return responses and trials, (n_models, n_items), in which each lost answer counts as `value`.

    NaN is for not at all. Trials stay None where no cell has more than one.
    """
    n = lost.n
    trials = (~np.isnan(responses)).astype(np.int64) if n_trials is None else n_trials
    right = np.where(trials > 0, np.nan_to_num(responses) * trials, 0.0)
    if not np.isnan(lost.value):  # take out what they counted as
        trials, right = trials - n, right - lost.value * n
    if not np.isnan(value):
        trials, right = trials + n, right + value * n
    is_changed = n > 0
    counted = np.divide(right, trials, out=np.full(responses.shape, np.nan), where=trials > 0)
    counted = np.where(is_changed, np.clip(counted, 0.0, 1.0), responses)
    has_trials = n_trials is not None or bool((trials > 1).any())
    return counted, trials if has_trials else None
