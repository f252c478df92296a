import json

import pytest

from itembank.data.response_files import write_responses
from tests.calibration.test_dimensions import simulated


@pytest.fixture(scope="module")
def responses_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("responses") / "responses.parquet"
    write_responses(simulated(40, 80, 2), path)
    return path


def test_dimensions_as_json_with_a_figure(run, responses_file, tmp_path):
    figure = tmp_path / "dimensions.svg"
    outcome = run(
        "diagnose", "dimensions", responses_file, "--candidates", "1,2", "--figure", figure, "--format", "json"
    )
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["n_dims"], found["n_dims_parallel"], found["n_models"]) == (2, 2, 40)
    assert {(row["n_shown"], row["n_dims"]) for row in found["held_out"]} == {(16, 1), (16, 2), (40, 1), (40, 2)}
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    assert str(figure) in outcome.err


def test_dimensions_as_table_and_csv(run, responses_file):
    outcome = run("diagnose", "dimensions", responses_file, "--candidates", "1", "--format", "csv")
    assert outcome.out.splitlines()[0].startswith("n_shown,n_dims,error,error_standard_error")
    table = run("diagnose", "dimensions", responses_file, "--candidates", "1")
    assert "n_dims_parallel" in table.out
    assert "relative_error" in table.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--candidates", "1,two"), "whole numbers"),
        (("--candidates", "0"), "at least 1"),
        (("--figure", "dimensions.doc"), "must end in"),
        (("--method", "guess"), "'guess' is not one of"),
    ],
)
def test_what_cannot_be_done_is_a_usage_error(run, responses_file, words, text):
    outcome = run("diagnose", "dimensions", responses_file, *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert text in outcome.err
