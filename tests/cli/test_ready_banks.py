"""Ready banks on the command line: built from a folder, listed, and taken where a bank's path is."""

import pytest

from tests.bank.banks import make_bank

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
    assert missing.code == 1
    assert "--from FOLDER" in words_of(missing.err)
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
