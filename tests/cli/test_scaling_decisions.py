import csv
import io
import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from itembank.cli.main import cli
from itembank.readers.compute import training_compute
from itembank.responses.response_files import write_responses
from itembank.scaling.pretraining.decision_study import SIX_METHODS, decision_curves
from itembank.scaling.pretraining.law_specs import PretrainingSettings
from tests.scaling.simulated_suite import simulated_suite


@pytest.fixture(scope="module")
def suite():
    return simulated_suite(np.random.default_rng(5), n_recipes=4, n_items=12, n_sizes=3, n_checkpoints=1)


@pytest.fixture(scope="module")
def files(suite, tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    write_responses(suite.probability.with_tables(models=suite.models), folder / "responses.parquet")
    write_responses(suite.accuracy.with_tables(models=suite.models), folder / "right.parquet")
    nothing = pl.DataFrame({"model_id": suite.accuracy.model_ids})
    write_responses(suite.accuracy.with_tables(models=nothing), folder / "nothing.parquet")
    return folder


def run(files, name, *options):
    words = ["scaling", "decisions", str(files / name), "--splits", "1", "--calibrating", "1", "--method", "1PL"]
    return CliRunner().invoke(cli, [*words, *options])


def test_the_numbers_are_those_of_decision_curves(files, suite, tmp_path):
    figure = tmp_path / "decisions.svg"
    given = ("--accuracy", str(files / "right.parquet"), "--figure", str(figure))
    outcome = run(files, "responses.parquet", *given, "--format", "json")
    assert outcome.exit_code == 0, outcome.output
    found = json.loads(outcome.stdout)
    metrics = {"accuracy": suite.accuracy, "probability": suite.probability}
    methods = {f"1PL {metric}": SIX_METHODS[f"1PL {metric}"] for metric in metrics}
    settings = PretrainingSettings(fewest_sizes=2, n_items=50, n_checked=0)
    compute = training_compute(suite.models)
    wanted = decision_curves(metrics, compute, methods=methods, n_splits=1, n_calibration=1, settings=settings)
    columns = ("scenario", "law", "decision_accuracy")
    rows = [tuple(row[name] for name in columns) for row in found["scenarios"]]
    assert sorted(rows) == sorted(wanted.select(columns).rows())
    for row in found["mean"]:
        share = row["share_of_target"]
        own = wanted.filter(law=row["law"]).filter(
            (wanted.filter(law=row["law"])["share_of_target"] / share - 1).abs() < 1e-6
        )
        assert row["decision_accuracy"] == pytest.approx(own["decision_accuracy"].mean())
    assert figure.read_text(encoding="utf-8").startswith("<svg")


def test_right_or_wrong_alone_is_its_own_truth(files):
    outcome = run(files, "right.parquet", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert {row["law"] for row in rows} == {"1PL accuracy"}
    twice = run(files, "right.parquet", "--accuracy", str(files / "right.parquet"))
    assert twice.exit_code == 2
    assert "--accuracy" in twice.stderr


def test_compute_must_be_known(files):
    outcome = run(files, "nothing.parquet")
    assert outcome.exit_code == 2
    assert "itembank import --models FILE" in outcome.stderr
