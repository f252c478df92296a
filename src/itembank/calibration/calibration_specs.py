"""Choices of a calibration: one frozen spec a method, and the table of the methods.

Without numpy, so that a command's help can list them.
"""

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from itembank.checks import check_not_negative, check_one_of, check_positive, check_whole
from itembank.errors import ParameterError, remedy, shown
from itembank.irt.family_names import FAMILIES, WITH_PRECISION, Family
from itembank.methods import Method, MethodTable

ItemModel = Literal["1pl", "2pl", "mirt", "nested"]

Degenerate = Literal["prior", "majority"]
PrecisionChoice = Literal["global", "scenario"]
ANCHOR_FACTOR = 4.0
"""How much smaller the variance of anchor points' weighted mean is than a random sample's (tinyBenchmarks 4.2)."""
Option = float | str | bool
"""What a bank's record can hold of a choice."""


@dataclass(frozen=True, slots=True)
class CalibrationSpec:
    """What the specs of all methods are derived from: choices that all have, and where most are alike."""

    item_model: ItemModel = "2pl"  # As for `Variational`
    n_dims: int = 1
    known_guessing: bool = False
    max_iterations: int = 2000
    tolerance: float = 1e-6  # At which the method stops
    family: Family | Literal["auto"] = "auto"

    @property
    def by_task(self) -> bool:
        """Whether items of one task share the centre of their prior."""
        return False

    @property
    def degenerate(self) -> Degenerate:
        """What items get for parameters that all past models answered alike."""
        return "prior"

    @property
    def precision(self) -> float | PrecisionChoice:
        """Which items share the precision of families 'beta' and 'beta-binomial', or its value."""
        return "global"

    @property
    def has_marginal_errors(self) -> bool:
        """Whether the errors of items take the uncertainty of abilities into account."""
        return False


@dataclass(frozen=True, slots=True)
class Variational(CalibrationSpec):
    """Variational Bayes with hierarchical priors (tinyBenchmarks 4.4), by deterministic ascent. The default.

    Attributes
    ----------
    item_model : {'1pl', '2pl', 'mirt', 'nested'}
        One common slope; a slope an item; `n_dims` slopes an item; the same with one general ability, the first, and
        `n_dims - 1` specific ones, whose loadings have the prior mean zero and a spread of their own for each.
    n_dims : int
        Dimensions of ability; one unless the item model is 'mirt' or 'nested'.
    known_guessing : bool
        Take each item's lower asymptote from its column `chance`, or `1 / n_options`.
    max_iterations : int
    tolerance : float
        Stop when the bound rises by less than this fraction of its size (10,000 at least) a sweep, on the mean of five.
    single_precision : bool or 'auto'
        Do passes over the responses in float32: the bound can then waver by about 1e-7 of its size, and loadings differ
        between processors (see `contributing/reliability.md`). 'auto' does so with more than a million responses.
    by_task : bool
        Items of one task (scenario and subscenario) share the centre of their prior. It helps where models are few
        and tasks differ; not with '1pl'.
    family : {'auto', 'bernoulli', 'binomial', 'beta', 'beta-binomial'}
        Distribution of a response. 'auto' takes 'binomial' where numbers of trials are known, 'beta-binomial' where
        these trials agree more than chance, else 'bernoulli', by thresholds where responses are not binary.
    precision : float, 'global' or 'scenario'
        Of families 'beta' and 'beta-binomial': phi given, one learned for all items, or one for each scenario.
    positive_discrimination : bool
        Keep slopes above zero; one dimension only.
    """

    single_precision: bool | Literal["auto"] = "auto"
    by_task: bool = False
    precision: float | PrecisionChoice = "scenario"
    positive_discrimination: bool = False

    def __post_init__(self) -> None:
        check_item_model(self.item_model, self.n_dims, get_args(ItemModel))
        check_iterations(self.max_iterations, self.tolerance)
        check_family(self.family, self.precision)
        if self.single_precision not in (True, False, "auto"):
            raise ParameterError(f"single_precision must be True, False or 'auto', got {self.single_precision!r}.")
        if self.positive_discrimination and self.n_dims > 1:
            raise ParameterError(
                f"positive_discrimination is for one dimension, got n_dims={self.n_dims}: with more, the signs of "
                "loadings follow from the axes. Use '2pl'."
            )
        if self.by_task and self.item_model == "1pl":
            raise ParameterError("by_task is for item models with a slope an item, got item_model '1pl'. Use '2pl'.")


@dataclass(frozen=True, slots=True)
class JointMAP(CalibrationSpec):
    """Joint maximum a posteriori of items and abilities (WILD 5.1-5.2, App. A).

    Attributes
    ----------
    item_model : {'1pl', '2pl', 'mirt', 'nested'}
        As for `Variational`; 'nested' has a general ability and `n_dims - 1` specific ones, with the logit
        ``alpha (theta_g + K . theta - delta)`` (WILD eq. 7).
    n_dims : int
        Of 'nested' with the general ability: WILD takes 3.
    known_guessing, max_iterations, tolerance
        As for `Variational`; the tolerance is on the rise of the log posterior density, as a fraction of its size.
    l1 : float or 'auto'
        Weight of the absolute loadings in the objective (WILD's lambda in App. A); of K in nested models. It must be
        positive: without it the density rises for ever as abilities shrink and loadings grow. 'auto' is 0.1, and in
        nested models ``sqrt(n_items / n_models)``: about a Laplace prior of scale
        2/3 of the loadings for abilities of variance 1.
    intercept_sd : float
        Standard deviation of the normal prior of the intercepts.
    general_weight : float
        Nested models: weight of the log-likelihood of the general logit ``alpha (theta_g - delta)`` alone, beside
        that of the whole one (WILD's lambda in 5.1).
    slope_sd : float
        Nested models: standard deviation of the normal prior of alpha around 1, which sets the scale. WILD states no
        prior of alpha; its objective then has no maximum (`docs/item-models.md`).
    degenerate : {'prior', 'majority'}
        Items that all past models answered alike get parameters from the other items as their prior, or
        predict the common answer for everybody (WILD A.1).
    family : {'auto', 'bernoulli', 'binomial'}
        As for `Variational`.
    """

    max_iterations: int = 1000
    tolerance: float = 1e-7
    l1: float | Literal["auto"] = "auto"
    intercept_sd: float = 3.0
    general_weight: float = 0.2
    slope_sd: float = 0.5
    degenerate: Degenerate = "prior"

    def __post_init__(self) -> None:
        check_item_model(self.item_model, self.n_dims, get_args(ItemModel))
        check_iterations(self.max_iterations, self.tolerance)
        check_family(self.family, has_precision=False)
        check_positive("l1", self.l1, word="auto")
        check_positive("intercept_sd", self.intercept_sd)
        check_positive("slope_sd", self.slope_sd)
        check_not_negative("general_weight", self.general_weight)
        check_one_of("degenerate", self.degenerate, get_args(Degenerate))

    @property
    def loading_weight(self) -> float:
        """Weight of the absolute loadings; of nested models only if it is given."""
        return 0.1 if self.l1 == "auto" else self.l1


@dataclass(frozen=True, slots=True)
class ItemPrior:
    """Fixed priors of the item parameters of marginal ML.

    With far more items than models the centres of these priors, not the abilities, set the scale of a fit.
    It is put right afterwards, but `RelativeItemPrior` has no such effect.
    """

    # The slope is lognormal, as a density of the slope itself (R's `dlnorm`). No slope is then negative: an item that
    # stronger models fail ends near zero.
    log_discrimination_mean: float = 0.0
    log_discrimination_sd: float = 0.5
    intercept_sd: float = 2.0  # The intercept is normal with mean 0

    def __post_init__(self) -> None:
        check_spreads(self.log_discrimination_sd, self.intercept_sd)


@dataclass(frozen=True, slots=True)
class RelativeItemPrior:
    """Priors of marginal ML that draw items to each other, not to given numbers.

    Slopes divided by their centre are normal around one, and intercepts are normal around a line in the slope that
    is fitted to the items at the start. Shift and scale of ability are therefore left to the abilities, however
    many items there are. Slopes may be negative, as those of items with a wrong key are.
    """

    slope_sd: float = 0.4  # Standard deviation of a slope over the centre of all
    intercept_sd: float = 2.0  # Standard deviation of an intercept around its line

    def __post_init__(self) -> None:
        check_spreads(self.slope_sd, self.intercept_sd)


@dataclass(frozen=True, slots=True)
class MarginalML(CalibrationSpec):
    """Marginal maximum likelihood by EM with quadrature (Bock & Aitkin 1981), in one dimension.

    Attributes
    ----------
    item_model : {'1pl', '2pl'}
    known_guessing, max_iterations, tolerance
        As for `Variational`; the tolerance is on the largest change of an item, in its standard errors.
    prior : ItemPrior, RelativeItemPrior, None or 'auto'
        'auto' takes none with 300 models or more and fewer items than models (an exam), else
        `RelativeItemPrior()`. Without a prior, items that few models solve (or fail) get steep or endless slopes.
    n_quadrature : int or 'auto'
        Nodes of ability; 'auto' takes as many as the data's sharpest posterior of ability needs.
    bounds : (float, float)
        Range of the nodes.
    family : {'auto', 'bernoulli', 'binomial'}
        As for `Variational`.
    """

    tolerance: float = 1e-4
    prior: ItemPrior | RelativeItemPrior | Literal["auto"] | None = "auto"
    n_quadrature: int | Literal["auto"] = "auto"
    bounds: tuple[float, float] = (-6.0, 6.0)

    def __post_init__(self) -> None:
        check_item_model(self.item_model, self.n_dims, ("1pl", "2pl"))
        check_iterations(self.max_iterations, self.tolerance)
        check_family(self.family, has_precision=False)
        if not self.bounds[0] < 0.0 < self.bounds[1]:
            raise ParameterError(f"bounds of the nodes must enclose 0, got {self.bounds}.")
        if self.n_quadrature != "auto" and self.n_quadrature < 2:
            raise ParameterError(f"n_quadrature must be 'auto' or at least 2, got {self.n_quadrature}.")

    @property
    def has_marginal_errors(self) -> bool:
        """Items are fitted with abilities integrated out."""
        return True


METHODS: MethodTable[CalibrationSpec] = MethodTable(
    "calibration",
    {
        "variational": Method(Variational, "itembank.calibration.variational.fit:fit_variational"),
        "map": Method(JointMAP, "itembank.calibration.joint_map.fit:fit_joint_map"),
        "mml": Method(MarginalML, "itembank.calibration.marginal_ml.fit:fit_marginal_ml"),
    },
    base=CalibrationSpec,
    group="itembank.calibrations",
)
"""Kernels of `itembank.calibration.fits.FitData`, the spec and `progress`, which return a `Fit`."""


OWN_FIELDS = ("item_model", "n_dims", "known_guessing", "tolerance")
"""What a calibration states by itself."""


def plain_options(spec: CalibrationSpec) -> dict[str, Option]:
    """Return the choices of a spec that differ from its defaults and that files can hold, but `OWN_FIELDS`."""
    values = {one.name: (getattr(spec, one.name), one.default) for one in fields(spec) if one.name not in OWN_FIELDS}
    return {
        name: value
        for name, (value, default) in values.items()
        if isinstance(value, str | float | int | bool) and value != default
    }


def loosened(spec: CalibrationSpec, tolerance: float) -> CalibrationSpec:
    """Return a spec whose fit stops at this tolerance or at its own larger one; only variational ones were tried."""
    if not isinstance(spec, Variational):
        return spec
    return replace(spec, tolerance=max(tolerance, spec.tolerance))


def has_family(spec: CalibrationSpec, family: Family) -> bool:
    """Whether a spec's method fits a family with its item model."""
    try:
        replace(spec, family=family)
    except ParameterError:
        return False
    return True


def check_item_model(item_model: str, n_dims: int, known: tuple[str, ...]) -> None:
    """Check that the method knows the item model and that its number of dimensions fits."""
    check_one_of("item_model", item_model, get_args(ItemModel))
    if item_model not in known:
        raise ParameterError(
            f"item_model must be one of {shown(known)} for this method, got {item_model!r}. The variational "
            "method has it."
        )
    check_whole("n_dims", n_dims, least=1)
    if item_model in {"1pl", "2pl"} and n_dims != 1:
        raise ParameterError(f"item_model {item_model!r} has one dimension, got n_dims={n_dims}. Use 'mirt'.")
    if item_model == "nested" and n_dims == 1:
        raise ParameterError(
            "item_model 'nested' needs n_dims of 2 or more, the general ability and a specific one, got 1. "
            "WILD takes 3; with one alone use '2pl'."
        )


def check_family(family: str, precision: float | str = "scenario", *, has_precision: bool = True) -> None:
    """Check the distribution of responses and its precision."""
    check_one_of("family", family, ("auto", *FAMILIES))
    if family in WITH_PRECISION and not has_precision:
        advice = remedy("Variational", "--method variational")
        raise ParameterError(f"this method has no family {family!r}, the variational one has it: use {advice}.")
    if isinstance(precision, str):
        if precision not in get_args(PrecisionChoice):
            raise ParameterError(f"precision must be a number, 'global' or 'scenario', got {precision!r}.")
    else:
        check_positive("precision", precision)


def check_spreads(*spreads: float) -> None:
    """Check standard deviations of priors."""
    if min(spreads) <= 0.0:
        raise ParameterError(f"standard deviations of an item prior must be > 0, got {spreads}.")


def check_iterations(max_iterations: int, tolerance: float) -> None:
    """Check the stopping rule."""
    check_whole("max_iterations", max_iterations, least=1)
    check_positive("tolerance", tolerance)
