"""Choices of a scoring: one frozen spec a method."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from itembank.checks import check_whole
from itembank.errors import ParameterError
from itembank.methods import MethodTable


@dataclass(frozen=True, slots=True)
class MaximumLikelihood:
    """Ability under which the responses are most likely; infinite for all-right and all-wrong patterns."""


@dataclass(frozen=True, slots=True)
class MaximumAPosteriori:
    """Mode of the posterior under the bank's prior of ability (WILD eq. 9). The default; always finite."""


@dataclass(frozen=True, slots=True)
class ExpectedAPosteriori:
    """Mean of the posterior under the bank's prior of ability.

    Attributes
    ----------
    n_quadrature : int or 'auto'
        Nodes per dimension, of one or two; 'auto' takes as many as each posterior needs.
    bounds : (float, float)
        Range of the grid in standard deviations of the prior around its mean.
    """

    n_quadrature: int | Literal["auto"] = "auto"
    bounds: tuple[float, float] = (-6.0, 6.0)

    def __post_init__(self) -> None:
        check_whole("n_quadrature", self.n_quadrature, least=2, word="auto")
        if not self.bounds[0] < self.bounds[1]:
            raise ParameterError(f"bounds must increase, got {self.bounds}.")


@dataclass(frozen=True, slots=True)
class WeightedLikelihood:
    """Weighted likelihood (Warm 1989): no prior, finite for every pattern, less biased than ML."""


AbilitySpec: TypeAlias = MaximumLikelihood | MaximumAPosteriori | ExpectedAPosteriori | WeightedLikelihood

METHODS: MethodTable[AbilitySpec] = MethodTable(
    "scoring",
    {"ml": MaximumLikelihood, "map": MaximumAPosteriori, "eap": ExpectedAPosteriori, "wle": WeightedLikelihood},
)
