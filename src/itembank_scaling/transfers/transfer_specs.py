"""Choices of a transfer: how one set of items predicts another, and when it must not."""

from dataclasses import dataclass
from typing import TypeAlias

from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.checks import check_fraction, check_whole
from itembank.errors import ParameterError
from itembank.methods import Method, MethodTable


@dataclass(frozen=True, slots=True)
class CalibratedCurve:
    """What the target's items say at the ability of the source, put right by a line over the past models.

    Both sets of items are calibrated together. The line is from the logit of the predicted score to that of the actual
    one: a weak correlation pulls predictions towards the mean, and the spread around the line makes the interval. The
    default.
    """


@dataclass(frozen=True, slots=True)
class CommonScale:
    """Both sets of items are calibrated together, and the source's ability is put into the target's (IRSL 3.4)."""


@dataclass(frozen=True, slots=True)
class ScoreRegression:
    """No item model: a line from the logit of the source's mean score to that of the target's. What to beat."""


TransferMethod: TypeAlias = CalibratedCurve | CommonScale | ScoreRegression

_HERE = "itembank_scaling.transfers.transfer_methods"

METHODS: MethodTable[TransferMethod] = MethodTable(
    "transfer",
    {
        "calibrated": Method(CalibratedCurve, f"{_HERE}:by_calibrated_curve"),
        "common-scale": Method(CommonScale, f"{_HERE}:by_common_scale"),
        "scores": Method(ScoreRegression, f"{_HERE}:by_scores"),
    },
)


@dataclass(frozen=True, slots=True)
class TransferSpec:
    """How a transfer is made and judged.

    Attributes
    ----------
    methods : tuple of 'calibrated', 'common-scale', 'scores'
        The first one is the prediction; the others are shown beside it.
    k : tuple of int
        Samples an item: 1 is the mean score, more need repeated samples.
    item_model : CalibrationSpec or None
        With one dimension; by default '2pl' with the family that the responses are of.
    easy_fraction : float
        Fraction of a scenario's items that are the easy ones, if it is divided.
    n_folds : int
        If no past models are named: number of parts for cross-validation.
    level : float
        Of all intervals.
    warn_below : float
        Correlation of the abilities below which a transfer is warned of. At 0.7 half of the variance is left.
    is_forced : bool
        Transfer even if no correlation is shown: if the interval of the correlation reaches 0.
    """

    methods: tuple[str, ...] = ("calibrated", "scores")
    k: tuple[int, ...] = (1,)
    item_model: CalibrationSpec | None = None
    easy_fraction: float = 0.5
    n_folds: int = 5
    level: float = 0.95
    warn_below: float = 0.7
    is_forced: bool = False

    def __post_init__(self) -> None:
        """Check the choices."""
        if not self.methods:
            raise ParameterError("a transfer needs a method, got none. Take 'calibrated'.")
        for name in self.methods:
            METHODS.resolve(name)
        if len(set(self.methods)) < len(self.methods):
            raise ParameterError(f"each method of a transfer must be named once, got {', '.join(self.methods)}.")
        if not self.k or min(self.k) < 1 or list(self.k) != sorted(set(self.k)):
            raise ParameterError(f"k must be rising whole numbers from 1 on, got {self.k}.")
        check_fraction("easy_fraction", self.easy_fraction)
        check_whole("n_folds", self.n_folds, least=2)
        check_fraction("level", self.level)
        if not -1.0 <= self.warn_below <= 1.0:
            raise ParameterError(f"warn_below is a correlation, from -1 to 1, got {self.warn_below}.")
