"""Verdicts on the command line: their words, colours and files."""

import os
import subprocess
import sys

import click
import numpy as np
import pytest

from itembank.bank.selections import Selection
from itembank.cli.gate import coloured
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.gating.test_gate import changed


@pytest.fixture
def runs(tmp_path):
    """A baseline, and a candidate that is worse by a point."""
    for name, matrix in zip(("old", "new"), changed(20, 10), strict=True):
        write_responses(matrix, tmp_path / f"{name}.parquet")
    return tmp_path / "old.parquet", tmp_path / "new.parquet"


def test_gate_and_gate_next_of_one_full_file_agree(run, runs, tmp_path):
    """Both have all answers; the one says what other questions would show, the other what these do."""
    at_once = run("gate", *runs, "--margin", "0.03")
    assert (at_once.code, at_once.out.partition(":")[0]) == (0, "PASS")
    assert "60.0 -> 59.0" in at_once.out
    assert "\x1b" not in at_once.out
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


def test_rows_at_the_beginning_of_a_file_are_named(run, runs, tmp_path):
    """In the notes of the terminal and of JSON."""
    write_responses(changed(20, 10)[1].take(items=np.arange(100)), tmp_path / "part.parquet")
    outcome = run("gate", runs[0], tmp_path / "part.parquet", "--format", "json")
    assert "no random draw" in outcome.json["notes"][0]
    assert "no random draw" in outcome.err


@pytest.mark.parametrize(("damaged", "code"), [("new.parquet", 5), ("gate/gate.json", 4), ("gate/baseline.parquet", 4)])
def test_damaged_results_and_a_damaged_gate_end_with_codes_of_their_own(run, runs, tmp_path, damaged, code):
    """As help and page say."""
    run.ok("gate", "start", runs[0], "--margin", "0.03", "-o", tmp_path / "gate")
    path = tmp_path / damaged
    path.write_bytes(path.read_bytes()[:-40])
    assert run("gate", "next", tmp_path / "gate", runs[1]).code == code


@pytest.mark.parametrize("option", ["--repeats", "--self-test"])
def test_a_selection_limits_what_is_said_of_chance_too(run, tmp_path, option):
    """Not of all items."""
    rng = np.random.default_rng(0)
    for name in ("old", "new"):
        counts = rng.binomial(4, 0.6, (1, 60)), np.full((1, 60), 4)
        matrix = ResponseMatrix.from_counts(*counts, model_ids=[name])
        write_responses(matrix, tmp_path / f"{name}.parquet")
    Selection(tuple(matrix.item_ids[:40]), ("all",) * 40, np.full(40, 1 / 40), "by hand", "").save(
        tmp_path / "selection.json"
    )
    files = tmp_path / "old.parquet", tmp_path / "new.parquet", "--selection", tmp_path / "selection.json"
    found = run("gate", *files, option, "--format", "json").json
    assert (found["repeats"][0] if option == "--repeats" else found)["n_items"] == 40


def test_means_of_graded_attempts_are_advised_what_helps(run, tmp_path):
    """It was to take their mean, which they are."""
    for name, mean in (("old", 0.6), ("new", 0.7)):
        matrix = ResponseMatrix.create(np.full((1, 60), mean), n_trials=np.full((1, 60), 4), model_ids=[name])
        write_responses(matrix, tmp_path / f"{name}.parquet")
    outcome = run("gate", tmp_path / "old.parquet", tmp_path / "new.parquet", "--repeats")
    assert "no pass^k: leave out --repeats" in " ".join(outcome.err.split())


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
    """The word alone, which says the same."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen = {word: coloured(f"{word}: new is") for word in ("PASS", "FAIL", "UNDECIDED")}
    assert len({text.split(word)[0] for word, text in seen.items()}) == 3
    assert [click.unstyle(text) for text in seen.values()] == [f"{word}: new is" for word in seen]
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("PASS: new is") == "PASS: new is"
