"""`Homogeneity`: how much the items of each scenario differ, and how well they tell models apart."""

from dataclasses import dataclass
from typing import Any

from itembank.numerics.arrays import FloatArray
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation of an item parameter over the items of a scenario, with an interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class ScenarioHomogeneity:
    """Properties of the items of one scenario; abilities have mean 0 and standard deviation 1."""

    scenario: str
    n_items: int
    n_models: int
    n_degenerate: int  # Items that all models answered alike; they are in nothing below but `pattern`
    difficulty: FloatArray  # (n_items - n_degenerate,)
    discrimination: FloatArray  # (n_items - n_degenerate,)
    # Half the distance from the 16th to the 84th percentile, with the uncertainty of the parameters: the standard
    # deviation of a normal distribution, which single items with a slope near zero do not move.
    difficulty_spread: Spread
    discrimination_spread: Spread
    mean_discrimination: float
    n_negative: int  # Items with a negative discrimination
    abilities: FloatArray  # (n_models,)
    range: tuple[float, float]  # (float, float): 5th and 95th percentile of the abilities
    grid: FloatArray  # (n_grid,): Abilities, and the information of all items together there
    information: FloatArray  # (n_grid,)
    # (float, float, float): Of an ability by all items, ``1 / sqrt(information)``, at the lower end, the middle and the
    # upper end of the range.
    standard_errors: tuple[float, ...]
    # Fraction of the variance of ability that `budget` items of mean information explain, averaged over the range.
    reliability: float
    share_ordered: float  # Fraction of pairs of models that they order rightly, ties aside
    items_for_90: float  # How many such items it takes for a reliability of 0.9
    budget: int
    # (n_rows, n_columns): Responses averaged in blocks: models by rising mean response, items by rising difficulty.
    pattern: FloatArray
    warnings: tuple[str, ...]  # Why a law may fail; empty where nothing speaks against it

    @property
    def is_fit(self) -> bool:
        """Whether the scenario is fit for a law: it has no warnings."""
        return not self.warnings

    def row(self) -> dict[str, Any]:
        """One record of plain numbers."""
        return {
            "scenario": self.scenario,
            "n_items": self.n_items,
            "n_models": self.n_models,
            "n_degenerate": self.n_degenerate,
            "difficulty_sd": self.difficulty_spread.value,
            "difficulty_sd_lower": self.difficulty_spread.lower,
            "difficulty_sd_upper": self.difficulty_spread.upper,
            "discrimination_sd": self.discrimination_spread.value,
            "discrimination_sd_lower": self.discrimination_spread.lower,
            "discrimination_sd_upper": self.discrimination_spread.upper,
            "mean_discrimination": self.mean_discrimination,
            "n_negative": self.n_negative,
            "lowest_ability": self.range[0],
            "highest_ability": self.range[1],
            "standard_error_low": self.standard_errors[0],
            "standard_error_middle": self.standard_errors[1],
            "standard_error_high": self.standard_errors[2],
            "reliability": self.reliability,
            "share_ordered": self.share_ordered,
            "items_for_90": self.items_for_90,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Homogeneity(Tabular):
    """Result of `homogeneity`.

    Attributes
    ----------
    scenarios : tuple of ScenarioHomogeneity
    level : float
        Of the intervals.
    budget : int
        Items a law is to be made from.
    """

    scenarios: tuple[ScenarioHomogeneity, ...]
    level: float
    budget: int

    def rows(self) -> list[dict[str, Any]]:
        """One record a scenario."""
        return [scenario.row() for scenario in self.scenarios]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that hold for all scenarios."""
        return {
            "n_scenarios": len(self.scenarios),
            "n_warned": sum(not scenario.is_fit for scenario in self.scenarios),
            "warned": [scenario.scenario for scenario in self.scenarios if not scenario.is_fit],
            "budget": self.budget,
            "level": self.level,
        }
