"""A package that itembank does not know brings ways to estimate, to select and to calibrate."""

import sys

import numpy as np
import pytest

import itembank as ib
from itembank.calibration.calibration_specs import METHODS as CALIBRATIONS
from itembank.calibration.fit_item_model import fit_item_model
from itembank.cli.main import cli
from itembank.estimation.estimator_specs import METHODS as ESTIMATORS
from itembank.estimation.estimator_specs import Stacked, Weighted
from itembank.methods import entry_points_of
from itembank.selection.recipes import read_recipe
from itembank.selection.selector_specs import METHODS as SELECTORS
from tests.bank.banks import make_bank
from tests.cli.conftest import new_results
from tests.packages import forget, install

pytestmark = pytest.mark.usefixtures("few_folds", "stranger")

SOURCE = """
from dataclasses import dataclass, replace
import numpy as np
from itembank.calibration.calibration_specs import CalibrationSpec, Variational
from itembank.calibration.variational.fit import fit_variational
from itembank.estimation.estimator_specs import PointSpec
from itembank.methods import Method
from itembank.selection.pools import Choice
from itembank.selection.selector_specs import SelectionSpec
@dataclass(frozen=True, slots=True)
class Shrunk(PointSpec):
    weight: float = 0.5
def shrunk(known, spec):
    means = known.bank.targets.with_overall(known.summary.weighted)
    return spec.weight * means + (1.0 - spec.weight) * 0.5
@dataclass(frozen=True, slots=True)
class First(SelectionSpec):
    pass
def first(pools, spec):
    return pools.each(lambda pool, n: Choice(np.flatnonzero(pool.is_candidate)[:n], np.full(n, 1.0 / n)))
@dataclass(frozen=True, slots=True)
class Rough(CalibrationSpec):
    max_iterations: int = 5
def rough(data, spec, *, progress):
    return replace(fit_variational(data, Variational(tolerance=1e-2), progress=progress), message="rough")
SHRUNK, FIRST, ROUGH = Method(Shrunk, shrunk), Method(First, "stranger:first"), Method(Rough, rough)
"""
ENTRY_POINTS = {
    "itembank.estimators": ["shrunk = stranger:SHRUNK"],
    "itembank.selectors": ["first = stranger:FIRST"],
    "itembank.calibrations": ["rough = stranger:ROUGH"],
}


@pytest.fixture
def stranger(monkeypatch, tmp_path_factory):
    forget(monkeypatch, ESTIMATORS, SELECTORS, CALIBRATIONS)
    install(monkeypatch, tmp_path_factory.mktemp("site"), "stranger", SOURCE, ENTRY_POINTS)
    yield
    sys.modules.pop("stranger", None)
    entry_points_of.cache_clear()


@pytest.fixture
def new_models(tmp_path):
    matrix = new_results().take(items=np.arange(12))
    ib.write_responses(matrix, tmp_path / "new.parquet")
    return matrix, tmp_path / "new.parquet"


def test_an_installed_estimator_estimates_by_name_and_as_a_member_of_others(run, fitted_bank, new_models):
    bank, (matrix, path) = ib.load_bank(fitted_bank), new_models
    found = ib.estimate(bank, matrix, method="shrunk")
    expected = 0.5 * ib.estimate(bank, matrix, method="weighted").value[:, 0] + 0.25
    np.testing.assert_allclose(found.value[:, 0], expected)
    printed = run.json("estimate", fitted_bank, path, "--method", "shrunk")
    assert [row["estimate"] for row in printed["rows"]] == found.value.ravel().tolist()
    shrunk = ESTIMATORS.resolve("shrunk")
    assert ESTIMATORS.label(type(shrunk)(0.9)) == "shrunk (weight 0.9)"
    assert np.isfinite(ib.estimate(bank, matrix, method=Stacked((Weighted(), shrunk))).value[:, 0]).all()


def test_an_installed_selector_selects_and_its_recipe_is_followed(run, fitted_bank, tmp_path):
    chosen = ib.select(ib.load_bank(fitted_bank), 6, method="first", rng=0)
    printed = run.json("select", fitted_bank, "-n", 6, "--method", "first", "-o", tmp_path / "s.json")
    assert ([item["item_id"] for item in printed["items"]], chosen.method) == (list(chosen.item_ids), "first")
    assert read_recipe(chosen).n_items == 6


def test_an_installed_calibration_makes_banks_that_can_be_read(run, tmp_path):
    responses = make_bank().responses
    assert fit_item_model(responses, "rough").message == "rough"
    ib.write_responses(responses, tmp_path / "past.parquet")
    words = ("--method", "rough", "--dims", 1, "--no-folds")
    run.ok("calibrate", tmp_path / "past.parquet", "-o", tmp_path / "bank", *words)
    assert ib.load_bank(tmp_path / "bank").calibration.method == "rough"


def test_a_name_that_nobody_brings_is_refused_with_all_that_there_are(run, fitted_bank, new_models):
    refused = run("estimate", fitted_bank, new_models[1], "--method", "shrunken")
    assert refused.code == 2
    assert all(name in refused.err for name in ("'auto', ", "'shrunk'"))


def test_help_does_not_look_for_packages(run, monkeypatch):
    def asked(group):
        raise AssertionError(group)

    monkeypatch.setattr("itembank.methods.entry_points_of", asked)
    for command in ("estimate", "select", "calibrate", "compare", "plan"):
        run.ok(command, "--help")
    assert cli.list_commands(None)
