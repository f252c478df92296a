import dataclasses
import json

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.banks import Link, Operation, descendant, note, whole_bank, with_target
from itembank.errors import BankError, IntegrityError
from tests.bank.banks import make_bank
from tests.bank.crafted_banks import HISTORIES, craft, of_arrays
from tests.living.living import retired_bank


@pytest.fixture(scope="module")
def retired():
    """A bank that keeps an item aside."""
    return retired_bank()


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_nothing_wrote_is_refused(tmp_path, retired, name):
    with pytest.raises(IntegrityError):
        load_bank(craft(tmp_path / "bank", HISTORIES[name], retired))


def test_signing_alone_changes_nothing(tmp_path, retired):
    """Else the crafted banks might be refused for another reason than their content."""
    for name, bank in (("one", retired), ("other", make_bank())):
        assert load_bank(craft(tmp_path / name, lambda _folder, _record: None, bank)).bank_id == bank.bank_id


def test_a_damaged_target_of_before_is_refused_when_it_is_asked_for(tmp_path, retired):
    change = of_arrays(**{"target.0.weights": lambda held: held * 2.0})
    bank = load_bank(craft(tmp_path / "bank", change, retired))
    with pytest.raises(IntegrityError, match="target 'quiz@1' is not what its bank says"):
        with_target(bank, "quiz@1")


def test_writing_and_reading_change_nothing(tmp_path, retired):
    link = Link("fixed", 5, 30, 0.003)
    bank = descendant(retired, whole_bank(retired), Operation("try", "a note", {"n": [1, 2]}, link))
    save_bank(bank, tmp_path / "bank")
    again = load_bank(tmp_path / "bank")
    assert again.history.changes == bank.history.changes
    assert again.history.status.tolist() == bank.history.status.tolist()
    for ours, theirs in zip(bank.history.targets, again.history.targets, strict=True):
        assert (ours.name, ours.digest, ours.bank_id) == (theirs.name, theirs.digest, theirs.bank_id)
        np.testing.assert_array_equal(ours.weights, theirs.weights)
    record = json.loads((tmp_path / "bank" / "bank.json").read_text())["history"]
    assert (record["name"], record["version"], record["parent"]) == ("quiz", "2.0.1", retired.bank_id)
    assert record["created"] == bank.history.changes[-1].at


def test_a_bank_of_an_earlier_score_is_not_written(tmp_path, retired):
    with pytest.raises(BankError, match="got one with its earlier score 'quiz@1'"):
        save_bank(with_target(retired, "quiz@1"), tmp_path / "bank")
    assert not (tmp_path / "bank").exists()


def test_a_bank_without_history_has_a_version_and_a_target():
    bank = make_bank()
    assert (bank.name, bank.version, bank.history) == ("", "1.0.0", None)
    assert bank.target_id == bank.target_digest == note(bank, "x").target_id
    other = make_bank(seed=3)
    assert other.target_digest == bank.target_digest  # the same items, calibrated otherwise
    assert make_bank(n_items=27).target_digest != bank.target_digest
    turned = dataclasses.replace(
        bank,
        responses=bank.responses.take(items=np.arange(30)[::-1]),
        targets=type(bank.targets).create(bank.responses.items[::-1]),
    )
    assert turned.target_digest == bank.target_digest
