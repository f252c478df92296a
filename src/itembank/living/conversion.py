"""The verb `convert`: what a score on one target is on another, with the error of converting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import with_target
from itembank.bank.banks import Bank
from itembank.checks import check_fraction, is_number
from itembank.errors import DataError, DataWarning, ParameterError, did_you_mean, shown, warn
from itembank.numerics.arrays import FloatArray
from itembank.tabular import Tabular

MINIMUM_MODELS = 10
"""With both scores; the error of converting is learnt from them."""


@dataclass(frozen=True, slots=True)
class ConvertedScore:
    """One score and what it is on another target.

    Attributes
    ----------
    name : str
        'overall' or a scenario.
    given, estimate, low, high, standard_error : float
        The score given, and the other with its interval.
    n_models : int
        That the conversion rests on.
    """

    name: str
    given: float
    estimate: float
    low: float
    high: float
    standard_error: float
    n_models: int


@dataclass(frozen=True, slots=True, repr=False)
class Conversion(Tabular):
    """Scores converted from one target to another.

    Attributes
    ----------
    bank_id, of, to : str
        The bank, and the ids of the targets.
    level : float
        Of the intervals.
    scores : tuple of ConvertedScore
    """

    bank_id: str
    of: str
    to: str
    level: float
    scores: tuple[ConvertedScore, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One record a score."""
        return [
            {
                "target": one.name,
                "of": self.of,
                "score": one.given,
                "to": self.to,
                "estimate": one.estimate,
                "low": one.low,
                "high": one.high,
                "level": self.level,
                "standard_error": one.standard_error,
                "n_models": one.n_models,
                "bank": self.bank_id,
            }
            for one in self.scores
        ]


def convert(
    bank: GivenBank,
    scores: float | Mapping[str, float],
    *,
    to: str,
    of: str = "",
    standard_error: float = 0.0,
    level: float = 0.95,
) -> Conversion:
    """Convert published scores between two targets of a bank, where the answers behind them are not at hand.

    With the answers, `estimate(with_target(bank, to), answers)` is better: it has no error of conversion. Here the
    bank's models, of which both scores are known, say by least squares what the other score is, and how far from it a
    further model may be: ``Var = s^2 (1 + 1/n + (x - mean)^2 / S_xx) + slope^2 standard_error^2`` with n - 2 degrees of
    freedom (the prediction interval of simple regression).

    Parameters
    ----------
    bank : Bank or path
    scores : float, or mapping of score to float
        Of 'overall' where it is one number, or by scenario; from 0 to 1.
    to, of : str
        Ids of targets that the bank can give (`mmlu_pro@1`); `of` is by default the current one.
    standard_error : float
        Of the scores given, where they were themselves estimated.
    level : float

    Raises
    ------
    BankError
        When the bank does not know a target.
    DataError
        When fewer than ten of its models have both scores.
    ParameterError
        For a score outside [0, 1], or one that either target does not have.

    Examples
    --------
    >>> convert(bank, 0.712, of="mmlu_pro@1", to="mmlu_pro@1-clean").rows()[0]["estimate"]  # doctest: +SKIP
    """
    check_fraction("level", level)
    bank = as_bank(bank)
    bank.check_responses("Converting needs")
    given = dict(scores) if isinstance(scores, Mapping) else {"overall": scores}
    old, new = with_target(bank, of) if of else bank, with_target(bank, to)
    _check(given, standard_error, old, new)
    x, y = _known_scores(old), _known_scores(new)
    pairs = {
        name: (x[:, old.targets.names.index(name)], y[:, new.targets.names.index(name)], value)
        for name, value in given.items()
    }
    found = tuple(_converted(name, pair, standard_error, level=level) for name, pair in pairs.items())
    return Conversion(bank.bank_id, old.target_id, new.target_id, level, found)


def predicted(x: FloatArray, y: FloatArray, at: float) -> tuple[float, float, float]:
    """Predict y at a further x by least squares.

    Parameters
    ----------
    x, y : (n,)

    Returns
    -------
    estimate, standard error of a further y, slope
        Where all x are alike the mean of y, with slope 0.
    """
    n, centred = x.size, x - x.mean()
    spread = float(centred @ centred)
    slope = 0.0 if spread == 0.0 else float(centred @ y) / spread
    residual = y - y.mean() - slope * centred
    distance = 0.0 if spread == 0.0 else (at - float(x.mean())) ** 2 / spread
    variance = float(residual @ residual) / (n - 2) * (1.0 + 1.0 / n + distance)
    return float(y.mean()) + slope * (at - float(x.mean())), float(np.sqrt(variance)), slope


def _check(given: Mapping[str, float], standard_error: float, old: Bank, new: Bank) -> None:
    if not (is_number(standard_error) and 0.0 <= standard_error < 1.0):
        raise ParameterError(f"standard_error must be a number from 0 to 1, got {standard_error!r}.")
    wrong = {name: value for name, value in given.items() if not (is_number(value) and 0.0 <= value <= 1.0)}
    if wrong:
        raise ParameterError(f"scores must be numbers from 0 to 1, got {wrong}. Divide percentages by 100.")
    names = [name for name in old.targets.names if name in new.targets.names]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ParameterError(
            f"a score must be one that both targets have, {shown(names)}, got {shown(unknown)}."
            f"{did_you_mean(unknown, names)}"
        )


def _known_scores(bank: Bank) -> FloatArray:
    """Scores of the bank's models that answered every item of a score; NaN of the others, (n_models, n_targets)."""
    return bank.targets.with_overall(bank.targets.scenario_means(bank.responses.responses))


def _converted(name: str, pair: tuple[FloatArray, FloatArray, float], error: float, *, level: float) -> ConvertedScore:
    """Convert one score, given with both scores of the bank's models."""
    x, y, at = pair
    known = ~(np.isnan(x) | np.isnan(y))
    n = int(known.sum())
    if n < MINIMUM_MODELS:
        raise DataError(
            f"converting {name!r} needs {MINIMUM_MODELS} models that answered all items of both targets, and the bank "
            f"has {n}. Estimate the other target from the model's answers instead."
        )
    x, y = x[known], y[known]
    if not x.min() <= at <= x.max():
        warn(
            f"the score {at:g} of {name!r} lies outside those of the bank's models, {x.min():.3f} to {x.max():.3f}: "
            "its conversion is extrapolated.",
            DataWarning,
        )
    estimate, of_conversion, slope = predicted(x, y, at)
    standard_error = float(np.hypot(of_conversion, slope * error))
    half = float(stdtrit(n - 2, 0.5 + level / 2.0)) * standard_error
    value, low, high = np.clip([estimate, estimate - half, estimate + half], 0.0, 1.0).tolist()
    return ConvertedScore(name, at, value, low, high, standard_error, n)
