import sys
from collections import Counter

import numpy as np
import pytest

from tests.attacks.conftest import SEED, TIMES
from tests.attacks.flipped import DEFECTS, KINDS, SAME, expected, flip

CHEAP = [kind for kind in KINDS if kind != "cache"]
"""A broken cache is made anew, which takes a third of a second; tests/bank/test_bank_cache.py flips its bits."""


@pytest.mark.parametrize("kind", CHEAP)
def test_no_flipped_bit_changes_a_number_without_a_word(workplace, kind):
    right = expected(kind, workplace)
    found = [flip(kind, workplace, right, np.random.default_rng([turn, 77 + SEED])) for turn in range(25 * TIMES)]
    sys.stdout.write(f"flips, {kind}: {Counter(one.verdict for one in found)}\n")
    assert [one for one in found if one.verdict in DEFECTS] == []
    assert any(one.verdict != SAME for one in found)  # else nothing was turned over


def test_a_flipped_bit_of_the_cache_changes_no_estimate(workplace):
    found = flip("cache", workplace, expected("cache", workplace), np.random.default_rng(77 + SEED))
    assert found.verdict == SAME
