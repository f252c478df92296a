"""`Plan`: how many items to run, and the precision of every number of items."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from itembank.estimation.estimand_names import CHANCE
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.planning.goals import Goal
from itembank.planning.size_trials import Trial
from itembank.tabular import Tabular

N_ITEMS_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """How many items reach the goal.

    Attributes
    ----------
    n_items : int or None
        Fewest items that reach the goal; None without one, or when `max_items` do not reach it.
    half_width, detectable_difference : float or None
        Expected at `n_items`; at the most items tried when the goal is not reached.
    measured : float or None
        What the goal is on as it came out in the trial of `n_items` items (a twentieth more or less), by chance above
        or below the smooth curve that the answer is read off; None where that many could not be tried.
    message : str
        The answer in a sentence.
    """

    n_items: int | None
    half_width: float | None
    detectable_difference: float | None
    measured: float | None
    message: str

    @classmethod
    def of(
        cls, goal: Goal, trials: list[Trial], n_items: int | None, *, largest: int, max_items: int | None, target: str
    ) -> Self:
        """Say what n items, the fewest by the curve through all trials, come to; at most `largest` could be tried."""
        message = _message(goal, n_items, trials, largest=largest, max_items=max_items, target=target)
        if goal.name is None or n_items is None:
            return cls(None, None, None, None, message)
        is_reached = max_items is None or n_items <= max_items
        nearest = _nearest(trials, n_items) if is_reached else None
        half_widths, differences = goal.curves(trials)
        at = np.array([n_items if is_reached else largest])
        return cls(
            n_items if is_reached else None,
            float(half_widths.at(at)[0]),
            float(differences.at(at)[0]),
            None if nearest is None else goal.measure(nearest),
            message,
        )


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Precision of n items, for the numbers of items that were tried.

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
    def of(cls, goal: Goal, trials: list[Trial]) -> Self:
        """Read the smooth curves through the trials at their numbers of items."""
        sizes = np.array([trial.n_items for trial in trials])
        half_widths, differences = goal.curves(trials)
        return cls(
            sizes,
            half_widths.at(sizes),
            differences.at(sizes),
            np.array([float(np.mean(np.abs(trial.errors))) for trial in trials]),
            {unit: np.array([trial.costs[unit] for trial in trials]) for unit in trials[0].costs},
        )

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of items tried."""
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
        """Fewest items that reach the goal; None without one, or when `max_items` do not reach it."""
        return self.answer.n_items

    @property
    def message(self) -> str:
        """The answer in a sentence."""
        return self.answer.message

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of items tried."""
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


def _nearest(trials: list[Trial], n_items: int) -> Trial | None:
    """Trial with the number of items nearest to the answer; None when it is farther away than a twentieth."""
    nearest = min(trials, key=lambda trial: abs(trial.n_items - n_items))
    return nearest if abs(nearest.n_items - n_items) <= N_ITEMS_TOLERANCE * n_items else None


def _message(
    goal: Goal, n_items: int | None, trials: list[Trial], *, largest: int, max_items: int | None, target: str
) -> str:
    """Put the answer in a sentence."""
    if goal.value is None:
        return ""
    what = "a half-width of" if goal.half_width is not None else "telling apart models that differ by"
    asked, of_all = f"{what} {goal.value:g} on {target!r}", f"of {goal.n_total} items"
    if n_items is None:
        why = f"by the {CHANCE[goal.spec.estimand]} alone" if goal.is_exact else "for the items do not make that score"
        return (
            f"No number of items is enough for {asked}: with all {goal.n_total} items it is {goal.least(trials):.4f}, "
            f"{why}."
        )
    if max_items is not None and n_items > max_items:
        there = float(goal.curve(trials).at(np.array([max_items]))[0])
        return (
            f"{max_items} items are too few for {asked}: they reach {there:.4f}. About {n_items} {of_all} are enough."
        )
    if n_items >= goal.n_total:
        return f"Only all {goal.n_total} items are enough for {asked}."
    if n_items > largest:
        return f"About {n_items} {of_all} are enough for {asked}. This is a guess: at most {largest} could be tried."
    return f"{n_items} {of_all} are enough for {asked}."
