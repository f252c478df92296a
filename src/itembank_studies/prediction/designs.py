"""Items chosen at once for all test models, or one at a time for each by adaptive sessions (WILD 6.2, 6.4)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.costs import CostUnit
from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.splits import places_within
from itembank.selection.anchors import NO_SPREAD, choose_anchors, spread
from itembank.selection.criteria import criterion_of
from itembank.selection.greedy import Bounds, next_items
from itembank.selection.item_worth import DesignItems, goal_matrix
from itembank.selection.pools import ScenarioPool
from itembank.sessions.events import Told
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import Recorded, answer_from_record
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_studies.prediction.prediction_spec import ANCHORS, Assessor
from itembank_studies.prediction.prepared import STUDY_COST, Known, TestModels, part_of


@dataclass(frozen=True, slots=True)
class Pool:
    """The items that may be chosen, and those whose prediction matters."""

    items: IntArray  # (n_pool,): Columns of the interpolation tasks' items that are not held out
    targets: IntArray  # (n_targets,): Columns of the held-out items of all tasks
    target_weights: FloatArray  # (n_targets,): Every task weighs the same; they sum to one


def make_pool(
    known: Known,
    interpolation: IntArray,  # (n_interpolation,): Tasks by number
    held_out: IntArray,  # (n_targets,): Columns of all held-out items
) -> Pool:
    """Return the pool of some interpolation tasks."""
    is_open = np.isin(known.task, interpolation) & ~known.is_held_out
    counts = np.bincount(known.task[held_out], minlength=known.n_tasks)
    weights = 1.0 / counts[known.task[held_out]]
    return Pool(np.flatnonzero(is_open), held_out, weights / weights.sum())


def choose_static(
    assessor: Assessor, known: Known, pool: Pool, budgets: tuple[int, ...], *, rng: np.random.Generator
) -> Mapping[int, IntArray]:
    """Choose items for each budget; columns in the order of choice.

    Where a method ranks items one after the other, a smaller budget's are the first of a larger one's. Random and
    uniform choices take any item of the pool, the others only such as tell training models apart.

    Returns mapping of budget to (n,): Fewer than the budget where no more may be chosen.
    """
    if assessor.selector in ANCHORS:
        return {n: _anchors(assessor, known, pool, n, rng) for n in budgets}
    order = _order(assessor, known, pool, min(max(budgets), pool.items.size), rng)
    return {n: order[:n] for n in budgets}


def _order(assessor: Assessor, known: Known, pool: Pool, n: int, rng: np.random.Generator) -> IntArray:
    """Items in the order of choice, at most n."""
    if assessor.selector == "random":
        return rng.permutation(pool.items)[:n]
    if assessor.selector == "uniform":
        return uniform_order(pool.items, known.task[pool.items], rng)[:n]
    if assessor.selector == "min-cost":
        items = _informative(known, pool)
        return items[np.argsort(_cost(known)[items], kind="stable")][:n]
    return greedy_order(assessor, known, pool, n, rng)


def uniform_order(
    items: IntArray,  # (n,)
    task: IntArray,  # (n,)
    rng: np.random.Generator,
) -> IntArray:
    """Items by chance so that, however many are taken, the numbers of two tasks differ by at most one (WILD 6.4).

    Returns (n,): In rounds: each takes one item of every task that has some left, tasks in a new random order.
    """
    shuffled = rng.permutation(items.size)
    shuffled = shuffled[np.argsort(task[shuffled], kind="stable")]
    rounds = places_within(np.bincount(task))
    return items[shuffled[np.lexsort((rng.random(items.size), rounds))]]


def greedy_order(assessor: Assessor, known: Known, pool: Pool, n: int, rng: np.random.Generator) -> IntArray:
    """Items by a criterion, each knowing of those before it, at the centre of the training models' abilities.

    The centre is the median ability where there is one (WILD 6.4), else the prior's mean.
    """
    open_items = _informative(known, pool)
    calibration = part_of(known.calibrations[assessor.design_model], open_items)
    is_open = np.ones(open_items.size, dtype=bool)
    items = DesignItems.of(calibration, is_open, _cost(known)[open_items] if assessor.per_cost else None)
    prior, n = calibration.prior, min(n, open_items.size)
    chosen = next_items(
        items,
        criterion_of(assessor.selector, per_cost=assessor.per_cost),
        np.median(calibration.abilities, axis=0) if prior.n_dims == 1 else prior.mean,
        prior.covariance,
        n,
        target_weights=np.zeros(open_items.size),
        is_open=is_open,
        counts=np.zeros(1, dtype=np.int64),
        bounds=Bounds(np.zeros(1, dtype=np.int64), np.array([open_items.size])),
        n_left=n,
        rng=rng,
        goal=fixed_goal(assessor, known, pool),
    )
    return open_items[chosen]


def fixed_goal(assessor: Assessor, known: Known, pool: Pool) -> FloatArray | None:
    """V-optimality's matrix of the target items (WILD eq. 6), where it is the same at any ability.

    Taken once, so that choosing does not weigh the target items, often far more than there are to choose from.
    """
    if assessor.selector != "v-optimal":
        return None
    calibration = part_of(known.calibrations[assessor.design_model], pool.targets)
    items = DesignItems.of(calibration, np.zeros(pool.targets.size, dtype=bool))
    return goal_matrix(items, pool.target_weights)


def _anchors(assessor: Assessor, known: Known, pool: Pool, n: int, rng: np.random.Generator) -> IntArray:
    """Items nearest the centres of n clusters of the pool (WILD 6.4, after tinyBenchmarks 3.2)."""
    items = _informative(known, pool)
    everyone = ScenarioPool(np.arange(items.size), np.full(items.size, 1.0 / items.size), np.ones(items.size, bool))
    if assessor.selector == "anchor-binary":
        responses = known.responses[:, items]
        means = np.nanmean(responses, axis=0)
        features: FloatArray = np.where(np.isnan(responses), means, responses).T
    else:
        parameters = known.calibrations[assessor.design_model].parameters.take(items)
        features = np.column_stack([parameters.loadings, parameters.intercept])
        scale = spread(features, everyone)
        scale[:-1] = np.sqrt(np.sum(scale[:-1] ** 2))  # as `irt_features`
        features = features / np.where(scale > NO_SPREAD, scale, 1.0)
    return items[choose_anchors(everyone, features, min(n, items.size), rng, n_restarts=1).chosen]


def _informative(known: Known, pool: Pool) -> IntArray:
    return pool.items[~known.is_degenerate[pool.items]]


def _cost(known: Known) -> FloatArray:
    if known.cost is None:
        raise ParameterError("this selector needs the study to name a cost.")
    return known.cost


def choose_adaptively(
    assessor: Assessor, known: Known, new: TestModels, pool: Pool, budgets: tuple[int, ...]
) -> Mapping[int, IntArray]:
    """Run one session for each test model; a smaller budget's items are the first of a larger one's.

    An item that the model has no response to fails when it is asked, and counts for nothing.

    Returns mapping of budget to (n_test, n): Columns in the order of asking; -1 where a session ended before.
    """
    most = min(max(budgets), pool.items.size)
    spec = SessionSpec(
        criterion_of(assessor.selector, per_cost=assessor.per_cost),
        cost=CostUnit(STUDY_COST) if assessor.per_cost else None,
        budget=Budget(n_items=most),
        n_start=0,
        interval="model-based",
    )
    columns = pool.items
    # what the sessions of all test models share
    sessions = SessionPool.create(known.bank(assessor.design_model, columns), spec)
    sessions = replace(sessions, goal=fixed_goal(assessor, known, pool))
    n_trials = None if new.n_trials is None else new.n_trials[:, columns]
    recorded = Recorded(new.model_ids, np.arange(columns.size), new.responses[:, columns], n_trials, costs={})
    asked = np.full((len(new.model_ids), most), -1, dtype=np.int64)
    for row in range(len(new.model_ids)):
        places = answered_in_turn(AdaptiveSession(sessions), recorded, row, most)
        asked[row, : places.size] = columns[places]
    return {n: asked[:, :n] for n in budgets}


def answered_in_turn(session: AdaptiveSession, recorded: Recorded, row: int, most: int) -> IntArray:
    """Answer what a session asks as the model at `row` did, at most `most` times.

    Returns (n_answered,): Positions in the bank, in the order of asking.
    """
    answer_from_record(session, recorded, row, n_answers=most)
    answered = [event.item_id for event in session.history if isinstance(event, Told)]
    return np.array([session.pool.positions[item_id] for item_id in answered], dtype=np.int64)
