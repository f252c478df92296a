"""A bank whose scenarios were answered by different models: no overall score is known, and none is made up."""

import re

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataWarning
from itembank.planning.plan import plan
from itembank.planning.select import select
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix

# The two scenarios share no model: two fits are about as good, and whether that is said differs between processors.
pytestmark = [
    pytest.mark.usefixtures("few_folds", "without_library"),
    pytest.mark.filterwarnings("ignore:calibration did not converge"),
]


def disjoint(name, seed):
    """Half of 24 models answer one scenario, the other half another."""
    rng = np.random.default_rng(seed)
    strength, difficulty = rng.normal(size=(24, 1)), rng.normal(size=20)
    values = (rng.random((24, 20)) < 1.0 / (1.0 + np.exp(difficulty - strength))).astype(float)
    values[:12, 10:] = values[12:, :10] = np.nan
    models, items = [f"{name}{k}" for k in range(24)], [f"q{k}" for k in range(20)]
    return ResponseMatrix.create(values, model_ids=models, item_ids=items, scenarios=["a"] * 10 + ["b"] * 10)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disjoint")
    with pytest.warns(DataWarning, match="2 groups that share no items"):
        calibrate(disjoint("past", 0), Variational(item_model="2pl", n_dims=1)).save(folder / "bank")
    write_responses(disjoint("new", 1), folder / "new.parquet")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("check", "bank", "new.parquet"),
        ("info", "bank"),
        ("estimate", "bank", "new.parquet"),
        ("select", "bank", "-n", "8", "-o", "chosen.json"),
        ("report", "bank", "-o", "bank.html"),
    ],
)
@pytest.mark.filterwarnings("ignore:of the 10 items")
def test_what_is_not_known_is_not_printed_as_a_number(run, place, monkeypatch, words):
    monkeypatch.chdir(place)
    outcome = run.ok(*words)
    assert not re.search(r"\bnan\b|\binf\b|\bslice\b", outcome.out + outcome.err)


def test_errors_that_are_not_known_are_dashes(run, place):
    outcome = run("check", place / "bank", place / "new.parquet", "--only", "accuracy")
    lines = [line.split() for line in outcome.out.splitlines() if " unknown" in line]
    overall = [line for line in lines if line[1] == "overall"]
    assert len(overall) == 24
    assert all(line[-1] == "unknown" and line[-3] == "-" for line in overall)


def test_no_method_is_said_to_be_better_where_none_could_be_tried(place):
    for method in ("auto", "v-optimal"):
        assert "past ones" not in select(load_bank(place / "bank"), 8, method=method).explanation


def test_a_plan_needs_no_model_whose_score_is_known(place):
    assert 0.0 < plan(load_bank(place / "bank")).table[0].half_width < 0.5
