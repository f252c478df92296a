"""Ways to estimate full scores and abilities: what `estimate` and `score` take as their method."""

from itembank.data.targets import ScoreTarget, ScoreTargets, mean_win_rate
from itembank.estimation.covariates import unanswered
from itembank.estimation.design_based import design_based_estimates
from itembank.estimation.specs import (
    GPIRT,
    PIRT,
    Auto,
    Factor,
    KNearest,
    Metabench,
    RandomForest,
    Ridge,
    SampleMean,
    Stacked,
    TaskMean,
    TaskMeanEB,
    Weighted,
)
from itembank.scoring.specs import ExpectedAPosteriori, MaximumAPosteriori, MaximumLikelihood, WeightedLikelihood

__all__ = [
    "GPIRT",
    "PIRT",
    "Auto",
    "ExpectedAPosteriori",
    "Factor",
    "KNearest",
    "MaximumAPosteriori",
    "MaximumLikelihood",
    "Metabench",
    "RandomForest",
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
    "mean_win_rate",
    "unanswered",
]
