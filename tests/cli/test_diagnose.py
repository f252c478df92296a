import json

import pytest

from itembank.data.response_files import write_responses
from tests.calibration.test_dimensions import simulated

QUICK = ("--dims", "1", "--method", "map")


@pytest.fixture(scope="module")
def responses_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("responses") / "responses.parquet"
    write_responses(simulated(40, 80, 2), path)
    return path


def test_dimensions_as_json_with_a_figure(run, responses_file, tmp_path):
    figure = tmp_path / "dimensions.svg"
    outcome = run("diagnose", "dimensions", responses_file, "--dims", "1,2", "--figure", figure, "--format", "json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["n_dims"], found["n_dims_parallel"], found["n_models"]) == (2, 2, 40)
    assert {(row["n_shown"], row["n_dims"]) for row in found["held_out"]} == {(16, 1), (16, 2), (40, 1), (40, 2)}
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    assert str(figure) in outcome.err


def test_dimensions_as_table_and_csv(run, responses_file):
    outcome = run("diagnose", "dimensions", responses_file, *QUICK, "--format", "csv")
    assert outcome.out.splitlines()[0].startswith("n_shown,n_dims,error,error_standard_error")
    table = run("diagnose", "dimensions", responses_file, *QUICK)
    assert "n_dims_parallel" in table.out
    assert "relative_error" in table.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--dims", "1,two"), "whole numbers"),
        (("--dims", "0"), "at least 1"),
        (("--figure", "dimensions.doc"), "must end in"),
        (("--method", "guess"), "'guess' is not one of"),
    ],
)
def test_what_cannot_be_done_is_a_usage_error(run, responses_file, words, text):
    outcome = run("diagnose", "dimensions", responses_file, *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert text in outcome.err


def test_homogeneity_as_json_with_a_figure(run, responses_file, tmp_path):
    figure = tmp_path / "homogeneity.svg"
    outcome = run("diagnose", "homogeneity", responses_file, "--budget", "20", "--figure", figure, "--format", "json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["budget"] == 20
    assert [row["scenario"] for row in found["scenarios"]] == ["s0", "s1"]
    assert 0.0 < found["scenarios"][0]["reliability"] < 1.0
    assert figure.read_text(encoding="utf-8").startswith("<?xml")


def test_homogeneity_of_a_bank_is_that_of_its_responses(run, responses_file, tmp_path):
    bank = tmp_path / "bank"
    assert run("calibrate", responses_file, "-o", bank, "--method", "map", "--dims", 1, "--no-folds").code == 0
    of_bank, of_responses = (
        run("diagnose", "homogeneity", source, "--format", "csv").out for source in (bank, responses_file)
    )
    assert of_bank == of_responses
    assert of_bank.startswith("scenario,n_items")


def test_a_homogeneity_figure_of_no_such_scenario_is_a_usage_error(run, responses_file, tmp_path):
    outcome = run(
        "diagnose", "homogeneity", responses_file, "--scenario", "s9", "--figure", tmp_path / "homogeneity.png"
    )
    assert (outcome.code, outcome.out) == (2, "")
    assert "got s9" in outcome.err


def test_predictions_as_json_with_a_figure(run, bank_folder, tmp_path):
    figure = tmp_path / "predictions.svg"
    outcome = run("diagnose", "predictions", bank_folder, "--figure", figure, "--format", "json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["family"] == "bernoulli"
    assert found["scenarios"][-1]["scenario"] == "all items"
    assert sum(row["n_cells"] for row in found["bins"]) == 2 * found["scenarios"][-1]["n_cells"]
    assert figure.read_text(encoding="utf-8").startswith("<?xml")


def test_predictions_as_csv_and_table(run, bank_folder):
    rows = run("diagnose", "predictions", bank_folder, "--format", "csv").out.splitlines()
    assert rows[0].startswith("scenario,n_models,n_items,n_cells,correlation,standard_error,by_item_means")
    bins = run("diagnose", "predictions", bank_folder, "--show", "bins", "--format", "csv").out.splitlines()
    assert bins[0] == "scenario,n_cells,predicted,observed,standard_error"
    table = run("diagnose", "predictions", bank_folder)
    assert "calibration_error" in table.out
    assert run("diagnose", "predictions", bank_folder, "--scenario", "law").code == 2
