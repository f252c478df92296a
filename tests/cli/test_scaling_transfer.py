import csv
import io
import json

import numpy as np
import pytest

from itembank.responses.response_files import write_responses
from tests.cli.conftest import spec_file
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def responses_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("transfer") / "responses.parquet"
    write_responses(simulated(np.random.default_rng(4), n_models=60, n_items=20)[0], path)
    return path


def test_transfer_as_json_says_the_validity_first(run, responses_file, tmp_path):
    figure = tmp_path / "transfer.svg"
    outcome = run(
        "scaling", "transfer", responses_file, "--source", "s0", "--target", "s1", "--clusters", "recipe",
        "--figure", figure, "--method", "calibrated", "--method", "common-scale", "--format", "json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert list(found)[1:5] == ["source", "target", "correlation", "correlation_lower"]
    assert [row["method"] for row in found["methods"]] == ["calibrated", "common-scale", "uninformed"]
    assert len(found["models"]) == 60
    assert {row["group"] for row in found["models"]} == {f"r{i}" for i in range(8)}
    assert all(row["flops"] > 0.0 for row in found["models"])
    assert figure.read_text(encoding="utf-8").startswith("<svg")


def test_every_scenario_from_easy_to_hard(run, responses_file, tmp_path):
    figure = tmp_path / "errors.png"
    outcome = run("scaling", "transfer", responses_file, "--figure", figure, "--format", "csv")
    assert outcome.code == 0, outcome.err
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [(row["target"], row["method"]) for row in rows] == [
        (f"s{i} (hard)", name) for i in range(2) for name in ("calibrated", "scores", "uninformed")
    ]
    assert figure.stat().st_size > 1000
    content = json.loads(run("scaling", "transfer", responses_file, "--format", "json").out)
    one = content["transfers"][0]  # the validity is not what a prediction correlates
    assert float(rows[0]["validity"]) == one["correlation"]
    assert float(rows[0]["correlation"]) == one["methods"][0]["correlation"]


def test_calibration_models_are_not_predicted(run, responses_file):
    named = [part for i in range(40) for part in ("--calibration-model", f"m{i}")]
    outcome = run(
        "scaling", "transfer", responses_file, "--source", "s0", *named, "--show", "models", "--format", "csv"
    )
    assert outcome.code == 0, outcome.err
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [row["model_id"] for row in rows] == [f"m{i}" for i in range(40, 60)]


def test_validity_as_json_csv_and_figure(run, responses_file, tmp_path):
    figure = tmp_path / "validity.svg"
    words = ("scaling", "transfer", responses_file, "--show", "validity")
    outcome = run(*words, "--figure", figure, "--format", "json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["interval"] == "fisher"
    assert found["pairs"][0]["beyond_compute"] < found["pairs"][0]["correlation"]
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    assert run(*words, "--figure", figure, "--source", "s0", "--target", "s1").code == 0
    assert "Ability on s0" in figure.read_text(encoding="utf-8")
    grouped = run(*words, "--clusters", "recipe", "--format", "json")
    assert json.loads(grouped.out)["n_groups"] == 8
    assert run(*words, "--format", "csv").out.startswith("first,second,n_models,correlation,lower,upper")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("transfer", "--target", "s1"), 2, "--target needs --source"),
        (("transfer", "--source", "s0", "--k", "1,x"), 2, "whole numbers"),
        (("transfer", "--source", "s0", "--k", "1,5"), 2, "without repeated samples"),
        (("transfer", "--source", "s0", "--figure", "figure.doc"), 2, "must end in"),
        (("transfer", "--source", "s7"), 1, "got 's7'"),
        (("transfer", "--source", "s0", "--clusters", "colour"), 1, "must be a column of the model table"),
        (("transfer", "--show", "validity", "--level", "1"), 2, "level must be between 0 and 1"),
        (("transfer", "--show", "validity", "--source", "s0"), 2, "--source goes with"),
    ],
)
def test_what_cannot_be_done_is_said(run, responses_file, words, code, text):
    outcome = run("scaling", words[0], responses_file, *words[1:])
    assert (outcome.code, outcome.out) == (code, "")
    assert text in outcome.err


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("easy_fraction = 2", "easy_fraction"),
        ("folds = 3", "Did you mean 'n_folds'"),
        ("n_folds = 2.5", "whole number"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(run, responses_file, tmp_path, content, text):
    outcome = run("scaling", "transfer", responses_file, "--source", "s0", *spec_file(tmp_path, content))
    assert (outcome.code, outcome.out) == (2, "")
    assert text in outcome.err
