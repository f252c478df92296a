import json
import shutil

import numpy as np
import pytest

import itembank as ib
from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import BankError, IntegrityError, ParameterError
from tests.bank.banks import make_bank

pytestmark = pytest.mark.harness


@pytest.fixture
def folder(tmp_path):
    save_bank(make_bank(), tmp_path / "bank")
    return tmp_path / "bank"


def test_a_bank_is_pulled_by_its_name_and_only_its_files_are(hub, folder):
    hub.put("me/bank", folder, **{"README.md": b"# hello", "score.py": b"raise SystemExit", "data/big.bin": b"0" * 99})
    bank = load_bank("hf:me/bank")
    assert bank.bank_id == load_bank(folder).bank_id
    np.testing.assert_array_equal(bank.responses.responses, load_bank(folder).responses.responses)
    assert sorted(hub.fetched()) == [
        "README.md", "arrays.safetensors", "bank.json", "items.parquet", "models.parquet", "responses.parquet"
    ]  # fmt: skip


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


def test_what_was_pulled_is_found_without_the_hub(hub, folder, monkeypatch):
    hub.put("me/bank", folder)
    known = load_bank("hf:me/bank")
    hub.close()
    n_asked = len(hub.asked)
    assert load_bank("hf:me/bank").bank_id == known.bank_id
    assert load_bank(known.cache.source).bank_id == known.bank_id
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load_bank("hf:me/bank").bank_id == known.bank_id
    with pytest.raises(BankError, match="no whole copy"):
        load_bank("hf:me/other")
    assert len(hub.asked) == n_asked


def test_a_commit_is_not_asked_for_twice(hub, folder):
    hub.put("me/bank", folder)
    source = load_bank("hf:me/bank").cache.source
    n_asked = len(hub.asked)
    assert load_bank(source).cache.source == source
    assert len(hub.asked) == n_asked


def test_an_interrupted_download_goes_on(hub, folder):
    hub.put("me/bank", folder)
    hub.held_back.add("models.parquet")
    name = f"hf:me/bank@{hub.commit_of('me/bank', 'main')[1]}"
    with pytest.raises(BankError, match=r"cannot be pulled.*Try again"):
        load_bank(name)
    hub.held_back.clear()
    assert load_bank(name).bank_id == load_bank(folder).bank_id
    assert hub.fetched().count("bank.json") == 1


def test_a_changed_file_of_the_right_length_is_refused_with_exit_code_4(hub, folder, run):
    content = bytearray((folder / "items.parquet").read_bytes())
    content[40] ^= 1
    hub.put("me/bank", folder, **{"items.parquet": bytes(content)})
    with pytest.raises(IntegrityError, match="is not the file that was written"):
        load_bank("hf:me/bank")
    assert run("info", "hf:me/bank").code == 4


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


@pytest.mark.parametrize("path", ["../../evil", "/etc/evil", "cache/../../evil.safetensors", "a\\..\\evil", "C:evil"])
def test_a_repository_with_files_outside_its_folder_is_refused(hub, folder, path):
    hub.put("me/bank", folder, **{path: b"x"})
    with pytest.raises(IntegrityError, match="must lie in its folder"):
        load_bank("hf:me/bank")
    assert hub.fetched() == []


def test_a_repository_that_is_no_bank_is_said_to_be_none(hub, folder):
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "README.md").write_text("hello")
    hub.put("me/model", folder)
    with pytest.raises(BankError, match=r"holds no bank\.json"):
        load_bank("hf:me/model")


def test_a_journal_keeps_the_commit_and_opens_again(hub, folder, tmp_path):
    hub.put("me/bank", folder)
    spec = ib.SessionSpec(budget=ib.Budget(n_items=3), interval="model-based")
    with ib.start_session(tmp_path / "run.jsonl", "hf:me/bank", spec, model_id="new") as session:
        session.tell(session.ask()[0], 1.0)
    header = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])
    assert header["bank_path"] == f"hf:me/bank@{hub.commit_of('me/bank', 'main')[1]}"
    with ib.open_session(tmp_path / "run.jsonl") as session:
        assert session.ask()


def test_the_client_cache_is_not_written_to(hub, folder):
    hub.put("me/bank", folder)
    with pytest.raises(ParameterError, match="Copy it into a folder"):
        load_bank("hf:me/bank").cache.keep_in_bank()
