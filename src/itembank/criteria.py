"""What the next item of a session is chosen by: what `SessionSpec` and `selectors.OptimalDesign` take as criterion."""

from itembank.selection.criteria import (
    AOptimality,
    DOptimality,
    DrawnItem,
    Fisher,
    MinimumCost,
    RandomItem,
    UniformOverScenarios,
    VOptimality,
)

__all__ = [
    "AOptimality",
    "DOptimality",
    "DrawnItem",
    "Fisher",
    "MinimumCost",
    "RandomItem",
    "UniformOverScenarios",
    "VOptimality",
]
