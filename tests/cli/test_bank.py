"""`itembank bank`: banks that change and grow; what growing does with models and items, see tests/living."""

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_views import whole_bank
from tests.bank.banks import make_bank
from tests.cli.conftest import holds
from tests.cli.session.loops import FAST
from tests.living.living import named_bank
from tests.living.test_growing import new_models
from tests.living.test_link_items import few_links, linking


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named_bank(n_models=15).save(tmp_path / "bank")
    (tmp_path / "bad.txt").write_text("math/0\ncode/1\n", encoding="utf-8")
    (tmp_path / "bad.csv").write_text("item_id\nlaw/2\nmath/0\n", encoding="utf-8")
    return tmp_path


def test_ids_come_from_files_and_from_the_command_line_and_must_be_known(run, folder):
    outcome = run.json("bank", "retire", "bank", "bad.txt", "bad.csv", "law/5", "--reason", "key", "-o", "new")
    (row,) = outcome["rows"]
    assert (row["version"], row["target_id"], row["items"], row["items_aside"]) == ("2.0.0", "quiz@2", 26, 4)
    assert not {"math/0", "code/1", "law/2", "law/5"} & set(ib.load_bank(folder / "new").item_ids)
    assert ib.load_bank(folder / "bank").n_items == 30
    run.fails(1, "Did you mean 'math/3'?", "bank", "retire", "bank", "mth/3", "--reason", "key", "-o", "none")
    assert "files of ids that are there" in run("bank", "retire", "bank", "no.txt", "--reason", "key", "-o", "none").err
    assert run("bank", "retire", "bank", "bad.txt", "--reason", " ", "-o", "none").code == 2
    assert run("bank", "retire", "bank", "bad.txt", "--reason", "key", "-o", "bank").code == 1
    assert not (folder / "none").exists()
    run.ok("bank", "retire", "bank", "bad.txt", "--reason", "key", "-o", "bank", "--force")
    assert ib.load_bank(folder / "bank").n_items == 28


@pytest.mark.usefixtures("folder")
def test_log_and_info_say_who_did_what_when_and_why(run, folder, monkeypatch):
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
    run("bank", "retire", "bank", "bad.txt", "--reason", "wrong key", "-o", "new", "--force")
    about, parent = run.json("info", "new"), ib.load_bank(folder / "bank").bank_id
    assert (about["name"], about["version"], about["parent"]) == ("quiz", "2.0.0", parent)
    assert (about["target_id"], about["n_items_aside"]) == ("quiz@2", 2)
    assert f"quiz 2.0.0, from bank {parent}" in run("info", "new").out
    found = run.json("info", "bank", "new")
    assert found["is_same_score"] is False
    assert [row["what"] for row in found["differences"]] == ["items with another status"]
    run.fails(2, "a name must begin", "bank", "note", "bank", "text", "--name", "../x", "-o", "other")


def test_both_scores_are_estimated_with_their_intervals(run, folder):
    run("bank", "retire", "bank", "bad.txt", "--reason", "wrong key", "-o", "new")
    ids = ib.load_bank(folder / "bank").item_ids[::2]
    rows = "".join(f"m,{item},{k % 2}\n" for k, item in enumerate(ids))
    (folder / "one.csv").write_text(f"model_id,item_id,response\n{rows}", encoding="utf-8")
    fast = ("--method", "p-irt", "--interval", "model-based", "--format", "json")
    before = run("estimate", "bank", "one.csv", *fast).json["rows"]
    of_old = run("estimate", "new", "one.csv", "--target", "quiz@1", *fast).json["rows"]
    of_new = run("estimate", "new", "one.csv", *fast).json["rows"]
    assert (of_old, {row["target_id"] for row in of_new}, of_new[-1]["n_total"]) == (before, {"quiz@2"}, 28)
    words = ("estimate", "new", "one.csv", "--target", "quiz@9", *fast)
    run.fails(1, "'quiz@1', 'quiz@2', 'mean_win_rate', got 'quiz@9'", *words)


def test_a_bank_that_never_changed_has_no_history(run, bank_folder):
    outcome = run("info", bank_folder, "--log")
    assert (outcome.code, outcome.out) == (0, "The bank is at version 1.0.0 after 0 changes\n")
    assert "has no history" in outcome.err


__all__ = ["few_links"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bank = named_bank(n_models=20, n_items=40, n_dims=1)
    bank.save("bank")
    ib.write_responses(linking(bank)[0], "late.parquet")
    ib.write_responses(new_models(bank, n_items=20), "models.parquet")
    return tmp_path


def test_a_link_is_shown_first_then_items_and_models_join_and_the_bank_learns(place, run):
    shown = run("bank", "add-items", "bank", "late.parquet", "--dry-run", "--format", "json")
    found = shown.json
    assert (found["linking_models"], len(found["items"])) == (6, 12)
    assert found["linking_error"] > 0.0
    holds(shown.err, "run these past models on the new items", "6 models link; 10 to 20")
    assert sorted(path.name for path in place.iterdir()) == ["bank", "late.parquet", "models.parquet"]
    shown = run("bank", "add-items", "bank", "late.parquet", "--dry-run", "--format", "json").json
    made = run.ok("bank", "add-items", "bank", "late.parquet", "-o", "bank-2")
    link = ib.load_bank("bank-2").history.changes[-1].link
    assert shown["linking_error"] == pytest.approx(link.linking_error, rel=1e-9)  # of the score, of which it is a part
    assert "points to scores" in made.err
    run.ok("bank", "add-models", "bank-2", "models.parquet", "--how", "random", "-o", "bank-3")
    run.ok("bank", "recalibrate", "bank-3", "-o", "bank-4")
    log = pl.DataFrame(run.json("info", "bank-4", "--log")["rows"])
    assert log["operation"].to_list() == ["note", "add-items", "add-models", "recalibrate"]
    assert ib.load_bank("bank-4").n_models == 34


def test_what_new_items_do_to_the_score_is_said(place, run):
    bank = ib.load_bank("bank")
    given, _ = linking(bank, n_new=4)
    is_new = pl.col("item_id").str.starts_with("new")
    items = given.items.with_columns(pl.when(is_new).then(pl.lit("history")).otherwise("scenario").alias("scenario"))
    ib.write_responses(given.with_tables(items=items), "history.parquet")
    made = run.ok("bank", "add-items", "bank", "history.parquet", "-o", "bank-2")
    holds(made.err, "the link adds a standard error", "New in the overall score, as 1 scenario: 'history'.")
    tried = run.ok("bank", "add-items", "bank", "history.parquet", "--status", "field-test", "-o", "bank-3")
    assert "the link would, once they count, add a standard error" in tried.err
    assert "New in the overall score" not in tried.err


def test_answers_of_a_session_join_from_its_journal(place, run):
    run.ok("session", "start", "bank", "-o", "s.jsonl", "--model-id", "tested", *FAST)
    for number in range(4):
        asked = run("session", "ask", "s.jsonl").json["items"][0]["item_id"]
        run.ok("session", "tell", "s.jsonl", asked, "--response", number % 2)
    run.ok("bank", "add-models", "bank", "s.jsonl", "-o", "bank-2")
    assert ib.load_bank("bank-2").responses.models.filter(model_id="tested")["answered_how"].to_list() == ["adaptive"]
    assert run("bank", "add-models", "bank", "s.jsonl", "--how", "random", "-o", "bank-3").code == 2
    words = ("bank", "add-models", "bank", "s.jsonl", "models.parquet", "-o", "bank-3")
    run.fails(2, "journals of sessions or other results", *words)


def test_a_session_begun_before_items_were_retired_joins_and_is_examined(place, run):
    run.ok("session", "start", "bank", "-o", "s.jsonl", "--model-id", "new", *FAST)
    asked = []
    for number in range(12):
        asked.append(run("session", "ask", "s.jsonl").json["items"][0]["item_id"])
        run("session", "tell", "s.jsonl", asked[-1], "--response", number % 2)
    (place / "wrong.txt").write_text("\n".join(asked[:3]))
    run.ok("bank", "retire", "bank", "wrong.txt", "--reason", "wrong key", "-o", "clean")
    added = run.ok("bank", "add-models", "clean", "s.jsonl", "-o", "grown")
    assert "3 of 12 items that were asked no longer count in the score" in added.err
    grown = ib.load_bank("grown")
    assert np.sum(~np.isnan(grown.responses.responses[-1])) == 9
    assert np.sum(~np.isnan(whole_bank(grown).responses.responses[-1])) == 12
    checked = run("check", "clean", "s.jsonl", "--only", "fit", "--format", "json")
    assert "started for quiz@1: they are checked on its items" in checked.err
    assert checked.json["fit"][0]["n_items"] == 12


def test_the_log_shows_what_new_results_were_run_with(place, run):
    (place / "about.csv").write_text("model_id,harness_version\n" + "".join(f"late-{k},7.1\n" for k in range(8)))
    run.ok("import", "models.parquet", "--models", "about.csv", "-o", "told.parquet")
    run.ok("bank", "add-models", "bank", "told.parquet", "-o", "bank-2")
    assert "harness_version 7.1" in run("info", "bank-2", "--log").out
    assert "run with" not in run("info", "bank", "--log").out
    run.ok("bank", "recalibrate", "bank-2", "-o", "bank-3")
    assert "bank-3 gives the same score as bank-2, with other item parameters" in run("info", "bank-2", "bank-3").out


def test_a_selection_says_how_items_were_chosen_and_what_cannot_be_added_is_said(place, run):
    chosen = ("select", "bank", "-n", 10, "-o", "selection.json", "--method")
    for method, way in (("random", "random"), ("v-optimal", "fixed")):
        run.ok(*chosen, method)
        words = ("bank", "add-models", "bank", "models.parquet", "--selection", "selection.json")
        run.ok(*words, "-o", "grown", "--force")
        ways = ib.load_bank("grown").responses.models["answered_how"].to_list()
        assert ways[-1] in {way, "complete"}
        assert way in ways
    assert run(*words, "--how", "random", "-o", "other").code == 2
    run.fails(1, "bank add-items", "bank", "add-models", "bank", "late.parquet", "-o", "bank-2")
    run.fails(1, "bank add-models", "bank", "add-items", "bank", "models.parquet", "-o", "bank-2")
    assert not (place / "bank-2").exists()


RECIPE = """
title = "Ours"
megabytes = 1
least_models = 10
sizes = [8]

[source]
address = "https://example.invalid/results"
licence = "MIT"
layout = "results.csv"
reader = "long"
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.setenv("ITEMBANK_BANKS", str(tmp_path / "banks"))
    responses = make_bank(n_models=14, n_items=24, n_dims=1).responses
    rows = [
        f"{model},{item},{value:g}"
        for model, answers in zip(responses.model_ids, responses.responses, strict=True)
        for item, value in zip(responses.item_ids, answers, strict=True)
    ]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "results.csv").write_text("\n".join(["model_id,item_id,response", *rows]))
    new = [f"new,{row.partition(',')[2]}" for row in rows[:24]]
    (tmp_path / "new.csv").write_text("\n".join(["model_id,item_id,response", *new]))
    (tmp_path / "ours.toml").write_text(RECIPE)
    return tmp_path / "ours.toml"


def words_of(text):
    return " ".join(text.split())


@pytest.mark.usefixtures("few_folds")
def test_a_bank_is_built_listed_and_taken_by_its_name(run, recipe, tmp_path):
    missing = run("bank", "build", recipe)
    assert (missing.code, "--from FOLDER" in words_of(missing.err)) == (1, True)
    built = run.ok("bank", "build", recipe, "--from", tmp_path / "files", "--format", "json")
    (row,) = built.json["rows"]
    assert (row["name"], row["n_models"], row["n_items"], row["n_items_to_run"]) == ("bank:ours", 14, 24, [8])
    assert "itembank estimate bank:ours" in built.err
    again = run("bank", "build", recipe, "--from", tmp_path / "files")
    assert (again.code, "--force" in words_of(again.err)) == (1, True)
    run.ok("bank", "build", recipe, "--from", tmp_path / "files", "--force")
    rows = {one["name"]: one for one in run.json("bank", "list")["rows"]}
    assert (rows["bank:ours"]["status"], rows["bank:ours"]["licence"]) == ("built", "MIT")
    assert (rows["bank:swebench-verified"]["status"], rows["bank:bfcl"]["status"]) == ("package", "recipe")
    assert "bank:openeval: IFEval, of OpenEval" in words_of(run("bank", "list").err)
    estimates = run.json("estimate", "bank:ours", tmp_path / "new.csv")
    assert {one["model_id"] for one in estimates["rows"]} == {"new"}
    assert "A bank of 14 past models and 24 items" in run("info", "bank:ours").out


def test_a_name_without_a_bank_says_what_to_do(run, recipe):
    unknown = run("select", "bank:swebench-verifed", "-n", 5, "-o", "selection.json")
    assert (unknown.code, "Did you mean 'swebench-verified'?" in words_of(unknown.err)) == (2, True)
    not_built = run("info", "bank:bfcl")
    assert (not_built.code, "itembank bank build bfcl" in words_of(not_built.err)) == (1, True)
    recipe.write_text("title = 1")
    assert run("bank", "build", recipe).code == 2
