import csv
import io
import json
from functools import partial

import numpy as np
import polars as pl
import pytest

from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.cli.quickstart import _write_page
from itembank.errors import missing_package
from itembank.pages import quickstart
from itembank.readers.builtin import NEW_MODEL, sample_data
from itembank.readers.read import read_responses
from itembank_studies.simulation.simulate import simulate
from itembank_studies.simulation.simulation_results import load_truth
from itembank_studies.simulation.simulation_specs import SimulationSpec
from tests.bank.few_items import load_few
from tests.cli.conftest import spec_file

ARGUMENTS = ("quickstart", "-n", "40", "--repeats", "1", "--seed", "5")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    spec = Variational("2pl", n_dims=1, tolerance=1e-3)
    monkeypatch.setattr(quickstart, "build_bank", lambda past, rng: build_bank(past, spec, rng=rng))
    monkeypatch.setattr(quickstart, "load_builtin", partial(load_few, every_item=14))
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_MANY", 3)
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # it takes seconds to bundle


def test_what_was_done_is_said_and_running_again_replaces_the_files(run, tmp_path):
    """A table whose next commands work, and then one row a strategy."""
    outcome = run(*ARGUMENTS, "-o", tmp_path / "out")
    assert outcome.code == 0
    assert "70 unseen models estimated from 40 of 130 items" in outcome.out.replace("\n", " ")
    assert "gp-IRT" in outcome.out
    assert "itembank's default" in outcome.out
    assert "auto: stacked" in outcome.out
    assert "Written" not in outcome.out
    for name in ("bank", "selection.json", "new-models.parquet", "estimates.csv", "predicted-against-true.png"):
        assert str(tmp_path / "out" / name) in outcome.err
        assert (tmp_path / "out" / name).exists()
    assert f"Report: {tmp_path / 'out' / 'report.html'}" in outcome.err
    assert "points off by chance" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    lines = [line.split("itembank ")[1] for line in outcome.err.splitlines() if "itembank " in line]
    assert [line.split()[0] for line in lines] == ["info", "estimate"]
    for line in lines:
        followed = run(*line.split(), "--format", "csv")
        assert followed.code == 0
        assert len(list(csv.DictReader(io.StringIO(followed.out)))) >= 5
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.csv")}
    again = run(*ARGUMENTS, "-o", tmp_path / "out", "--format", "json")
    assert again.code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.csv")} == before
    rows = json.loads(again.out)["rows"]
    assert [row["strategy"] for row in rows] == ["random sampling", "anchor points", "gp-IRT", "itembank's default"]
    assert (rows[-1]["selection"], rows[-1]["method"], rows[-1]["methods_used"]) == ("auto", "auto", "stacked")
    for row in rows:
        assert 0.0 < row["mean_absolute_error"] <= row["worst_error"] <= 100.0
        assert f" {row['worst_error']:.1f} " in outcome.out


@pytest.mark.parametrize(("option", "value"), [("-n", "0"), ("--repeats", "0"), ("--seed", "x")])
def test_a_wrong_option_is_a_usage_error(run, tmp_path, option, value):
    outcome = run("quickstart", "-o", tmp_path / "out", option, value)
    assert outcome.code == 2
    assert not (tmp_path / "out").exists()


def test_more_items_than_there_are_fails_with_the_reason(run, tmp_path):
    outcome = run(*ARGUMENTS[:1], "-n", "9999", "--repeats", "1", "-o", tmp_path / "out")
    assert outcome.code == 2
    assert "n_items must be from 16" in outcome.err
    assert outcome.out == ""


def test_without_what_pages_need_one_line_says_so(monkeypatch, tmp_path, capsys):
    def refuse(*_args, **_known):
        raise missing_package("reports need jinja2", "jinja2", ImportError("no module named 'jinja2'"))

    monkeypatch.setattr(quickstart, "quickstart_page", refuse)
    _write_page(None, tmp_path / "report.html")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("No report was written: reports need jinja2")
    assert "pip install jinja2" in said
    assert not (tmp_path / "report.html").exists()


def test_the_files_can_be_used_as_they_are(run, tmp_path):
    outcome = run("sample-data", "-o", tmp_path / "sample", "--format", "json")
    assert outcome.code == 0
    assert [row["models"] for row in json.loads(outcome.out)["rows"]] == [110, 1]
    for name, n_models in (("past.csv", 110), ("new-model.csv", 1)):
        table = pl.read_csv(tmp_path / "sample" / name)
        assert table.columns == ["model_id", "item_id", "scenario", "response"]
        assert (table["model_id"].n_unique(), table["item_id"].n_unique(), table.height) == (
            n_models,
            680,
            680 * n_models,
        )
        assert set(table["response"]) == {0, 1}
    assert run("import", tmp_path / "sample/past.csv", "-o", tmp_path / "responses.parquet").code == 0


def test_no_checkpoint_of_the_new_models_run_is_among_the_past_models():
    past, new = sample_data()
    assert new.model_ids == [NEW_MODEL]
    assert not [model for model in past.model_ids if model.startswith(NEW_MODEL.rpartition("/")[0] + "/")]
    assert past.item_ids == new.item_ids


def test_a_file_that_is_there_is_left_as_it_is(run, tmp_path):
    (tmp_path / "new-model.csv").write_text("mine", encoding="utf-8")
    outcome = run("sample-data", "-o", tmp_path)
    assert (outcome.code, "new-model.csv' must not be there yet" in outcome.err) == (1, True)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["mine"]


def test_the_same_command_again_ends_what_a_killed_one_began(run, tmp_path):
    assert run("sample-data", "-o", tmp_path).code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "new-model.csv").unlink()
    assert run("sample-data", "-o", tmp_path).code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


SHAPE = ("--n-models", 6, "--n-items", 80, "--n-tasks", 3, "--n-dims", 2)


def test_responses_and_truth_are_those_of_the_library(run, tmp_path):
    outcome = run("simulate", "-o", tmp_path / "r.parquet", *SHAPE, "--missing", 0.2, "--seed", 4, "--format", "json")
    assert outcome.code == 0
    made = simulate(SimulationSpec(6, 80, 3, 2, missing=0.2), 4)
    read = read_responses(tmp_path / "r.parquet")
    np.testing.assert_array_equal(read.responses, made.responses.responses)
    np.testing.assert_array_equal(read.costs["output_tokens"], made.responses.costs["output_tokens"])
    assert read.item_ids == made.responses.item_ids
    truth = load_truth(tmp_path / "r.truth.safetensors")
    np.testing.assert_array_equal(truth.abilities, made.truth.abilities)
    assert json.loads(outcome.out)["rows"] == [
        {
            "file": str(tmp_path / "r.parquet"),
            "truth": str(tmp_path / "r.truth.safetensors"),
            "n_models": 6,
            "n_items": 80,
            "n_tasks": 3,
            "n_dims": 3,
            "n_missing": int(np.isnan(made.responses.responses).sum()),
            "mean_task_score": made.truth.task_scores.mean(),
            "costs": ["input_tokens", "output_tokens"],
        }
    ]


def test_the_same_seed_writes_the_same_files(run, tmp_path):
    for name in ("a", "b"):
        run("simulate", "-o", tmp_path / f"{name}.parquet", *SHAPE)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (tmp_path / "a.truth.safetensors").read_bytes() == (tmp_path / "b.truth.safetensors").read_bytes()


def test_what_is_simulated_can_be_calibrated(run, tmp_path):
    run("simulate", "-o", tmp_path / "r.parquet", *SHAPE, "--no-costs", "--guessing", 0.25)
    outcome = run(
        "calibrate",
        tmp_path / "r.parquet",
        "-o",
        tmp_path / "bank",
        "--dims",
        1,
        *spec_file(tmp_path, "known_guessing = true"),
    )
    assert outcome.code == 0


def test_mistakes_leave_nothing_behind(run, tmp_path):
    outcome = run("simulate", "-o", tmp_path / "r.csv", *SHAPE)
    assert outcome.code == 2
    assert "must end in .parquet" in outcome.err
    outcome = run("simulate", "-o", tmp_path / "r.parquet", "--n-items", 3, "--n-tasks", 4)
    assert outcome.code == 2
    assert "n_items must be at least n_tasks = 4, got 3" in outcome.err
    outcome = run("simulate", "-o", tmp_path / "r.parquet", *SHAPE, "--missing", 1.5)
    assert outcome.code == 2
    assert list(tmp_path.iterdir()) == []
