"""Choices of the pre-training laws; without numpy, so that a command's help can list them."""

from dataclasses import dataclass
from typing import Literal

from itembank.checks import check_positive, check_whole

Pooling = Literal["none", "partial"]
Shape = Literal["bent", "line"]
Gap = Literal["carried", "none"]


@dataclass(frozen=True, slots=True)
class PretrainingLawSpec:
    """Choices of a law; each law adds its own."""

    @property
    def is_joint(self) -> bool:
        """Whether one fit serves all scenarios: the kernel takes and returns a tuple with a place for each."""
        return False


@dataclass(frozen=True, slots=True)
class TwoStep(PretrainingLawSpec):
    """Choice of the two-step law.

    Attributes
    ----------
    n_starts : int
        Starts of each step, spread over the bounds. Step 2 is known to depend on where it starts.
    huber_delta : float
        Size of a residual of log loss in step 1 from which Huber's loss is linear (IRSL's code: 0.001).
    """

    n_starts: int = 32
    huber_delta: float = 1e-3

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_starts", self.n_starts, least=1)
        check_positive("huber_delta", self.huber_delta)


@dataclass(frozen=True, slots=True)
class SigmoidLaw(PretrainingLawSpec):
    """Choice of the direct law, ``score = e + a sigmoid(k (log FLOP - x0))``.

    Attributes
    ----------
    n_starts : int
        Starts of each fit, spread over the bounds.
    """

    n_starts: int = 32

    def __post_init__(self) -> None:
        """Check the choice."""
        check_whole("n_starts", self.n_starts, least=1)


@dataclass(frozen=True, slots=True)
class TrendLaw(PretrainingLawSpec):
    """Local trends of all scenarios and recipes together. There is nothing to choose."""

    @property
    def is_joint(self) -> bool:
        """Scenarios tell together how fast scores grow and how suddenly."""
        return True


@dataclass(frozen=True, slots=True)
class LastScore(PretrainingLawSpec):
    """What a person does by hand: the score of the recipe's largest model, at any compute."""


@dataclass(frozen=True, slots=True)
class LastLine(PretrainingLawSpec):
    """What a person does by hand: a straight line through the logits of the recipe's last three scores."""
