"""Fixed-parameter calibration against R's mirt.

mirt maximised the likelihood with 15 old items held and the mean and variance of ability free, on 61 nodes: ours must
agree to 1e-3 (the tolerance of the golden cases' notes for other nodes). Its `fixedCalib` by Kim's NWU method holds the
distribution of ability, too; it stopped at mirt's default tolerance of 1e-4 a step, some 1e-3 short. Oakes' standard
errors allow for what all new items have to share, the delta method here for each by itself: 7 % at most with 15 new
items beside 15 old ones.
"""

import csv

import numpy as np
import pytest

from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank_living.changes.fixed_parameters import FixedParameters, calibrate_fixed
from itembank_living.changes.linking import LinkingData
from tests.golden.cases import item_parameters, read_results, standard_errors

NAME = "sim_fixed_calibration"
NEW = slice(15, 30)


@pytest.fixture(scope="module")
def golden(shared_dir):
    return read_results(shared_dir, NAME)


@pytest.fixture(scope="module")
def data(shared_dir, golden):
    with (shared_dir / "golden" / NAME / "responses.csv").open(newline="") as file:
        answers = np.array([row[11:41] for row in csv.reader(file) if row[0] == "new"], dtype=float)
    old = item_parameters(golden["old"]["par"])[10:]
    items = ItemParameters.create(old[:, :1], old[:, 1])
    return LinkingData(items, answers[:, :15], answers[:, 15:], np.zeros(15), AbilityPrior.standard(1))


def fitted(data, pseudo_models):
    choices = {"n_quadrature": 7, "tolerance": 1e-3, "max_steps": 500, "pseudo_models": pseudo_models}
    fit = calibrate_fixed(data, FixedParameters(has_population=False, uses_new_answers=True, **choices))
    assert fit.converged
    return fit


def test_new_items_beside_old_ones_that_are_held(golden, data):
    fit, theirs = fitted(data, 0.0), golden["anchored_new"]
    np.testing.assert_allclose(fit.posterior.mode, item_parameters(theirs["par"])[NEW], atol=1e-3)
    assert fit.abilities.mean[0] == pytest.approx(theirs["par"]["mean"], abs=1e-3)
    assert fit.abilities.covariance[0, 0] == pytest.approx(theirs["par"]["cov"][0][0], abs=1e-3)
    assert fit.nodes.log_likelihood.sum() == pytest.approx(theirs["fit"]["logLik"], abs=1e-3)
    ours = np.sqrt(np.einsum("ijj->ij", fit.covariance))
    np.testing.assert_allclose(ours, standard_errors(theirs["par"])[NEW], rtol=0.07)


def test_fixed_calib_with_the_distribution_of_ability_held(golden, data):
    par = golden["fixedCalib"]["NWU"]["par"]
    theirs = item_parameters(par)[25:]
    np.testing.assert_allclose(fitted(data, 1e12).posterior.mode, theirs, atol=2e-3)
