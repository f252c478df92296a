import json

import numpy as np

from itembank.readers.read import read_responses
from itembank.studies.simulation.simulate import simulate
from itembank.studies.simulation.simulation_results import load_truth
from itembank.studies.simulation.simulation_specs import SimulationSpec
from tests.cli.conftest import spec_file

SHAPE = ("--models", 6, "--items", 80, "--tasks", 3, "--dims", 2)


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
    assert json.loads(outcome.out) == [
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
    outcome = run("simulate", "-o", tmp_path / "r.parquet", "--items", 3, "--tasks", 4)
    assert outcome.code == 2
    assert "n_items must be at least n_tasks = 4, got 3" in outcome.err
    outcome = run("simulate", "-o", tmp_path / "r.parquet", *SHAPE, "--missing", 1.5)
    assert outcome.code == 2
    assert list(tmp_path.iterdir()) == []
