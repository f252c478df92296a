"""Groups of items: lists of an earlier version of the bank still serve."""

import numpy as np
import pytest

from itembank.auditing.fit_groups import item_groups
from itembank.errors import DataWarning, ParameterError
from itembank.living.notes import retire
from tests.auditing.fit_world import bank


@pytest.fixture(scope="module")
def clean_bank():
    return retire(bank(), bank().item_ids[:2], reason="wrong key")


def test_listed_items_that_count_no_more_are_left_out(clean_bank):
    ids = bank().item_ids
    with pytest.warns(DataWarning, match=r"2 of 5 items of group 'public' count no more") as caught:
        public = item_groups(clean_bank, {"public": ids[:5]}, ids[5:9])[-1]
    assert len(caught) == 1
    assert np.flatnonzero(public.is_member).tolist() == [0, 1, 2]
    assert np.flatnonzero(public.is_reference).tolist() == [3, 4, 5, 6]
    with pytest.warns(DataWarning, match=r"1 of 3 items of the reference"):
        assert item_groups(clean_bank, {}, ids[1:4])[-1].is_reference.sum() == 2


def test_a_group_that_counts_no_more_at_all_is_refused(clean_bank):
    with (
        pytest.warns(DataWarning, match="2 of 2 items"),
        pytest.raises(ParameterError, match="not all, got 0"),
    ):
        item_groups(clean_bank, {"public": bank().item_ids[:2]}, None)
