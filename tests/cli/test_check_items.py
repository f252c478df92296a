"""`itembank check` of items: what it prints and writes, and its exit codes."""

import csv
import json

import numpy as np
import polars as pl
import pytest

from itembank.auditing.item_audit import audit_items
from itembank.bank.bank_files import load_bank
from itembank.cli.options import ids_of_file
from itembank.readers.read import read_responses
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.auditing.panels import make_answers, make_faulty


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    matrix = make_faulty()
    items = matrix.items.with_columns(question=pl.lit("<b>What?</b> ") + pl.col("item_id"))
    path = tmp_path_factory.mktemp("audit") / "responses.parquet"
    write_responses(ResponseMatrix.create(matrix.responses, items=items), path)
    return path


def test_prints_reasons_and_evidence(run, faulty):
    outcome = run("check", faulty, "--most", "3")
    assert outcome.code == 0, outcome.err
    n_flagged = audit_items(read_responses([faulty])).flagged.height
    assert f"{n_flagged} of 120 items" in outcome.out
    assert f"3 of {n_flagged} shown" in outcome.err
    assert "1: no model is right; not flagged: --reason dead" in outcome.out
    assert "item-6 " not in run("check", faulty).out
    assert "item-6," in run("check", faulty, "--reason", "dead", "--format", "csv").out
    found = json.loads(run("check", faulty, "--format", "json", "--reason", "wrong-key").out)
    assert found["flagged"]["wrong-key"] == len(found["items"]) >= 4
    assert found["n_items"] == 120
    assert all("wrong-key" in row["reasons"] for row in found["items"])
    assert found["n_flagged"] == n_flagged


def test_only_flagged_items_are_listed_and_of_few_models_there_is_a_caution(run, tmp_path):
    values, _ = make_answers(n_models=12, n_items=60)
    values[:, 3] = values.sum(axis=1) < np.median(values.sum(axis=1))  # a key that better models do not hit
    write_responses(ResponseMatrix.create(values), tmp_path / "few.parquet")
    outcome = run("check", tmp_path / "few.parquet")
    found = json.loads(run("check", tmp_path / "few.parquet", "--format", "json").out)
    assert found["items"][0]["item_id"] == "item-4"
    assert f"{found['n_flagged']} of 60 items" in outcome.out
    assert len(found["items"]) == found["n_flagged"] <= 3
    assert all(row["evidence"] for row in found["items"])
    assert "12 models are few" in outcome.err
    assert len(outcome.out.split("Items by probability")[1].strip().splitlines()) < 12


def test_ends_with_code_1_when_an_item_has_a_reason_that_is_not_to_be(run, faulty):
    failed = run("check", faulty, "--fail-on", "wrong-key", "--fail-on", "dead")
    assert failed.code == 1
    assert "Failed: there are items flagged" in failed.err
    assert "1 dead" in failed.err
    assert run("check", faulty, "--fail-on", "noise").code == 0


def test_says_nothing_of_items_where_none_has_the_reason(run, faulty):
    outcome = run("check", faulty, "--reason", "noise")
    assert outcome.code == 0, outcome.err
    assert "No item is noise." in outcome.err
    assert "Items by" not in outcome.out


def test_writes_all_items_as_a_table(run, faulty, tmp_path):
    for name, read in (("a.csv", pl.read_csv), ("a.parquet", pl.read_parquet)):
        outcome = run("check", faulty, "-o", tmp_path / name, "--most", "1")
        assert f"120 items written to {tmp_path / name}" in outcome.err
        table = read(tmp_path / name)
        assert table.height == 120
        assert table.filter(item_id="item-6")["mean"].to_list() == [0.0]


def test_formulas_in_texts_of_strangers_are_text_in_csv_and_ids_come_back(run, faulty, tmp_path):
    matrix = read_responses([faulty])
    renamed = matrix.items.with_columns(
        item_id=pl.col("item_id").replace("item-6", "=item-6"), question=pl.lit("=HYPERLINK(A1)")
    )
    path = tmp_path / "responses.parquet"
    write_responses(ResponseMatrix.create(matrix.responses, items=renamed), path)
    printed = run("check", path, "--reason", "dead", "-o", tmp_path / "a.csv", "--format", "csv").out
    for text in (printed, (tmp_path / "a.csv").read_text(encoding="utf-8")):
        cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
        assert {"'=item-6", "'=HYPERLINK(A1)"} <= set(cells)
        assert not any(cell.startswith(("=", "@")) for cell in cells)
    assert "=item-6" in ids_of_file(tmp_path / "a.csv")


def test_writes_a_page_in_which_everything_is_escaped(run, faulty, tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # to bundle it takes seconds
    outcome = run("check", faulty, "--report", tmp_path / "a.html")
    assert f"Report: {tmp_path / 'a.html'}" in outcome.err
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "&lt;b&gt;What?&lt;/b&gt; item-" in page
    assert "<b>" not in page
    assert f"itembank check {faulty} --report {tmp_path / 'a.html'}" in page


def test_says_how_to_see_it_as_a_page_where_none_was_asked_for(run, faulty):
    assert "To see this as a page: --report FILE.html" in run("check", faulty).err
    assert "as a page" not in run("check", faulty, "--format", "json").err


def test_known_items_come_as_lines(run, faulty, tmp_path):
    known = tmp_path / "known.txt"
    known.write_text("\n".join(f"item-{j}" for j in range(1, 13)) + "\n", encoding="utf-8")
    found = json.loads(run("check", faulty, "--known", known, "--format", "json").out)
    assert found["known"]["n_bad"] == 12
    assert "AUC" in run("check", faulty, "--known", known).out


def test_groups_of_models_come_from_a_table(run, faulty, tmp_path):
    models = pl.DataFrame({"model_id": [f"model-{i}" for i in range(1, 101)], "family": ["x", "y"] * 50})
    models.write_csv(tmp_path / "models.csv")
    told = tmp_path / "told.parquet"
    assert run("import", faulty, "--models", tmp_path / "models.csv", "-o", told).code == 0
    outcome = run("check", told, "--by", "family")
    assert outcome.code == 0, outcome.err
    assert "Scores by family" in outcome.out
    assert "Models of one group may be copies of each other" in outcome.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-o", "audit.doc"), "must end in .csv or .parquet"),
        (("--only", "fit"), "--only goes with RESPONSES of new models behind a BANK"),
        (("--clusters", "base"), "--clusters goes with --by COLUMN"),
        (("--fail-on", "bad"), "'bad' is not one of"),
    ],
)
def test_what_cannot_be_done_is_a_usage_error(run, faulty, words, text):
    outcome = run("check", faulty, *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert text in outcome.err


def test_a_bank_is_audited_by_its_responses(run, bank_folder):
    found = json.loads(run("check", bank_folder, "--format", "json").out)
    assert found["n_items"] == load_bank(bank_folder).n_items
    assert len(found["items"]) == min(found["n_flagged"], 20)
