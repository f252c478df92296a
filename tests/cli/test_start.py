"""`itembank calibrate --items`: banks without past results, as a user sees them."""

import json

import numpy as np
import pytest


@pytest.fixture
def items(tmp_path):
    return table(tmp_path / "items.csv")


def table(path, n_items=80):
    rows = [f"q{number},{'ab'[number % 2]}\n" for number in range(n_items)]
    path.write_text("item_id,scenario\n" + "".join(rows))
    return path


def results(path, models, rng, n_items=80):
    rows = [f"{model},q{number},{int(rng.random() < 0.6)}\n" for model in models for number in range(n_items)]
    path.write_text("model_id,item_id,response\n" + "".join(rows))
    return path


def test_from_items_alone_to_an_estimate(run, tmp_path, rng):
    outcome = run(
        "calibrate", "--items", table(tmp_path / "items.csv", 240), "-o", tmp_path / "bank", "--format", "json"
    )
    assert outcome.code == 0
    row = json.loads(outcome.out)[0]
    assert (row["n_models"], row["n_items"], row["method"]) == (0, 240, "few-models")
    assert row["half_width"] > row["half_width_3_models"] > row["half_width_10_models"]
    assert "More models that run all items narrow this to" in outcome.err
    assert run("select", tmp_path / "bank", "-n", 40, "-o", tmp_path / "s.json").code == 0
    new = results(tmp_path / "new.csv", ["new"], rng, 240)
    outcome = run("estimate", tmp_path / "bank", new, "--selection", tmp_path / "s.json", "--format", "json")
    assert outcome.code == 0
    assert {row["interval"] for row in json.loads(outcome.out)} == {"design"}


def test_a_second_bank_takes_the_first_results(run, tmp_path, items, rng):
    past = results(tmp_path / "past.csv", ["m1", "m2"], rng)
    assert run("calibrate", past, "--items", items, "-o", tmp_path / "bank").code == 0
    outcome = run("calibrate", past, "--items", items, "-o", tmp_path / "bank")
    assert outcome.code == 1
    assert "--force" in outcome.err
    assert run("calibrate", past, "--items", items, "-o", tmp_path / "bank", "--force").code == 0


def test_info_shows_a_bank_without_models(run, tmp_path, items):
    outcome = run("calibrate", "--items", items, "-o", tmp_path / "bank")
    assert "all 80 items needs no interval" in outcome.err
    assert "+-0.0" not in outcome.err
    outcome = run("info", tmp_path / "bank")
    assert outcome.code == 0
    assert "few-models" in outcome.out


@pytest.mark.parametrize("words", [("--dims", 2), ("--each",), ("--no-folds",)])
def test_choices_of_a_fit_do_not_go_with_items_alone(run, tmp_path, items, words):
    outcome = run("calibrate", "--items", items, "-o", tmp_path / "bank", *words)
    assert outcome.code == 2
    assert "goes with past results that are many, not with --items" in outcome.err
    assert not (tmp_path / "bank").exists()


def test_without_items_results_are_needed(run, tmp_path):
    outcome = run("calibrate", "-o", tmp_path / "bank")
    assert outcome.code == 2
    assert "--items ITEMS.csv" in outcome.err


def test_a_table_without_ids_is_refused(run, tmp_path):
    (tmp_path / "items.csv").write_text("name\nq1\n")
    outcome = run("calibrate", "--items", tmp_path / "items.csv", "-o", tmp_path / "bank")
    assert outcome.code == 1
    assert "item_id" in outcome.err


def test_check_of_a_bank_without_models(run, tmp_path, items, rng):
    run("calibrate", "--items", items, "-o", tmp_path / "bank")
    outcome = run("check", tmp_path / "bank", results(tmp_path / "new.csv", ["new"], rng), "-n", 40)
    assert outcome.code in {0, 3}
    assert "Traceback" not in outcome.err
    assert np.char.count(outcome.out, "new") > 0
