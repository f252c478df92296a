import dataclasses

import numpy as np
import pytest

from itembank.calibration.build import calibrate
from itembank.estimation.asked import Asked
from itembank.estimation.estimator_specs import PIRT
from itembank.estimation.folds import folds
from itembank.estimation.observations import Observations, past_runs
from itembank.estimation.point_methods import Known
from itembank.estimation.regressions import stack_weights
from itembank.estimation.trials import Expectations, Trial
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from itembank.selection.greedy import Constraints
from itembank.sessions.events import Told
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.sessions.pool import PastSessions
from itembank.sessions.preparation import (
    Recorded,
    _best,
    answer_from_record,
    answer_side_by_side,
    past_expectations,
    past_orders,
    past_sessions,
    unknown_sessions,
)
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import begin, forget_past_sessions, run, session_bank, true_answers

BANK = session_bank(n_items=40)
BUDGET = Budget(n_items=9)
FIRST, BOTH = np.array([0]), np.array([0, 1])


def by_hand(part, row, n_items, **choices):
    """Run a session of a calibration model over the bank of the fold that left it out; return what it was told."""
    session = begin(part.bank, budget=BUDGET, seed=40, interval="model-based", **choices)
    run(session, dict(zip(BANK.item_ids, BANK.responses.responses[row].tolist(), strict=True)), most=n_items)
    return session


@pytest.fixture
def set_limit(monkeypatch):
    """Replace a constant of the preparation."""
    return lambda name, value: monkeypatch.setattr(f"itembank.sessions.preparation.{name}", value)


def expected_of(part, session):
    """What `estimate`'s own members expect of the same answers."""
    positions = BANK.responses.item_indices(list(session.told))
    answers = np.array([[answer.response for answer in session.told.values()]])
    weights = BANK.targets.weights[positions]
    return Expectations.of(
        Known.of(Asked(part.bank, Observations.of_items(answers, positions, weights, is_random=True)))
    )


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"criterion": "random", "target": "law"},
        {"n_start": 4, "constraints": Constraints(at_least=2)},
        {"target": {BANK.item_ids[3]: 1.0, BANK.item_ids[20]: 3.0}},
    ],
    ids=["default", "chance", "constrained", "custom"],
)
def test_sessions_are_run_over_banks_that_left_the_model_out(choices):
    n_answered, past = past_expectations(BANK, SessionSpec(budget=BUDGET, **choices))
    assert n_answered.tolist() == [1, 2, 4, 8, 9]
    part, n_targets = folds(BANK)[1], len(BANK.targets.names)
    row = int(part.held_out[0])
    for n_items, checkpoint in {9: -1, 4: 2}.items():
        session, found = by_hand(part, row, n_items, **choices), past[:, checkpoint, row]
        expected = np.stack(expected_of(part, session))[:, 0]
        np.testing.assert_allclose(found[:, :n_targets], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(found[0], session.estimate().scores.value[0])


def test_orders_are_those_in_which_such_sessions_ask():
    spec = SessionSpec(budget=BUDGET, stopping=Stopping(half_width=0.2))
    found = past_orders(BANK, spec, 6)
    for part in folds(BANK)[:2]:
        row = int(part.held_out[0])
        asked = [event.item_id for event in by_hand(part, row, 9).history if isinstance(event, Told)][:6]
        assert [BANK.item_ids[int(position)] for position in found[row]] == asked
    np.testing.assert_array_equal(past_orders(BANK, spec, 4), found[:, :4])


@pytest.mark.usefixtures("stacked")
def test_estimates_are_weighed_by_the_errors_of_other_folds():
    spec = SessionSpec(budget=BUDGET)
    _, expected = past_expectations(BANK, spec)
    found = past_sessions(BANK, spec)
    truth = BANK.targets.with_overall(BANK.scenario_scores)
    np.testing.assert_allclose(found.truth, truth)
    part, checkpoint, overall = folds(BANK)[1], 3, -1
    means = expected[[0, 2, 4], checkpoint, :, overall]  # p-IRT and both factor models, (3, n_models)
    others = np.setdiff1d(np.arange(BANK.n_models), part.held_out)
    weights = stack_weights((means - truth[:, overall])[:, others].T, prior_models=20.0)
    np.testing.assert_allclose(found.value[checkpoint, part.held_out, overall], weights @ means[:, part.held_out])
    of_all = stack_weights((means - truth[:, overall]).T, prior_models=20.0)
    np.testing.assert_allclose(found.weights[checkpoint, :, overall], of_all)
    np.testing.assert_allclose(found.value[:, :, :-1] @ BANK.targets.scenario_weights, found.value[:, :, -1])


def members_with(p_irt, others, truth):
    """Errors of six models of six folds by p-IRT, and by both factor models, on one target."""
    values = np.array([p_irt, others, others])[:, :, None]
    nothing = np.ones((6, 1))
    expected = Expectations(values[0], nothing, values[1], nothing, values[2], nothing)
    return Trial(truth[:, None], values, expected, np.arange(6), np.zeros(0))


def test_factor_models_have_a_say_where_they_clearly_served_past_sessions():
    truth, error = np.full(6, 0.5), np.array([0.04, -0.05, 0.03, -0.04, 0.05, -0.03])
    assert _best(members_with(truth + error, truth + 0.1 * error, truth)).is_stacked
    assert not _best(members_with(truth + 0.1 * error, truth + 3.0 * error, truth)).is_stacked
    assert not _best(members_with(truth + error, truth + error, truth)).is_stacked  # no better: the simpler one


def test_where_p_irt_serves_best_it_is_the_estimate(set_limit):
    forget_past_sessions(BANK)
    set_limit("CANDIDATES", (PIRT(),))
    spec = SessionSpec(budget=BUDGET)
    (_, expected), found = past_expectations(BANK, spec), past_sessions(BANK, spec)
    forget_past_sessions(BANK)
    np.testing.assert_array_equal(found.value, expected[0])
    np.testing.assert_array_equal(found.weights[:, 0], 1.0)
    np.testing.assert_array_equal(found.weights[:, 1:], 0.0)


@pytest.mark.usefixtures("stacked")
def test_models_beyond_those_that_are_tried_take_no_method_away(set_limit):
    """With most models untried, their absent errors must not count as a method's failures."""
    set_limit("MOST_MODELS", 5)
    spec = SessionSpec(budget=Budget(n_items=4))
    (_, expected), found = past_expectations(BANK, spec), past_sessions(BANK, spec)
    tried = ~np.isnan(expected[0, -1, :, -1])
    assert tried.sum() == 5
    errors = expected[[0, 2, 4], -1][:, tried, -1] - found.truth[tried, -1]
    np.testing.assert_allclose(found.weights[-1, :, -1], stack_weights(errors.T, prior_models=20.0))


def test_the_truth_of_a_custom_score_is_its_weighted_mean_known_from_answers_to_four_fifths_at_least():
    weights = {BANK.item_ids[3]: 1.0, BANK.item_ids[20]: 2.0, BANK.item_ids[21]: 2.0}
    responses = BANK.responses.responses.copy()
    responses[0, 3], responses[1, [3, 20]], responses[2, 20] = np.nan, np.nan, np.nan
    bank = dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, responses=responses))
    found = past_sessions(bank, SessionSpec(budget=Budget(n_items=2), target=weights)).truth[:, -1]
    np.testing.assert_allclose(found[3:], responses[3:][:, [3, 20, 21]] @ [0.2, 0.4, 0.4])
    likely = probability(bank.parameters, bank.calibration.abilities[:1])[0, [3, 20, 21]] @ [0.2, -0.1, -0.1]
    assert found[0] == pytest.approx(np.clip(responses[0, [20, 21]].mean() + likely, 0.0, 1.0))
    assert np.isnan(found[1:3]).all()


def test_rules_seeds_and_names_change_no_past_error():
    first = past_sessions(BANK, SessionSpec(budget=BUDGET, seed=1))
    rules = Stopping(half_width={"overall": 0.1}, decision=Decision(threshold=0.5))
    second = past_sessions(BANK, SessionSpec(budget=BUDGET, seed=2, stopping=rules))
    assert np.shares_memory(second.value, first.value)  # not even made again


def test_items_that_must_be_asked_have_room_beyond_the_usual_number(set_limit):
    set_limit("USUAL_ITEMS", 8)
    assert past_sessions(BANK, SessionSpec(constraints=Constraints(at_least=5))).n_answered[-1] == 15
    set_limit("MOST_ITEMS", 8)  # which a tried session may take
    wide, narrow = (SessionSpec(budget=Budget(30), constraints=Constraints(at_least=n)) for n in (0, 4))
    assert past_sessions(BANK, narrow).n_answered.tolist() == [1, 2, 4, 8]
    np.testing.assert_array_equal(past_sessions(BANK, narrow).value, past_sessions(BANK, wide).value)


def test_numbers_of_answers_that_hardly_any_session_reaches_are_left_out():
    """The banks of folds leave out items that their models answered alike, so that sessions end before the last."""
    responses = BANK.responses.responses.copy()
    responses[:, 5:17] = np.eye(12)  # alike but for one model each
    bank = dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, responses=responses))
    found = past_sessions(bank, SessionSpec(n_start=0))
    assert found.n_answered.tolist() == [1, 2, 4, 8, 16, 32]
    assert not np.isnan(found.value).all(axis=2).any()


def test_too_few_models_leave_the_item_models_intervals():
    few = calibrate(BANK.responses.take(models=np.arange(9)))
    session = begin(few, budget=BUDGET)
    assert past_sessions(few, session.pool.spec) is None
    assert session.estimate().scores.interval_kind == "model-based"


def errors_at(*ratios):
    """Past errors of one model that are so many standard errors after 1, 4, 16, ... answers."""
    found = unknown_sessions(4.0 ** np.arange(len(ratios)), *np.zeros((2, 3, 2)))
    found["value"][:] = np.array(ratios)[:, None, None]
    found["weights"][:] = (np.arange(len(ratios))[:, None] == np.arange(3))[:, :, None]
    return PastSessions(**found)


def test_between_checkpoints_the_logarithm_of_the_number_of_answers_decides():
    for n, *errors in ((2, 1.0, 2.0), (8, 2.0, 3.0)):
        (low, low_share), (high, high_share) = errors_at(1.0, 2.0, 3.0).around(n, FIRST)
        assert (low_share, high_share, low.error[0, 0], high.error[0, 0]) == pytest.approx((0.5, 0.5, *errors))
    np.testing.assert_array_equal([low.weights[:, 0], high.weights[:, 0]], [[0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(("n", "expected"), [(0, 1.0), (1, 1.0), (4, 2.0), (16, 3.0), (500, 3.0)])
def test_at_checkpoints_and_beyond_them_one_counts_alone(n, expected):
    ((found, share),) = errors_at(1.0, 2.0, 3.0).around(n, BOTH)
    assert (share, found.error.shape, found.error[0, 1]) == (1.0, (3, 2), expected)


@pytest.mark.slow
def test_intervals_hold_where_the_item_model_is_wrong():
    """Six unrelated abilities, of which the bank knows one: the item model is far too sure after 32 answers."""
    rng = np.random.default_rng(6)
    n_models, n_items, n_new = 180, 240, 100
    group = np.arange(n_items) % 6
    theta = 0.8 * rng.standard_normal((n_models, 1)) + rng.standard_normal((n_models, 6))
    logits = 1.5 * (theta[:, group] - rng.standard_normal(n_items))
    responses = (rng.random(logits.shape) < 1.0 / (1.0 + np.exp(-logits))).astype(float)
    whole = ResponseMatrix.create(responses)
    bank = calibrate(whole.take(models=np.arange(n_models - n_new)))
    truth = responses[-n_new:].mean(axis=1)
    covered = {}
    for kind in ("calibrated", "model-based"):
        held = []
        for row in range(n_new):
            session = begin(bank, budget=Budget(32), interval=kind)
            run(session, dict(zip(bank.item_ids, responses[n_models - n_new + row].tolist(), strict=True)))
            scores = session.estimate().scores
            held.append(scores.low[0, -1] <= truth[row] <= scores.high[0, -1])
        covered[kind] = np.mean(held)
    assert covered["calibrated"] >= 0.9
    assert covered["model-based"] < 0.9


def new_models(bank, *, with_gaps=False, with_trials=False):
    """Five models that answered the bank's items, some of them not, or several times."""
    values = np.array([list(true_answers(bank, seed=seed).values()) for seed in range(5)])
    if with_gaps:
        values[np.random.default_rng(4).random(values.shape) < 0.3] = np.nan
    trials = np.ones(values.shape, dtype=np.int64)
    trials[:3, ::2] = 2
    items = bank.responses.items.select("item_id", "scenario")
    matrix = ResponseMatrix.create(values, items=items, n_trials=trials if with_trials else None)
    return Recorded.of_responses(bank, matrix)


@pytest.mark.parametrize(
    ("of_bank", "of_models"),
    [({}, {}), ({}, {"with_gaps": True}), ({}, {"with_trials": True}), ({"lower": 0.2}, {})],
    ids=["complete", "gaps", "trials", "guessing"],
)
def test_sessions_side_by_side_go_as_each_does_alone(of_bank, of_models):
    bank = session_bank(n_items=40, **of_bank)
    recorded, rows = new_models(bank, **of_models), [0, 1, 2, 4]
    choices = {"interval": "model-based", "budget": Budget(n_items=30)}
    together, alone = ([begin(bank, **choices) for _ in rows] for _ in range(2))
    answer_side_by_side(together, recorded, rows, n_answers=12)
    for session, row, other in zip(together, rows, alone, strict=True):
        answer_from_record(other, recorded, row, n_answers=12)
        assert session.history == other.history
        np.testing.assert_allclose(session.estimate().theta, other.estimate().theta, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(session.estimate().scores.value, other.estimate().scores.value, rtol=1e-12)


def test_sessions_that_may_ask_no_more_end_while_others_go_on():
    long, short = (begin(BANK, interval="model-based", budget=Budget(n_items=size)) for size in (9, 4))
    answer_side_by_side([long, short], new_models(BANK), [0, 1], n_answers=8)
    assert (long.n_items, short.n_items) == (8, 4)


def test_past_models_that_made_more_attempts_make_one_in_their_sessions(rng):
    """With their means of eight, .91 of the intervals of a scenario held after single attempts."""
    right = rng.binomial(8, np.clip(BANK.responses.responses * 0.6 + 0.2, 0.0, 1.0))
    responses = ResponseMatrix.from_counts(right, np.full(right.shape, 8), items=BANK.responses.items)
    parameters = dataclasses.replace(BANK.parameters, family="binomial")
    calibration = dataclasses.replace(BANK.calibration, parameters=parameters)
    bank = dataclasses.replace(BANK, responses=responses, calibration=calibration)
    weights = dict.fromkeys(bank.item_ids[:20], 1.0)
    found = past_sessions(bank, SessionSpec(target=weights, budget=Budget(n_items=4)))
    single, trials = past_runs(bank, 1.0)
    assert set(np.unique(single)) == {0.0, 1.0}
    assert np.all(trials == 1.0)
    np.testing.assert_allclose(found.truth[:, :-1], bank.targets.with_overall(bank.targets.scenario_means(single)))
    np.testing.assert_allclose(found.truth[:, -1], single[:, :20].mean(axis=1))
