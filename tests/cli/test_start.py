"""`itembank calibrate --items`: banks without past results, as a user sees them."""

import numpy as np
import pytest

import itembank as ib
from tests.readers.logs import answers, write_run
from tests.readers.tiny_benchmarks import write_tiny_benchmarks


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
    outcome = run.ok(
        "calibrate", "--items", table(tmp_path / "items.csv", 240), "-o", tmp_path / "bank", "--format", "json"
    )
    row = outcome.json["rows"][0]
    assert (row["n_models"], row["n_items"], row["method"]) == (0, 240, "few-models")
    assert row["half_width"] > row["half_width_3_models"] > row["half_width_10_models"]
    assert "More models that run all items narrow this to" in outcome.err
    run.ok("select", tmp_path / "bank", "-n", 40, "-o", tmp_path / "s.json")
    new = results(tmp_path / "new.csv", ["new"], rng, 240)
    outcome = run.ok("estimate", tmp_path / "bank", new, "--selection", tmp_path / "s.json", "--format", "json")
    assert {row["interval"] for row in outcome.json["rows"]} == {"design"}


def test_a_second_bank_takes_the_first_results(run, tmp_path, items, rng):
    past = results(tmp_path / "past.csv", ["m1", "m2"], rng)
    run.ok("calibrate", past, "--items", items, "-o", tmp_path / "bank")
    outcome = run("calibrate", past, "--items", items, "-o", tmp_path / "bank")
    assert outcome.code == 1
    assert "--force" in outcome.err
    run.ok("calibrate", past, "--items", items, "-o", tmp_path / "bank", "--force")


def test_info_shows_a_bank_without_models(run, tmp_path, items):
    outcome = run("calibrate", "--items", items, "-o", tmp_path / "bank")
    assert "all 80 items needs no interval" in outcome.err
    assert "+-0.0" not in outcome.err
    outcome = run.ok("info", tmp_path / "bank")
    assert "few-models" in outcome.out


def test_check_of_a_bank_without_models(run, tmp_path, items, rng):
    run("calibrate", "--items", items, "-o", tmp_path / "bank")
    outcome = run("check", tmp_path / "bank", results(tmp_path / "new.csv", ["new"], rng), "-n", 40)
    assert outcome.code in {0, 3}
    assert "Traceback" not in outcome.err
    assert np.char.count(outcome.out, "new") > 0


def test_from_the_file_of_tiny_benchmarks_to_the_estimate_of_a_log(run, tmp_path, rng):
    write_tiny_benchmarks(tmp_path / "tinyBenchmarks.pkl")
    words = ("calibrate", "--items", tmp_path / "tinyBenchmarks.pkl", "--parameters")
    outcome = run(*words, "-o", tmp_path / "bank")
    assert outcome.code == 2
    assert "must be named (--benchmark NAME). There are 'lb' (scenarios 'truthfulqa', 'arc'); 'mmlu'" in outcome.err
    outcome = run.ok(*words, "--benchmark", "mmlu", "-o", tmp_path / "bank")
    assert f"itembank estimate {tmp_path / 'bank'} RESULTS" in outcome.err
    assert ib.Selection.load(tmp_path / "bank" / "selection.json").item_ids[9] == "tinyMMLU/9"
    assert "known-parameters" in run("info", tmp_path / "bank").out
    right = (rng.random(10) < 0.6).astype(float).tolist()
    # of a run whose results_*.json is not there; the folder tells the model, as lm_eval names it
    log = write_run(tmp_path, "org/m", {"tinyMMLU": answers(*right, metric="acc_norm")}, results=False)
    outcome = run.ok("estimate", tmp_path / "bank", *log.glob("samples_tinyMMLU_*.jsonl"), "--format", "json")
    rows = outcome.json["rows"]
    assert {(row["model_id"], row["method"], row["interval"]) for row in rows} == {("org/m", "gp-irt", "model-based")}
    assert rows[0]["estimate"] == ib.estimate(tmp_path / "bank", right).scores.value[0, 0]
    assert "no past models, whose errors could calibrate intervals" in outcome.err


def test_a_table_that_names_no_model_is_of_one_called_as_its_file(run, tmp_path, items, rng):
    run("calibrate", "--items", items, "-o", tmp_path / "bank")
    table = results(tmp_path / "my-model.csv", ["m"], rng)
    table.write_text("".join(line.partition(",")[2] for line in table.read_text().splitlines(keepends=True)))
    outcome = run("estimate", tmp_path / "bank", table, "--format", "json")
    assert {row["model_id"] for row in outcome.json["rows"]} == {"my-model"}
    assert "no column names a model, so that these are the results of one: 'my-model'" in outcome.err
