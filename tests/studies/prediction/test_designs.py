import numpy as np
import pytest

from itembank.selection.criteria import criterion_of
from itembank.selection.greedy import Constraints
from itembank.sessions.limits import Budget
from itembank_studies.prediction.prediction_spec import ANCHORS, CRITERIA, UNINFORMED, Assessor
from itembank_studies.prediction.prepared import STUDY_COST, find_tasks, make_partition, prepare
from itembank_studies.prediction.study import choose_adaptively, choose_static, make_pool, uniform_order
from tests.sessions.simulated import begin
from tests.studies.prediction.simulated import make_responses, make_spec


@pytest.fixture(scope="module")
def prepared():
    responses, spec = make_responses(), make_spec()
    tasks = find_tasks(spec, responses)
    return prepare(spec, responses, tasks, make_partition(spec, responses, tasks, 0))


@pytest.fixture(scope="module")
def pool(prepared):
    return make_pool(prepared.known, prepared.task_order[:3], prepared.held_out.items)


@pytest.mark.parametrize("per_cost", [False, True])
def test_sessions_ask_what_a_session_with_the_targets_in_its_bank_asks(prepared, pool, per_cost):
    """By the public session, driven by hand, whose target is the held-out items by weight."""
    assessor = Assessor("mirt", "adaptation", "v-optimal", per_cost=per_cost)
    found = choose_adaptively(assessor, prepared.known, prepared.new, pool, (3, 9))
    columns = np.concatenate([pool.items, pool.targets])
    bank = prepared.known.bank("mirt", columns)
    targets = bank.item_ids[pool.items.size :]
    for row in range(2):
        session = begin(
            bank,
            criterion_of("v-optimal", per_cost=per_cost),
            cost=STUDY_COST if per_cost else None,
            target=dict(zip(targets, pool.target_weights.tolist(), strict=True)),
            budget=Budget(n_items=9),
            constraints=Constraints(excluded=tuple(targets)),
            interval="model-based",
        )
        asked = []
        while items := session.ask():
            column = columns[bank.item_ids.index(items[0])]
            session.tell(items[0], float(prepared.new.responses[row, column]))
            asked.append(column)
        assert found[9][row].tolist() == asked
        assert found[3][row].tolist() == asked[:3]


def test_models_are_asked_by_what_they_answered_until_items_run_out(prepared, pool):
    fisher = Assessor("2pl", "adaptation", "fisher")
    items = choose_adaptively(fisher, prepared.known, prepared.new, pool, (9,))[9]
    assert len({int(item) for item in items[:, 0]}) == 1
    assert len({tuple(row) for row in items.tolist()}) > 1
    assert all(np.unique(row).size == 9 for row in items)
    is_open = ~prepared.known.is_degenerate[pool.items]
    for row in choose_adaptively(fisher, prepared.known, prepared.new, pool, (1000,))[1000]:
        assert sorted(row[row >= 0]) == sorted(pool.items[is_open])


def chosen(prepared, pool, selector, budgets=(1, 4, 12), seed=0, **options):
    model = "2pl" if selector == "fisher" else "mirt"
    assessor = Assessor(model, "selection", selector, **options)
    return choose_static(assessor, prepared.known, pool, budgets, rng=np.random.default_rng(seed))


def test_the_pool_is_what_may_be_asked_and_the_cheapest_items_come_first(prepared, pool):
    known = prepared.known
    assert set(known.task[pool.items]) == set(prepared.task_order[:3])
    assert not known.is_held_out[pool.items].any()
    assert pool.items.size == 3 * 12
    assert set(known.task[pool.targets]) == set(range(6))
    np.testing.assert_allclose(np.bincount(known.task[pool.targets], weights=pool.target_weights), 1.0 / 6.0)
    cost = prepared.known.cost
    (items,) = chosen(prepared, pool, "min-cost", budgets=(5,)).values()
    others = np.setdiff1d(pool.items[~prepared.known.is_degenerate[pool.items]], items)
    assert cost[items].max() <= cost[others].min()


@pytest.mark.parametrize("selector", [*UNINFORMED, *CRITERIA, *ANCHORS])
def test_items_are_of_the_pool_each_taken_once_and_no_more_than_there_are(prepared, pool, selector):
    found = chosen(prepared, pool, selector)
    for budget, items in found.items():
        assert items.size == budget == np.unique(items).size
        assert np.isin(items, pool.items).all()
    if selector not in ANCHORS:  # smaller choices are the first of larger ones
        assert (found[12][:4] == found[4]).all()
        assert (found[4][:1] == found[1]).all()
    (items,) = chosen(prepared, pool, selector, budgets=(1000,)).values()
    is_open = ~prepared.known.is_degenerate[pool.items]
    expected = pool.items if selector in {"random", "uniform"} else pool.items[is_open]
    assert sorted(items) == sorted(expected)


def test_uniform_takes_tasks_and_their_items_as_often_as_each_other(rng):
    task = np.repeat([1, 4, 7], [5, 9, 9])
    items = 10 * np.arange(task.size)
    order = uniform_order(items, task, rng)
    assert sorted(order) == items.tolist()
    for n in range(1, 16):  # as long as the smallest task has items left
        assert np.ptp([np.sum(task[order[:n] // 10] == one) for one in (1, 4, 7)]) <= 1
    task = np.repeat([0, 1], [2, 6])
    first = [uniform_order(np.arange(8), task, rng)[0] for _ in range(4000)]
    counts = np.bincount(first, minlength=8)
    # 1000 each of task 0 and 333 each of task 1; standard deviations at most 28
    np.testing.assert_allclose(counts, [1000.0] * 2 + [1000.0 / 3.0] * 6, atol=140.0)


def test_v_optimal_takes_first_what_leaves_the_least_variance_of_the_targets(prepared, pool):
    """By brute force: the posterior covariance with each item in turn, and the targets' variance under it."""
    known, calibration = prepared.known, prepared.known.calibrations["mirt"]
    (items,) = chosen(prepared, pool, "v-optimal", budgets=(2,)).values()
    parameters, prior = calibration.parameters, calibration.prior
    is_useful = ~known.is_degenerate[pool.targets]
    targets, weights = parameters.loadings[pool.targets[is_useful]], pool.target_weights[is_useful]
    precision, taken = np.linalg.inv(prior.covariance), []
    for _ in range(2):
        left = {}
        for item in np.setdiff1d(pool.items[~known.is_degenerate[pool.items]], taken):
            loading = parameters.loadings[item]
            p = 1.0 / (1.0 + np.exp(-(loading @ prior.mean + parameters.intercept[item])))
            after = np.linalg.inv(precision + p * (1.0 - p) * np.outer(loading, loading))
            left[item] = (weights * np.einsum("td,de,te->t", targets, after, targets)).sum(), p, loading
        best = min(left, key=lambda item: left[item][0])
        taken.append(best)
        _, p, loading = left[best]
        precision = precision + p * (1.0 - p) * np.outer(loading, loading)
    assert items.tolist() == taken


def test_fisher_information_is_taken_at_the_median_ability(prepared, pool):
    calibration = prepared.known.calibrations["2pl"]
    slope, intercept = calibration.parameters.loadings[:, 0], calibration.parameters.intercept
    p = 1.0 / (1.0 + np.exp(-(slope * np.median(calibration.abilities) + intercept)))
    information = slope**2 * p * (1.0 - p)
    (items,) = chosen(prepared, pool, "fisher", budgets=(6,)).values()
    is_open = ~prepared.known.is_degenerate[pool.items]
    best = pool.items[is_open][np.argsort(-information[pool.items[is_open]])][:6]
    assert items.tolist() == best.tolist()
    (cheap,) = chosen(prepared, pool, "fisher", budgets=(6,), per_cost=True).values()
    value = (information / prepared.known.cost)[pool.items[is_open]]
    assert cheap.tolist() == pool.items[is_open][np.argsort(-value)][:6].tolist()
