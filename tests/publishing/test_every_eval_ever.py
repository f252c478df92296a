"""Estimates as records of Every Eval Ever: what schema 0.3.0 needs is there, and no number changes."""

import json
import uuid

import pytest

from itembank.errors import DataError, ParameterError
from itembank.publishing.every_eval_ever import ExportSpec, evaluation_records, read_estimates, write_records
from itembank.readers.every_eval_ever import is_every_eval_ever

SPEC = ExportSpec("My lab", 1_750_000_000, "1.2")
REQUIRED = {
    "schema_version",
    "evaluation_id",
    "retrieved_timestamp",
    "source_metadata",
    "eval_library",
    "model_info",
    "evaluation_results",
}


def row(model="org/a", target="gsm8k", **more):
    return {
        "model_id": model,
        "target": target,
        "estimate": 0.5,
        "low": 0.4,
        "high": 0.6,
        "level": 0.95,
        "standard_error": 0.05,
        "interval": "calibrated",
        "n_items": 30,
        "n_total": 1319,
        "n_missing": 0,
        "method": "stacked",
        "bank": "abc",
        **more,
    }


def test_a_record_holds_what_the_schema_needs():
    (name, record), other = evaluation_records([row(), row(target="overall"), row("org/b")], SPEC).items()
    assert uuid.UUID(name.removesuffix(".json")).version == 4
    assert record.keys() == REQUIRED
    assert is_every_eval_ever(record)
    assert (record["model_info"]["id"], other[1]["model_info"]["id"]) == ("org/a", "org/b")
    assert record["source_metadata"]["source_organization_name"] == "My lab"
    assert [result["evaluation_name"] for result in record["evaluation_results"]] == ["gsm8k", "overall"]


def test_scores_uncertainty_and_items_are_those_of_the_estimate():
    (record,) = evaluation_records([row()], SPEC).values()
    (result,) = record["evaluation_results"]
    details = result["score_details"]
    assert details["score"] == 0.5
    interval = details["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"], interval["confidence_level"]) == (0.4, 0.6, 0.95)
    assert details["uncertainty"]["standard_error"]["value"] == 0.05
    assert details["uncertainty"]["num_samples"] == 30
    assert details["details"]["estimated_from"] == "30 of 1319 items"
    assert "estimated from responses to 30 of 1319 items" in result["metric_config"]["evaluation_description"]
    assert all(isinstance(value, str) for value in result["source_data"]["additional_details"].values())


def test_what_is_not_known_is_left_out():
    rows = [row(low=None, high=float("nan"), standard_error=None), row(target="law", estimate=None)]
    (record,) = evaluation_records(rows, SPEC).values()
    (result,) = record["evaluation_results"]
    assert result["score_details"]["uncertainty"] == {"num_samples": 30}
    with pytest.raises(DataError, match="at least one estimate"):
        evaluation_records([row(estimate=None)], SPEC)


def test_names_of_files_are_the_same_again_and_hold_no_names(tmp_path):
    rows = [row("../../etc/passwd")]
    assert evaluation_records(rows, SPEC).keys() == evaluation_records(rows, SPEC).keys()
    (path,) = write_records(evaluation_records(rows, SPEC), tmp_path / "new" / "records")
    assert path.parent == tmp_path / "new" / "records"
    assert json.loads(path.read_text())["model_info"]["id"] == "../../etc/passwd"


def printed(rows, version="itembank.estimate/1"):
    return json.dumps({"schema_version": version, "rows": rows})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "must be estimates of schema_version 'itembank.estimate/1'"),
        (printed([], "itembank.estimate/2"), "must be estimates of schema_version"),
        (printed([]), "must be estimates of schema_version"),
        (printed([1]), "must be estimates of schema_version"),
        (printed([row(), {**row(), "n_items": "30"}]), "estimate 2 must have 'n_items', of the right type"),
        (printed([{"model_id": "a"}]), "estimate 1 must have 'target', .*itembank estimate"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "e.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_estimates(tmp_path / "e.json")


def test_choices_that_cannot_be():
    with pytest.raises(ParameterError, match="organization must be a name"):
        ExportSpec(" ", 1, "1")
    with pytest.raises(ParameterError, match="relationship must be one of"):
        ExportSpec("a", 1, "1", "friend")
