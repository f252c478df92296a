"""Criteria for the next item: one frozen spec for each criterion, and the table of their names.

In all of them larger is better. With the logit ``a . theta + c`` of an item, the Fisher information w in that logit
(asymptotes included) and the posterior covariance C of ability:

=========== ====================================== ==========================================================
fisher      ``w |a|^2``                            trace of the item's information (Lord 1980; WILD eq. 3 and 3.2)
d-optimal   ``log(1 + w a'Ca)``                    fall of ``log det C`` (Segall 1996)
a-optimal   ``w |Ca|^2 / (1 + w a'Ca)``            fall of ``tr C``, the sum of the abilities' variances
v-optimal   ``w (Ca)'M(Ca) / (1 + w a'Ca)``        fall of ``tr MC``: the target items' uncertainty (WILD eq. 6)
random                                             uniform over items
drawn                                              at random, high where the bank is unsure of the answer
uniform                                            the scenario asked least so far, items of it by chance (WILD 6.4)
min-cost    ``- expected cost``                    the cheapest item (WILD 6.4)
=========== ====================================== ==========================================================
"""

import dataclasses
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from itembank.errors import ParameterError, shown
from itembank.methods import MethodTable


@dataclass(frozen=True, slots=True)
class Fisher:
    """Fisher information; of several abilities the trace of its matrix. It ignores what the answers so far say.

    Attributes
    ----------
    per_cost : bool
        Divide by the item's expected cost, as with every criterion of information (WILD 5.3, "-tau").
    """

    per_cost: bool = False


@dataclass(frozen=True, slots=True)
class DOptimality:
    """Smallest volume of the region in which ability lies."""

    per_cost: bool = False


@dataclass(frozen=True, slots=True)
class AOptimality:
    """Smallest sum of the variances of the abilities; depends on how ability is rotated and scaled."""

    per_cost: bool = False


@dataclass(frozen=True, slots=True)
class VOptimality:
    """Smallest variance of the target items' logits (WILD eq. 6): the score that is wanted steers the choice."""

    per_cost: bool = False


@dataclass(frozen=True, slots=True)
class RandomItem:
    """Any item, with equal probability."""


@dataclass(frozen=True, slots=True)
class UniformOverScenarios:
    """Any item of a scenario with the fewest items so far."""


@dataclass(frozen=True, slots=True)
class MinimumCost:
    """The item of least expected cost."""


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item drawn with a known probability, high where the bank is unsure: estimates hold whatever the model is.

    Sessions alone take it; `itembank.estimation.drawn_one_by_one` has the formulas.
    """


InformationCriterion: TypeAlias = Fisher | DOptimality | AOptimality | VOptimality
Criterion: TypeAlias = InformationCriterion | RandomItem | UniformOverScenarios | MinimumCost | DrawnItem

CRITERIA: MethodTable[Criterion] = MethodTable(
    "criterion",
    {
        "fisher": Fisher,
        "d-optimal": DOptimality,
        "a-optimal": AOptimality,
        "v-optimal": VOptimality,
        "random": RandomItem,
        "uniform": UniformOverScenarios,
        "min-cost": MinimumCost,
        "drawn": DrawnItem,
    },
)


INFORMATION = tuple(name for name in CRITERIA.kinds if name not in {"random", "uniform", "min-cost", "drawn"})
"""Names of the criteria that measure the information of an item, and so can be divided by its cost."""


def criterion_of(criterion: Criterion | str, *, per_cost: bool | None = None) -> Criterion:
    """Return a criterion by name or as given, divided by cost or not."""
    spec = CRITERIA.resolve(criterion)
    if per_cost is not None:
        if uses_information(spec):
            spec = dataclasses.replace(spec, per_cost=per_cost)
        elif per_cost:
            raise ParameterError(
                f"only information can be divided by cost, got criterion {CRITERIA.name_of(spec)!r}. Take one of "
                f"{shown(INFORMATION, limit=len(INFORMATION))}, or leave the cost out."
            )
    return spec


def uses_information(criterion: Criterion) -> TypeGuard[InformationCriterion]:
    """Whether the criterion measures the information of an item."""
    return not isinstance(criterion, RandomItem | UniformOverScenarios | MinimumCost | DrawnItem)


def uses_chance(criterion: Criterion) -> bool:
    """Whether the criterion draws at random."""
    return isinstance(criterion, RandomItem | UniformOverScenarios | DrawnItem)


def uses_cost(criterion: Criterion) -> bool:
    """Whether the criterion needs the items' expected cost."""
    return isinstance(criterion, MinimumCost) or bool(getattr(criterion, "per_cost", False))
