import numpy as np
import pytest

from itembank.responses.responses import ResponseMatrix
from itembank.sessions.limits import Budget
from itembank.sessions.past_sessions import Recorded, answer_from_record, answer_side_by_side
from itembank.sessions.pool import SessionPool
from itembank.sessions.session import AdaptiveSession, expectations_of
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import begin, session_bank, true_answers


def new_models(bank, *, with_gaps=False, with_trials=False):
    """Five models that answered the bank's items, some of them not, or several times."""
    values = np.array([list(true_answers(bank, seed=seed).values()) for seed in range(5)])
    rng = np.random.default_rng(4)
    if with_gaps:
        values[rng.random(values.shape) < 0.3] = np.nan
    trials = None
    if with_trials:
        trials = np.ones(values.shape, dtype=np.int64)
        trials[:3, ::2] = 2
    matrix = ResponseMatrix.create(
        values, item_ids=bank.item_ids, scenarios=bank.responses.items["scenario"].to_list(), n_trials=trials
    )
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
    bank = session_bank(n_items=40)
    recorded = new_models(bank)
    long, short = (begin(bank, interval="model-based", budget=Budget(n_items=size)) for size in (9, 4))
    answer_side_by_side([long, short], recorded, [0, 1], n_answers=8)
    assert (long.n_items, short.n_items) == (8, 4)


def test_what_is_expected_alone_is_what_the_estimate_holds():
    bank = session_bank(n_items=40)
    pool = SessionPool.create(bank, SessionSpec(budget=Budget(n_items=9))).with_factors(bank)
    session = AdaptiveSession(pool)
    answer_from_record(session, new_models(bank), 0, n_answers=3)
    expected = session.estimate().expected
    np.testing.assert_array_equal(np.stack(expectations_of(session)), np.stack(expected))
