"""Choices of an estimation: one frozen spec a method, and the table of their names."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from itembank.checks import check_fraction, check_positive
from itembank.errors import ParameterError
from itembank.estimation.regression.specs import (
    Factor,
    KNearest,
    Metabench,
    RandomForest,
    Ridge,
    TaskMean,
    TaskMeanEB,
)
from itembank.methods import MethodTable


@dataclass(frozen=True, slots=True)
class SampleMean:
    """Plain mean of the observed responses of a scenario, without weights and without an item model."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """Weighted mean of the observed responses (P1 eq. 3.1): selection weights, or the target's without a selection."""


@dataclass(frozen=True, slots=True)
class PIRT:
    """Observed responses as they are, the item model's probability for the rest (P1 eq. 4.3)."""


@dataclass(frozen=True, slots=True)
class GPIRT:
    """Mixture of the weighted mean and p-IRT, by how far each can be trusted (P1 eq. 4.4).

    Attributes
    ----------
    anchor_variance_factor : float or 'estimated'
        Variance of the plain mean of a random sample over that of the weighted mean of anchor points. P1 takes
        4. 'estimated' measures the anchors' error on the calibration models instead, of whom it is somewhat
        optimistic since they helped to choose the anchors.
    unmeasured_bias : float
        The item model's bias where the bank could not measure it (too few models): 0.05, on the large side of
        what is measured, so that the observed responses get the greater say.
    """

    anchor_variance_factor: float | Literal["estimated"] = 4.0
    unmeasured_bias: float = 0.05

    def __post_init__(self) -> None:
        """Check the choices."""
        check_positive("anchor_variance_factor", self.anchor_variance_factor, word="estimated")
        check_fraction("unmeasured_bias", self.unmeasured_bias, whole=True)


PointSpec: TypeAlias = (
    SampleMean | Weighted | PIRT | GPIRT | TaskMean | TaskMeanEB | Ridge | KNearest | RandomForest | Metabench | Factor
)
"""Methods that give an estimate by themselves."""

DEFAULT_MEMBERS: tuple[PointSpec, ...] = (
    PIRT(),
    GPIRT(),
    Weighted(),
    Factor(),
    Factor(discrepancy=0.1),
)
"""Without ridge regression, which adds nothing to these on models like the past ones, and is far off on others."""


@dataclass(frozen=True, slots=True)
class Stacked:
    """Weighted mean of several methods' estimates, with the weights that served the calibration models best.

    The weights are non-negative, sum to one, and differ from score to score. They minimise the squared error of
    calibration models that each method had not seen (`folds`), and are drawn to those that would be best if the
    methods' errors had nothing to do with each other.

    Attributes
    ----------
    members : tuple of specs
    prior_models : float
        How many calibration models' worth of errors the weights' starting point counts for.
    """

    members: tuple[PointSpec, ...] = DEFAULT_MEMBERS
    prior_models: float = 20.0

    def __post_init__(self) -> None:
        """Check the choices."""
        if len(self.members) < 2 or not all(isinstance(member, get_args(PointSpec)) for member in self.members):
            raise ParameterError("members must be two methods of estimation or more, none of them 'stacked' or 'auto'.")
        check_positive("prior_models", self.prior_models)


@dataclass(frozen=True, slots=True)
class Auto:
    """`Stacked`, or with too few calibration models to leave some out gp-IRT. The default."""


EstimationSpec: TypeAlias = PointSpec | Stacked | Auto

METHODS: MethodTable[EstimationSpec] = MethodTable(
    "estimation",
    {
        "mean": SampleMean,
        "weighted": Weighted,
        "p-irt": PIRT,
        "gp-irt": GPIRT,
        "task-mean": TaskMean,
        "task-mean-eb": TaskMeanEB,
        "ridge": Ridge,
        "knn": KNearest,
        "random-forest": RandomForest,
        "metabench": Metabench,
        "factor": Factor,
        "stacked": Stacked,
        "auto": Auto,
    },
)
