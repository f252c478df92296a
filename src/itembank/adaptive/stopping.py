"""Why a session stops asking: functions of its present state alone.

Reasons are short and stable: 'ability', 'half-width of overall', 'decision: above 0.5', 'decision: below 0.5',
'decision: better than MODEL', 'decision: not better than MODEL', 'budget: 50 items', 'budget: 2000 tokens',
'exhausted'.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from itembank.adaptive.estimates import SessionEstimate
from itembank.adaptive.pool import SessionPool
from itembank.adaptive.spending import affordable, left_of_budget, own_costs
from itembank.adaptive.state import SessionState
from itembank.estimation.estimates import ScoreEstimates
from itembank.numerics.arrays import FloatArray

EXHAUSTED = "exhausted"


def rule_that_holds(
    pool: SessionPool, state: SessionState, covariance: FloatArray, estimate: Callable[[], SessionEstimate]
) -> str | None:
    """Return which rule of precision holds, None when none does; none before the first answer or before `min_items`.

    It ends the session unless a scenario `lacks_items`.
    """
    rules = pool.spec.stopping
    if not rules.has_rules or len(state.answers) < max(1, rules.min_items):
        return None
    if rules.ability_error is not None and np.all(np.diagonal(covariance) <= rules.ability_error**2):
        return "ability"
    if not rules.needs_scores:
        return None
    scores = estimate().scores
    return _half_width_reason(pool, scores) or _decision_reason(pool, scores)


def limit_reason(pool: SessionPool, state: SessionState) -> str | None:
    """Return which limit keeps another item from being asked, None when none does."""
    has_room = state.counts < pool.bounds.at_most
    if not np.any((state.n_open > 0) & has_room):
        return EXHAUSTED
    budget = pool.spec.budget
    if budget.n_items is not None and state.n_used >= budget.n_items:
        return f"budget: {budget.n_items} items"
    if not budget.costs:
        return None
    is_open = state.is_open if has_room.all() else state.is_open & has_room[pool.items.scenario_index]
    costs = own_costs(pool, state)
    left = left_of_budget(pool, state, costs)
    if affordable(pool, is_open, left, costs).any():
        return None
    tight = [name for name, amount in left.items() if not affordable(pool, is_open, {name: amount}, costs).any()]
    return "budget: " + ", ".join(f"{_number(budget.costs[name])} {name}" for name in tight or left)


def lacks_items(pool: SessionPool, state: SessionState) -> bool:
    """Whether a scenario lacks items that it must have and can still get."""
    lacking = (state.counts < pool.bounds.at_least) & (state.n_open > 0)
    budget = pool.spec.budget
    if not lacking.any() or (budget.n_items is not None and state.n_used >= budget.n_items):
        return False
    if not budget.costs:
        return True
    costs = own_costs(pool, state)
    within = affordable(pool, state.is_open, left_of_budget(pool, state, costs), costs)
    return bool(np.any(within & lacking[pool.items.scenario_index]))


def _half_width_reason(pool: SessionPool, scores: ScoreEstimates) -> str | None:
    widths = pool.spec.stopping.half_widths
    for name, width in widths.items():
        column = scores.targets.index(name)
        if not 0.5 * (scores.high[0, column] - scores.low[0, column]) <= width:
            return None
    return f"half-width of {', '.join(widths)}" if widths else None


def _decision_reason(pool: SessionPool, scores: ScoreEstimates) -> str | None:
    decision = pool.spec.stopping.decision
    if decision is None:
        return None
    column = scores.targets.index(decision.target)
    above = probability_above(float(scores.value[0, column]), float(scores.standard_error[0, column]), pool.threshold)
    if max(above, 1.0 - above) < decision.confidence:
        return None
    if decision.model is not None:
        return f"decision: {'better' if above > 0.5 else 'not better'} than {decision.model}"
    return f"decision: {'above' if above > 0.5 else 'below'} {_number(pool.threshold)}"


def probability_above(value: float, standard_error: float, threshold: float) -> float:
    """Probability that a score lies above a threshold, by its normal posterior; a score that is known settles it."""
    if standard_error <= 0.0:
        return float(value > threshold)
    return float(ndtr((value - threshold) / standard_error))


def _number(value: float) -> str:
    """Write a number without needless digits: 2000, 2.5."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
