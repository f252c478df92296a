import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from itembank.bank.bank_checks import bank_problems
from itembank.bank.bank_files import load_bank
from itembank.errors import IntegrityError
from tests.bank.banks import make_bank, with_family
from tests.bank.crafted_banks import FURTHER, REVIEWED, craft, first


@pytest.mark.parametrize("name", [*REVIEWED, *FURTHER])
def test_a_bank_of_right_digests_and_impossible_content_is_refused(tmp_path, name):
    folder = craft(tmp_path / "bank", (REVIEWED | FURTHER)[name])
    with pytest.raises(IntegrityError, match=r"(Calibrate|get) it(em|) ?.*again|Calibrate the bank again"):
        load_bank(folder)


def test_the_message_says_what_must_hold_what_came_where_and_what_to_do(tmp_path):
    folder = craft(tmp_path / "bank", first("intercept", float("nan")))
    with pytest.raises(IntegrityError) as caught:
        load_bank(folder)
    assert str(caught.value) == (
        f"{folder} holds what no calibration gives: intercept must be finite, got nan and the like for 'math/0'. Its "
        "files match its record, so another program wrote them. Calibrate the bank again, or get it from another "
        "place."
    )


def test_the_command_line_exits_with_4(tmp_path):
    folder = craft(tmp_path / "bank", first("lower_asymptote", 7.0))
    done = subprocess.run(
        [sys.executable, "-m", "itembank", "info", folder], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert "asymptotes must keep 0 <= lower < upper <= 1, got 7 and 1 for 'math/0'" in " ".join(done.stderr.split())


@pytest.mark.parametrize("family", ["bernoulli", "binomial", "beta", "beta-binomial"])
def test_a_sound_bank_has_no_problems(family):
    bank = make_bank(with_extras=True)
    assert bank_problems(bank if family == "bernoulli" else with_family(bank, family)) == []


def test_rounding_is_no_problem_and_every_problem_is_named_at_once():
    bank = make_bank()
    targets = dataclasses.replace(bank.targets, weights=bank.targets.weights * (1.0 + 1e-9))
    assert bank_problems(dataclasses.replace(bank, targets=targets)) == []
    bank.parameters.intercept[:2] = np.nan
    bank.calibration.abilities[3] = np.inf
    found = " ".join(bank_problems(bank))
    for words in ("intercept must be finite", "'math/0', 'code/1'.", "got inf and the like for 'org/model-3'."):
        assert words in found
