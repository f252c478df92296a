"""Why a session stops asking: functions of its present state alone.

Reasons are short and stable: 'ability', 'half-width of overall', 'decision: above 0.5', 'decision: below 0.5',
'decision: better than MODEL', 'decision: not better than MODEL', 'budget: 50 items', 'budget: 2000 tokens',
'exhausted'.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtr

from itembank.estimation.estimates import ScoreEstimates
from itembank.numerics.arrays import FloatArray
from itembank.responses.score_names import OVERALL
from itembank.sessions.choosing import affordable, left_of_budget, own_costs
from itembank.sessions.estimates import SessionEstimate
from itembank.sessions.events import SessionState
from itembank.sessions.pool import SessionPool
from itembank.sessions.session_spec import CUSTOM

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


def conclusion(pool: SessionPool, reason: str, estimate: SessionEstimate, *, is_precise: bool) -> str:
    """Say in a sentence why a session stopped, and whether the precision that was asked for was reached."""
    kind, _, rest = reason.partition(": ")
    if is_precise and kind == "decision":
        return f"Stopped: it is settled that the score is {rest}."
    how = f"Stopped by the budget of {rest}" if kind == "budget" else "Stopped"
    how += ", since no item is left" if reason == EXHAUSTED else ""
    goals = list(_goals(pool, estimate))
    if is_precise:
        met = (f"the goal of {said} was reached, {now}" for name, said, now in goals if name == kind.split()[0])
        return f"{how}: {', '.join(met)}."
    if not goals:
        target = pool.spec.target if isinstance(pool.spec.target, str) else CUSTOM
        return f"{how}: no precision was asked for, the half-width of {target} is {_half_width(estimate, target):.2g}."
    return f"{how}: {'; '.join(f'the goal of {said} was not reached, {now}' for _, said, now in goals)}."


def _goals(pool: SessionPool, estimate: SessionEstimate) -> Iterator[tuple[str, str, str]]:
    """Kind of each rule of precision, what it asks for, and what there is."""
    rules = pool.spec.stopping
    widths = rules.half_widths
    if widths:
        is_plain = list(widths) == [OVERALL]
        said = " and ".join(f"±{width:g}" if is_plain else f"±{width:g} for {name}" for name, width in widths.items())
        now = " and ".join(f"{_half_width(estimate, name):.2g}" for name in widths)
        yield "half-width", said, f"the half-width is {now}" if len(widths) == 1 else f"the half-widths are {now}"
    if rules.ability_error is not None:
        largest = float(estimate.standard_errors.max())
        yield "ability", f"a standard error of ability of {rules.ability_error:g}", f"the largest is {largest:.2g}"
    if rules.decision is not None:
        decision = rules.decision
        column = estimate.scores.targets.index(decision.target)
        value, error = (float(one[0, column]) for one in (estimate.scores.value, estimate.scores.standard_error))
        above = probability_above(value, error, pool.threshold)
        against = f"the score of {decision.model}" if decision.model is not None else _number(pool.threshold)
        asked = f"{100 * decision.confidence:g} % certainty whether {decision.target} is above {against}"
        yield "decision", asked, f"it is {'above' if above > 0.5 else 'below'} with {100 * max(above, 1 - above):.0f} %"


def _half_width(estimate: SessionEstimate, target: str) -> float:
    scores = estimate.scores
    column = scores.targets.index(target)
    return 0.5 * float(scores.high[0, column] - scores.low[0, column])


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
