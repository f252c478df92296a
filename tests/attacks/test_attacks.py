import sys
from collections import Counter

import numpy as np
import pytest

from tests.attacks.bombs import BOMBS, explode, fill
from tests.attacks.conftest import SEED, TIMES
from tests.attacks.flipped import DEFECTS, KINDS, SAME, expected, flip
from tests.attacks.hostile import make_hostile, problems
from tests.attacks.jobs import JOBS
from tests.attacks.judging import ACCEPTED, REFUSED

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


QUICK = ("60,000 ids", "a CSV that is /dev/zero", "a bank's items that are a pipe", "a bank's record of 20 GiB")
DISKS = ("import over another", "select", "session start", "simulate")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BOMBS]
)
def test_a_bomb_is_refused_in_little_memory(workplace, name):
    found, said = explode(name, workplace)
    assert found in ({ACCEPTED, REFUSED} if BOMBS[name].may_be_taken else {REFUSED}), said


@pytest.mark.parametrize("name", DISKS)
def test_a_full_disk_is_named_and_spoils_nothing(workplace, name):
    found, said = fill(JOBS[name], workplace, 200)
    assert found == REFUSED, said
    assert "cannot be written" in said


@pytest.mark.usefixtures("few_folds")
def test_no_name_drives_a_terminal_a_browser_or_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # to bundle it takes seconds
    make_hostile(tmp_path)
    assert problems(tmp_path) == []
