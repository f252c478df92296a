"""Choices of a comparison."""

from dataclasses import dataclass

from itembank.checks import check_fraction
from itembank.estimation.estimator_specs import DifferenceEstimand, check_estimand

PAIRED = "paired"
"""The method that takes the raw difference on the items that both models answered."""


@dataclass(frozen=True, slots=True)
class ComparisonSpec:
    """How sure a comparison is to be, and which scores it is of.

    Attributes
    ----------
    level : float
        Of the intervals. Two models are told apart if their adjusted p-value is below ``1 - level``.
    power : float
        With which the smallest detectable difference would be found.
    estimand : {'run', 'repeated', 'questions'}, optional
        What differences are of. 'run': this run, on exactly these items. 'repeated': the mean over repeated runs on
        these items. 'questions': what other items of this kind would show. Intervals, p-values and probabilities take
        in the chance of the runs, or of the items. By default 'questions', but with a bank 'run' if a model answered
        fewer than nine tenths of a score's items.
    """

    level: float = 0.95
    power: float = 0.8
    estimand: DifferenceEstimand | None = None

    def __post_init__(self) -> None:
        check_fraction("level", self.level)
        check_fraction("power", self.power)
        if self.estimand is not None:
            check_estimand(self.estimand, DifferenceEstimand)
