"""Choices of `pass_at_k_law`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from itembank.calibration.calibration_specs import CalibrationSpec, Variational
from itembank.checks import check_fraction, check_one_of, check_whole
from itembank.errors import ParameterError, shown

_HERE = "itembank_scaling.pass_at_k.kernels"
METHODS: Mapping[str, str] = {
    "irsl": "",
    "irsl-plug-in": "",
    "beta-binomial": "",
    "jeffreys": f"{_HERE}:jeffreys_pass_at_k",
    "plug-in": f"{_HERE}:plug_in_pass_at_k_of_counts",
    "unbiased": f"{_HERE}:unbiased_pass_at_k",
}
"""Kernels of samples, right ones and k, of methods that take each item by itself; others need the posterior of all."""
DEFAULT_K = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
"""Round numbers at even steps of a logarithmic axis."""
FEWEST_DRAWS = 100
"""With fewer an end of a 95 % interval would rest on the two outermost draws or one."""
NEED_ITEM_MODEL = frozenset({"irsl", "irsl-plug-in"})


@dataclass(frozen=True, slots=True)
class PassAtKSpec:
    """Which pass@k, by which methods, from how many samples.

    Attributes
    ----------
    k : tuple of int
        Numbers of samples; any up to millions, also beyond those there are.
    methods : tuple of str
        'irsl' (over the posterior of every pass rate; the only one with intervals), 'irsl-plug-in' (IRSL eq. 4),
        'beta-binomial' (as 'irsl', but no item is known from other models: pass rates of the model's items are a
        sample of one Beta), 'jeffreys' and 'plug-in' (each item's own rate, smoothed or not, in IRSL eq. 2), 'unbiased'
        (up to the samples there are).
    budget : int or None
        Use only this many samples of each item, drawn without replacement from those there are, and compare with what
        all of them say; None to use all.
    minimum_pass_rate : float
        Above zero, everything is reported a second time without the items whose pass rate in all samples is below this
        (IRSL App. E takes 0.005).
    include_unsampled : bool
        Count the items of a scenario (of the bank's, if one is given) that a model has no samples of; only IRSL
        has values then.
    level : float
        Of intervals.
    item_model : CalibrationSpec
        How items are calibrated if no bank is given; one dimension a scenario.
    interval : {'calibrated', 'model-based'}
        'calibrated' widens intervals by what they lack on models that calibrate the items, given as few samples as
        those asked about; these models must have at least twice as many. If they do not, models asked about are
        tried with a tenth of their samples. 'model-based' takes the posterior's word. Beyond a fifth of the samples of
        such other models, intervals are the hull of those by two shapes of pass rates, Beta and normal on the logit,
        and above an item's samples low ends count it as unsolved if none was right.
    n_draws : int
        Draws behind each interval.
    """

    k: tuple[int, ...] = DEFAULT_K
    methods: tuple[str, ...] = tuple(METHODS)
    budget: int | None = None
    minimum_pass_rate: float = 0.0
    include_unsampled: bool = False
    level: float = 0.95
    item_model: CalibrationSpec = field(default_factory=lambda: Variational("2pl", family="beta-binomial"))
    interval: Literal["calibrated", "model-based"] = "calibrated"
    n_draws: int = 1000

    def __post_init__(self) -> None:
        if not self.k or min(self.k) < 1 or any(k != int(k) for k in self.k):
            raise ParameterError(f"k must be whole numbers of at least 1, got {shown(self.k)}.")
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown or not self.methods:
            given = shown(unknown) if unknown else "none"
            raise ParameterError(f"methods must be some of {shown(list(METHODS))}, got {given}.")
        if not 0.0 <= self.minimum_pass_rate < 1.0:
            raise ParameterError(f"minimum_pass_rate must lie in [0, 1), got {self.minimum_pass_rate}.")
        check_fraction("level", self.level)
        if self.budget is not None:
            check_whole("budget", self.budget, least=1)
        check_one_of("interval", self.interval, ("calibrated", "model-based"))
        check_whole("n_draws", self.n_draws, least=FEWEST_DRAWS)
