"""Choices of the estimators that learn from the calibration models, one frozen spec a method."""

from dataclasses import dataclass
from typing import Literal, get_args

from itembank.checks import check_positive, check_whole
from itembank.errors import ParameterError

Towards = Literal["weights", "zero"]


@dataclass(frozen=True, slots=True)
class TaskMean:
    """The calibration models' mean score, whatever the new model did: the floor every method must beat."""


@dataclass(frozen=True, slots=True)
class TaskMeanEB:
    """Observed responses of a scenario drawn towards the calibration models' mean score of it (P2 eq. 15).

    Attributes
    ----------
    strength : float
        How many responses the calibration models' mean counts for; P2 takes 5.
    """

    strength: float = 5.0

    def __post_init__(self) -> None:
        """Check the choices."""
        check_positive("strength", self.strength)


@dataclass(frozen=True, slots=True)
class Ridge:
    """Penalised linear regression of each score on the observed responses (P2 6.4).

    Attributes
    ----------
    penalty : float or 'leave-one-out'
        Of the squared coefficients of the raw responses; 'leave-one-out' takes what predicts left-out calibration
        models best, each score its own.
    towards : {'weights', 'zero'}
        Where the penalty draws the coefficients: to a free multiple of the selection's weights (ours), or to zero
        (P2). With few calibration models the former is mostly more accurate, with hundreds it makes no difference.
    """

    penalty: float | Literal["leave-one-out"] = "leave-one-out"
    towards: Towards = "weights"

    def __post_init__(self) -> None:
        """Check the choices."""
        check_positive("penalty", self.penalty, word="leave-one-out")
        if self.towards not in get_args(Towards):
            raise ParameterError(f"towards must be 'weights' or 'zero', got {self.towards!r}.")


@dataclass(frozen=True, slots=True)
class KNearest:
    """Mean score of the calibration models that responded most alike (DISCO, arXiv 2510.07959).

    Attributes
    ----------
    n_neighbours : int or 'leave-one-out'
        'leave-one-out' takes what predicts left-out calibration models best, each score its own.
    n_components : int, None or 'leave-one-out'
        Principal components of the responses in which models are compared; None compares the responses themselves.
    """

    n_neighbours: int | Literal["leave-one-out"] = "leave-one-out"
    n_components: int | Literal["leave-one-out"] | None = "leave-one-out"

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_neighbours", self.n_neighbours, least=1, word="leave-one-out")
        if self.n_components is not None:
            check_whole("n_components", self.n_components, least=1, word="leave-one-out")


@dataclass(frozen=True, slots=True)
class RandomForest:
    """Random forest on the principal components of the responses (DISCO, arXiv 2510.07959).

    Attributes
    ----------
    n_trees : int
    n_components : int or None
        Principal components of the responses that the trees see; None gives them the responses themselves. DISCO
        takes 256; on two leaderboards more than 20 cost time and brought little.
    seed : int
        Of the forest: the same seed gives the same estimates.
    """

    n_trees: int = 100
    n_components: int | None = 20
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_trees", self.n_trees, least=1)
        if self.n_components is not None:
            check_whole("n_components", self.n_components, least=1)
        check_whole("seed", self.seed, least=0)


@dataclass(frozen=True, slots=True)
class Metabench:
    """Additive smooth regression of the score on sub-score and ability (metabench, arXiv 2407.12844).

    Attributes
    ----------
    n_knots : int
        Of each smooth, at quantiles of the calibration models. The penalty decides how much of them is used.
    """

    n_knots: int = 6

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_knots", self.n_knots, least=2)


@dataclass(frozen=True, slots=True)
class Factor:
    """Mean of the score under a linear-Gaussian factor model of all items, given the observed responses.

    Attributes
    ----------
    n_factors : int or 'auto'
    discrepancy : float or 'auto'
        Standard deviation, on the scale of responses, by which new models may raise or lower all items of a
        scenario, and its items of like difficulty, beyond what the calibration models showed (`with_discrepancy`).
        'auto' measures it on calibration models left out, and that of subscenarios too (`bank_factor_model`).
    """

    n_factors: int | Literal["auto"] = "auto"
    discrepancy: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_factors", self.n_factors, least=1, word="auto")
        if self.discrepancy != "auto" and not 0.0 <= self.discrepancy <= 1.0:
            raise ParameterError(f"discrepancy must be 'auto' or a number in [0, 1], got {self.discrepancy!r}.")
