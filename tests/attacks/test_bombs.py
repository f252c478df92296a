import pytest

from tests.attacks.bombs import BOMBS, explode, fill
from tests.attacks.jobs import JOBS
from tests.attacks.judging import ACCEPTED, REFUSED

QUICK = ("60,000 ids", "a CSV that is /dev/zero", "a bank's items that are a pipe", "a bank's record of 20 GiB")
DISKS = ("import over another", "select", "session start", "simulate")


def check(name, workplace):
    found, said = explode(name, workplace)
    assert found in ({ACCEPTED, REFUSED} if BOMBS[name].may_be_taken else {REFUSED}), said


@pytest.mark.parametrize("name", QUICK)
def test_a_bomb_is_refused_in_little_memory(workplace, name):
    check(name, workplace)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BOMBS if name not in QUICK])
def test_every_bomb_is_met(workplace, name):
    check(name, workplace)


@pytest.mark.parametrize("name", DISKS)
def test_a_full_disk_is_named_and_spoils_nothing(workplace, name):
    found, said = fill(JOBS[name], workplace, 200)
    assert found == REFUSED, said
    assert "cannot be written" in said
