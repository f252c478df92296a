"""Graded items against R's mirt: Science, 392 persons, 4 items of 4 levels, on mirt's own 61 nodes."""

import csv

import numpy as np
import pytest

from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import MarginalML
from itembank.estimation.model_abilities import abilities_of
from itembank.irt.ability_specs import METHODS
from itembank.irt.bernoulli import logit, probability
from itembank.irt.families import information_weights
from itembank.irt.parameters import AbilityPrior, ItemParameters, Steps
from itembank.responses.responses import ResponseMatrix
from tests.golden.cases import read_results

NAME = "science_graded_gpcm"


@pytest.fixture
def golden(shared_dir):
    return read_results(shared_dir, NAME)["graded"]


@pytest.fixture
def values(shared_dir):
    with (shared_dir / "golden" / NAME / "responses.csv").open(newline="") as handle:
        return (np.array(list(csv.reader(handle))[1:], dtype=float) - 1.0) / 3.0


def parameters_of(golden):
    """Levels 0, 1/3, 2/3 and 1; a threshold (mirt's d_k) is our intercept less the step."""
    items = np.array(golden["par"]["items"])
    slope, thresholds = items[:, 0], items[:, 1:]
    intercept = thresholds.mean(axis=1)
    steps = Steps(np.arange(4) / 3.0, intercept[:, None] - thresholds)
    return ItemParameters.create(slope[:, None], intercept, family="graded", steps=steps)


def test_calibration(golden, values):
    spec = MarginalML(family="graded", prior=None, n_quadrature=61, tolerance=1e-5, max_iterations=2000)
    found = calibrate(ResponseMatrix.create(values), spec)
    assert found.converged
    ours = np.column_stack(
        [found.parameters.loadings, found.parameters.intercept[:, None] - found.parameters.steps.places]
    )
    np.testing.assert_allclose(ours, np.array(golden["par"]["items"]), atol=1e-3)
    assert found.history[-1] == pytest.approx(golden["fit"]["logLik"], abs=1e-4)
    # an item's errors take the other three as known
    raw = [golden["par"]["raw_with_se"][name]["values"][1][0] for name in golden["par"]["item_names"]]
    ratio = np.sqrt(found.item_covariance[:, 0, 0]) / np.array(raw)
    assert np.all((ratio > 0.75) & (ratio < 1.0))
    np.testing.assert_allclose(found.abilities[:, 0], np.array(golden["scores"]["EAP"]["theta"])[:, 0], atol=1e-3)


@pytest.mark.parametrize(("method", "atol"), [("EAP", 1e-6), ("MAP", 1e-4), ("ML", 1e-4), ("WLE", 1e-4)])
def test_abilities(golden, values, method, atol):
    found = abilities_of(parameters_of(golden), values, AbilityPrior.standard(1), METHODS.resolve(method.lower()))
    theirs = np.array([[float(cell) for cell in row] for row in golden["scores"][method]["theta"]])[:, 0]
    finite = np.isfinite(theirs)
    np.testing.assert_allclose(found.theta[finite, 0], theirs[finite], atol=atol)
    np.testing.assert_array_equal(found.theta[~finite, 0], theirs[~finite])


def test_information_and_expected_scores(golden):
    parameters, info = parameters_of(golden), golden["info"]
    theta = np.array(info["theta"])[:, None]
    ours = information_weights(parameters, logit(parameters, theta)) * parameters.loadings[:, 0] ** 2
    np.testing.assert_allclose(ours.T, info["item_info"], rtol=1e-9)
    np.testing.assert_allclose(
        1.0 * 4 + 3.0 * probability(parameters, theta).sum(axis=1), info["expected_test"], rtol=1e-12
    )
