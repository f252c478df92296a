"""The goal of a plan, and the trials that find how many items reach it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from itembank.checks import check_fraction
from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.planning.chance import Chance
from itembank.planning.plan_spec import PlanSpec
from itembank.planning.precision import (
    PrecisionCurve,
    detectable_difference,
    expected_half_width,
    precision_curve,
)
from itembank.planning.size_trials import Trial

N_CHECKS = 3
N_REACHED = 3
NO_ERROR = 1e-9
NONE = Chance()


@dataclass(frozen=True, slots=True)
class Goal:
    """A precision to reach, and the measure of it in trials.

    Attributes
    ----------
    half_width, difference : float or None
        The one that is to be reached; None both where only the table is asked for.
    n_total : int
        Items of the bank.
    spec : PlanSpec
    chance : Chance
        What lies between the score that is meant and that of one run.
    is_exact : bool
        Whether all items give the score, as they do not give an external one.
    """

    half_width: float | None
    difference: float | None
    n_total: int
    spec: PlanSpec
    chance: Chance = NONE
    is_exact: bool = True

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
        single = _smoothed([self._half_width(trial) for trial in trials], [trial.errors for trial in trials])
        centred = [trial.errors - trial.errors.mean() for trial in trials]
        pairs = _smoothed([self._difference(trial) for trial in trials], centred)
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
        """Return the measure with all items: 0 but for the chance of another run or items, or of an external score."""
        if not self.is_exact:
            return float(self.curve(trials).values[-1])
        return float(self._with_chance(np.zeros(())))

    def _with_chance(self, measure: FloatArray) -> FloatArray:
        spec = self.spec
        if self.half_width is not None:
            return self.chance.of_intervals(measure, level=spec.level)
        return self.chance.of_differences(measure, level=spec.level, power=spec.power)

    def _half_width(self, trial: Trial) -> float:
        return expected_half_width(trial.errors, level=self.spec.level)

    def _difference(self, trial: Trial) -> float:
        return detectable_difference(trial.errors, level=self.spec.level, power=self.spec.power)


def _smoothed(values: list[float], errors: list[FloatArray]) -> FloatArray:
    """Root mean square errors times the mean ratio of the values to them, (n_sizes,).

    The values rest on quantiles of few errors, which vary more from size to size than root mean squares do.
    """
    spread = np.array([np.sqrt(np.mean(error**2)) for error in errors])
    has_error = spread > NO_ERROR
    ratio = np.mean(np.array(values)[has_error] / spread[has_error]) if has_error.any() else 0.0
    result: FloatArray = np.where(has_error, ratio * spread, 0.0)
    return result


def tried_sizes(run: Callable[[int], Trial], sizes: IntArray, goal: Goal) -> list[Trial]:
    """Try growing numbers of items, with a goal only until it has been reached three times."""
    trials: list[Trial] = []
    n_reached = 0
    for size in sizes.tolist():
        trials.append(run(size))
        n_reached += goal.value is not None and goal.measure(trials[-1]) <= goal.value
        if n_reached == N_REACHED:
            break
    return trials


def find_fewest(
    run: Callable[[int], Trial], trials: list[Trial], goal: Goal, largest: int
) -> tuple[int | None, list[Trial]]:
    """Read the answer off the curve, try it, and read it again off the curve through all trials."""
    if goal.value is None or goal.least(trials) > goal.value:
        return None, trials
    for _ in range(N_CHECKS):
        n_items = goal.curve(trials).fewest(goal.value)
        if n_items > largest or n_items in {trial.n_items for trial in trials}:
            break
        trials = sorted([*trials, run(n_items)], key=lambda trial: trial.n_items)
        if goal.least(trials) > goal.value:  # this trial says that even all items are too few
            return None, trials
    return goal.curve(trials).fewest(goal.value), trials
