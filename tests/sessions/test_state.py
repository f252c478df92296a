import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError
from itembank.selection.item_worth import DesignItems
from itembank.sessions.events import Asked, Failed, Told
from itembank.sessions.state import apply, check, fold, initial
from tests.sessions.simulated import session_bank

BANK = session_bank(n_items=9)
EXCLUDED = BANK.item_ids[8]
ITEMS = DesignItems.of_bank(BANK, excluded=[EXCLUDED])
POSITIONS = {item: position for position, item in enumerate(BANK.item_ids)}
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
    state, words = initial(ITEMS), dict.fromkeys(BANK.item_ids, "new")
    for event in events:
        try:
            check(state, event, POSITIONS)
        except DataError:
            assert isinstance(event, Asked)
            is_taken = any(words[item] in {"pending", "told"} for item in event.item_ids)
            assert is_taken or len(set(event.item_ids)) < len(event.item_ids)
            continue
        apply(state, event, ITEMS, POSITIONS)
        for item in event.item_ids if isinstance(event, Asked) else (event.item_id,):
            match event:
                case Asked():
                    words[item] = "pending"
                case Told():
                    words[item] = "told"
                case Failed():
                    words[item] = "new" if event.again else "skipped"
    kinds = np.array([words[item] for item in BANK.item_ids])
    is_used = (kinds == "pending") | (kinds == "told")
    is_open = (kinds == "new") & np.array([item != EXCLUDED for item in BANK.item_ids])
    np.testing.assert_array_equal(state.is_open, is_open)
    np.testing.assert_array_equal(state.counts, np.bincount(ITEMS.scenario_index[is_used], minlength=3))
    np.testing.assert_array_equal(state.n_open, np.bincount(ITEMS.scenario_index[is_open], minlength=3))
    assert sorted(state.pending) == np.flatnonzero(kinds == "pending").tolist()
    assert state.answered.tolist() == np.flatnonzero(kinds == "told").tolist()
    assert sorted(state.skipped) == np.flatnonzero(kinds == "skipped").tolist()
    assert state.n_used == is_used.sum()


def test_folding_leaves_the_layout_alone():
    before = ITEMS.is_candidate.copy()
    fold(ITEMS, POSITIONS, [Asked((BANK.item_ids[0],)), Told(BANK.item_ids[1], 0.0)])
    np.testing.assert_array_equal(ITEMS.is_candidate, before)


def test_events_on_unknown_items_are_refused():
    with pytest.raises(DataError, match="'nowhere'"):
        fold(ITEMS, POSITIONS, [Told("nowhere", 1.0)])
