"""Choices of a selection: one frozen spec a method, and the table of their names."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from itembank.errors import ParameterError, shown
from itembank.methods import MethodTable

Allocation = Literal["equal", "proportional"]


@dataclass(frozen=True, slots=True)
class Random:
    """Items drawn uniformly within each scenario."""


@dataclass(frozen=True, slots=True)
class Stratified:
    """Items drawn within each scenario so that every subscenario is represented (P1 3.1).

    Attributes
    ----------
    allocation : {'equal', 'proportional'}
        'equal': P1's rule, counts of two subscenarios differ by at most one. For a micro target with subscenarios
        of very different size the weights that make up for it can cost more than plain random sampling
        (`docs/results.md`).
        'proportional': counts follow the subscenarios' share of the score; the same as 'equal' for a macro target.
    """

    allocation: Allocation = "equal"

    def __post_init__(self) -> None:
        """Check the choices."""
        if self.allocation not in get_args(Allocation):
            raise ParameterError(f"allocation must be one of {shown(get_args(Allocation))}, got {self.allocation!r}.")


@dataclass(frozen=True, slots=True)
class AnchorCorrectness:
    """Anchor points: clusters of items that the calibration models answered alike (P1 3.2).

    Attributes
    ----------
    n_restarts : int
        Starts of k-means; the smallest inertia wins.
    standardise : bool
        Give every calibration model the same variance over the items of a scenario.
    allow_degenerate : bool
        As for `AnchorIRT`.
    """

    n_restarts: int = 5
    standardise: bool = True
    allow_degenerate: bool = False

    def __post_init__(self) -> None:
        """Check the choices."""
        _check_restarts(self.n_restarts)


@dataclass(frozen=True, slots=True)
class AnchorIRT:
    """Anchor points: clusters of items with similar parameters (P1 3.2). The default.

    Attributes
    ----------
    n_restarts : int
        Starts of k-means; the smallest inertia wins.
    standardise : bool
        Let the loadings together and the intercept count the same, instead of as they come.
    allow_degenerate : bool
        Let items that every calibration model answered the same way be anchors too, as P1 does. They tell
        these models not apart, but stand for their like better than the nearest informative item does: worth it
        for the weighted mean alone where there are many of them, as with few or weak calibration models.
    """

    n_restarts: int = 5
    standardise: bool = True
    allow_degenerate: bool = False

    def __post_init__(self) -> None:
        """Check the choices."""
        _check_restarts(self.n_restarts)


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Items drawn at random with known unequal probabilities: more often where the item model is less sure.

    For estimates and intervals that stay valid when the item model is wrong (`docs/design-based.md`).

    Attributes
    ----------
    mixture : float
        Share of the draws that follow the weights in the score alone, in (0, 1]. It bounds how much any one
        response can count; 1 ignores the item model.
    """

    mixture: float = 0.5

    def __post_init__(self) -> None:
        """Check the choices."""
        if not 0.0 < self.mixture <= 1.0:
            raise ParameterError(f"mixture must be above 0 and at most 1, got {self.mixture!r}.")


SelectionSpec: TypeAlias = Random | Stratified | AnchorCorrectness | AnchorIRT | Uncertainty

METHODS: MethodTable[SelectionSpec] = MethodTable(
    "selection",
    {
        "random": Random,
        "stratified": Stratified,
        "anchor-correctness": AnchorCorrectness,
        "anchor-irt": AnchorIRT,
        "uncertainty": Uncertainty,
    },
)


def _check_restarts(n_restarts: int) -> None:
    if n_restarts < 1:
        raise ParameterError(f"n_restarts must be at least 1, got {n_restarts}.")
