"""The goal of a plan, and the trials that find how many items reach it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.checks import check_fraction
from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.planning.chance import Chance
from itembank.planning.plan_spec import PlanSpec
from itembank.planning.precision import (
    ALWAYS_TRIED,
    PrecisionCurve,
    detectable_difference,
    expected_half_width,
    precision_curve,
)
from itembank.planning.size_trials import Trial

N_CHECKS = 3
"""Trials of the answer beyond those of the grid, at the most."""
N_REACHED = 2
"""Sizes of the grid at which a goal is reached before no larger ones than `ALWAYS_TRIED` are tried."""
NONE = Chance()


@dataclass(frozen=True, slots=True)
class Goal:
    """A precision to reach, and the measure of it in trials."""

    half_width: float | None  # The one that is to be reached; None both where only the table is asked for
    difference: float | None
    n_total: int  # Items of the bank
    spec: PlanSpec
    chance: Chance = NONE  # What lies between the score that is meant and that of one run
    is_exact: bool = True  # Whether all items give the score, as they do not give an external one

    @classmethod
    def of(cls, bank: Bank, target: int, spec: PlanSpec, *, half_width: float | None, difference: float | None) -> Self:
        """Set a goal, or none, for one of the bank's targets."""
        is_headline = bank.headline is not None and target == bank.targets.n_scenarios
        is_exact = not is_headline or bank.headline.follows_answers  # type: ignore[union-attr]
        chance = Chance.of(bank, target, spec.estimand)
        return cls(half_width, difference, bank.n_items, spec, chance, is_exact)

    def __post_init__(self) -> None:
        """Check that there is one goal at most."""
        if self.half_width is not None and self.difference is not None:
            raise ParameterError("a plan has one goal: give half_width or difference, not both.")
        if self.name is not None:
            check_fraction(self.name, self.value)

    @property
    def name(self) -> str | None:
        """Name of the measure that the goal sets."""
        return "half_width" if self.half_width is not None else "difference" if self.difference is not None else None

    @property
    def value(self) -> float | None:
        """Value to reach."""
        return self.half_width if self.half_width is not None else self.difference

    def curves(self, trials: list[Trial]) -> tuple[PrecisionCurve, PrecisionCurve]:
        """Draw half-width and detectable difference against the number of items."""
        sizes = np.array([trial.n_items for trial in trials])
        single = np.array([self._half_width(trial) for trial in trials])
        pairs = np.array([self._difference(trial) for trial in trials])
        half_widths, differences = (
            precision_curve(sizes, values, self.n_total, is_exact=self.is_exact) for values in (single, pairs)
        )
        spec = self.spec
        return (
            half_widths.with_values(self.chance.of_intervals(half_widths.values, level=spec.level)),
            differences.with_values(self.chance.of_differences(differences.values, level=spec.level, power=spec.power)),
        )

    def curve(self, trials: list[Trial]) -> PrecisionCurve:
        """Draw the curve of the measure that the goal sets."""
        return self.curves(trials)[0 if self.half_width is not None else 1]

    def measure(self, trial: Trial) -> float:
        """Take the measure that the goal sets from one trial alone."""
        measured = np.array(self._half_width(trial) if self.half_width is not None else self._difference(trial))
        return float(self._with_chance(measured))

    def least(self, trials: list[Trial]) -> float:
        """Return the measure with all items: 0 but for the chance of another run, or of an external score."""
        if not self.is_exact:
            return float(self.curve(trials).values[-1])
        return float(self._with_chance(np.zeros(())))

    def _with_chance(self, measure: FloatArray) -> FloatArray:
        spec = self.spec
        if self.half_width is not None:
            return self.chance.of_intervals(measure, level=spec.level)
        return self.chance.of_differences(measure, level=spec.level, power=spec.power)

    def _half_width(self, trial: Trial) -> float:
        return expected_half_width(trial.errors, trial.scale, level=self.spec.level)

    def _difference(self, trial: Trial) -> float:
        return detectable_difference(trial.errors, level=self.spec.level, power=self.spec.power)


class Found(NamedTuple):
    """What trials say of a goal."""

    # Fewest items that reach it, by the curve and by a trial of that many; None without a goal, or where none do.
    n_items: int | None
    trials: dict[int, Trial]  # Those of the grid, and those that tried an answer


def try_grid(run: Callable[[int], Trial], sizes: IntArray, goal: Goal) -> list[Trial]:
    """Try the numbers of items that every plan tries, and, with a goal, growing ones until it is reached twice."""
    # the most first: what was chosen for many items begins with what fewer get
    trials = [run(size) for size in sizes[sizes <= ALWAYS_TRIED][::-1].tolist()][::-1]
    n_reached = sum(goal.value is not None and goal.measure(trial) <= goal.value for trial in trials)
    for size in sizes[sizes > ALWAYS_TRIED].tolist():
        if n_reached >= N_REACHED:
            break
        trials.append(run(size))
        n_reached += goal.value is not None and goal.measure(trials[-1]) <= goal.value
    return trials


def find_fewest(run: Callable[[int], Trial], grid: list[Trial], goal: Goal, most: int) -> Found:
    """Read the answer off the curve through the grid, and try it; where the trial disagrees, take more items.

    Parameters
    ----------
    run : function
        Tries a number of items.
    grid : list of Trial
    goal : Goal
    most : int
        Items that may be run.
    """
    tried = {trial.n_items: trial for trial in grid}
    if goal.value is None or goal.least(grid) > goal.value:
        return Found(None, tried)
    curve, value = goal.curve(grid), goal.value

    def reaching() -> list[int]:
        """Sizes that reach the goal by the curve and by their trial."""
        enough = [size for size in tried if size <= most and float(curve.at(np.array(size))) <= value]
        return [size for size in enough if goal.measure(tried[size]) <= value]

    wanted = value
    for _ in range(N_CHECKS):
        n_items = curve.fewest(wanted)
        if n_items > most or any(size <= n_items for size in reaching()):
            break
        if n_items not in tried:
            tried[n_items] = run(n_items)
        # where the trial misses the goal, the curve has to fall by as much as it lacks
        wanted = min(value / goal.measure(tried[n_items]), 1.0) * float(curve.at(np.array(n_items)))
    return Found(min(reaching(), default=None), tried)
