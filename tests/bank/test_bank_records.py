import dataclasses
import json

import numpy as np
import pytest

import itembank as ib
from itembank.bank.bank_files import load_bank, save_bank
from itembank.banks import Link, whole_bank, with_target
from itembank.errors import BankError, IntegrityError, ParameterError
from itembank_living import descendant, note
from tests.bank.banks import make_bank
from tests.bank.crafted_banks import HISTORIES, craft, of_arrays
from tests.living.living import retired_bank


@pytest.fixture
def folder(tmp_path):
    save_bank(make_bank(), tmp_path / "bank")
    return tmp_path / "bank"


@pytest.mark.harness
def test_a_bank_is_pulled_by_its_name_and_only_its_files_are(hub, folder):
    hub.put("me/bank", folder, **{"README.md": b"# hello", "score.py": b"raise SystemExit", "data/big.bin": b"0" * 99})
    bank = load_bank("hf:me/bank")
    assert bank.bank_id == load_bank(folder).bank_id
    np.testing.assert_array_equal(bank.responses.responses, load_bank(folder).responses.responses)
    tables = {f"{name}.parquet" for name in ("items", "models", "responses")}
    assert {*hub.fetched()} == {"README.md", "arrays.safetensors", "bank.json", *tables}
    assert len(hub.fetched()) == 6
    with pytest.raises(ParameterError, match="Copy it into a folder"):
        bank.cache.keep_in_bank()


@pytest.mark.harness
def test_each_revision_is_its_own_bank_and_says_its_commit(hub, folder, tmp_path):
    save_bank(make_bank(seed=1), tmp_path / "newer")
    hub.put("me/bank", folder, "v1")
    hub.put("me/bank", tmp_path / "newer")
    old, new = load_bank("hf:me/bank@v1"), load_bank("hf:me/bank")
    assert (old.bank_id, new.bank_id) == (load_bank(folder).bank_id, load_bank(tmp_path / "newer").bank_id)
    assert old.cache.source == f"hf:me/bank@{hub.commit_of('me/bank', 'v1')[1]}"
    assert load_bank(old.cache.source).bank_id == old.bank_id
    with pytest.raises(BankError, match="no such revision"):
        load_bank("hf:me/bank@v2")


@pytest.mark.harness
def test_what_was_pulled_is_found_without_the_hub_and_a_commit_is_not_asked_for_twice(hub, folder, monkeypatch):
    hub.put("me/bank", folder)
    known = load_bank("hf:me/bank")
    n_asked = len(hub.asked)
    assert load_bank(known.cache.source).cache.source == known.cache.source
    hub.close()
    assert load_bank("hf:me/bank").bank_id == load_bank(known.cache.source).bank_id == known.bank_id
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load_bank("hf:me/bank").bank_id == known.bank_id
    with pytest.raises(BankError, match="no whole copy"):
        load_bank("hf:me/other")
    assert len(hub.asked) == n_asked


@pytest.mark.harness
def test_an_interrupted_download_goes_on(hub, folder):
    hub.put("me/bank", folder)
    hub.held_back.add("models.parquet")
    name = f"hf:me/bank@{hub.commit_of('me/bank', 'main')[1]}"
    with pytest.raises(BankError, match=r"cannot be pulled.*Try again"):
        load_bank(name)
    hub.held_back.clear()
    assert load_bank(name).bank_id == load_bank(folder).bank_id
    assert hub.fetched().count("bank.json") == 1


@pytest.mark.harness
def test_a_changed_file_of_the_right_length_is_refused_with_exit_code_4(hub, folder, run):
    content = bytearray((folder / "items.parquet").read_bytes())
    content[40] ^= 1
    hub.put("me/bank", folder, **{"items.parquet": bytes(content)})
    with pytest.raises(IntegrityError, match="is not the file that was written"):
        load_bank("hf:me/bank")
    assert run("info", "hf:me/bank").code == 4


@pytest.mark.harness
@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("responses.parquet", 5 * 2**40, "as long as its record says, and 'responses.parquet'"),
        ("cache/folds.safetensors", 5 * 2**40, "at most"),
        ("bank.json", 10**12, r"bank\.json must have at most"),
    ],
)
def test_what_is_too_long_is_refused_before_it_is_downloaded(hub, folder, name, size, message):
    hub.put("me/bank", folder, **{"cache/folds.safetensors": b"x"})
    hub.sizes[name] = size
    with pytest.raises(IntegrityError, match=message):
        load_bank("hf:me/bank")
    assert hub.fetched() == ([] if name == "bank.json" else ["bank.json"])
    with pytest.raises(BankError, match=r"hf:me/nothing cannot be pulled.*log in"):
        load_bank("hf:me/nothing")


@pytest.mark.harness
@pytest.mark.parametrize("path", ["../../evil", "/etc/evil", "cache/../../evil.safetensors", "a\\..\\evil", "C:evil"])
def test_a_repository_with_files_outside_its_folder_is_refused(hub, folder, path):
    hub.put("me/bank", folder, **{path: b"x"})
    with pytest.raises(IntegrityError, match="must lie in its folder"):
        load_bank("hf:me/bank")
    assert hub.fetched() == []


@pytest.mark.harness
def test_a_repository_that_is_no_bank_is_said_to_be_none(hub, tmp_path):
    (tmp_path / "model").mkdir()
    hub.put("me/model", tmp_path / "model", **{"README.md": b"hello"})
    with pytest.raises(BankError, match=r"holds no bank\.json"):
        load_bank("hf:me/model")


@pytest.mark.harness
def test_a_journal_keeps_the_commit_and_opens_again(hub, folder, tmp_path):
    hub.put("me/bank", folder)
    spec = ib.SessionSpec(budget=ib.Budget(n_items=3), interval="model-based")
    with ib.start_session(tmp_path / "run.jsonl", "hf:me/bank", spec, model_id="new") as session:
        session.tell(session.ask()[0], 1.0)
    header = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])
    assert header["bank_path"] == f"hf:me/bank@{hub.commit_of('me/bank', 'main')[1]}"
    with ib.open_session(tmp_path / "run.jsonl") as session:
        assert session.ask()


RETIRED = retired_bank()
"""A bank that keeps an item aside."""


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_nothing_wrote_is_refused(tmp_path, name):
    with pytest.raises(IntegrityError):
        load_bank(craft(tmp_path / "bank", HISTORIES[name], RETIRED))


def test_signing_changes_nothing_and_a_bank_of_an_earlier_score_is_not_written(tmp_path):
    """Else the crafted banks might be refused for another reason than their content."""
    for name, bank in (("one", RETIRED), ("other", make_bank())):
        assert load_bank(craft(tmp_path / name, lambda _folder, _record: None, bank)).bank_id == bank.bank_id
    with pytest.raises(BankError, match="got one with its earlier score 'quiz@1'"):
        save_bank(with_target(RETIRED, "quiz@1"), tmp_path / "bank")
    assert not (tmp_path / "bank").exists()
    damaged = craft(tmp_path / "bank", of_arrays(**{"target.0.weights": lambda held: held * 2.0}), RETIRED)
    with pytest.raises(IntegrityError, match="target 'quiz@1' is not what its bank says"):
        with_target(load_bank(damaged), "quiz@1")


def test_writing_and_reading_change_nothing(tmp_path):
    link = Link("fixed", 5, 30, 0.003)
    bank = descendant(RETIRED, whole_bank(RETIRED), "try", note="a note", arguments={"n": [1, 2]}, link=link)
    save_bank(bank, tmp_path / "bank")
    again = load_bank(tmp_path / "bank")
    assert again.history.changes == bank.history.changes
    assert again.history.status.tolist() == bank.history.status.tolist()
    for ours, theirs in zip(bank.history.targets, again.history.targets, strict=True):
        assert (ours.name, ours.digest, ours.bank_id) == (theirs.name, theirs.digest, theirs.bank_id)
        np.testing.assert_array_equal(ours.weights, theirs.weights)
    record = json.loads((tmp_path / "bank" / "bank.json").read_text())["history"]
    assert (record["name"], record["version"], record["parent"]) == ("quiz", "2.0.1", RETIRED.bank_id)
    assert record["created"] == bank.history.changes[-1].at


def test_a_bank_without_history_has_a_version_and_a_target():
    bank = make_bank()
    assert (bank.name, bank.version, bank.history) == ("", "1.0.0", None)
    assert bank.target_id == bank.target_digest == note(bank, "x").target_id
    assert make_bank(seed=3).target_digest == bank.target_digest  # the same items, calibrated otherwise
    assert make_bank(n_items=27).target_digest != bank.target_digest
    turned, targets = bank.responses.take(items=np.arange(30)[::-1]), type(bank.targets).create
    turned = dataclasses.replace(bank, responses=turned, targets=targets(turned.items))
    assert turned.target_digest == bank.target_digest
