"""Choices of an estimation: one frozen spec a method, the table of the methods, and the words for what scores mean."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from itembank.calibration.calibration_specs import ANCHOR_FACTOR
from itembank.checks import check_fraction, check_one_of, check_positive, check_whole
from itembank.errors import DataError, ParameterError, remedy
from itembank.methods import Method, MethodTable

Estimand: TypeAlias = Literal["run", "repeated"]
"""What a score may be of."""
DifferenceEstimand: TypeAlias = Literal["run", "repeated", "questions"]
"""What a difference may be of."""
RUN: Final = "run"
REPEATED: Final = "repeated"
QUESTIONS: Final = "questions"

ESTIMANDS_IN_WORDS: dict[str, str] = {
    RUN: "this run: one full run on exactly these questions",
    REPEATED: "repeated runs: the mean over repeated runs on these questions",
    QUESTIONS: "questions like these: what other questions of this kind would show",
}
"""One word means one thing in scores, comparisons and gates."""
FORMER_ESTIMAND = "expected"
"""Once a name of what is now REPEATED in scores and comparisons, and QUESTIONS in gates."""


def needs_repeats() -> DataError:
    """Return the error of a difference over repeated runs where nobody attempted anything repeatedly."""
    how = remedy("ReadingSpec(repeats='count')", "itembank import --repeats count")
    other = remedy("estimand='questions'", "--estimand questions")
    return DataError(
        "a difference over repeated runs needs to know how much answers vary from run to run: several attempts at an "
        "item by either model, each right or wrong; got one at each, or means of graded ones. Read repeated runs as "
        f"counts ({how}), or ask for questions like these ({other})."
    )


def check_estimand(value: object, allowed: Any, *, former: str = REPEATED) -> None:
    """Refuse another word than those of a literal; of the former one, say what it is called now."""
    if value == FORMER_ESTIMAND:
        raise ParameterError(f"estimand {value!r} is now called {former!r}: {ESTIMANDS_IN_WORDS[former]}.")
    check_one_of("estimand", value, get_args(allowed))


MEANING = {
    "calibrated": "Intervals are calibrated: their width comes from cross-validated errors on past models. "
    "Trust them less for a model unlike all of them.",
    "model-based": "Intervals come from the item model alone: they are too narrow if it is wrong.",
    "design": "Intervals come from how the items were drawn: they are valid for any model, even if the item model is "
    "wrong.",
}
"""What each kind of interval rests on."""


IntervalKind = Literal["calibrated", "model-based", "design"]
IntervalChoice = Literal["auto", "calibrated", "model-based", "design"]
"""What may be asked for: 'auto' is 'design' where the items were drawn by chance, else 'calibrated'."""
Towards = Literal["weights", "zero"]


@dataclass(frozen=True, slots=True)
class PointSpec:
    """What the specs of all methods are derived from that give an estimate by themselves."""

    learns_scores: ClassVar[bool] = False
    """Whether it learns each score from the answers themselves, whatever the score is: then also external ones."""

    @property
    def members(self) -> tuple["PointSpec", ...]:
        """Methods whose estimates it takes, as those of `Stacked`: itself."""
        return (self,)


@dataclass(frozen=True, slots=True)
class SampleMean(PointSpec):
    """Plain mean of the observed responses of a scenario, without weights and without an item model."""


@dataclass(frozen=True, slots=True)
class Weighted(PointSpec):
    """Mean of the observed responses by selection weights, or by the target's without one (tinyBenchmarks eq. 3.1)."""


@dataclass(frozen=True, slots=True)
class PIRT(PointSpec):
    """Observed responses as they are, the item model's probability for the rest (tinyBenchmarks eq. 4.3)."""


@dataclass(frozen=True, slots=True)
class GPIRT(PointSpec):
    """Mixture of the weighted mean and p-IRT, by how far each can be trusted (tinyBenchmarks eq. 4.4).

    Attributes
    ----------
    anchor_variance_factor : float or 'estimated'
        Variance of the plain mean of a random sample over that of the weighted mean of anchor points. tinyBenchmarks
        takes 4. 'estimated' measures the anchors' error on the past models instead, of whom it is somewhat
        optimistic since they helped to choose the anchors.
    unmeasured_bias : float
        The item model's bias where the bank could not measure it (too few models): 0.05, on the large side of
        what is measured, so that the observed responses get the greater say.
    """

    anchor_variance_factor: float | Literal["estimated"] = ANCHOR_FACTOR
    unmeasured_bias: float = 0.05

    def __post_init__(self) -> None:
        check_positive("anchor_variance_factor", self.anchor_variance_factor, word="estimated")
        check_fraction("unmeasured_bias", self.unmeasured_bias, whole=True)


@dataclass(frozen=True, slots=True)
class TaskMean(PointSpec):
    """The past models' mean score, whatever the new model did: the floor every method must beat."""

    learns_scores: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TaskMeanEB(PointSpec):
    """Observed responses of a scenario drawn towards the past models' mean score of it (WILD eq. 15).

    Attributes
    ----------
    strength : float
        How many responses the past models' mean counts for; WILD takes 5.
    """

    strength: float = 5.0

    def __post_init__(self) -> None:
        check_positive("strength", self.strength)


@dataclass(frozen=True, slots=True)
class Ridge(PointSpec):
    """Penalised linear regression of each score on the observed responses (WILD 6.4).

    Attributes
    ----------
    penalty : float or 'leave-one-out'
        Of the squared coefficients of the raw responses; 'leave-one-out' takes what predicts each past model
        best from the others, each score its own.
    towards : {'weights', 'zero'}
        Where the penalty draws the coefficients: to a free multiple of the selection's weights (ours), or to zero
        (WILD). With few past models the former is mostly more accurate, with hundreds it makes no difference.
    """

    learns_scores: ClassVar[bool] = True
    penalty: float | Literal["leave-one-out"] = "leave-one-out"
    towards: Towards = "weights"

    def __post_init__(self) -> None:
        check_positive("penalty", self.penalty, word="leave-one-out")
        check_one_of("towards", self.towards, get_args(Towards))


@dataclass(frozen=True, slots=True)
class Factor(PointSpec):
    """Mean of the score under a linear-Gaussian factor model of all items, given the observed responses.

    Attributes
    ----------
    n_factors : int or 'auto'
    discrepancy : float or 'auto'
        Standard deviation, on the scale of responses, by which new models may raise or lower all items of a
        scenario, and its items of like difficulty, beyond what the past models showed (`with_discrepancy`).
        'auto' measures it by cross-validation, and that of subscenarios too (`bank_factor_model`).
    """

    n_factors: int | Literal["auto"] = "auto"
    discrepancy: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_whole("n_factors", self.n_factors, least=1, word="auto")
        if self.discrepancy != "auto" and not 0.0 <= self.discrepancy <= 1.0:
            raise ParameterError(f"discrepancy must be 'auto' or a number in [0, 1], got {self.discrepancy!r}.")


DEFAULT_MEMBERS: tuple[PointSpec, ...] = (PIRT(), GPIRT(), Weighted(), Factor(), Factor(discrepancy=0.1))
"""Without ridge regression, which adds nothing to these on models like the past ones, and is far off on others."""


@dataclass(frozen=True, slots=True)
class Stacked:
    """Weighted mean of several methods' estimates, with the weights that served the past models best.

    The weights are non-negative, sum to one, and differ from score to score. They minimise the squared error of
    past models that each method had not seen (`folds`), and are drawn to those that would be best if the
    methods' errors had nothing to do with each other.

    Attributes
    ----------
    members : tuple of specs
    prior_models : float
        How many past models' worth of errors the weights' starting point counts for.
    """

    members: tuple[PointSpec, ...] = DEFAULT_MEMBERS
    prior_models: float = 20.0

    def __post_init__(self) -> None:
        if len(self.members) < 2 or not all(isinstance(member, PointSpec) for member in self.members):
            raise ParameterError("members must be two methods of estimation or more, none of them 'stacked' or 'auto'.")
        check_positive("prior_models", self.prior_models)


IN_STAGES = Stacked((PIRT(), Factor(), Factor(discrepancy=0.1)))
"""For items of later stages, chosen by the model's own answers: their means say little of the score, and least of all
for models beyond the past ones. So the members that take means are left out."""


@dataclass(frozen=True, slots=True)
class Auto:
    """The default: `Stacked`; in stages `IN_STAGES`; with too few past models for cross-validation gp-IRT."""


EstimationSpec: TypeAlias = PointSpec | Stacked | Auto

_POINT = "itembank.estimation.point_methods"

METHODS: MethodTable[EstimationSpec] = MethodTable(
    "estimation",
    {
        "mean": Method(SampleMean, f"{_POINT}:by_mean"),
        "weighted": Method(Weighted, f"{_POINT}:by_weighted_mean"),
        "p-irt": Method(PIRT, f"{_POINT}:by_p_irt"),
        "gp-irt": Method(GPIRT, f"{_POINT}:by_gp_irt"),
        "task-mean": Method(TaskMean, f"{_POINT}:by_task_mean"),
        "task-mean-eb": Method(TaskMeanEB, f"{_POINT}:by_task_mean_eb"),
        "ridge": Method(Ridge, f"{_POINT}:by_ridge"),
        "factor": Method(Factor, f"{_POINT}:by_factor_model"),
        "stacked": Stacked,
        "auto": Auto,
    },
    base=PointSpec,
    group="itembank.estimators",
    reserved=("paired",),
)
"""Kernels of `itembank.estimation.point_methods.Known` and the spec; 'stacked' and 'auto' make theirs of the others."""
