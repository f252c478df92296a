"""Ways to estimate full scores and abilities: what `estimate` and `score` take as their method."""

from itembank.estimation.design_based import design_based_estimates
from itembank.estimation.estimator_specs import (
    GPIRT,
    PIRT,
    Auto,
    Factor,
    Ridge,
    SampleMean,
    Stacked,
    TaskMean,
    TaskMeanEB,
    Weighted,
)
from itembank.estimation.model_abilities import estimate_abilities
from itembank.irt.ability_specs import ExpectedAPosteriori, MaximumAPosteriori, MaximumLikelihood, WeightedLikelihood
from itembank.responses.targets import ScoreTarget, ScoreTargets, mean_win_rate

__all__ = [
    "GPIRT",
    "PIRT",
    "Auto",
    "ExpectedAPosteriori",
    "Factor",
    "MaximumAPosteriori",
    "MaximumLikelihood",
    "Ridge",
    "SampleMean",
    "ScoreTarget",
    "ScoreTargets",
    "Stacked",
    "TaskMean",
    "TaskMeanEB",
    "Weighted",
    "WeightedLikelihood",
    "design_based_estimates",
    "estimate_abilities",
    "mean_win_rate",
]
