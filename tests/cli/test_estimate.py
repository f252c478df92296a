"""`itembank estimate`, also of mean win rates, external scores, and of a bank whose scenarios share no model."""

import json
import re
import shutil
from typing import get_args

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.calibration.calibration_specs import Variational
from itembank.cli import estimate
from itembank.cli.estimate import MEANING, RESTS_ON
from itembank.errors import DataWarning
from itembank.estimation.estimator_specs import METHODS, IntervalKind
from tests.bank.banks import make_bank
from tests.cli.conftest import holds, new_results, offered_methods

pytestmark = [
    pytest.mark.usefixtures("few_folds", "without_library"),
    # Scenarios that share no model: two fits are about as good, and whether that is said differs between processors.
    pytest.mark.filterwarnings("ignore:calibration did not converge"),
]


@pytest.fixture
def bank_folder(fitted_bank):
    """One bank for all tests: what is derived from it stays in its folder."""
    return fitted_bank


@pytest.fixture
def new_models(tmp_path):
    matrix = new_results()
    ib.write_responses(matrix, tmp_path / "new.parquet")
    return matrix, tmp_path / "new.parquet"


def select_items(run, bank_folder, path, *options):
    run.ok("select", bank_folder, "-n", 12, "-o", path, "--method", "anchor-irt", *options)


def test_every_method_and_interval_of_the_library_is_offered():
    assert offered_methods(estimate.estimate_command) == METHODS.builtin_names
    assert get_args(IntervalKind) == tuple(MEANING)


def test_the_table_shows_the_interval_and_verbose_the_reason(run, bank_folder, new_models, tmp_path):
    select_items(run, bank_folder, tmp_path / "s.json")
    outcome = run("estimate", bank_folder, new_models[1], "--selection", tmp_path / "s.json")
    assert outcome.out.startswith("2 models: overall scores ")
    holds(outcome.out, "12/30", "95 % interval")
    (line,) = (line for line in outcome.err.splitlines() if line.startswith("Method:"))
    method = r"Method: stacked \(cross-validated error \d\.\d points\); intervals from .*\."
    assert re.fullmatch(method, line)
    assert "Estimated by" not in outcome.err
    select_items(run, bank_folder, tmp_path / "s.json")
    outcome = run("-v", "estimate", bank_folder, new_models[1], "--selection", tmp_path / "s.json", "--format", "json")
    taken = {row["method"] for row in outcome.json["rows"]}
    assert len(taken) == 1
    assert f"Estimated by {taken.pop()}. Cross-validated mean errors of the overall score" in outcome.err


def test_several_models_have_a_line_each_unless_more_is_asked_for(run, bank_folder, new_models):
    words = ("estimate", bank_folder, new_models[1], "--method", "p-irt", "--interval", "model-based")
    brief, whole = run(*words), run(*words, "-v")
    assert [len(re.findall("new/", one.out)) for one in (brief, whole)] == [2, 8]
    assert "Scores of scenarios: --verbose." in brief.err
    assert "--verbose" not in whole.err


@pytest.mark.parametrize("interval", MEANING)
def test_the_closing_note_and_the_rows_say_what_intervals_rest_on(run, bank_folder, new_models, tmp_path, interval):
    how = "random" if interval == "design" else "v-optimal"
    select_items(run, bank_folder, tmp_path / "s.json", "--method", how)
    words = ("--selection", tmp_path / "s.json", "--interval", interval, "--format", "json")
    outcome = run.ok("estimate", bank_folder, new_models[1], *words)
    assert f"{RESTS_ON[interval]}." in outcome.err
    assert not any(text in outcome.err for kind, text in RESTS_ON.items() if kind != interval)
    rows = outcome.json["rows"]
    assert {row["interval"] for row in rows} == {interval}


def test_design_based_intervals_refuse_what_chance_did_not_choose(run, bank_folder, new_models, tmp_path):
    select_items(run, bank_folder, tmp_path / "s.json")
    words = ("estimate", bank_folder, new_models[1], "--selection", tmp_path / "s.json", "--interval", "design")
    run.fails(1, "anchor-irt", *words)
    assert run("estimate", bank_folder, new_models[1], "--interval", "design", "--method", "mean").code == 2
    # Of a third of a draw they held for 0.63 of scores instead of 0.95.
    run.ok("select", bank_folder, "-n", 15, "-o", tmp_path / "s.json", "--method", "random")
    content = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    content["items"] = content["items"][::2]
    del content["sha256"]  # as whoever cuts it by hand is told to
    (tmp_path / "s.json").write_text(json.dumps(content), encoding="utf-8")
    words = ("estimate", bank_folder, new_models[1], "--selection", tmp_path / "s.json", "--interval", "design")
    run.fails(1, "hold for the 15 items that were drawn, and this selection has 8", *words)


def test_few_calibration_models_are_said(run, tmp_path):
    make_bank(n_models=6).save(tmp_path / "bank")
    responses = (np.random.default_rng(9).random((1, 12)) < 0.6).astype(float)
    bank = ib.load_bank(tmp_path / "bank")
    matrix = ib.ResponseMatrix.create(responses, model_ids=["new"], items=bank.responses.items[:12])
    ib.write_responses(matrix, tmp_path / "new.parquet")
    outcome = run("-v", "estimate", tmp_path / "bank", tmp_path / "new.parquet", "--format", "json")
    assert {(row["method"], row["interval"]) for row in outcome.json["rows"]} == {("gp-irt", "model-based")}
    holds(outcome.err, "gp-irt, since 6 ", "The bank has 6 past models, too few")
    assert MEANING["model-based"] in outcome.err


def test_progress_is_shown_while_fits_are_made_the_first_time(run, new_models, tmp_path, user_cache):
    shutil.rmtree(user_cache, ignore_errors=True)
    make_bank().save(tmp_path / "bank")
    first = run("estimate", tmp_path / "bank", new_models[1])
    assert "estimate: fitting without models" in first.err
    again = run("estimate", tmp_path / "bank", new_models[1])
    assert "fitting" not in again.err
    assert first.out == again.out


def test_a_table_that_needs_a_choice_is_imported_first_and_no_other_error_says_so(run, bank_folder, tmp_path):
    lines = ["llm,item_id,response", *(f"new,math/{3 * i},{100 * (i % 2)}" for i in range(6)), "new,math/0,100"]
    table, responses = tmp_path / "new.csv", tmp_path / "new.parquet"
    table.write_text("\n".join(lines), encoding="utf-8")
    words = ("estimate", bank_folder, table)
    run.fails(1, f"itembank import {table} [OPTIONS] -o responses.parquet. Then give responses.parquet here.", *words)
    options = ("--column", "model_id=llm", "--max-response", 100, "--repeats", "last")
    run.ok("import", table, *options, "-o", responses)
    rows = run.json("estimate", bank_folder, responses)["rows"]
    assert {(row["model_id"], row["n_items"]) for row in rows if row["target"] == "math"} == {("new", 6)}
    (tmp_path / "new.csv").write_text("model_id,item_id,response\n", encoding="utf-8")
    outcome = run("estimate", bank_folder, tmp_path / "new.csv")
    assert (outcome.code, "itembank import" in outcome.err) == (1, False)


def test_missing_items_are_said_and_an_empty_estimate_is_no_success(run, bank_folder, new_models, tmp_path):
    select_items(run, bank_folder, tmp_path / "s.json")
    matrix, _ = new_models
    chosen = ib.Selection.load(tmp_path / "s.json")
    partial = matrix.take(items=matrix.item_indices(chosen.item_ids[2:]))
    ib.write_responses(partial, tmp_path / "partial.parquet")
    outcome = run.ok(
        "estimate", bank_folder, tmp_path / "partial.parquet", "--selection", tmp_path / "s.json", "--format", "json"
    )
    holds(outcome.err, "of the 12 items of the selection", "'new/a' (2)")
    assert outcome.json["rows"][3]["n_items"] == 10
    # The plain mean has nothing to go by where no item of a scenario was answered.
    matrix, path = new_models
    math = np.flatnonzero((matrix.items["scenario"] == "math").to_numpy())
    ib.write_responses(matrix.take(items=math), path)
    outcome = run("estimate", bank_folder, path, "--method", "mean", "--format", "csv")
    assert (outcome.code, ",math,0." in outcome.out) == (1, True)
    assert "every estimate must be known" in outcome.err
    run.ok("estimate", bank_folder, path, "--method", "p-irt", "--interval", "model-based")


@pytest.fixture
def with_more(new_models, tmp_path):
    matrix, _ = new_models
    names = [*matrix.item_ids, "mmlu/99999", "mmlu/99998"]
    answers = np.column_stack([matrix.responses, np.ones((2, 2))])
    more = ib.ResponseMatrix.create(answers, model_ids=matrix.model_ids, item_ids=names)
    ib.write_responses(more, tmp_path / "m.parquet")
    return tmp_path / "m.parquet"


def without_notes(printed):
    return [{**row, "note": ""} for row in json.loads(printed)["rows"]]


@pytest.mark.parametrize("command", [("estimate", "--method", "p-irt"), ("compare", "--method", "paired")])
def test_items_outside_the_selection_change_nothing(run, bank_folder, new_models, with_more, tmp_path, command):
    select_items(run, bank_folder, tmp_path / "s.json", "--method", "random")
    options = (*command[1:], "--selection", tmp_path / "s.json", "--format", "json")
    outcome = run.ok(command[0], bank_folder, with_more, *options)
    told = "20 of 32 items are not in the selection and are ignored"
    told = told if command[0] == "compare" else "2 of 32 items are not in bank"
    assert outcome.err.count(told) == 1
    assert without_notes(outcome.out) == without_notes(run(command[0], bank_folder, new_models[1], *options).out)


@pytest.mark.parametrize("command", [("estimate", "--method", "p-irt"), ("compare", "--method", "paired")])
def test_the_way_out_for_unknown_items_works_when_pasted(run, bank_folder, new_models, with_more, command):
    words = (command[0], bank_folder, with_more, *command[1:], "--format", "json")
    refused = run(*words)
    assert (refused.code, refused.out) == (1, "")
    (way_out,) = re.findall(r"Leave them out \((.*?)\)", refused.err)
    accepted = run.ok(*words, *way_out.split())
    assert "2 of 32 items are not in bank" in accepted.err
    plain = run(command[0], bank_folder, new_models[1], *command[1:], "--format", "json")
    assert without_notes(accepted.out) == without_notes(plain.out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, fitted_bank):
    folder, bank = tmp_path_factory.mktemp("headlines"), make_bank()
    board = 20.0 + 60.0 * bank.responses.responses.mean(axis=1)
    pl.DataFrame({"model_id": bank.responses.model_ids, "board": board}).write_csv(folder / "board.csv")
    ib.write_responses(new_results().take(items=np.arange(0, 30, 2)), folder / "new.parquet")
    return folder


@pytest.fixture(scope="module")
def bank_with_board(folder, fitted_bank):
    from itembank_living import add_scores  # noqa: PLC0415

    add_scores(ib.load_bank(fitted_bank), folder / "board.csv", ["board"]).save(folder / "bank")
    return folder / "bank"


def rows_of(outcome):
    assert outcome.code == 0, outcome.err
    return outcome.json["rows"]


@pytest.mark.parametrize("target", ["board", "mean_win_rate"])
def test_a_score_takes_the_place_of_the_overall_one(run, folder, bank_with_board, target):
    outcome = run("-v", "estimate", bank_with_board, folder / "new.parquet", "--target", target, "--format", "json")
    rows = rows_of(outcome)
    assert [row["target"] for row in rows][:4] == ["math", "code", "law", target]
    assert all(0.0 <= row["low"] <= row["estimate"] <= row["high"] <= 1.0 for row in rows)
    assert {row["interval"] for row in rows} == {"calibrated"}
    said = {"board": "known of 12 past models", "mean_win_rate": "share of the 12 past models"}
    assert said[target] in outcome.err
    assert f"errors of '{target}'" in outcome.err


def test_tables_pages_and_selections_name_the_score(run, folder, bank_with_board):
    page = folder / "page.html"
    shown = run.ok("estimate", bank_with_board, folder / "new.parquet", "--target", "board", "--report", page)
    assert "board" in shown.out
    text = page.read_text(encoding="utf-8")
    holds(text, "of 12 past models (", "--target board")
    assert "itembank plan" not in text  # no draw gives that score an interval
    outcome = run.ok("select", bank_with_board, "-n", 9, "--target", "board", "-o", folder / "s.json")
    assert "interval of 'board': about ±" in outcome.err
    words = ("select", bank_with_board, "-n", 9, "--target", "board", "--method", "random")
    run.fails(2, "goes with --method auto", *words)


def test_a_bank_says_which_external_scores_it_keeps(run, bank_with_board, fitted_bank, folder):
    assert run.json("info", bank_with_board)["external_scores"] == ["board"]
    assert "external_scores" not in run.json("info", fitted_bank)
    words = ("estimate", bank_with_board, folder / "new.parquet", "--target", "bord")
    run.fails(1, ("mean_win_rate", "Did you mean 'board'?"), *words)


def disjoint(name, seed):
    """Half of 24 models answer one scenario, the other half another."""
    rng = np.random.default_rng(seed)
    strength, difficulty = rng.normal(size=(24, 1)), rng.normal(size=20)
    values = (rng.random((24, 20)) < 1.0 / (1.0 + np.exp(difficulty - strength))).astype(float)
    values[:12, 10:] = values[12:, :10] = np.nan
    models, items = [f"{name}{k}" for k in range(24)], [f"q{k}" for k in range(20)]
    return ib.ResponseMatrix.create(values, model_ids=models, item_ids=items, scenarios=["a"] * 10 + ["b"] * 10)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disjoint")
    with pytest.warns(DataWarning, match="2 groups that share no items"):
        ib.calibrate(disjoint("past", 0), Variational(item_model="2pl", n_dims=1)).save(folder / "bank")
    ib.write_responses(disjoint("new", 1), folder / "new.parquet")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("check", "bank", "new.parquet"),
        ("info", "bank"),
        ("estimate", "bank", "new.parquet"),
        ("select", "bank", "-n", "8", "-o", "chosen.json"),
        ("report", "bank", "-o", "bank.html"),
    ],
)
@pytest.mark.filterwarnings("ignore:of the 10 items")
def test_what_is_not_known_is_not_printed_as_a_number(run, place, monkeypatch, words):
    monkeypatch.chdir(place)
    outcome = run.ok(*words)
    assert not re.search(r"\bnan\b|\binf\b|\bslice\b", outcome.out + outcome.err)


def test_where_scenarios_share_no_model_nothing_is_made_up(run, place):
    outcome = run("check", place / "bank", place / "new.parquet", "--only", "accuracy")
    lines = [line.split() for line in outcome.out.splitlines() if " unknown" in line]
    overall = [line for line in lines if line[1] == "overall"]
    assert len(overall) == 24
    assert all(line[-1] == "unknown" and line[-3] == "-" for line in overall)
    for method in ("auto", "v-optimal"):
        assert "past ones" not in ib.select(ib.load_bank(place / "bank"), 8, method=method).explanation
    assert 0.0 < ib.plan(ib.load_bank(place / "bank")).table[0].half_width < 0.5
