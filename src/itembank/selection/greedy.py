"""Choose items one after the other, each choice with the earlier ones in mind, within constraints."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.checks import check_whole, is_whole
from itembank.errors import ParameterError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest, rounded
from itembank.responses.targets import ScoreTargets
from itembank.selection.criteria import Criterion, VOptimality, uses_information
from itembank.selection.item_worth import DesignItems, criterion_scores, goal_matrix, updated_covariance
from itembank.selection.pools import not_excluded
from itembank.tables import plural


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many items of each scenario are to be asked."""

    at_least: IntArray  # (n_scenarios,)
    at_most: IntArray  # (n_scenarios,)


@dataclass(frozen=True, slots=True)
class Constraints:
    """Content constraints, exclusions and exposure control.

    Attributes
    ----------
    at_least : int or mapping of scenario to int
        Least number of items of every scenario with an item that may be chosen, or of those named.
    at_most : int, mapping of scenario to int, or None
        Largest number; None for any, 0 for a scenario that is never asked.
    excluded : tuple of item ids, or None
        Items that must not be asked. None: no item, but of a bank that was published with the items to run all others.
    randomesque : int
        Draw each item from this many best, so that not every model is asked the same (Kingsbury and Zara 1989).
    """

    at_least: int | Mapping[str, int] = 0
    at_most: int | Mapping[str, int] | None = None
    excluded: tuple[str, ...] | None = None
    randomesque: int = 1

    def __post_init__(self) -> None:
        _check_counts("at_least", self.at_least)
        if self.at_most is not None:
            _check_counts("at_most", self.at_most)
        check_whole("randomesque", self.randomesque, least=1)
        excluded: object = self.excluded
        if isinstance(excluded, str):
            raise ParameterError(f"excluded must be a tuple of item ids, got the text {excluded!r}.")
        object.__setattr__(self, "excluded", None if self.excluded is None else tuple(self.excluded))

    def bounds(self, targets: ScoreTargets, is_candidate: BoolArray, n_items: int | None) -> Bounds:
        """Turn the constraints into bounds for each scenario of a bank.

        Parameters
        ----------
        targets : ScoreTargets
        is_candidate : (n_items,)
            Items that may be chosen.
        n_items : int or None
            Items to be chosen in all; None if their number is not limited.

        Raises
        ------
        ParameterError
            For constraints that contradict each other, or a scenario that is not in the bank.
        """
        available = np.bincount(targets.scenario_index[is_candidate], minlength=targets.n_scenarios)
        at_least = _per_scenario("at_least", self.at_least, targets, np.zeros(targets.n_scenarios, dtype=np.int64))
        at_most = available
        if self.at_most is not None:
            at_most = _per_scenario("at_most", self.at_most, targets, available)
        if not isinstance(self.at_least, Mapping):  # nobody named the scenarios of which nothing may be chosen
            at_least = np.where(np.minimum(at_most, available) > 0, at_least, 0)
        problems = []
        for limit, text in ((at_most, "at_most"), (available, "the number of items to choose from")):
            bad = np.flatnonzero(at_least > limit)
            if bad.size:
                named = [f"{targets.scenarios[j]} ({at_least[j]} > {limit[j]})" for j in bad]
                problems.append(f"at_least is above {text} in {shown(named)}.")
        if n_items is not None and at_least.sum() > n_items:
            problems.append(
                f"at_least asks for {plural(int(at_least.sum()), 'item')} in all, and {n_items} are to be chosen."
            )
        if problems:
            raise ParameterError(
                "constraints must not contradict each other: " + " ".join(problems) + " Ask for less of each scenario, "
                "or for more items."
            )
        return Bounds(at_least, np.minimum(at_most, available))


def _per_scenario(name: str, given: int | Mapping[str, int], targets: ScoreTargets, otherwise: IntArray) -> IntArray:
    """One number for each scenario, (n_scenarios,)."""
    if not isinstance(given, Mapping):
        return np.full(targets.n_scenarios, given, dtype=np.int64)
    unknown = [scenario for scenario in given if scenario not in targets.scenarios]
    if unknown:
        raise ParameterError(
            f"{name} must name scenarios of the bank, among {shown(targets.scenarios)}, got {shown(unknown)}."
            f"{did_you_mean(unknown, targets.scenarios)}"
        )
    result = otherwise.copy()
    for scenario, number in given.items():
        result[targets.scenarios.index(scenario)] = number
    return result


def _check_counts(name: str, given: int | Mapping[str, int]) -> None:
    numbers = list(given.values()) if isinstance(given, Mapping) else [given]
    if not all(is_whole(number) and number >= 0 for number in numbers):
        raise ParameterError(f"{name} must be a whole number >= 0, or one for each scenario named, got {given!r}.")


def askable_items(bank: Bank, excluded: Collection[str]) -> BoolArray:
    """Items that count in the score, tell the past models apart and are not excluded, (n_items,)."""
    tells = (bank.targets.weights > 0.0) & ~bank.calibration.is_degenerate
    is_open: BoolArray = tells & not_excluded(bank, excluded)
    if not is_open.any():
        raise ParameterError(
            f"the candidate set must not be empty: {int(tells.sum())} of {bank.n_items} items count in the "
            f"score and tell models apart, and none of them is left after excluding {len(set(excluded))}. "
            "Exclude fewer; what is never asked is predicted from other scenarios, and the bank must have one."
        )
    return is_open


def check_goal(items: DesignItems, criterion: Criterion, weights: FloatArray) -> None:
    """Refuse 'v-optimal' when no item of the target, by its weights (n_items,), tells models apart.

    Every item would then have the value zero, and the first items of the bank would be asked.
    """
    if isinstance(criterion, VOptimality) and not np.any((weights > 0.0) & ~items.is_degenerate):
        raise ParameterError(
            f"criterion 'v-optimal' needs a target with an item that tells models apart, and all "
            f"{int(np.sum(weights > 0.0))} of this one were answered alike by every past model. Take another "
            "target or criterion ('d-optimal')."
        )


def next_items(
    items: DesignItems,
    criterion: Criterion,
    # (n_dims,): Estimate of ability, whose information weights serve for all n, and its posterior covariance
    theta: FloatArray,
    covariance: FloatArray,  # (n_dims, n_dims)
    n: int,
    *,
    target_weights: FloatArray,  # (n_items,): Weights of the items in the score that 'v-optimal' is to make certain
    is_open: BoolArray,  # (n_items,): Items that may be chosen
    counts: IntArray,  # (n_scenarios,): Items asked from each scenario so far
    bounds: Bounds,
    n_left: int,  # Items that may be asked in all from here on: scenarios that lack as many come first
    # Draw each item uniformly from this many best, so that not every model is asked the same (Kingsbury and Zara
    # 1989)
    randomesque: int = 1,
    rng: np.random.Generator,
    # (n_dims, n_dims): M of 'v-optimal', where the caller has it already (`goal_matrix`)
    goal: FloatArray | None = None,
    worth: FloatArray | None = None,  # (n_items,): Of each item as the first, where the caller has it already
) -> IntArray:
    """Choose the n best items, the covariance updated after each as if it had been answered (WILD eq. 14).

    Returns (n_chosen,): Positions in the order of choice; fewer than n when no more may be chosen.
    """
    if isinstance(criterion, VOptimality) and goal is None:
        goal = goal_matrix(items, target_weights)
    is_known = worth is not None and min(n, n_left) == 1  # then nothing else is needed
    weights = items.weights(theta) if uses_information(criterion) and not is_known else np.zeros(items.n_items)
    is_open, counts = is_open.copy(), counts.copy()
    chosen: list[int] = []
    n_steps = min(n, n_left)
    for step in range(n_steps):
        scores = worth if step == 0 else None
        if scores is None:
            scores = criterion_scores(
                items, criterion, theta, covariance, goal=goal, counts=counts, rng=rng, weights=weights
            )
        at_least = bounds.at_least
        if np.any(counts < at_least):  # a scenario cannot owe more items than it has open
            n_open = np.bincount(items.scenario_index[is_open], minlength=items.n_scenarios)
            at_least = np.minimum(at_least, counts + n_open)
        scenarios = allowed_scenarios(counts, at_least, bounds.at_most, n_left - step)
        scores = np.where(is_open & scenarios[items.scenario_index], scores, -np.inf)
        item = _draw_best(scores, items.order, randomesque, rng)
        if item is None:
            break
        chosen.append(item)
        is_open[item] = False
        counts[items.scenario_index[item]] += 1
        if step + 1 == n_steps:
            break
        # information depends on ability but not on the answer, so that the covariance is known before any answer comes
        covariance = updated_covariance(covariance, items.loadings[item], float(weights[item]))
    return np.array(chosen, dtype=np.int64)


def allowed_scenarios(
    counts: IntArray,  # (n_scenarios,)
    at_least: IntArray,  # (n_scenarios,)
    at_most: IntArray,  # (n_scenarios,)
    n_left: int,  # Items still to be chosen
) -> BoolArray:
    """Scenarios that the next item may come from, (n_scenarios,).

    A scenario must not be full. Once the items left are only as many as the scenarios still lack, the item must come
    from one of those.
    """
    lacking = np.maximum(at_least - counts, 0)
    has_room: BoolArray = counts < at_most
    # more may be lacking than is left, as where a session ends early: those that lack then still come first
    return has_room & (lacking > 0) if lacking.sum() >= n_left else has_room


def _draw_best(scores: FloatArray, order: IntArray, randomesque: int, rng: np.random.Generator) -> int | None:
    """Position of the best score, or of one drawn from the best few; None where all are minus infinity.

    Of equals the first of the order.
    """
    scores = scores[order]
    best = int(first_largest(scores))
    if scores[best] == -np.inf:
        return None
    if randomesque == 1:
        return int(order[best])
    # items that are not allowed have minus infinity and must not be drawn, even if fewer than `randomesque` are left
    n_best = min(randomesque, int(np.isfinite(scores).sum()))
    return int(rng.choice(order[np.argsort(-rounded(scores), kind="stable")[:n_best]]))
