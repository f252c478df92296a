"""`itembank info`, and what tables and notes look like."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.cli.render import Printer, _PlainProgress, print_ids, progress, refuse_empty, wrapped
from itembank.errors import DataError
from itembank.pages.bank_items import items_section
from itembank_living import without_responses
from tests.bank.banks import make_bank
from tests.cli.conftest import holds, new_results
from tests.cli.session.loops import FAST


def test_json_and_the_table_have_the_bank_and_its_scenarios(run, bank_folder):
    outcome = run("info", bank_folder, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    content, bank = outcome.json, ib.load_bank(bank_folder)
    assert content["bank"] == bank.bank_id
    assert (content["n_models"], content["n_items"], content["n_dims"]) == (12, 30, 2)
    assert [row["target"] for row in content["scenarios"]] == ["math", "code", "law", "overall"]
    assert content["scenarios"][0]["mean_score"] == pytest.approx(bank.responses.responses[:, ::3].mean())
    assert content["scenarios"][2]["item_model_bias"] is None
    outcome = run("info", bank_folder)
    assert ib.load_bank(bank_folder).bank_id in outcome.out
    assert "overall" in outcome.out
    said = r"A bank of 12 past models and 30 items; scores from 20 items are good to ±\d+\.\d points for models like"
    assert re.match(said, outcome.out)
    assert "variational" not in outcome.out
    assert "variational" in run("info", "-v", bank_folder).out


def test_items_that_stronger_models_fail_are_counted_as_on_the_page_of_the_bank(run, tmp_path):
    bank = make_bank(n_items=300)
    loadings = np.random.default_rng(3).normal((1.0, 0.1), 1.5, (300, 2))
    parameters = replace(bank.parameters, loadings=loadings)
    bank = replace(bank, calibration=replace(bank.calibration, parameters=parameters))
    bank.save(tmp_path / "bank")
    n_negative = run.json("info", tmp_path / "bank")["n_negative_items"]
    assert f" {n_negative} questions of 300 are solved less often by stronger models." in items_section(bank).lead
    assert n_negative != np.sum(loadings @ loadings.mean(axis=0) < 0.0)


def test_a_bank_of_one_scenario_shows_it_once_and_says_how_good_scores_are(run, tmp_path):
    responses = make_bank(n_models=20).responses
    items = responses.items.with_columns(scenario=pl.lit("all of it"))
    one = ib.ResponseMatrix.create(responses.responses, models=responses.models, items=items)
    ib.write_responses(one, tmp_path / "r.parquet")
    words = ("--method", "map", "--dims", 1, "--no-folds")
    run.ok("calibrate", tmp_path / "r.parquet", "-o", tmp_path / "bank", *words)
    shown = run("info", tmp_path / "bank").out
    assert re.match(r"A bank of 20 past models and 30 items; scores from 20 items are good to ±\d+\.\d points", shown)
    assert ("overall" in shown, "all of it" in shown) == (True, False)


def test_a_bank_without_responses_says_what_it_was_made_of(run, bank_folder, tmp_path):
    whole = ib.load_bank(bank_folder)
    chosen = ib.select(whole, 6, method="random", rng=0)
    without_responses(whole, selections=[chosen]).save(tmp_path / "published")
    content = run.json("info", tmp_path / "published")
    assert content["without_responses_of"] == f"12 models of bank {whole.bank_id}"
    assert (content["n_models"], content["items_to_run"]) == (0, [6])
    assert "mean_score" not in content["scenarios"][0]


def test_scores_of_different_models_are_told(run, tmp_path):
    bank = make_bank(n_models=12)
    answers = bank.responses.responses.copy()
    answers[:5, bank.responses.items["scenario"].to_numpy() == bank.targets.scenarios[-1]] = np.nan
    replace(bank, responses=replace(bank.responses, responses=answers)).save(tmp_path / "bank")
    told = run.ok("info", tmp_path / "bank").err
    assert f"of different models: 7 for overall, 12 for {bank.targets.scenarios[0]}" in told
    answers[:2] = np.where(np.arange(bank.n_items) < 3, answers[:2], np.nan)  # no score of these two is known
    answers[2:] = bank.responses.responses[2:]
    replace(bank, responses=replace(bank.responses, responses=answers)).save(tmp_path / "grown")
    assert "Scores of past models are of 10 of 12: the others" in run.ok("info", tmp_path / "grown").err


def test_a_file_of_responses_says_what_it_holds(run, tmp_path):
    trials = np.array([[0, 4, 4, 4], [4, 4, 0, 0]])
    named = {"model_ids": ["a", "b"], "scenarios": ["x", "x", "y", "y"]}
    matrix = ib.ResponseMatrix.from_counts(np.array([[0, 1, 2, 4], [3, 0, 0, 0]]), trials, **named)
    path = tmp_path / "responses.parquet"
    ib.write_responses(matrix, path)
    found = run.json("info", path)
    assert (found["n_models"], found["n_items"], found["n_scenarios"], found["density"]) == (2, 4, 2, 5 / 8)
    assert found["responses"].startswith("shares of several attempts")
    assert found["scenarios"] == [
        {"scenario": "x", "n_items": 2, "n_models": 2, "density": 0.75, "mean_response": pytest.approx(1.0 / 3.0)},
        {"scenario": "y", "n_items": 2, "n_models": 1, "density": 0.5, "mean_response": 0.75},
    ]
    assert "0.625 (share of responses that are known)" in run("info", path).out


@pytest.mark.parametrize(("values", "kind"), [([0.0, 1.0], "right or wrong"), ([0.25, 1.0], "from 0 to 1")])
def test_the_kind_of_responses_is_told(run, tmp_path, values, kind):
    path = tmp_path / "responses.parquet"
    ib.write_responses(ib.ResponseMatrix.create(np.array([values])), path)
    assert kind in run("info", path).out


pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")
pytestmark = pytest.mark.usefixtures("few_folds", "without_library")


@pytest.fixture
def new(tmp_path):
    ib.write_responses(new_results().take(items=np.arange(20)), tmp_path / "new.parquet")
    return tmp_path / "new.parquet"


@pytest.fixture
def journal(run, fitted_bank, tmp_path):
    path = tmp_path / "run.jsonl"
    options = ("--model-id", "new/model", "--max-items", 3, *FAST)
    run.ok("session", "start", fitted_bank, "-o", path, *options)
    for response in (1, 0):
        item = run("session", "ask", path, "--format", "ids").out.strip()
        run.ok("session", "tell", path, item, "--response", response)
    return path


def words(path):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", path.read_text(encoding="utf-8")))


def test_an_estimate_writes_the_same_numbers_into_its_page(run, fitted_bank, new, tmp_path):
    page = tmp_path / "page.html"
    estimate = ("estimate", fitted_bank, new, "--method", "p-irt", "--interval", "model-based")
    plain = run("-v", *estimate)
    assert plain.err.count("--report FILE.html") == 1
    assert "--report" not in run("-v", *estimate, "--format", "json").err
    assert "--report" not in run(*estimate).err
    written = run("-v", *estimate, "--report", page)
    assert written.out == plain.out
    assert (f"Report: {page}" in written.err, "FILE.html" in written.err) == (True, False)
    first = next(line for line in plain.out.splitlines() if "new/a" in line and "overall" in line)
    holds(words(page), f"{first.split()[2]} points", f"itembank -v estimate {fitted_bank} {new}")


def test_a_journal_makes_a_page(run, journal, tmp_path):
    page = tmp_path / "page.html"
    run.ok("report", journal, "-o", page)
    holds(words(page), "Going on", "new/model")
    assert f"itembank report {journal} -o session.html" in run("session", "status", journal).err


def test_plain_progress_speaks_for_each_piece_and_each_quarter(capsys):
    report = _PlainProgress("fit")
    for step in range(100):
        report(f"sweep {step}", step / 100)
    report("standard errors", 1.0)
    pieces = ("sweep 0", "sweep 25", "sweep 50", "sweep 75", "standard errors")
    assert capsys.readouterr().err.splitlines() == [f"fit: {piece}" for piece in pieces]
    for share in (0.1, 0.6, 1.0):
        report("trying items", share)
    assert capsys.readouterr().err == "fit: trying items\n"
    with progress("fit") as report:
        report("begin", 0.0)
    assert capsys.readouterr().err == "fit: begin\n"


def test_numbers_without_a_value_are_null_in_json_and_others_show_their_size(capsys):
    Printer("json").rows([{"cost": float("nan"), "estimate": float("inf"), "level": 0.5}], "replay")
    found = json.loads(capsys.readouterr().out)
    assert found == {"schema_version": "itembank.replay/1", "rows": [{"cost": None, "estimate": None, "level": 0.5}]}
    values = [0.0, 0.12346, -2.0, 2.6e-06, -0.00012346, 2250.0, -1e5]
    Printer("table").rows([{"cost": value} for value in values], "replay")
    shown = "0.0000 0.1235 -2.0000 2.6e-06 -0.000123 2250.0 -100000.0"
    assert capsys.readouterr().out.split()[-7:] == shown.split()


@pytest.mark.parametrize(
    ("shares", "cells"),
    [((0.9792, 0.5), ["97.9 %", "50.0 %"]), ((1.0, 0.0), ["100 %", "0 %"]), ((0.0012, None), ["0.12 %", "-"])],
)
def test_people_read_shares_in_percent(capsys, shares, cells):
    rows = [{"law": "trend", "coverage": one} for one in shares]
    Printer("table").rows(rows, "pretrain")
    assert [line.split("trend")[1].strip() for line in capsys.readouterr().out.splitlines()[2:4]] == cells


def test_people_read_points(capsys):
    rows = [
        {"model_id": name, "estimate": score, "low": 0.5, "high": high, "level": 0.9, "n_items": 5, "n_total": 160}
        for name, score, high in (("a", 0.67312, 0.769), ("b", float("nan"), float("nan")))
    ]
    Printer("table").rows(rows, "replay", title="Scores")
    title, heads, _, *lines = capsys.readouterr().out.splitlines()
    assert title == "Scores; scores in points"
    assert re.split("  +", heads.strip()) == ["model_id", "estimate", "90 % interval", "items"]
    first, second = filter(None, lines)
    assert re.split("  +", first.strip()) == ["a", "67.3", "50.0 to 76.9", "5/160"]
    assert second.split() == ["b", "-", "-", "5/160"]
    Printer("table").record({"goal_value": 0.02, "power": 0.8}, "sizes", [{"n_items": 5, "half_width": 0.0042}], "plan")
    out = capsys.readouterr().out
    holds(out, "2.0 points", "0.8000")
    assert "0.42" in out.split()
    Printer("table").rows([{"difference": 0.0249}, {"difference": -0.0001}], "compare", title="In points")
    assert capsys.readouterr().out.split()[-2:] == ["+2.5", "+0.0"]


def test_ids_are_shown_as_they_are_but_for_control_characters(capsys):
    hostile = "[red]x[/red] [link=http://example.com]y"
    Printer("table").rows([{"model_id": hostile}], "replay")
    assert hostile in capsys.readouterr().out
    Printer("table").rows([{"model_id": "\x1b[31mred\nline"}], "replay")
    out = capsys.readouterr().out
    assert ("\x1b[31mred" in out, "\\x1b[31mred\\nline" in out) == (False, True)


def test_csv_keeps_ids_to_the_letter_but_for_a_terminal(capsys, monkeypatch):
    Printer("csv").rows([{"model_id": 'a,"b"\nc', "n": 1}], "replay")
    assert capsys.readouterr().out == 'model_id,n\n"a,""b""\nc",1\n'
    Printer("csv").rows([{"item_id": ESCAPED}], "replay")
    assert capsys.readouterr().out == f"item_id\n{ESCAPED}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_ids([ESCAPED, "b"])
    Printer("csv").rows([{"item_id": ESCAPED}], "replay")
    assert capsys.readouterr().out == "\\x1b[31mred\\x1b[0m\nb\nitem_id\n\\x1b[31mred\\x1b[0m\n"


ESCAPED = "\x1b[31mred\x1b[0m"


def test_ids_are_printed_to_the_letter_and_none_with_a_line_break(capsys):
    print_ids(["-a", ESCAPED, " b "])
    assert capsys.readouterr().out == f"-a\n{ESCAPED}\n b \n"
    print_ids([])
    assert capsys.readouterr().out == ""
    with pytest.raises(DataError, match=r"no line break .* got 'a\\nb'"):
        print_ids(["a\nb", "c"])
    assert capsys.readouterr().out == ""


def test_names_drive_neither_a_terminal_nor_a_job_of_github(capsys):
    assert wrapped("a\x1b[2J\r.csv: is empty.\n ::error::b") == "a\\x1b[2J\\r.csv: is empty.\n\\::error::b"
    Printer("table").rows([{"scenario": name, "n_items": 1} for name in ("::stop-commands::x", "a" * 18)], "replay")
    own, other = capsys.readouterr().out.splitlines()[-3:-1]
    assert (own.startswith(" \\::stop-commands::x "), len(own)) == (True, len(other))


def test_a_missing_number_is_no_success():
    scores = {"math": 0.5, "law": float("nan")}
    rows = [{"model_id": "a", "target": name, "estimate": score} for name, score in scores.items()]
    refuse_empty(rows[:1], "estimate", ("model_id", "target"))
    with pytest.raises(DataError, match=r"estimate must be known, got 1 of 2 that are not: 'a on law'"):
        refuse_empty(rows, "estimate", ("model_id", "target"))


def test_a_note_is_broken_between_words_and_a_command_that_ends_it_is_whole(monkeypatch):
    command = "itembank import results-of-a-model.csv -o responses.parquet"
    monkeypatch.setenv("COLUMNS", "40")
    assert wrapped(f"Run these items. Next: {command}").splitlines() == ["Run these items. Next:", f"  {command}"]
    sentence = "The mean is of all answers; itembank calibrate --across items makes it so."
    assert wrapped(sentence) == "The mean is of all answers; itembank\ncalibrate --across items makes it so."
    fact = f"{'Proved':<17}worse by less than 9.4 points, worse by more than 3.6 points"
    first, *rest = wrapped(fact, indent=17).splitlines()
    assert first.startswith("Proved           worse")
    assert all(line.startswith(" " * 17) and len(line) <= 40 for line in rest)
    monkeypatch.delenv("COLUMNS")
    assert wrapped(sentence) == sentence


def test_options_of_import_are_said_to_be_its(run, tmp_path):
    """`info` named --column, which it has not."""
    (tmp_path / "odd.csv").write_text("m,i,r\na,x,1\n")
    run.fails(1, "How files are read is chosen when they are imported: itembank import", "info", tmp_path / "odd.csv")
