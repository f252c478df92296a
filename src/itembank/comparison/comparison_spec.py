"""Choices of a comparison."""

from dataclasses import dataclass

from itembank.checks import check_fraction, check_one_of
from itembank.estimation.estimator_specs import ESTIMANDS, RUN, Estimand


@dataclass(frozen=True, slots=True)
class ComparisonSpec:
    """How sure a comparison is to be, and which scores it is of.

    Attributes
    ----------
    level : float
        Of the intervals; adjusted p-values are compared with ``1 - level`` in the ranking.
    power : float
        With which the smallest detectable difference would be found.
    estimand : {'run', 'expected'}
        Which scores are compared, see `estimate`: intervals, p-values and probabilities take in the chance of the runs,
        or of the items.
    """

    level: float = 0.95
    power: float = 0.8
    estimand: Estimand = RUN

    def __post_init__(self) -> None:
        """Check the choices."""
        check_fraction("level", self.level)
        check_fraction("power", self.power)
        check_one_of("estimand", self.estimand, ESTIMANDS)
