import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError
from itembank.selection.greedy import Constraints
from itembank.sessions.events import (
    Asked,
    Extended,
    Failed,
    Told,
    checked_counts,
    checked_response,
    counts_behind,
    event_from_dict,
)
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import session_bank

IDS = st.text(min_size=1, max_size=8)
COSTS = st.dictionaries(IDS, st.floats(0.0, 1e9), max_size=3)
TOLD = st.builds(Told, IDS, st.floats(0.0, 1.0), st.none(), st.none(), COSTS, st.booleans(), st.booleans())
TRIALS = st.tuples(st.integers(1, 50), st.integers(0, 50)).filter(lambda pair: pair[1] <= pair[0])
COUNTED = st.builds(lambda item, pair: Told(item, pair[1] / pair[0], pair[1], pair[0]), IDS, TRIALS)
EVENTS = st.one_of(
    st.builds(Asked, st.lists(IDS, min_size=1, max_size=4).map(tuple)),
    TOLD,
    COUNTED,
    st.builds(Failed, IDS, st.booleans(), st.text(max_size=8), COSTS),
    st.builds(lambda n, cost: Extended(Budget(n, {"tokens": cost})), st.integers(1, 99), st.floats(0.1, 1e9)),
)


@given(EVENTS)
def test_json_keeps_an_event_to_the_last_bit(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


GOOD = Told("a", 0.5, 2, 4, {"tokens": 3.0}).to_dict()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "object of named fields"),
        ({"event": "sang"}, "'asked', 'told', 'failed' or 'extended'"),
        ({"event": "extended", "budget": {"apples": 3}}, "must have a budget"),
        ({"event": "asked", "item_ids": []}, "item_ids"),
        ({"event": "asked", "item_ids": ["a", 3]}, "item_ids"),
        ({**GOOD, "surprise": 1}, "surprise"),
        ({**GOOD, "item_id": ""}, "item_id"),
        ({**GOOD, "response": 1.5}, r"in \[0, 1\]"),
        ({**GOOD, "response": None}, r"in \[0, 1\]"),
        ({**GOOD, "response": 0.25}, "n_correct / n_trials"),
        ({**GOOD, "n_trials": None}, "whole numbers"),
        ({**GOOD, "costs": {"tokens": -1.0}}, "from 0 to"),
        ({**GOOD, "costs": {"tokens": True}}, "from 0 to"),
        ({**GOOD, "costs": {"tokens": 1.1e15}}, "from 0 to"),
        ({**GOOD, "costs": {"tokens": 10**400}}, "from 0 to"),
        ({**GOOD, "costs": None}, "costs"),
        ({**GOOD, "was_asked": 1}, "was_asked"),
        ({"event": "failed", "item_id": "a", "again": "yes", "reason": "", "costs": {}}, "again"),
    ],
)
def test_a_record_that_is_no_event_is_refused(record, message):
    with pytest.raises(DataError, match=message):
        event_from_dict(record)


@pytest.mark.parametrize("response", [-0.01, 1.01, float("nan"), float("inf"), 10**400, "1", None, [1.0]])
def test_a_response_outside_zero_and_one_is_refused(response):
    with pytest.raises(DataError, match="item 'q'"):
        checked_response(response, "q")


@pytest.mark.parametrize("counts", [(3, 2), (-1, 2), (0, 0), (1.0, 2), (True, 2), ("1", 2), (1, None), (1, 10**400)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(DataError, match="item 'q'"):
        checked_counts(*counts, "q")


@pytest.mark.parametrize("n_trials", [3, 7, 10, 4_000_000])
def test_counts_are_found_behind_means_in_float32(n_trials):
    for n_correct in (0, 1, n_trials // 2, n_trials - 1, n_trials):
        for mean in (n_correct / n_trials, float(np.float32(n_correct / n_trials))):
            assert counts_behind(mean, n_trials) == (n_correct, n_trials)


@pytest.mark.parametrize(("response", "n_trials"), [(0.3, 0), (0.3, 4), (0.4, 3)])
def test_a_response_that_is_no_mean_of_trials_stands_for_none(response, n_trials):
    assert counts_behind(response, n_trials) is None


BANK = session_bank(n_items=9)
EXCLUDED = BANK.item_ids[8]
POOL = SessionPool.create(BANK, SessionSpec("random", constraints=Constraints(excluded=(EXCLUDED,))))
ITEM = st.sampled_from(BANK.item_ids)
EVENT = st.one_of(
    st.builds(Asked, st.lists(ITEM, min_size=1, max_size=3).map(tuple)),
    st.builds(Told, ITEM, st.just(1.0)),
    st.builds(Failed, ITEM, st.booleans()),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENT, max_size=20))
def test_counts_are_those_of_a_recount(events):
    """Follow each item by itself: the last word on it says what it is."""
    state, words = POOL.state_after(), dict.fromkeys(BANK.item_ids, "new")
    for event in events:
        try:
            state.check(event)
        except DataError:
            assert isinstance(event, Asked)
            is_taken = any(words[item] in {"pending", "told"} for item in event.item_ids)
            assert is_taken or len(set(event.item_ids)) < len(event.item_ids)
            continue
        state.apply(event)
        for item in event.item_ids if isinstance(event, Asked) else (event.item_id,):
            match event:
                case Asked():
                    words[item] = "pending"
                case Told():
                    words[item] = "told"
                case Failed():
                    words[item] = "new" if event.again else "skipped"
    kinds = np.array([words[item] for item in BANK.item_ids])
    is_used = np.isin(kinds, ["pending", "told"])
    is_open = (kinds == "new") & (np.array(BANK.item_ids) != EXCLUDED)
    np.testing.assert_array_equal(state.is_open, is_open)
    np.testing.assert_array_equal(state.counts, np.bincount(state.scenario_index[is_used], minlength=3))
    np.testing.assert_array_equal(state.n_open, np.bincount(state.scenario_index[is_open], minlength=3))
    assert sorted(state.pending) == np.flatnonzero(kinds == "pending").tolist()
    assert state.answered.tolist() == np.flatnonzero(kinds == "told").tolist()
    assert sorted(state.skipped) == np.flatnonzero(kinds == "skipped").tolist()
    assert state.n_used == is_used.sum()


def test_folding_leaves_the_layout_alone_and_unknown_items_are_refused():
    before = POOL.items.is_candidate.copy()
    POOL.state_after([Asked((BANK.item_ids[0],)), Told(BANK.item_ids[1], 0.0)])
    np.testing.assert_array_equal(POOL.items.is_candidate, before)
    with pytest.raises(DataError, match="'nowhere'"):
        POOL.state_after([Told("nowhere", 1.0)])
