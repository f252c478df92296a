"""Choices of a plan."""

from dataclasses import dataclass

from itembank.checks import check_fraction, check_whole
from itembank.estimation.estimator_specs import RUN, Estimand, check_estimand


@dataclass(frozen=True, slots=True)
class PlanSpec:
    """How sure a plan is to be.

    Attributes
    ----------
    level : float
        Of the intervals.
    power : float
        Probability with which a difference is to show as significant.
    seed : int
        Of the items that are tried.
    estimand : {'run', 'repeated'}
        Which score is meant, see `estimate`. The typical chance of a run, or of the items, is part of every precision.
    """

    level: float = 0.95
    power: float = 0.8
    seed: int = 0
    estimand: Estimand = RUN

    def __post_init__(self) -> None:
        """Check the choices."""
        check_fraction("level", self.level)
        check_fraction("power", self.power)
        check_estimand(self.estimand, Estimand)
        check_whole("seed", self.seed, least=0)
