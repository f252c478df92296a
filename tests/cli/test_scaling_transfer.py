import csv
import io
import shlex

import numpy as np
import pytest

from itembank.responses.response_files import write_responses
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def responses_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("transfer") / "responses.parquet"
    write_responses(simulated(np.random.default_rng(4), n_models=60, n_items=20)[0], path)
    return path


def test_transfer_as_json_says_the_validity_first(run, responses_file, tmp_path):
    figure = tmp_path / "transfer.svg"
    words = shlex.split("--source s0 --target s1 --clusters recipe --method calibrated --method common-scale")
    found = run.json("scaling", "transfer", responses_file, *words, "--figure", figure)
    assert list(found)[1:5] == ["source", "target", "correlation", "correlation_lower"]
    assert [row["method"] for row in found["methods"]] == ["calibrated", "common-scale", "uninformed"]
    assert len(found["models"]) == 60
    assert {row["group"] for row in found["models"]} == {f"r{i}" for i in range(8)}
    assert all(row["flops"] > 0.0 for row in found["models"])
    assert figure.read_text(encoding="utf-8").startswith("<svg")


def test_every_scenario_from_easy_to_hard(run, responses_file, tmp_path):
    figure = tmp_path / "errors.png"
    command = ("scaling", "transfer", responses_file, "--figure", figure, "--format")
    rows = list(csv.DictReader(io.StringIO(run(*command, "csv").out)))
    assert [(row["target"], row["method"]) for row in rows] == [
        (f"s{i} (hard)", name) for i in range(2) for name in ("calibrated", "scores", "uninformed")
    ]
    assert figure.stat().st_size > 1000
    one = run(*command, "json").json["transfers"][0]  # the validity is not what a prediction correlates
    assert float(rows[0]["validity"]) == one["correlation"]
    assert float(rows[0]["correlation"]) == one["methods"][0]["correlation"]


def test_validity_as_json_csv_and_figure(run, responses_file, tmp_path):
    figure = tmp_path / "validity.svg"
    words = ("scaling", "transfer", responses_file, "--show", "validity")
    found = run.json(*words, "--figure", figure)
    assert found["interval"] == "fisher"
    assert found["pairs"][0]["beyond_compute"] < found["pairs"][0]["correlation"]
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    run.ok(*words, "--figure", figure, "--source", "s0", "--target", "s1")
    assert "Ability on s0" in figure.read_text(encoding="utf-8")
    grouped = run.json(*words, "--clusters", "recipe")
    assert grouped["n_groups"] == 8
