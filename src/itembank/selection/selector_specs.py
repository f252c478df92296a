"""Choices of a selection: one frozen spec a method, and the table of the methods.

Without numpy, so that a command's help can list them.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self, get_args

from itembank.checks import check_fraction, check_one_of, check_whole
from itembank.errors import ParameterError
from itembank.methods import Method, MethodTable
from itembank.selection.criteria import Criterion, criterion_of

if TYPE_CHECKING:
    from itembank.bank.costs import CostUnit
    from itembank.selection.greedy import Constraints

Allocation = Literal["equal", "proportional"]
BenchmarkAllocation = Literal["free", "equal"]
NOT_NAMED = {"scenario_weights": None}
"""Choices of V-optimal items that came later, as they were before: not named in files."""


@dataclass(frozen=True, slots=True)
class SelectionSpec:
    """What the specs of all methods are derived from; a method answers here where it is unlike most."""

    @property
    def allow_degenerate(self) -> bool:
        """Whether items may be chosen that every past model answered alike."""
        return False

    def may_skip_scenarios(self, *, is_short: bool) -> bool:  # noqa: ARG002  # others do
        """Whether a scenario may go without any item; `is_short` where there are fewer items than scenarios."""
        return False

    def for_each_scenario(self) -> Self:
        """Return the spec for as many items of every scenario, where that is not what it does anyway."""
        return self

    def aimed_at(self, scenarios: Collection[str]) -> Self:  # noqa: ARG002  # others do
        """Return the spec for the scores of these scenarios, where it serves a score and no other was chosen."""
        return self


@dataclass(frozen=True, slots=True)
class RandomSelectionSpec(SelectionSpec):
    """What the specs of methods are derived from that draw items by chance."""

    @property
    def allow_degenerate(self) -> bool:
        """A random sample is only fair if all items can come."""
        return True


@dataclass(frozen=True, slots=True)
class Random(RandomSelectionSpec):
    """Items drawn uniformly within each scenario."""


@dataclass(frozen=True, slots=True)
class Stratified(RandomSelectionSpec):
    """Items drawn within each scenario so that every subscenario is represented (tinyBenchmarks 3.1).

    Attributes
    ----------
    allocation : {'equal', 'proportional'}
        'equal': tinyBenchmarks's rule, counts of two subscenarios differ by at most one. For a micro target with
        subscenarios of very different size the weights that make up for it can cost more than plain random sampling
        (`benchmarks/tables/tables.md`). 'proportional': counts follow the subscenarios' share of the score; the same as
        'equal' for a macro target.
    """

    allocation: Allocation = "equal"

    def __post_init__(self) -> None:
        check_one_of("allocation", self.allocation, get_args(Allocation))


@dataclass(frozen=True, slots=True)
class Drawn(RandomSelectionSpec):
    """Items drawn at random from the whole benchmark, more often those of which the bank is unsure.

    Intervals from them hold for any model, by the draw alone; the bank makes them narrow.

    Attributes
    ----------
    flat : float
        Share of the probabilities that is in proportion to the weights in the score alone, so that no item is so
        unlikely that one surprising answer would count for very many.
    """

    flat: float = 0.2

    def __post_init__(self) -> None:
        check_fraction("flat", self.flat, whole=True)

    def may_skip_scenarios(self, *, is_short: bool) -> bool:
        """Skip some where there are fewer items than scenarios."""
        return is_short


@dataclass(frozen=True, slots=True)
class AnchorSpec(SelectionSpec):
    """What the specs of anchor points are derived from: clusters of items (tinyBenchmarks 3.2).

    Attributes
    ----------
    n_restarts : int
        Starts of k-means; the smallest inertia wins.
    standardise : bool
        By correctness: give every past model the same variance over the items of a scenario. By item parameters:
        let the loadings together and the intercept count the same. Else both are taken as they come.
    allow_degenerate : bool
        Let items that every past model answered the same way be anchors too, as tinyBenchmarks does. They tell
        these models not apart, but represent their like better than the nearest informative item does: worth it
        for the weighted mean alone where there are many of them, as with few or weak past models.
    """

    n_restarts: int = 5
    standardise: bool = True
    allow_degenerate: bool = False

    def __post_init__(self) -> None:
        check_whole("n_restarts", self.n_restarts, least=1)


@dataclass(frozen=True, slots=True)
class AnchorCorrectness(AnchorSpec):
    """Anchor points: clusters of items that the past models answered alike (`AnchorSpec`)."""


@dataclass(frozen=True, slots=True)
class AnchorIRT(AnchorSpec):
    """Anchor points: clusters of items with similar parameters (`AnchorSpec`)."""


@dataclass(frozen=True, slots=True)
class VOptimal(SelectionSpec):
    """Items whose responses leave the least uncertainty about the wanted scores, in a linear-Gaussian factor model.

    Attributes
    ----------
    target : str or mapping of str to float
        Score that is wanted: 'overall' or a scenario, or several, each with its importance: the weight of its
        variance. 'balanced' wants the overall score and every scenario's, the latter with the square of its weight
        in the overall score: on real leaderboards as good for the overall score, and a tenth better for scenarios.
    n_factors : int or 'auto'
        At most this many factors; 'auto' takes those that stand out from noise, up to 50 (`fit_factor_model`).
    allocation : {'free', 'equal'}
        'free': any item may come next, of whatever scenario.
        'equal': every scenario gets the same number, as with the other methods.
    minimum_per_scenario : int
        With 'free', least number of items of each scenario (all it has, where it has fewer). With 0 a scenario may
        go without.
    discrepancy : float or 'auto'
        Standard deviation, on the scale of responses, by which new models may raise or lower all items of a
        scenario, and its items of like difficulty, beyond what the past models showed (`with_discrepancy`).
        'auto' measures it by cross-validation, and that of subscenarios too (`bank_factor_model`).
    scenario_weights : mapping of str to float, or None
        Weights of scenario scores in the overall score that is wanted, in place of the bank's; 0 for those not named.
        For a score that the bank's overall one is not, as a leaderboard's own of a few scenarios.
    """

    target: str | Mapping[str, float] = "balanced"
    n_factors: int | Literal["auto"] = "auto"
    allocation: BenchmarkAllocation = "free"
    minimum_per_scenario: int = 1
    discrepancy: float | Literal["auto"] = "auto"
    scenario_weights: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        check_whole("n_factors", self.n_factors, least=1, word="auto")
        weights = [1.0] if self.scenario_weights is None else list(self.scenario_weights.values())
        if not all(map(math.isfinite, weights)) or not any(weights):
            raise ParameterError(f"scenario_weights must be finite, not all zero, got {self.scenario_weights!r}.")
        if self.discrepancy != "auto" and not 0.0 <= self.discrepancy <= 1.0:
            raise ParameterError(f"discrepancy must be 'auto' or a number in [0, 1], got {self.discrepancy!r}.")
        check_one_of("allocation", self.allocation, get_args(BenchmarkAllocation))
        check_whole("minimum_per_scenario", self.minimum_per_scenario, least=0)
        _check_importance(self.target)

    def may_skip_scenarios(self, *, is_short: bool) -> bool:
        """Skip some when there are fewer items than one for each scenario; a minimum above one is kept."""
        return is_short and self.allocation == "free" and self.minimum_per_scenario <= 1

    def for_each_scenario(self) -> Self:
        """Return the spec with equal allocation."""
        return replace(self, allocation="equal")

    def aimed_at(self, scenarios: Collection[str]) -> Self:
        """Want these scores alike, and owe no scenario an item."""
        is_usual = self.target == "balanced" and self.scenario_weights is None
        spec = replace(self, target=dict.fromkeys(scenarios, 1.0)) if is_usual else self
        return replace(spec, minimum_per_scenario=0) if spec.minimum_per_scenario == 1 else spec


@dataclass(frozen=True, slots=True)
class OptimalDesign(SelectionSpec):
    """Items chosen one after the other by a criterion of optimal design, at the mean ability (WILD 6.2, "Selection").

    Unlike `VOptimal` it trusts the item model, in which items that nearly all models get right or wrong tell little.

    Attributes
    ----------
    criterion : str
        A short name of `itembank.selection.criteria`: 'v-optimal', 'd-optimal', 'a-optimal', 'fisher', 'random',
        'uniform', 'min-cost'.
    target : str or mapping of str to float
        For 'v-optimal', the score that is wanted: 'overall' or a scenario, or several, each with its importance.
    per_cost : bool
        Divide what an item tells by its expected cost (WILD 5.3, "-tau").
    cost, input_weight : str, float
        The unit (`CostUnit`), for `per_cost` and 'min-cost'.
    at_least : int or mapping of scenario to int
        Least number of items of every scenario with an item that may be chosen, or of those named; 0 lets scenarios go
        without.
    at_most : int, mapping of scenario to int, or None
    randomesque : int
        Draw each item from this many best.
    """

    criterion: str = "v-optimal"
    target: str | Mapping[str, float] = "overall"
    per_cost: bool = False
    cost: str = "tokens"
    input_weight: float = 0.5
    at_least: int | Mapping[str, int] = 1
    at_most: int | Mapping[str, int] | None = None
    randomesque: int = 1

    def __post_init__(self) -> None:
        if self.criterion == "drawn":
            raise ParameterError("criterion 'drawn' is of sessions; to draw items at once, take method 'drawn'.")
        _ = self.full_criterion, self.constraints, self.cost_unit  # each checks its own
        _check_importance(self.target)

    def may_skip_scenarios(self, *, is_short: bool) -> bool:  # noqa: ARG002
        """Return True: a design says itself how many items of each scenario it wants, none at all included."""
        return True

    def aimed_at(self, scenarios: Collection[str]) -> Self:
        """Want these scores alike, and owe no scenario an item."""
        spec = replace(self, target=dict.fromkeys(scenarios, 1.0)) if self.target == "overall" else self
        return replace(spec, at_least=0) if spec.at_least == 1 else spec

    @property
    def full_criterion(self) -> Criterion:
        """The criterion with its choices."""
        return criterion_of(self.criterion, per_cost=self.per_cost)

    @property
    def constraints(self) -> "Constraints":
        """What the chosen items must keep to."""
        from itembank.selection.greedy import Constraints  # noqa: PLC0415 (needs numpy)

        return Constraints(self.at_least, self.at_most, randomesque=self.randomesque)

    @property
    def cost_unit(self) -> "CostUnit":
        """How the cost of an item is counted."""
        from itembank.bank.costs import CostUnit  # noqa: PLC0415 (needs numpy)

        return CostUnit(self.cost, self.input_weight)


def _check_importance(target: str | Mapping[str, float]) -> None:
    """Check how much each of several wanted scores counts."""
    values = [1.0] if isinstance(target, str) else list(target.values())
    if not all(math.isfinite(value) and value >= 0.0 for value in values) or sum(values) <= 0.0:
        raise ParameterError(f"importance of the targets must be finite numbers >= 0, not all zero, got {target!r}.")


DRAWN, VOPTIMAL = "drawn", "v-optimal"
"""Names of the method whose intervals rest on the draw, and of the one whose intervals rest on past models."""

METHODS: MethodTable[SelectionSpec] = MethodTable(
    "selection",
    {
        DRAWN: Method(Drawn, "itembank.selection.drawn:choose_drawn"),
        "random": Method(Random, "itembank.selection.random_items:at_random"),
        "stratified": Method(Stratified, "itembank.selection.random_items:from_strata"),
        "anchor-correctness": Method(AnchorCorrectness, "itembank.selection.anchors:anchors_on_correctness"),
        "anchor-irt": Method(AnchorIRT, "itembank.selection.anchors:anchors_on_parameters"),
        "v-optimal": Method(VOptimal, "itembank.selection.v_optimal:choose_v_optimal"),
        "optimal-design": Method(OptimalDesign, "itembank.selection.optimal_design:choose_optimal_design"),
    },
    base=SelectionSpec,
    group="itembank.selectors",
    reserved=("auto",),
)
"""Kernels of `itembank.selection.pools.ItemPools` and the spec."""
