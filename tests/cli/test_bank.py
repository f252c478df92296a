import pytest

from itembank.bank.bank_files import load_bank, save_bank
from tests.living.living import named_bank


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a bank of a name, and files of ids."""
    monkeypatch.chdir(tmp_path)
    save_bank(named_bank(n_models=15), tmp_path / "bank")
    (tmp_path / "bad.txt").write_text("math/0\ncode/1\n", encoding="utf-8")
    (tmp_path / "bad.csv").write_text("item_id\nlaw/2\nmath/0\n", encoding="utf-8")
    return tmp_path


def test_ids_come_from_files_and_from_the_command_line(run, folder):
    outcome = run.json("bank", "retire", "bank", "bad.txt", "bad.csv", "law/5", "--reason", "key", "-o", "new")
    (row,) = outcome["rows"]
    assert (row["version"], row["target_id"], row["items"], row["items_aside"]) == ("2.0.0", "quiz@2", 26, 4)
    assert not {"math/0", "code/1", "law/2", "law/5"} & set(load_bank(folder / "new").item_ids)
    assert load_bank(folder / "bank").n_items == 30


def test_unknown_ids_and_files_are_named(run, folder):
    outcome = run("bank", "retire", "bank", "mth/3", "--reason", "key", "-o", "new")
    assert outcome.code == 1
    assert "Did you mean 'math/3'?" in outcome.err
    assert "files of ids that are there" in run("bank", "retire", "bank", "no.txt", "--reason", "key", "-o", "new").err
    assert run("bank", "retire", "bank", "bad.txt", "--reason", " ", "-o", "new").code == 2
    assert run("bank", "retire", "bank", "bad.txt", "--reason", "key", "-o", "bank").code == 1
    assert not (folder / "new").exists()


def test_a_bank_may_take_the_place_of_the_one_before(run, folder):
    run.ok("bank", "retire", "bank", "bad.txt", "--reason", "key", "-o", "bank", "--force")
    assert load_bank(folder / "bank").n_items == 28


def test_the_log_says_who_did_what_when_and_why(run, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    run("bank", "retire", "bank", "bad.txt", "--reason", "wrong key", "--label", "clean", "-o", "new")
    outcome = run("info", "new", "--log")
    assert "quiz is at version 2.0.0" in outcome.out
    first, last = run.json("info", "new", "--log")["rows"]
    assert (first["operation"], first["note"]) == ("note", "as it was")
    assert (last["operation"], last["note"], last["target_id"]) == ("retire", "wrong key", "quiz@1-clean")
    assert last["items_dropped"]["first"] == ["code/1", "math/0"]
    assert last["by"].startswith("itembank ")
    for word in ("retire", "wrong key", "-2", last["at"]):
        assert word in outcome.out


def test_info_says_which_version_it_is(run, folder):
    run("bank", "retire", "bank", "bad.txt", "--reason", "wrong key", "-o", "new")
    about = run.json("info", "new")
    parent = load_bank(folder / "bank").bank_id
    assert (about["name"], about["version"], about["parent"]) == ("quiz", "2.0.0", parent)
    assert (about["target_id"], about["n_items_aside"]) == ("quiz@2", 2)
    assert f"quiz 2.0.0, from bank {parent}" in run("info", "new").out


def test_both_scores_are_estimated_with_their_intervals(run, folder):
    run("bank", "retire", "bank", "bad.txt", "--reason", "wrong key", "-o", "new")
    ids = load_bank(folder / "bank").item_ids[::2]
    (folder / "one.csv").write_text(
        "model_id,item_id,response\n" + "".join(f"m,{item},{k % 2}\n" for k, item in enumerate(ids)), encoding="utf-8"
    )
    fast = ("--method", "p-irt", "--interval", "model-based", "--format", "json")
    before = run("estimate", "bank", "one.csv", *fast).json["rows"]
    of_old = run("estimate", "new", "one.csv", "--target", "quiz@1", *fast).json["rows"]
    of_new = run("estimate", "new", "one.csv", *fast).json["rows"]
    assert of_old == before
    assert {row["target_id"] for row in of_new} == {"quiz@2"}
    assert of_new[-1]["n_total"] == 28
    outcome = run("estimate", "new", "one.csv", "--target", "quiz@9", *fast)
    assert outcome.code == 1
    assert "'quiz@1', 'quiz@2', 'mean_win_rate', got 'quiz@9'" in outcome.err


@pytest.mark.usefixtures("folder")
def test_banks_are_compared(run):
    run("bank", "retire", "bank", "bad.txt", "--reason", "wrong key", "-o", "new")
    found = run.json("info", "bank", "new")
    assert found["is_same_score"] is False
    assert [row["what"] for row in found["differences"]] == ["items with another status"]
    named = run("bank", "note", "bank", "text", "--name", "../x", "-o", "other")
    assert named.code == 2
    assert "a name must begin" in named.err


def test_a_bank_that_never_changed_has_no_history(run, bank_folder):
    outcome = run("info", bank_folder, "--log")
    assert (outcome.code, outcome.out) == (0, "The bank is at version 1.0.0 after 0 changes\n")
    assert "has no history" in outcome.err
