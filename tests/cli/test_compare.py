"""`itembank compare` and `itembank gate`."""

import os
import re
import subprocess
import sys

import click
import numpy as np
import pytest

import itembank as ib
from itembank.cli.compare import _p_value
from itembank.cli.gate import coloured
from tests.bank.banks import make_bank
from tests.cli.conftest import holds
from tests.gating.test_gate import changed

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank_folder(tmp_path_factory):
    """A bank with models enough to calibrate intervals; what is derived from it stays in its folder."""
    folder = tmp_path_factory.mktemp("compare") / "bank"
    make_bank(n_models=20).save(folder)
    return folder


@pytest.fixture
def results(bank_folder, tmp_path):
    bank = ib.load_bank(bank_folder)
    responses = (np.random.default_rng(9).random((3, 30)) < [[0.9], [0.5], [0.4]]).astype(float)
    matrix = ib.ResponseMatrix.create(responses, model_ids=["old", "new", "next"], items=bank.responses.items)
    ib.write_responses(matrix.take(items=np.arange(18)), tmp_path / "results.parquet")
    return tmp_path / "results.parquet"


def test_rows_and_the_sentence_have_what_the_documentation_promises(run, bank_folder, results):
    pair = ("compare", bank_folder, results, "--model", "old", "--model", "new")
    rows = run.json(*pair, "--target", "all")["rows"]
    clear = sum(row["p_holm"] < 0.05 for row in rows)
    said = run.ok(*pair, "--target", "all").out
    assert said.startswith(f"{clear} of 4 differences of both models are clear; scores, B - A, in points")
    assert [row["target"] for row in rows] == ["math", "code", "law", "overall"]
    for row in rows:
        assert (row["model_a"], row["model_b"], row["level"], row["method"]) == ("old", "new", 0.95, "stacked")
        assert row["low"] <= row["difference"] <= row["high"]
        assert 0.0 <= row["probability_b_better"] < 0.5
        assert {"standard_error", "smallest_detectable_difference", "p_value", "p_holm", "mcnemar_p"} <= set(row)
        assert {"paired_t_p", "n_shared_items", "n_items_a", "n_items_b", "note"} <= set(row)
    row, sentence = run.json(*pair)["rows"][0], run(*pair).out.splitlines()[0]
    assert f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}" in sentence
    assert sentence.startswith("No sure difference") == (row["low"] <= 0.0 <= row["high"])


def test_models_are_compared_in_the_order_named_and_all_pairs_by_default(run, bank_folder, results):
    rows = run.json("compare", bank_folder, results, "--model=next", "--model", "old")["rows"]
    assert [(row["model_a"], row["model_b"]) for row in rows] == [("next", "old")]
    rows = run.json("compare", bank_folder, results)["rows"]
    assert [(row["model_a"], row["model_b"]) for row in rows] == [("old", "new"), ("old", "next"), ("new", "next")]
    assert {row["target"] for row in rows} == {"overall"}
    outcome = run("compare", bank_folder, results)
    rows = run.json("compare", bank_folder, results)["rows"]
    clear = sum(row["p_holm"] < 0.05 for row in rows)
    assert outcome.out.startswith(f"{clear} of 3 differences of 3 models are clear; overall score, B - A, in points")
    holds(outcome.out, "95 % interval", "p (Holm)")
    assert all(f"{100 * row['joint_low']:+.1f} to {100 * row['joint_high']:+.1f}" in outcome.out for row in rows)
    assert "of this bank" not in outcome.err
    assert ib.load_bank(bank_folder).bank_id not in outcome.out
    assert [_p_value(one) for one in (np.nan, 0.05, 1e-4, 9e-5)] == ["-", "0.0500", "0.0001", "<0.0001"]


@pytest.mark.usefixtures("without_library")
def test_pages_have_every_score_whatever_was_compared(run, bank_folder, results, tmp_path):
    page = tmp_path / "compare.html"
    outcome = run.ok("compare", bank_folder, results, "--model", "old", "--model", "new", "--report", page)
    assert "To see this as a page" not in outcome.err
    holds(page.read_text(encoding="utf-8"), "old against new", "Scenario by scenario")
    assert "as a page: --report FILE.html" in run("-v", "compare", bank_folder, results).err
    assert "as a page" not in run("-v", "compare", bank_folder, results, "--format", "csv").err
    # It asked for every score by 'design-based', which is no method that can be asked for.
    bank, drawn, page = ib.load_bank(bank_folder), tmp_path / "drawn.json", tmp_path / "compare.html"
    answers = (np.random.default_rng(9).random((2, 30)) < 0.6).astype(float)
    ib.write_responses(ib.ResponseMatrix.create(answers, items=bank.responses.items), tmp_path / "two.parquet")
    run.ok("select", bank_folder, "-n", 12, "-o", drawn)
    run.ok("compare", bank_folder, tmp_path / "two.parquet", "--selection", drawn, "--report", page)
    assert "Scenario by scenario" in page.read_text(encoding="utf-8")


def test_ranking(run, bank_folder, results):
    outcome = run("compare", bank_folder, results, "--ranking", "--format", "json")
    rows = outcome.json["rows"]
    assert (rows[0]["model_id"], [row["rank"] for row in rows]) == ("old", [1, 2, 3])
    assert "Of group 1 no model is clearly better than another" in outcome.err
    pairs = {(row["model_a"], row["model_b"]): row for row in run.json("compare", bank_folder, results)["rows"]}
    for row in rows[1:]:
        one, sign = ("model_a", 1) if (row["model_id"], "old") in pairs else ("model_b", -1)
        pair = pairs[(row["model_id"], "old") if one == "model_a" else ("old", row["model_id"])]
        ends = sorted(sign * pair[name] for name in ("joint_low", "joint_high"))
        assert [row[name] for name in ("behind_best", "behind_lower", "behind_upper")] == [
            sign * pair["difference"], *ends
        ]  # fmt: skip


def test_files_are_compared_without_a_bank(run, results, tmp_path):
    matrix = ib.read_responses(results)
    for name in matrix.model_ids:
        ib.write_responses(matrix.take(models=matrix.model_indices([name])), tmp_path / f"{name}.parquet")
    two = ("compare", tmp_path / "old.parquet", tmp_path / "new.parquet", "--format", "json")
    (row,) = run(*two).json["rows"]
    gate = run("gate", *two[1:], "--margin", "0.3").json
    for name in ("difference", "low", "high"):
        assert row[name] == pytest.approx(gate[name])
    assert (row["bank"], row["method"], row["estimand"]) == ("", "paired", "questions")
    ranking = run.ok("compare", results, "--ranking", "--report", tmp_path / "ranking.html")
    row = run.json("compare", results, "--ranking")["rows"][1]
    ends = " to ".join(f"{100.0 * row[name]:.1f}" for name in ("behind_lower", "behind_upper"))
    assert ["2", "1 to 3", "1", "3", "new", "61.1", "22.2", ends] in [
        re.split("  +", line.strip()) for line in ranking.out.splitlines()
    ]
    assert ranking.out.startswith("old is first of 3 models by the overall score, 22.2 points ahead of the next")
    assert "Differences are of questions like these" in ranking.err
    page = (tmp_path / "ranking.html").read_text(encoding="utf-8")
    holds(page, "3 models ranked", "How far each model is behind old")
    same = tmp_path / "old.parquet"
    twice = run.json("compare", same, same)["rows"]
    assert [(one["model_a"], one["model_b"], one["difference"]) for one in twice] == [("old (1)", "old (2)", 0.0)]
    for words in (("--method", "weighted"), ("--match", "hash"), ("--ignore-unknown",)):
        run.fails(2, "a bank before the results", "compare", results, *words)
    assert "RESPONSES" in run("compare").err
    assert "it is called 'repeated' now" in run("compare", results, "--estimand", "expected").err.lower()


def test_models_that_calibrated_the_bank_are_named(run, bank_folder, results):
    own = ib.load_bank(bank_folder).responses
    ib.write_responses(own.take(models=np.arange(2), items=np.arange(18)), results)
    outcome = run.ok("compare", bank_folder, results, "--format", "json")
    assert "Note: 'org/model-0', 'org/model-1': among the past models of this bank" in outcome.err
    assert ".." not in outcome.err
    assert "among the past models of this bank" in outcome.json["rows"][0]["note"]  # as in Python
    assert "of this bank" not in run("--quiet", "compare", bank_folder, results).err


def test_a_difference_that_no_scores_have_is_not_detectable(run, tmp_path):
    ib.write_responses(ib.ResponseMatrix.create([[1.0, 1.0], [0.0, 0.0]]), tmp_path / "two.parquet")
    outcome = run.ok("compare", tmp_path / "two.parquet", "--report", tmp_path / "page.html")
    assert [line.split()[-1] for line in outcome.out.splitlines() if "detectable" in line] == ["none"]
    assert "too few to show any difference" in (tmp_path / "page.html").read_text()


@pytest.fixture
def runs(tmp_path):
    """A baseline, and a candidate that is worse by a point."""
    for name, matrix in zip(("old", "new"), changed(20, 10), strict=True):
        ib.write_responses(matrix, tmp_path / f"{name}.parquet")
    return tmp_path / "old.parquet", tmp_path / "new.parquet"


def test_gate_and_gate_next_of_one_full_file_agree(run, runs, tmp_path):
    at_once = run("gate", *runs, "--margin", "0.03")
    assert (at_once.code, at_once.out.partition(":")[0]) == (0, "PASS")
    assert ("60.0 -> 59.0" in at_once.out, "\x1b" in at_once.out) == (True, False)
    run.ok("gate", "start", runs[0], "--margin", "0.03", "-o", tmp_path / "gate")
    staged = run("gate", "next", tmp_path / "gate", runs[1], "--format", "json")
    found = staged.json
    assert (staged.code, found["verdict"], found["n_items"], found["is_exact"]) == (0, "pass", 1000, True)
    assert found["candidate_score"] == pytest.approx(0.59)
    assert [text in staged.err for text in found["notes"]] == [True] * len(found["notes"])


@pytest.mark.parametrize(("other", "words"), [("bank.json", "is the folder of a bank"), ("x.csv", "is not a gate")])
def test_a_gate_is_not_begun_among_other_files(run, runs, tmp_path, other, words):
    """It ended with exit code 0, its files in the folder of a bank."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / other).touch()
    outcome = run("gate", "start", runs[0], "--margin", "0.03", "-o", folder)
    assert outcome.code != 0
    assert words in outcome.err
    assert [one.name for one in folder.iterdir()] == [other]


def test_rows_at_the_beginning_of_a_file_and_means_of_attempts_are_named(run, runs, tmp_path):
    ib.write_responses(changed(20, 10)[1].take(items=np.arange(100)), tmp_path / "part.parquet")
    outcome = run("gate", runs[0], tmp_path / "part.parquet", "--format", "json")
    assert "no random draw" in outcome.json["notes"][0]
    assert "no random draw" in outcome.err
    # It was to take their mean, which they are.
    for name, mean in (("old", 0.6), ("new", 0.7)):
        matrix = ib.ResponseMatrix.create(np.full((1, 60), mean), n_trials=np.full((1, 60), 4), model_ids=[name])
        ib.write_responses(matrix, tmp_path / f"{name}.parquet")
    outcome = run("gate", tmp_path / "old.parquet", tmp_path / "new.parquet", "--repeats")
    assert "no pass^k: leave out --repeats" in " ".join(outcome.err.split())


@pytest.mark.parametrize(("damaged", "code"), [("new.parquet", 5), ("gate/gate.json", 4), ("gate/baseline.parquet", 4)])
def test_damaged_results_and_a_damaged_gate_end_with_codes_of_their_own(run, runs, tmp_path, damaged, code):
    run.ok("gate", "start", runs[0], "--margin", "0.03", "-o", tmp_path / "gate")
    path = tmp_path / damaged
    path.write_bytes(path.read_bytes()[:-40])
    assert run("gate", "next", tmp_path / "gate", runs[1]).code == code


@pytest.mark.parametrize("option", ["--repeats", "--self-test"])
def test_a_selection_limits_what_is_said_of_chance_too(run, tmp_path, option):
    rng = np.random.default_rng(0)
    for name in ("old", "new"):
        counts = rng.binomial(4, 0.6, (1, 60)), np.full((1, 60), 4)
        matrix = ib.ResponseMatrix.from_counts(*counts, model_ids=[name])
        ib.write_responses(matrix, tmp_path / f"{name}.parquet")
    chosen = ib.Selection(tuple(matrix.item_ids[:40]), ("all",) * 40, np.full(40, 1 / 40), "by hand", "")
    chosen.save(tmp_path / "selection.json")
    files = tmp_path / "old.parquet", tmp_path / "new.parquet", "--selection", tmp_path / "selection.json"
    found = run("gate", *files, option, "--format", "json").json
    assert (found["repeats"][0] if option == "--repeats" else found)["n_items"] == 40
    said = "On the same items, as here, a difference has the noise of trials alone." in run("gate", *files, option).out
    assert said == (option == "--self-test")


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_reader_who_leaves_early_changes_no_verdict(runs, form):
    """The exit code was 5, as without a verdict."""
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "itembank", "gate", *runs, "--margin", "0.005", "--format", form]
    ended = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ended.returncode, "Error" in ended.stderr, "Exception" in ended.stderr) == (3, False, False)


def test_verdicts_have_colours_unless_nobody_wants_them(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen = {word: coloured(f"{word}: new is") for word in ("PASS", "FAIL", "UNDECIDED")}
    assert len({text.split(word)[0] for word, text in seen.items()}) == 3
    assert [click.unstyle(text) for text in seen.values()] == [f"{word}: new is" for word in seen]
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("PASS: new is") == "PASS: new is"
