"""Sessions whose items are drawn one by one: answers come in any order, and what would break a draw is refused."""

import dataclasses
from collections import Counter

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import itembank as ib
from itembank.bank.bank_views import with_target
from itembank.calibration.starting import start
from itembank.cli.main import cli
from itembank.errors import DataError, ParameterError
from itembank.estimation import drawn_one_by_one
from itembank.estimation.drawn_one_by_one import FEWEST
from itembank.responses.responses import ResponseMatrix
from itembank.selection.greedy import Constraints
from itembank.selection.selector_specs import OptimalDesign
from itembank.sessions.answers import session_responses
from itembank.sessions.events import event_from_dict
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.sessions.pool import SessionPool
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_studies.replays import replay
from tests.sessions.simulated import begin, expected, run, session_bank, true_answers

BANK = session_bank(n_items=150)
ANSWERS = true_answers(BANK)
VALUES = np.array([ANSWERS[item] for item in BANK.item_ids])
TRUTH = BANK.targets.with_overall(BANK.targets.scenario_means(VALUES[None, :]))
OVERALL = float(TRUTH[0, -1])


def drawn(**choices) -> AdaptiveSession:
    return begin(BANK, "drawn", **choices)


def scores_of(session: AdaptiveSession) -> np.ndarray:
    return np.stack(session.estimate().scores.scores)


def test_intervals_rest_on_the_draw_and_say_so():
    session = drawn(budget=Budget(n_items=30))
    assert len(set(run(session, ANSWERS))) == 30
    found = session.estimate().scores
    assert (found.method, found.interval_kind) == ("design-based", "design")
    assert session.pool.past is None  # nothing was fitted for them
    assert np.all((found.low <= TRUTH) & (found.high >= TRUTH))
    assert session_responses(session).models["answered_how"].to_list() == ["adaptive"]


def test_with_everything_answered_it_is_the_score():
    session = drawn()
    assert sorted(run(session, ANSWERS, n=7)) == sorted(BANK.item_ids)
    assert session.reason_stopped == "exhausted"
    found = session.estimate().scores
    for one in (found.value, found.low, found.high):
        np.testing.assert_allclose(one, TRUTH, atol=1e-12)


def test_events_make_the_same_session_and_chance_follows_the_seed():
    session = drawn(seed=3, budget=Budget(n_items=25))
    told = run(session, ANSWERS, n=4)
    again = drawn(seed=3, budget=Budget(n_items=25), events=[event_from_dict(one.to_dict()) for one in session.history])
    np.testing.assert_array_equal(scores_of(again), scores_of(session))
    same, other = (run(drawn(seed=seed, budget=Budget(n_items=25)), ANSWERS, n=4) for seed in (3, 4))
    assert same == told != other


def test_the_order_of_answers_to_a_batch_changes_nothing():
    one, other = drawn(), drawn()
    for session, step in ((one, 1), (other, -1)):
        for item in session.ask(12)[::step]:
            session.tell(item, ANSWERS[item])
    np.testing.assert_array_equal(scores_of(one), scores_of(other))
    assert one.ask(5) == other.ask(5)


def test_answers_after_one_that_is_waited_for_count_when_it_has_come():
    session, whole = drawn(), drawn()
    items = session.ask(10)
    for item in items[:3] + items[4:]:
        session.tell(item, ANSWERS[item])
    (note,) = [one for one in session.estimate().scores.notes if one.kind == "waiting"]
    assert note.text.startswith("6 answers correct no prediction yet")
    session.tell(items[3], ANSWERS[items[3]])
    run(whole, ANSWERS, n=10, most=10)
    np.testing.assert_allclose(scores_of(session), scores_of(whole))
    assert not session.estimate().scores.notes


def with_failures(session, n, which, answers):
    """Scores after `n` items at once, of which those at some places fail."""
    for number, item in enumerate(session.ask(n)):
        if number in which:
            session.tell_failed(item, reason="crash")
        else:
            session.tell(item, answers[item])
    return session.estimate().scores


def test_an_item_that_fails_counts_as_missing_at_random_or_as_wrong_or_both():
    kinds = ("missing", "wrong", "bounds")
    missing, wrong, bounds = (with_failures(drawn(errors=errors), 30, (4, 14, 24), ANSWERS) for errors in kinds)
    for one in (missing, wrong, bounds):
        (note,) = one.notes
        assert note.text.startswith("lost 3 answers")
    assert wrong.value[0, -1] < missing.value[0, -1]
    np.testing.assert_array_equal(bounds.value, missing.value)
    assert np.all(bounds.high >= missing.high)
    np.testing.assert_allclose(bounds.lost.if_wrong, wrong.value)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_what_is_left_gives_no_more_than_if_lost_answers_were_right_and_no_less_than_if_wrong(value):
    for seed in range(8):
        session = drawn(seed=seed, budget=Budget(n_items=26))
        found = with_failures(session, 26, range(0, 26, 4), dict.fromkeys(BANK.item_ids, value))
        assert np.all((found.lost.if_wrong <= found.value) & (found.value <= found.lost.if_right))
        assert np.all((found.low <= found.value) & (found.value <= found.high))


def test_an_item_that_failed_may_be_drawn_again_and_one_that_was_never_asked_is_known():
    session = drawn()
    (first,) = session.ask()
    session.tell_failed(first, again=True)
    other = next(item for item in BANK.item_ids if item != first)
    session.tell(other, ANSWERS[other])
    asked = run(session, ANSWERS)
    assert (asked[0], other in asked, session.reason_stopped) == (first, False, "exhausted")
    np.testing.assert_allclose(session.estimate().scores.value[:, :-1], TRUTH[:, :-1])


@pytest.mark.parametrize("fails", [1, 3])
def test_items_that_fail_are_asked_again_until_they_are_answered_or_lost(fails):
    def is_unanswered_said():
        return any(one.kind == "unanswered" for one in session.estimate().scores.notes)

    session, asked, said = drawn(budget=Budget(n_items=30)), Counter(), 0
    while items := session.ask():
        asked.update(items)
        (item,) = items
        if ANSWERS[item] < 0.5 and asked[item] <= fails:  # left out, it would make the score too high
            session.tell_failed(item, again=asked[item] < 3, reason="timeout")
            said += is_unanswered_said()
        else:
            session.tell(item, ANSWERS[item])
    n_wrong = sum(ANSWERS[item] < 0.5 for item in asked)
    assert (n_wrong > 5, said > 5, session.n_items, is_unanswered_said()) == (True, True, 30, False)
    assert (len(asked), len(session.lost)) == ((30, 0) if fails == 1 else (30 + n_wrong, n_wrong))


def test_a_budget_that_is_raised_leaves_the_draws_as_they_were(monkeypatch):
    tries, serve = [], drawn_one_by_one.factors_that_serve
    monkeypatch.setattr(drawn_one_by_one, "factors_that_serve", lambda *a, **b: tries.append(a[2]) or serve(*a, **b))
    session = drawn(budget=Budget(n_items=25))
    run(session, ANSWERS)
    more = drawn(budget=Budget(n_items=100), events=session.history)
    np.testing.assert_array_equal(scores_of(more), scores_of(session))
    assert len(run(more, ANSWERS)) == 75
    design, sizes = session.pool.drawn, np.bincount(BANK.targets.scenario_index)
    assert design.n_tried == pytest.approx(sizes @ (1.0 - design.left)) == 60  # factors were tried on so many items
    assert tries[0].sum() == pytest.approx(1.0, rel=0.02)  # each counts for those of the whole that it was drawn from


def test_nothing_is_drawn_once_the_dearest_item_would_not_fit():
    costs = expected(BANK)
    session = drawn(budget=Budget(costs={"output_tokens": 60.0}))
    told = run(session, ANSWERS)
    left = 60.0 - sum(costs[item] for item in told)
    dearest = max(cost for item, cost in costs.items() if item not in told)
    assert left < dearest
    assert left + costs[told[-1]] >= dearest
    assert session.reason_stopped == "budget: 60 output_tokens"
    assert "budget of 60 output_tokens, which the dearest item left might exceed: no" in session.conclusion
    with pytest.raises(ParameterError, match="must pay for whichever item is drawn first: got 5 output_tokens"):
        drawn(budget=Budget(costs={"output_tokens": 5.0}))


def test_it_stops_at_a_half_width_after_enough_draws():
    assert len(run(drawn(stopping=Stopping(half_width=0.4)), ANSWERS)) == FEWEST
    session = drawn(stopping=Stopping(half_width=0.07))
    run(session, ANSWERS)
    found = session.estimate().scores
    assert session.is_precise
    assert (found.high - found.low)[0, -1] <= 0.14
    assert "the goal of ±0.07 (7 points) was reached" in session.conclusion


def test_a_question_is_settled_later_than_one_look_would():
    """Whoever looks after each answer until a normal interval excludes the threshold is wrong far too often."""
    threshold = OVERALL - 0.12
    session = drawn(stopping=Stopping(decision=Decision(threshold=threshold)))
    run(session, ANSWERS)
    assert session.reason_stopped == f"decision: above {threshold!r}"
    found = session.estimate().scores
    assert (found.value[0, -1] - threshold) / found.standard_error[0, -1] > 2.4
    plain = drawn(events=session.history).estimate().scores
    assert np.all((found.high - found.low) >= (plain.high - plain.low))


def test_a_question_that_stays_open_is_not_said_to_be_surer_than_it_is():
    session = drawn(stopping=Stopping(decision=Decision(threshold=OVERALL + 0.02)), budget=Budget(n_items=30))
    run(session, ANSWERS)
    assert session.reason_stopped == "budget: 30 items"
    assert "95 % certainty whether overall is above" in session.conclusion
    assert session.conclusion.endswith("it is below with 50 %.")
    everything = drawn(stopping=Stopping(decision=Decision(threshold=OVERALL)), events=session.history)
    run(everything, ANSWERS)
    assert everything.reason_stopped in {"exhausted", f"decision: below {OVERALL!r}"}


def test_one_scenario_or_a_score_of_ones_own_is_drawn_for():
    session = drawn(target="law", budget=Budget(n_items=20))
    assert all(item.startswith("law/") for item in run(session, ANSWERS))
    found = session.estimate().scores
    half = dict(zip(found.targets, (found.high - found.low)[0].tolist(), strict=True))
    assert half["law"] < min(half["math"], half["code"], half["overall"])
    for n in (1, 40):
        wanted = dict.fromkeys(BANK.item_ids[:n], 1.0)
        session = begin(BANK, "drawn", target=wanted)
        assert sorted(run(session, ANSWERS)) == sorted(wanted)
        found = session.estimate().scores
        assert found.column("custom")[0] == pytest.approx(VALUES[:n].mean())
        assert found.high[0, found.targets.index("overall")] > found.low[0, found.targets.index("overall")]


def test_items_that_all_past_models_answered_alike_are_drawn_too():
    alike = dataclasses.replace(BANK.calibration, is_degenerate=np.arange(150) < 100)
    pool = SessionPool.create(dataclasses.replace(BANK, calibration=alike), SessionSpec("drawn"))
    assert pool.items.is_candidate.all()


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("cost", {"cost": "output_tokens"}),
        ("n_start", {"n_start": 5}),
        ("at_least", {"constraints": Constraints(at_least=1)}),
        ("at_most", {"constraints": Constraints(at_most={"law": 3})}),
        ("excluded", {"constraints": Constraints(excluded=(BANK.item_ids[0],))}),
        ("randomesque", {"constraints": Constraints(randomesque=2)}),
        ("interval", {"interval": "calibrated"}),
        ("interval", {"interval": "model-based"}),
    ],
)
def test_what_would_hide_probabilities_is_refused(name, choices):
    with pytest.raises(ParameterError, match=f"criterion 'drawn'.*{name}"):
        SessionSpec("drawn", **choices)


def test_the_interval_of_a_draw_is_of_no_other_criterion_and_of_means():
    with pytest.raises(ParameterError, match="criterion 'drawn' goes with interval 'design', and no other does"):
        SessionSpec("random", interval="design")
    with pytest.raises(ParameterError, match="to draw items at once, take method 'drawn'"):
        OptimalDesign("drawn")
    with pytest.raises(ParameterError, match="'drawn' estimates means of items, and 'mean_win_rate' is none"):
        SessionPool.create(with_target(BANK, "mean_win_rate"), SessionSpec("drawn", target="mean_win_rate"))
    spec = SessionSpec("drawn")
    assert SessionSpec.from_dict(spec.to_dict()) == spec


def test_a_replay_is_what_sessions_driven_by_hand_end_with():
    responses = BANK.responses.take(models=np.arange(3))
    spec = SessionSpec("drawn", budget=Budget(n_items=20))
    found = [replay(BANK, responses, spec, n_jobs=n_jobs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*(np.stack(one.estimates.scores) for one in found))
    for row in range(3):
        session = drawn(budget=Budget(n_items=20))
        run(session, dict(zip(BANK.item_ids, responses.responses[row].tolist(), strict=True)))
        np.testing.assert_array_equal(scores_of(session)[:, 0], np.stack(found[0].estimates.scores)[:, row])


@pytest.mark.parametrize("n_models", [0, 1, 5])
def test_few_past_models_are_enough(n_models):
    items = BANK.responses.items
    past = ResponseMatrix.create(BANK.responses.responses[:n_models], items=items) if n_models else None
    bank = start(items.select(pl.col("item_id", "scenario")), past)
    session = begin(bank, "drawn", budget=Budget(n_items=60))
    run(session, ANSWERS)
    found = session.estimate().scores
    assert found.low[0, -1] <= OVERALL <= found.high[0, -1]
    # hardly wider than the mean of as many random items
    assert (found.high - found.low)[0, -1] < 1.2 * 2.0 * 1.96 * np.sqrt(OVERALL * (1.0 - OVERALL) / 60.0)


def test_the_command_line_names_the_criterion(tmp_path):
    BANK.save(tmp_path / "bank")
    journal = str(tmp_path / "run.jsonl")
    call = ["session", "start", str(tmp_path / "bank"), "-o", journal, "--model-id", "new", "--criterion", "drawn"]
    assert CliRunner().invoke(cli, call).exit_code == 0
    session = ib.read_session(journal)
    assert session.pool.drawn is not None
    with ib.open_session(journal) as going:
        run(going, ANSWERS, most=30)
    np.testing.assert_array_equal(scores_of(ib.read_session(journal)), scores_of(going))
    with pytest.raises(DataError, match="must not be asked while it is pending or answered"):
        AdaptiveSession(session.pool, events=[*going.history, going.history[0]])
