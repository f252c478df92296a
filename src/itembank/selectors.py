"""Ways to choose items beforehand: what `select` takes as its method."""

from itembank.selection.specs import (
    AnchorCorrectness,
    AnchorIRT,
    AnchorLatent,
    Disagreement,
    Information,
    OptimalDesign,
    Random,
    Stratified,
    Uncertainty,
    VOptimal,
)

__all__ = [
    "AnchorCorrectness",
    "AnchorIRT",
    "AnchorLatent",
    "Disagreement",
    "Information",
    "OptimalDesign",
    "Random",
    "Stratified",
    "Uncertainty",
    "VOptimal",
]
