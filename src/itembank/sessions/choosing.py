"""Which items a session asks next, what is left of its budget, and why it stops asking.

Reasons are short and stable: 'ability', 'half-width of overall', 'decision: above 0.5', 'decision: below 0.5',
'decision: better than MODEL', 'decision: not better than MODEL', 'budget: 50 items', 'budget: 2000 tokens',
'exhausted'.
"""

import functools
from collections.abc import Callable, Iterator

import numpy as np

from itembank.estimation.drawn_one_by_one import FEWEST, DrawnDesign, certainty_at_any_stop, draw
from itembank.estimation.estimates import ScoreEstimates
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import normal_probability
from itembank.responses.score_names import OVERALL
from itembank.selection.criteria import uses_chance
from itembank.selection.greedy import next_items
from itembank.selection.item_worth import updated_covariance
from itembank.sessions.asking import SessionState
from itembank.sessions.estimates import SessionEstimate
from itembank.sessions.events import Failed
from itembank.sessions.limits import Decision
from itembank.sessions.pool import SessionPool
from itembank.tables import plural, points_of

_NEVER_USED = np.random.default_rng(0)
EXHAUSTED = "exhausted"


def choose(
    pool: SessionPool,
    state: SessionState,
    theta: FloatArray,  # (n_dims,): Ability from what is answered
    covariance: FloatArray,  # (n_dims, n_dims)
    *,
    n: int,
    is_precise: bool = False,  # Whether nothing is wanted any more but items of scenarios that lack some
    worth: FloatArray | None = None,  # (n_items,): Of each item as the first, where it was found already
) -> IntArray:
    """Choose the n best items, fewer when no more may be asked: positions in the order of choice.

    Pending items count as answered. With a budget of costs, or among the first items, which are the same for every
    model, items are chosen one by one, since what may follow depends on each.
    """
    budget = pool.spec.budget
    if pool.drawn is not None:
        return _drawn(pool, pool.drawn, state, n)
    n_left = int(state.n_open.sum()) if budget.n_items is None else budget.n_items - state.n_used
    if is_precise:
        n_left = min(n_left, int(np.maximum(pool.bounds.at_least - state.counts, 0).sum()))
    # where nothing is drawn, one generator for all: to make one takes as long as to choose
    is_drawn = uses_chance(pool.criterion) or pool.spec.constraints.randomesque > 1
    best_of = functools.partial(
        next_items,
        pool.items,
        pool.criterion,
        target_weights=pool.target_weights,
        bounds=pool.bounds,
        randomesque=pool.spec.constraints.randomesque,
        rng=np.random.default_rng([pool.spec.seed, state.n_asks]) if is_drawn else _NEVER_USED,
        goal=pool.goal,
    )
    if state.pending:
        covariance, worth = with_pending(pool, state, theta, covariance), None
    n_lead = int(pool.is_lead.sum())
    if not budget.costs and state.n_used >= n_lead:
        return best_of(theta, covariance, n, is_open=state.is_open, counts=state.counts, n_left=n_left, worth=worth)
    is_open, counts, purse = state.is_open.copy(), state.counts.copy(), pool.prices.purse(state)
    scenario_index = pool.items.scenario_index
    chosen: list[int] = []
    for step in range(min(n, n_left)):
        lacking = np.maximum(pool.bounds.at_least - counts, 0)
        may, is_enough = purse.with_reserve(is_open, scenario_index, lacking)
        # of what cannot be had in full, scenarios that lack items get what is left
        n_more = n_left - step if is_enough else 1
        leading = may & pool.is_lead if state.n_used + step < n_lead else may
        best = best_of(theta, covariance, 1, is_open=leading, counts=counts, n_left=n_more, worth=worth)
        if not best.size:  # none of the first items may come next
            best = best_of(theta, covariance, 1, is_open=may, counts=counts, n_left=n_more, worth=worth)
        if not best.size:
            break
        worth = None
        item = int(best[0])
        chosen.append(item)
        is_open[item] = False
        counts[scenario_index[item]] += 1
        purse = purse.after(item)
        weight = float(_weights(pool, best, theta)[0])
        covariance = updated_covariance(covariance, pool.items.loadings[item], weight)
    return np.array(chosen, dtype=np.int64)


def _drawn(pool: SessionPool, design: DrawnDesign, state: SessionState, n: int) -> IntArray:
    """Draw n items, fewer when no more may be asked: each by what is known now, and of those that are left then.

    Items that failed and may be asked again come first, as no new draws, but after a failure only if no other may be
    drawn: so a model that fails a few items in a row does not look like a program that fails all.

    Nothing is drawn that a budget of costs would have to refuse: whether a session ends must not hang on which item
    would have come.
    """
    budget, is_open, purse, repeats = pool.spec.budget, state.is_open.copy(), pool.prices.purse(state), state.to_repeat
    n_left = int(is_open.sum())
    if budget.n_items is not None:
        n_left = min(n_left, budget.n_items - state.n_used)
    n_new = n_left - len(repeats)  # so that those that failed are asked in the end
    waits = bool(state.events) and isinstance(state.events[-1], Failed)
    _, variances = design.predicted(state.answered, state.responses[0])
    rng = np.random.default_rng([pool.spec.seed, state.n_asks])
    chosen: list[int] = []
    while len(chosen) < min(n, n_left) and purse.can_pay(is_open, whichever=True):
        if repeats and (n_new <= 0 or not waits):
            item = repeats.pop(0)
        else:
            is_new = is_open.copy()
            is_new[repeats] = False
            item, n_new = draw(design.chances(is_new, variances), design.order, rng), n_new - 1
        chosen.append(item)
        is_open[item] = False
        purse = purse.after(item)
    return np.array(chosen, dtype=np.int64)


def with_pending(pool: SessionPool, state: SessionState, theta: FloatArray, covariance: FloatArray) -> FloatArray:
    """Covariance of ability as if the pending items had been answered, (n_dims, n_dims)."""
    positions = np.array(sorted(state.pending), dtype=np.int64)
    loadings = pool.items.loadings[positions]
    weights = _weights(pool, positions, theta)
    return np.linalg.inv(np.linalg.inv(covariance) + (loadings.T * weights) @ loadings)


def _weights(pool: SessionPool, positions: IntArray, theta: FloatArray) -> FloatArray:
    """Fisher information in the logit of some items at theta, (n_positions,)."""
    items = pool.items
    model = items.model.take(positions)
    return model.information_weights(items.loadings[positions] @ theta + items.intercept[positions])


def rule_that_holds(
    pool: SessionPool, state: SessionState, covariance: FloatArray, estimate: Callable[[], SessionEstimate]
) -> str | None:
    """Return which rule of precision holds, None when none does; none before the first answer or before `min_items`.

    It ends the session unless a scenario `lacks_items`.
    """
    rules = pool.spec.stopping
    n_counted, least = len(state.answers), max(1, rules.min_items)
    if pool.drawn is not None:
        n_counted, least = len(state.counted_draws), max(FEWEST, rules.min_items)
    if not rules.has_rules or n_counted < least:
        return None
    if rules.ability_error is not None and np.all(np.diagonal(covariance) <= rules.ability_error**2):
        return "ability"
    if not rules.needs_scores:
        return None
    scores, widths = estimate().scores, rules.half_widths
    columns = [scores.targets.index(name) for name in widths]
    half = 0.5 * (scores.high - scores.low)[0, columns]
    if widths and np.all(half <= list(widths.values())):
        return f"half-width of {', '.join(widths)}"
    return None if rules.decision is None else _decision_reason(pool, scores, rules.decision)


def limit_reason(pool: SessionPool, state: SessionState) -> str | None:
    """Return which limit keeps another item from being asked, None when none does."""
    has_room = state.counts < pool.bounds.at_most
    if not np.any((state.n_open > 0) & has_room):
        return EXHAUSTED
    budget = pool.spec.budget
    if budget.n_items is not None and state.n_used >= budget.n_items:
        return f"budget: {plural(budget.n_items, 'item')}"
    if not budget.costs:
        return None
    is_open = state.is_open if has_room.all() else state.is_open & has_room[pool.items.scenario_index]
    purse, is_drawn = pool.prices.purse(state), pool.drawn is not None
    if purse.can_pay(is_open, whichever=is_drawn):
        return None
    alone = {name: purse._replace(left={name: amount}) for name, amount in purse.left.items()}
    tight = [name for name, one in alone.items() if not one.can_pay(is_open, whichever=is_drawn)]
    return "budget: " + ", ".join(f"{_number(budget.costs[name])} {name}" for name in tight or alone)


def conclusion(pool: SessionPool, reason: str, estimate: SessionEstimate, *, is_precise: bool) -> str:
    """Say in a sentence why a session stopped, and whether the precision that was asked for was reached."""
    kind, _, rest = reason.partition(": ")
    if is_precise and kind == "decision":
        return f"Stopped: it is settled that the score is {rest}."
    how = f"Stopped by the budget of {rest}" if kind == "budget" else "Stopped"
    how += ", since no item is left" if reason == EXHAUSTED else ""
    if pool.drawn is not None and rest.rpartition(" ")[2] in pool.spec.budget.costs:
        how += ", which the dearest item left might exceed"
    goals = list(_goals(pool, estimate))
    if is_precise:
        met = (f"the goal of {said} was reached, {now}" for name, said, now in goals if name == kind.split()[0])
        return f"{how}: {', '.join(met)}."
    if not goals:
        target = pool.spec.wanted
        return f"{how}: no precision was asked for, the half-width of {target} is {_half_width(estimate, target)}."
    return f"{how}: {'; '.join(f'the goal of {said} was not reached, {now}' for _, said, now in goals)}."


def _goals(pool: SessionPool, estimate: SessionEstimate) -> Iterator[tuple[str, str, str]]:
    """Kind of each rule of precision, what it asks for, and what there is."""
    rules = pool.spec.stopping
    widths = rules.half_widths
    if widths:
        is_plain = list(widths) == [OVERALL]
        wanted = {name: f"±{width:g} ({100.0 * width:g} points)" for name, width in widths.items()}
        said = " and ".join(text if is_plain else f"{text} for {name}" for name, text in wanted.items())
        now = " and ".join(_half_width(estimate, name) for name in widths)
        yield "half-width", said, f"the half-width is {now}" if len(widths) == 1 else f"the half-widths are {now}"
    if rules.ability_error is not None:
        largest = float(estimate.standard_errors.max())
        yield "ability", f"a standard error of ability of {rules.ability_error:g}", f"the largest is {largest:.2g}"
    if rules.decision is not None:
        decision = rules.decision
        above = _above(pool, estimate.scores, decision)
        against = f"the score of {decision.model}" if decision.model is not None else _number(pool.threshold)
        asked = f"{100 * decision.confidence:g} % certainty whether {decision.target} is above {against}"
        yield "decision", asked, f"it is {'above' if above > 0.5 else 'below'} with {100 * max(above, 1 - above):.0f} %"


def _half_width(estimate: SessionEstimate, target: str) -> str:
    scores = estimate.scores
    column = scores.targets.index(target)
    return f"{points_of(0.5 * float(scores.high[0, column] - scores.low[0, column]))} points"


def lacks_items(pool: SessionPool, state: SessionState) -> bool:
    """Whether a scenario lacks items that it must have and can still get."""
    lacking = (state.counts < pool.bounds.at_least) & (state.n_open > 0)
    budget = pool.spec.budget
    if not lacking.any() or (budget.n_items is not None and state.n_used >= budget.n_items):
        return False
    if not budget.costs:
        return True
    within = pool.prices.purse(state).affordable(state.is_open)
    return bool(np.any(within & lacking[pool.items.scenario_index]))


def _decision_reason(pool: SessionPool, scores: ScoreEstimates, decision: Decision) -> str | None:
    above = _above(pool, scores, decision)
    if max(above, 1.0 - above) < decision.confidence:
        return None
    if decision.model is not None:
        return f"decision: {'better' if above > 0.5 else 'not better'} than {decision.model}"
    return f"decision: {'above' if above > 0.5 else 'below'} {_number(pool.threshold)}"


def _above(pool: SessionPool, scores: ScoreEstimates, decision: Decision) -> float:
    """How sure it is that the score is above the threshold; of drawn items, however often that is looked at."""
    column = scores.targets.index(decision.target)
    value, error = float(scores.value[0, column]), float(scores.standard_error[0, column])
    above = probability_above(value, error, pool.threshold)
    if pool.drawn is None or error <= 0.0:
        return above
    certain = certainty_at_any_stop((value - pool.threshold) / error, float(pool.drawn.first[column]) / error**2)
    return certain if above > 0.5 else 1.0 - certain


def probability_above(value: float, standard_error: float, threshold: float) -> float:
    """Probability that a score lies above a threshold, by its normal posterior; a score that is known settles it."""
    if standard_error <= 0.0:
        return float(value > threshold)
    return normal_probability((value - threshold) / standard_error)


def _number(value: float) -> str:
    """Write a number without needless digits: 2000, 2.5."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
