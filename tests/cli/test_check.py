"""`itembank check`: the table, the verdicts and the exit codes."""

import csv
import dataclasses

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.auditing.bank_check import BankCheck, judged
from itembank.auditing.item_audit import audit_items
from itembank.auditing.item_drift import ItemDrift
from itembank.cli.check import _print_drift
from itembank.cli.options import ids_of_file
from tests.auditing.panels import make_answers, make_faulty
from tests.bank.banks import make_bank
from tests.cli.conftest import holds
from tests.cli.session.loops import FAST, play
from tests.sessions.session_worker import response_to

SMALL = ("--only", "accuracy", "-n", 12)


@pytest.fixture
def full_run(tmp_path):
    matrix = make_bank(n_models=14).responses.take(models=np.array([12, 13]))
    ib.write_responses(matrix, tmp_path / "full.parquet")
    return tmp_path / "full.parquet"


def test_reads_as_one_result_whatever_is_examined(run, bank_folder, full_run):
    outcome = run("check", bank_folder, full_run, *SMALL)
    assert outcome.code in {0, 3}
    lines = outcome.out.splitlines()
    assert ["12 items: the error of" in line for line in lines[:3]] == [True, True, False]
    assert ("math" in outcome.out, "math" in run("-v", "check", bank_folder, full_run, *SMALL).out) == (False, True)
    found = run.json("check", bank_folder, full_run, *SMALL)
    assert (len(found["scores"]), found["bank"]) == (8, ib.load_bank(bank_folder).bank_id)
    assert all(sentence in outcome.out for sentence in found["verdicts"])
    assert found["suits"] == (outcome.code == 0)
    sizes = [part for size in (9, 12, 15) for part in ("-n", size)]  # six sentences before the table of three sizes
    brief, full = (run(*more, "check", bank_folder, full_run, *SMALL[:2], *sizes).out for more in ([], ["-v"]))
    assert (brief.count("of 2 scores are within"), full.count("the error of")) == (3, 6)
    found = run.json("check", bank_folder, full_run, "-n", 12)
    parts = {"bank", "suits", "changes", "verdicts", "hints", "notes", "fit", "groups", "level", "scores"}
    assert set(found) == parts | {"schema_version"}
    outcome = run("-v", "check", bank_folder, full_run, "-n", 12)
    holds(outcome.out, "Fit of each model", "errors in points")
    assert "No statistic shows a change that makes all answers a little worse" in outcome.err
    assert outcome.code in {0, 3}


def test_a_bank_without_answers_or_with_few_models_examines_what_it_can(run, tmp_path, full_run):
    items = run("select", "bank:swebench-verified", "-n", 30, "--ids", "list").out.split()
    pl.DataFrame({"model_id": "m", "item_id": items, "response": 1.0}).write_csv(tmp_path / "new.csv")
    run.fails(1, "Nothing could be checked", "check", "bank:swebench-verified", tmp_path / "new.csv")
    make_bank(n_models=8).save(tmp_path / "small")
    outcome = run("check", tmp_path / "small", full_run, "-n", 12, "--format", "json")
    assert "fit" not in outcome.json
    assert "takes at least 10, and bank" in outcome.err
    assert run("check", tmp_path / "small", full_run, "--only", "fit").code == 1


def test_accuracy_of_a_selection_and_without_items_that_the_bank_does_not_hold(run, bank_folder, full_run, tmp_path):
    run("select", bank_folder, "-n", 9, "--method", "random", "-o", tmp_path / "s.json")
    accuracy = ("check", bank_folder, full_run, "--only", "accuracy")
    found = run.json(*accuracy, "--selection", tmp_path / "s.json")
    assert {row["n_chosen"] for row in found["scores"]} == {9}
    run.fails(2, "-n", "check", bank_folder, full_run, "--selection", tmp_path / "s.json", *SMALL)
    known = run("check", bank_folder, full_run, *SMALL, "--format", "csv")
    matrix = ib.read_responses([full_run])
    more = matrix.items.with_columns(item_id=pl.col("item_id").replace("math/0", "math/new"))
    answers = np.column_stack([matrix.responses, matrix.responses[:, :1]])
    items = pl.concat([matrix.items, more.filter(pl.col("item_id") == "math/new")])
    both = ib.ResponseMatrix.create(answers, models=matrix.models, items=items)
    ib.write_responses(both, tmp_path / "more.parquet")
    assert run("check", bank_folder, tmp_path / "more.parquet", *SMALL).code == 1
    outcome = run("check", bank_folder, tmp_path / "more.parquet", *SMALL, "--ignore-unknown", "--format", "csv")
    assert outcome.out == known.out


@pytest.mark.parametrize(("held", "code"), [(True, 0), (False, 3)])
def test_exits_with_3_where_the_bank_does_not_suit(run, bank_folder, full_run, monkeypatch, held, code):
    low = 0.45 if held else 0.55
    counts = {"n_chosen": 12, "n_items": 12, "n_total": 30}
    score = {"truth": 0.5, "estimate": 0.6, "low": low, "high": 0.7, "expected_error": 0.02}
    table, verdicts = judged(pl.DataFrame([{"model_id": "new\x1b", "target": "overall", **counts, **score}]), 0.95)
    found = BankCheck("b", 0.95, table, tuple(verdicts), ("a hint",))
    monkeypatch.setattr("itembank.auditing.check.check_bank", lambda *args, **more: found)
    outcome = run("check", bank_folder, full_run, "--only", "accuracy")
    assert outcome.code == code
    assert f"new\\x1b, 12 items: the error of 10.0 points is {'within' if held else 'outside'}" in outcome.out
    assert "a hint" in outcome.err


@pytest.fixture(scope="module")
def new_run(tmp_path_factory):
    """The bank's answers of a few models, those of the last spoilt: it fails what others solve."""
    matrix = make_bank().responses.take(models=np.arange(6))
    values = matrix.responses.copy()
    values[5] = 1.0 - (matrix.responses.mean(axis=0) > 0.5)
    models = pl.DataFrame({"model_id": [f"new-{i}" for i in range(6)], "day": [f"2025-01-0{i + 1}" for i in range(6)]})
    new = ib.ResponseMatrix.create(values, models=models, items=matrix.items)
    path = tmp_path_factory.mktemp("new") / "new.parquet"
    ib.write_responses(new.take(items=np.arange(25)), path)
    return path


def test_models_that_did_not_run_everything_are_examined_for_fit_alone(run, bank_folder, new_run):
    found = run.json("check", bank_folder, new_run)
    assert {"fit", "groups", "drift"} <= set(found)
    assert "scores" not in found
    assert [row["model_id"] for row in found["fit"]] == [f"new-{i}" for i in range(6)]
    assert [row["n_items"] for row in found["fit"]] == [25] * 6
    assert found["fit"][5]["typicality"] == min(row["typicality"] for row in found["fit"])
    run.fails(1, "needs models that ran all 30 items", "check", bank_folder, new_run, *SMALL)


def test_suspected_items_have_a_table_of_their_own(run, bank_folder, new_run, tmp_path):
    ids = ib.read_responses([new_run]).item_ids
    (tmp_path / "leaked.txt").write_text("\n".join(ids[:8]) + "\n")
    (tmp_path / "private.txt").write_text("\n".join(ids[8:]) + "\n")
    group = ("--group", f"public={tmp_path / 'leaked.txt'}")
    outcome = run("check", bank_folder, new_run, *group)
    assert "Suspected items" in outcome.out
    assert "public: with 8 answers beside 17 others a rise of" in outcome.err
    found, alone = (
        run.json("check", bank_folder, new_run, *words)["groups"]
        for words in (group, ("--reference", tmp_path / "private.txt"))
    )
    assert [row["n_reference"] for row in found if row["kind"] == "named"] == [17] * 6
    assert {row["group"] for row in alone if row["kind"] == "named"} == {"all others"}
    for words in (("--group", "public"), ("--group", "a=nowhere.txt"), (*group, *group)):
        assert run("check", bank_folder, new_run, *words).code == 2


def test_fit_of_probabilities_is_not_examined_and_refused_where_it_is_asked_for(run, bank_folder, full_run, tmp_path):
    matrix = ib.read_responses([full_run])
    graded = dataclasses.replace(matrix, responses=np.clip(matrix.responses, 0.1, 0.9))
    ib.write_responses(graded, tmp_path / "graded.parquet")
    told = run("check", bank_folder, tmp_path / "graded.parquet", "--format", "json")
    assert "fit of models cannot be compared" in told.err
    assert told.json["scores"]
    run.fails(1, "must be right or wrong", "check", bank_folder, tmp_path / "graded.parquet", "--only", "fit")


def test_drift_since_a_day_and_journals_in_the_order_of_their_answers(run, bank_folder, new_run, tmp_path):
    words = ("check", bank_folder, new_run, "--only", "drift", "--format", "json")
    assert run(*words).json["drift"]["n_models"] == 6
    for since in ("2025-01-03", "day=2025-01-03"):
        assert run(*words, "--since", since).json["drift"]["n_models"] == 4
    assert run(*words, "--since", "seen=2025-01-03").code == 2
    journal = tmp_path / "run.jsonl"
    run("session", "start", bank_folder, "-o", journal, "--model-id", "new", "--max-items", 20, *FAST)
    play(run, journal, respond=lambda item: round(response_to(item)))
    found = run.json("check", bank_folder, journal)
    assert ([row["model_id"] for row in found["fit"]], found["fit"][0]["n_items"]) == (["new"], 20)
    assert 0.0 < found["fit"][0]["order_p_value"] <= 1.0
    assert run("check", bank_folder, journal, new_run).code == 2
    assert run("check", bank_folder, journal, "--only", "drift").code == 2


def test_of_many_drifted_items_those_furthest_off_are_listed(capsys):
    row = {"scenario": "a", "n_models": 5, "difference": -0.25, "z": -3.0, "verdict": "harder"}
    table = pl.DataFrame([{"item_id": f"q{k:02}", **row} for k in range(31)])
    for n, said in ((31, "11 more drifted items"), (20, "")):
        _print_drift(ItemDrift("bank", 10, "", table.head(n), 0.0, is_limited=False))
        printed = capsys.readouterr()
        assert ("q19" in printed.out, "q20" in printed.out, "more drifted" in printed.err) == (True, False, bool(said))
        assert said in printed.err


def test_what_changed_is_said_first(run, tmp_path, new_run):
    bank = make_bank()
    items = bank.responses.items.with_columns(task_version=pl.lit("1"), content_hash=pl.lit("same"))
    dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=items)).save(tmp_path / "bank")
    new, is_first = ib.read_responses([new_run]), pl.int_range(pl.len()) < 3
    other = items.head(25).with_columns(
        task_version=pl.lit("2"), content_hash=pl.when(is_first).then(pl.lit("new")).otherwise("content_hash")
    )
    ib.write_responses(dataclasses.replace(new, items=other), tmp_path / "changed.parquet")
    outcome = run("check", tmp_path / "bank", tmp_path / "changed.parquet", "--only", "fit")
    assert outcome.code == 3
    first, second = outcome.out.splitlines()[:2]
    assert first.startswith("Changed: the content of 3 of 25 items")
    assert second.startswith("Changed: task_version differs from the bank's for 25 of 25 items")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    matrix = make_faulty()
    items = matrix.items.with_columns(question=pl.lit("<b>What?</b> ") + pl.col("item_id"))
    path = tmp_path_factory.mktemp("audit") / "responses.parquet"
    ib.write_responses(ib.ResponseMatrix.create(matrix.responses, items=items), path)
    return path


def test_prints_reasons_and_evidence_and_fails_where_a_reason_is_not_to_be(run, faulty):
    outcome = run.ok("check", faulty, "--most", "3")
    n_flagged = audit_items(ib.read_responses([faulty])).flagged.height
    assert f"{n_flagged} of 120 items" in outcome.out
    assert f"3 of {n_flagged} shown" in outcome.err
    assert "1: no model is right; not flagged: --reason dead" in outcome.out
    assert "item-6 " not in run("check", faulty).out
    assert "item-6," in run("check", faulty, "--reason", "dead", "--format", "csv").out
    found = run.json("check", faulty, "--reason", "wrong-key")
    assert found["flagged"]["wrong-key"] == len(found["items"]) >= 4
    assert found["n_items"] == 120
    assert all("wrong-key" in row["reasons"] for row in found["items"])
    assert found["n_flagged"] == n_flagged
    failed = run("check", faulty, "--fail-on", "wrong-key", "--fail-on", "dead")
    assert failed.code == 1
    holds(failed.err, "Failed: there are items flagged", "1 dead")
    run.ok("check", faulty, "--fail-on", "noise")
    run.fails(2, "--by COLUMN", "check", faulty, "--fail-on", "differs")  # it could not fail
    outcome = run.ok("check", faulty, "--reason", "noise")
    assert "No item is noise." in outcome.err
    assert "Items by" not in outcome.out


def test_only_flagged_items_are_listed_and_of_few_models_there_is_a_caution(run, tmp_path):
    values, _ = make_answers(n_models=12, n_items=60)
    values[:, 3] = values.sum(axis=1) < np.median(values.sum(axis=1))  # a key that better models do not hit
    ib.write_responses(ib.ResponseMatrix.create(values), tmp_path / "few.parquet")
    outcome = run("check", tmp_path / "few.parquet")
    found = run.json("check", tmp_path / "few.parquet")
    assert found["items"][0]["item_id"] == "item-4"
    assert f"{found['n_flagged']} of 60 items" in outcome.out
    assert len(found["items"]) == found["n_flagged"] <= 3
    assert all(row["evidence"] for row in found["items"])
    assert "12 models are few" in outcome.err
    assert len(outcome.out.split("Items by probability")[1].strip().splitlines()) < 12


def test_all_items_are_written_as_a_table_also_of_a_bank(run, faulty, tmp_path, bank_folder):
    for name, read in (("a.csv", pl.read_csv), ("a.parquet", pl.read_parquet)):
        outcome = run("check", faulty, "-o", tmp_path / name, "--most", "1")
        assert f"120 items written to {tmp_path / name}" in outcome.err
        table = read(tmp_path / name)
        assert (table.height, table.filter(item_id="item-6")["mean"].to_list()) == (120, [0.0])
    found = run.json("check", bank_folder)
    assert found["n_items"] == ib.load_bank(bank_folder).n_items
    assert len(found["items"]) == min(found["n_flagged"], 20)


def test_formulas_in_texts_of_strangers_are_text_in_csv_and_ids_come_back(run, faulty, tmp_path):
    matrix, ids = ib.read_responses([faulty]), pl.col("item_id").replace("item-6", "=item-6")
    renamed = matrix.items.with_columns(item_id=ids, question=pl.lit("=HYPERLINK(A1)"))
    path = tmp_path / "responses.parquet"
    ib.write_responses(ib.ResponseMatrix.create(matrix.responses, items=renamed), path)
    printed = run("check", path, "--reason", "dead", "-o", tmp_path / "a.csv", "--format", "csv").out
    for text in (printed, (tmp_path / "a.csv").read_text(encoding="utf-8")):
        cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
        assert {"'=item-6", "'=HYPERLINK(A1)"} <= set(cells)
        assert not any(cell.startswith(("=", "@")) for cell in cells)
    assert "=item-6" in ids_of_file(tmp_path / "a.csv")


@pytest.mark.usefixtures("without_library")
def test_a_page_has_everything_escaped_and_is_advised_where_none_was_asked_for(run, faulty, tmp_path):
    assert f"Report: {tmp_path / 'a.html'}" in run("check", faulty, "--report", tmp_path / "a.html").err
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert ("&lt;b&gt;What?&lt;/b&gt; item-" in page, "<b>" in page) == (True, False)
    assert f"itembank check {faulty} --report {tmp_path / 'a.html'}" in page
    assert "To see this as a page: --report FILE.html" in run("-v", "check", faulty).err
    assert "as a page" not in run("check", faulty, "--format", "json").err


def test_known_items_come_as_lines_and_groups_of_models_from_a_table(run, faulty, tmp_path):
    known = tmp_path / "known.txt"
    known.write_text("\n".join(f"item-{j}" for j in range(1, 13)) + "\n", encoding="utf-8")
    assert run.json("check", faulty, "--known", known)["known"]["n_bad"] == 12
    assert "AUC" in run("check", faulty, "--known", known).out
    models = pl.DataFrame({"model_id": [f"model-{i}" for i in range(1, 101)], "family": ["x", "y"] * 50})
    models.write_csv(tmp_path / "models.csv")
    told = tmp_path / "told.parquet"
    run.ok("import", faulty, "--models", tmp_path / "models.csv", "-o", told)
    outcome = run.ok("check", told, "--by", "family")
    assert "Scores by family" in outcome.out
    assert "Models of one group may be copies of each other" in outcome.err
