"""`Plan`: how many items to run, and the precision of every number of items."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.planning.goals import Found, Goal
from itembank.planning.size_trials import Trial
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """How many items reach the goal.

    Attributes
    ----------
    n_items : int or None
        Fewest items that reach the goal, by the curve and by a trial of that many; None without a goal, or where those
        that may be run do not reach it.
    half_width, detectable_difference : float or None
        Expected at `n_items`; at the most items that may be run where the goal is not reached.
    measured : float or None
        What the goal is on as it came out in the trial of so many items; None where that many were not tried.
    reached : bool or None
        Whether the goal is; None without one.
    message : str
        The answer in a sentence.
    """

    n_items: int | None
    half_width: float | None
    detectable_difference: float | None
    measured: float | None
    reached: bool | None
    message: str

    @classmethod
    def of(cls, goal: Goal, grid: list[Trial], found: Found, *, most: int, max_items: int | None, target: str) -> Self:
        """Say what was found of a goal, with the curves through the grid; at most `most` items could be run."""
        if goal.name is None:
            return cls(None, None, None, None, None, "")
        n_items, is_possible = found.n_items, goal.least(grid) <= goal.value  # type: ignore[operator]
        if n_items is None and is_possible and goal.is_exact and (max_items is None or max_items >= goal.n_total):
            n_items = goal.n_total  # all items leave nothing to estimate, whatever a trial of fewer says
        at = most if n_items is None else n_items
        half_widths, differences = (float(curve.at(np.array(at))) for curve in goal.curves(grid))
        trial = found.trials.get(at)
        measured = None if trial is None else goal.measure(trial)
        message = _message(goal, grid, n_items, most=most, measured=measured, target=target)
        return cls(n_items, half_widths, differences, measured, n_items is not None, message)


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Precision of n items, for the numbers of items that every plan tries, and for the answer.

    Attributes
    ----------
    sizes : (n_sizes,)
        Numbers of items.
    half_widths : (n_sizes,)
        Expected half-width of the interval of one model's score.
    detectable_differences : (n_sizes,)
        Smallest true difference of two models that shows as significant with the power of the plan.
    mean_absolute_errors : (n_sizes,)
    costs : mapping of unit to (n_sizes,)
        Expected cost of running a model on the items, where the bank knows costs.
    """

    sizes: IntArray
    half_widths: FloatArray
    detectable_differences: FloatArray
    mean_absolute_errors: FloatArray
    costs: dict[str, FloatArray]

    @classmethod
    def of(cls, goal: Goal, grid: list[Trial], found: Found, *, most: int) -> Self:
        """Read the curves through the grid at its numbers of items, and at the answer; at most `most` could be run."""
        shown = {trial.n_items for trial in grid if trial.n_items <= most}
        if found.n_items is not None:
            shown.add(found.n_items)
        sizes = np.array(sorted(shown))
        trials = [found.trials[size] for size in sorted(shown)]
        half_widths, differences = goal.curves(grid)
        return cls(
            sizes,
            half_widths.at(sizes),
            differences.at(sizes),
            np.array([float(np.mean(np.abs(trial.errors))) for trial in trials]),
            {unit: np.array([trial.costs[unit] for trial in trials]) for unit in trials[0].costs},
        )

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of items of the table."""
        return [
            {
                "n_items": int(size),
                "half_width": float(self.half_widths[k]),
                "detectable_difference": float(self.detectable_differences[k]),
                "mean_absolute_error": float(self.mean_absolute_errors[k]),
                **{name: float(cost[k]) for name, cost in self.costs.items()},
            }
            for k, size in enumerate(self.sizes)
        ]


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Tabular):
    """Precision of estimates of a new model from n items.

    Attributes
    ----------
    target : str
    goal : Goal
        What was asked for: its `name` is 'half_width', 'difference' or None, when only the table was; its `spec` holds
        level and power.
    answer : PlanAnswer
    table : PlanTable
    selector, method : str
    bank_id : str
    stages_advice : str
        Whether two stages of as many items would do better, and by how much; empty where that was not tried: with a
        selector or a method of one's own choice.
    """

    target: str
    goal: Goal
    answer: PlanAnswer
    table: PlanTable
    selector: str
    method: str
    bank_id: str
    stages_advice: str = ""

    @property
    def n_items(self) -> int | None:
        """Fewest items that reach the goal; None without one, or where those that may be run do not reach it."""
        return self.answer.n_items

    @property
    def message(self) -> str:
        """The answer in a sentence."""
        return self.answer.message

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of items of the table."""
        return self.table.rows()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the table."""
        return {
            "target": self.target,
            "goal": self.goal.name,
            "goal_value": self.goal.value,
            "n_items": self.n_items,
            "half_width": self.answer.half_width,
            "detectable_difference": self.answer.detectable_difference,
            "measured": self.answer.measured,
            "reached": self.answer.reached,
            "message": self.message,
            "estimand": self.goal.spec.estimand,
            "level": self.goal.spec.level,
            "power": self.goal.spec.power,
            "selector": self.selector,
            "method": self.method,
            "n_total": self.goal.n_total,
            "bank": self.bank_id,
            **({"stages_advice": self.stages_advice} if self.stages_advice else {}),
        }


def _message(
    goal: Goal, grid: list[Trial], n_items: int | None, *, most: int, measured: float | None, target: str
) -> str:
    """Put the answer in a sentence."""
    what = "a half-width of" if goal.half_width is not None else "telling apart models that differ by"
    asked, of_all = f"{what} {goal.value:g} on {target!r}", f"of {goal.n_total} items"
    least = goal.least(grid)
    if least > goal.value:  # type: ignore[operator]
        why = "by the chance of the run alone" if goal.is_exact else "for the items do not make that score"
        return f"No number of items is enough for {asked}: with all {goal.n_total} items it is {least:.4f}, {why}."
    if n_items == goal.n_total:
        return f"Only all {goal.n_total} items are enough for {asked}."
    if n_items is not None:
        return f"{n_items} {of_all} are enough for {asked}: a trial of that many gave {measured:.4f}."
    curve = goal.curve(grid)
    there = float(curve.at(np.array(most)))
    too_few = f"{most} items are too few for {asked}: they reach {max(there, measured or 0.0):.4f}."
    about = curve.fewest(goal.value)  # type: ignore[arg-type]
    return f"{too_few} About {about} {of_all} would be needed, which no trial has checked." if about > most else too_few
