"""`Plan`: how many items to run, and what any number of them would tell."""

from dataclasses import dataclass
from typing import Any

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Tabular):
    """What n items would tell of a new model.

    Attributes
    ----------
    target : str
    goal : str or None
        'half_width', 'difference' or None, when only the table was asked for.
    goal_value : float or None
    n_items : int or None
        Fewest items that reach the goal; None without one, or when `max_items` do not reach it.
    half_width, detectable_difference : float or None
        Expected at `n_items`; at the most items tried when the goal is not reached.
    measured : float or None
        What the goal is on as it came out in the trial of `n_items` items (a twentieth more or less), by chance above
        or below the smooth curve that the answer is read off; None where that many could not be tried.
    message : str
        The answer in a sentence.
    sizes : (n_sizes,)
        Numbers of items that were tried.
    half_widths : (n_sizes,)
        Expected half-width of the interval of one model's score.
    detectable_differences : (n_sizes,)
        Smallest true difference of two models that shows as significant with probability `power`.
    mean_absolute_errors : (n_sizes,)
    costs : mapping of unit to (n_sizes,)
        Expected cost of running a model on the items, where the bank knows costs.
    level, power : float
    selector, method : str
    n_total : int
        Items of the target.
    bank_id : str
    """

    target: str
    goal: str | None
    goal_value: float | None
    n_items: int | None
    half_width: float | None
    detectable_difference: float | None
    measured: float | None
    message: str
    sizes: IntArray
    half_widths: FloatArray
    detectable_differences: FloatArray
    mean_absolute_errors: FloatArray
    costs: dict[str, FloatArray]
    level: float
    power: float
    selector: str
    method: str
    n_total: int
    bank_id: str

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

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the table."""
        names = (
            "target",
            "goal",
            "goal_value",
            "n_items",
            "half_width",
            "detectable_difference",
            "measured",
            "message",
            "level",
            "power",
            "selector",
            "method",
            "n_total",
        )
        return {**{name: getattr(self, name) for name in names}, "bank": self.bank_id}
