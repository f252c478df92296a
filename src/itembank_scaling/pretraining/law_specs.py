"""Choices of pre-training laws; without numpy, so that a command's help can list them."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from itembank.checks import check_fraction, check_one_of, check_positive, check_whole
from itembank.errors import ParameterError
from itembank.methods import Method, MethodTable

Pooling = Literal["none", "partial"]
Shape = Literal["bent", "line"]
Gap = Literal["carried", "none"]


@dataclass(frozen=True, slots=True)
class PretrainingLawSpec:
    """Choices of a law; each law adds its own."""

    is_joint: ClassVar[bool] = False
    """Whether one fit serves all scenarios: the kernel takes and returns a tuple with a place for each."""


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
        check_whole("n_starts", self.n_starts, least=1)


@dataclass(frozen=True, slots=True)
class TrendLaw(PretrainingLawSpec):
    """Local trends of all scenarios and recipes together. There is nothing to choose."""

    is_joint: ClassVar[bool] = True  # Scenarios tell together how fast scores grow and how suddenly


@dataclass(frozen=True, slots=True)
class LastScore(PretrainingLawSpec):
    """What a person does by hand: the score of the recipe's largest model, at any compute."""


@dataclass(frozen=True, slots=True)
class LastLine(PretrainingLawSpec):
    """What a person does by hand: a straight line through the logits of the recipe's last three scores."""


LawItemModel = Literal["1pl", "2pl"]
LawFamily = Literal["auto", "bernoulli", "binomial", "beta", "beta-binomial"]

IRSL = "irsl"
TWO_STEP = "two-step"
SIGMOID = "sigmoid"
TREND = "trend"
LAST_SCORE = "last-score"
LAST_LINE = "last-line"

DEFAULT_LAWS = (IRSL, TWO_STEP, SIGMOID, TREND)
BY_HAND = (LAST_SCORE, LAST_LINE)
"""Laws that a person draws by hand: what every law is compared with on the sizes held out."""


@dataclass(frozen=True, slots=True)
class ItemResponseLaw(PretrainingLawSpec):
    """Item response scaling law: ability is a line in log FLOP, the score follows from the items (IRSL eq. 3).

    The law as published is ``ItemResponseLaw(pooling="none", shape="line", gap="none")``.

    Attributes
    ----------
    item_model : {'1pl', '2pl'}
    family : {'auto', 'bernoulli', 'binomial', 'beta', 'beta-binomial'}
        Likelihood of responses if no bank is given. 'auto': Bernoulli for right and wrong, Beta for probabilities,
        binomial for counts of more than one trial, or beta-binomial where attempts agree more than chance.
    pooling : {'partial', 'none'}
        Whether the lines of recipes are drawn to each other, or each is that of least squares; 'none' is IRSL.
    shape : {'bent', 'line'}
        Whether the lines may bend, all recipes' alike, as much as the sizes show; 'line' is IRSL.
    gap : {'carried', 'none'}
        Whether a forecast adds what the recipe's largest size scores beyond its ability; 'none' is IRSL.
    known_guessing : bool
        Take each item's lower asymptote from its column `chance`, or `1 / n_options`.
    positive_discrimination : bool
        Keep items from falling with ability.
    """

    item_model: LawItemModel = "2pl"
    family: LawFamily = "auto"
    pooling: Pooling = "partial"
    shape: Shape = "bent"
    gap: Gap = "carried"
    known_guessing: bool = False
    positive_discrimination: bool = False

    def __post_init__(self) -> None:
        choices = (
            ("item_model", self.item_model, get_args(LawItemModel)),
            ("family", self.family, get_args(LawFamily)),
            ("pooling", self.pooling, get_args(Pooling)),
            ("shape", self.shape, get_args(Shape)),
            ("gap", self.gap, get_args(Gap)),
        )
        for name, value, known in choices:
            check_one_of(name, value, known)


_HERE = "itembank_scaling.pretraining"

LAWS: MethodTable[PretrainingLawSpec] = MethodTable(
    "pre-training law",
    {
        IRSL: Method(ItemResponseLaw, f"{_HERE}.ability_law:fit_ability_law"),
        TWO_STEP: Method(TwoStep, f"{_HERE}.curve_laws:fit_two_step_law"),
        SIGMOID: Method(SigmoidLaw, f"{_HERE}.curve_laws:fit_sigmoid"),
        TREND: Method(TrendLaw, f"{_HERE}.trend_law:fit_trend_law"),
        LAST_SCORE: Method(LastScore, f"{_HERE}.by_hand:fit_last_score"),
        LAST_LINE: Method(LastLine, f"{_HERE}.by_hand:fit_last_line"),
    },
    base=PretrainingLawSpec,
    group="itembank.pretraining_laws",
)
"""Kernels of `law_fitting.LawData` and the spec; of a tuple of them where it `is_joint`."""


@dataclass(frozen=True, slots=True)
class PretrainingSettings:
    """What the laws are fitted to, and how sure their intervals are.

    Attributes
    ----------
    laws : tuple of PretrainingLawSpec or str
        Names of `LAWS` ('irsl', 'two-step', 'sigmoid', 'trend', ...), or specs with their choices; one of each kind.
    largest_flops : float or None
        Fit to models of at most this training compute; all by default.
    fewest_sizes : int
        Finished models that a recipe must have; three at least tell a line from a bend.
    n_items : int or None
        Items a scenario that each model is tested on, chosen adaptively (`item_budget`); None: all that it answered.
    calibration_recipes : tuple of str
        Recipes whose models of all sizes calibrate the items, as results of the past, and get no law themselves.
    n_checked : int
        Largest sizes that are held out, one after the other, to see what forecasts are worth; 0: no check.
    level : float
        Of the intervals.
    """

    laws: tuple[PretrainingLawSpec | str, ...] = DEFAULT_LAWS
    largest_flops: float | None = None
    fewest_sizes: int = 3
    n_items: int | None = None
    calibration_recipes: tuple[str, ...] = ()
    n_checked: int = 2
    level: float = 0.95

    def __post_init__(self) -> None:
        specs = tuple(LAWS.resolve(spec) for spec in self.laws)
        if not specs or len({type(spec) for spec in specs}) < len(specs):
            raise ParameterError(f"laws must name each law once, and one at least, got {self.laws!r}.")
        object.__setattr__(self, "laws", specs)
        if self.largest_flops is not None:
            check_positive("largest_flops", self.largest_flops)
        check_whole("fewest_sizes", self.fewest_sizes, least=2)
        if self.n_items is not None:
            check_whole("n_items", self.n_items, least=1)
        check_whole("n_checked", self.n_checked, least=0)
        check_fraction("level", self.level)

    def law(self, name: str) -> PretrainingLawSpec | None:
        """Return the spec of a law by its short name, None when it is not wanted."""
        return next((spec for spec in self.laws if isinstance(spec, LAWS.kinds[name])), None)

    @property
    def item_law(self) -> ItemResponseLaw | None:
        """How items are calibrated; None if the item response law is not wanted."""
        law = self.law(IRSL)
        return law if isinstance(law, ItemResponseLaw) else None

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the laws wanted."""
        return tuple(LAWS.name_of(spec) for spec in self.laws if not isinstance(spec, str))
