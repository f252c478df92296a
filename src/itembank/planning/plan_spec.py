"""Choices of a plan."""

from dataclasses import dataclass

from itembank.checks import check_fraction, check_whole


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
    """

    level: float = 0.95
    power: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the choices."""
        check_fraction("level", self.level)
        check_fraction("power", self.power)
        check_whole("seed", self.seed, least=0)
