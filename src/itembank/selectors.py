"""Ways to choose items beforehand: what `select` takes as its method, and the next stage of a test in stages."""

from itembank.planning.select import next_stage
from itembank.selection.selector_specs import (
    AnchorCorrectness,
    AnchorIRT,
    Drawn,
    OptimalDesign,
    Random,
    Stratified,
    VOptimal,
)

__all__ = ["AnchorCorrectness", "AnchorIRT", "Drawn", "OptimalDesign", "Random", "Stratified", "VOptimal", "next_stage"]
