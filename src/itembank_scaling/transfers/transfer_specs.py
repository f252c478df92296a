"""Choices of a transfer: how one set of items predicts another, and when it must not."""

from collections.abc import Mapping
from dataclasses import dataclass

from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.checks import check_fraction, check_one_of, check_whole
from itembank.errors import ParameterError

_HERE = "itembank_scaling.transfers.transfer_methods"
METHODS: Mapping[str, str] = {
    "calibrated": f"{_HERE}:by_calibrated_curve",
    "common-scale": f"{_HERE}:by_common_scale",
    "scores": f"{_HERE}:by_scores",
}
"""Kernels of a transfer's data, by name."""


@dataclass(frozen=True, slots=True)
class TransferSpec:
    """How a transfer is made and judged.

    Attributes
    ----------
    methods : tuple of 'calibrated', 'common-scale', 'scores'
        The first one is the prediction; the others are shown beside it. 'calibrated' is what the target's items say at
        the ability of the source, put right by a line over the past models, from the logit of the predicted score to
        that of the actual one: a weak correlation pulls predictions towards the mean, and the spread around the line
        makes the interval. 'common-scale' puts the source's ability into the target's items as it is (IRSL 3.4); both
        calibrate the two sets of items together. 'scores' has no item model: a line from the logit of the source's mean
        score to that of the target's. What to beat.
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
        if not self.methods:
            raise ParameterError("a transfer needs a method, got none. Take 'calibrated'.")
        for name in self.methods:
            check_one_of("transfer method", name, METHODS)
        if len(set(self.methods)) < len(self.methods):
            raise ParameterError(f"each method of a transfer must be named once, got {', '.join(self.methods)}.")
        if not self.k or min(self.k) < 1 or list(self.k) != sorted(set(self.k)):
            raise ParameterError(f"k must be rising whole numbers from 1 on, got {self.k}.")
        check_fraction("easy_fraction", self.easy_fraction)
        check_whole("n_folds", self.n_folds, least=2)
        check_fraction("level", self.level)
        if not -1.0 <= self.warn_below <= 1.0:
            raise ParameterError(f"warn_below is a correlation, from -1 to 1, got {self.warn_below}.")
