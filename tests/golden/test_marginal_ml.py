"""Marginal ML against R's mirt, on mirt's own nodes (61 on [-6, 6]).

mirt stopped at a parameter change of 1e-7 to 1e-8 and gives standard errors by Oakes' identity, which equal those of
the full observed information; so parameters must agree to 1e-4 and log-likelihoods to 1e-4 (the tight tolerance of
the golden cases' notes), standard errors to 1e-3 of their size.
"""

import numpy as np
import pytest

from itembank.calibration.calibration_specs import ItemPrior, MarginalML
from itembank.calibration.marginal_ml.errors import item_covariances
from itembank.calibration.marginal_ml.fit import fit_items
from itembank.progress import silent
from tests.calibration.counts import once_each
from tests.golden.cases import item_parameters, read_data, read_results, standard_errors

TIGHT = {"tolerance": 1e-7, "max_iterations": 5000}
SPEC = MarginalML(n_quadrature=61, prior=None, **TIGHT)


def assert_is_mirts(data, spec, par, fit, scores=None, *, atol=1e-4, with_errors=True):
    problem, path = fit_items(data, spec, progress=silent)
    step = path.end
    assert path.converged
    np.testing.assert_allclose(step.items, item_parameters(par), atol=atol)
    assert step.objective == pytest.approx(fit["logLik"] + fit["logPrior"], abs=1e-4)
    covariance = item_covariances(problem, step)[0]
    ours = np.sqrt(np.einsum("ijj->ij", covariance))
    theirs = standard_errors(par)
    known = np.isfinite(theirs) & with_errors
    np.testing.assert_allclose(ours[known], theirs[known], rtol=1e-3)
    if scores is not None:  # mirt scores on 121 nodes, the fit on 61
        np.testing.assert_allclose(step.posterior.mean[:, 0], np.array(scores["EAP"]["theta"])[:, 0], atol=1e-3)


@pytest.mark.parametrize("name", ["lsat7_2pl", "sat12_2pl", "sim_2pl_missing"])
@pytest.mark.parametrize("is_counted", [False, True])
def test_2pl_also_of_counts_of_one_trial_and_of_none_where_missing(shared_dir, name, is_counted):
    golden, data = read_results(shared_dir, name), read_data(shared_dir, name)
    assert_is_mirts(once_each(data) if is_counted else data, SPEC, golden["par"], golden["fit"], golden["scores"])


def test_2pl_of_lsat6(shared_dir):
    parts = [part for part in read_results(shared_dir, "lsat6_2pl_rasch").values() if "par" in part]
    golden = next(part for part in parts if len({row[0] for row in part["par"]["items"]}) > 1)
    assert_is_mirts(read_data(shared_dir, "lsat6_2pl_rasch"), SPEC, golden["par"], golden["fit"])


def test_2pl_with_omitted_answers_as_missing(shared_dir):
    golden = read_results(shared_dir, "sat12_2pl")["missing"]
    data = read_data(shared_dir, "sat12_2pl", file="responses_missing.csv")
    assert data.observed is not None
    assert_is_mirts(data, SPEC, golden["par"], golden["fit"], golden["scores"])


def test_2pl_with_known_guessing(shared_dir):
    golden = read_results(shared_dir, "sim_3pl_fixed_and_free_guess")
    data = read_data(shared_dir, "sim_3pl_fixed_and_free_guess", lower=golden["truth"]["g"])
    golden = golden["fixed_guess"]
    assert_is_mirts(data, SPEC, golden["par"], golden["fit"], golden["scores"])


FEW = "sim_2pl_fewmodels_priors"
OF_FEW = MarginalML(n_quadrature=61, prior=ItemPrior(0.0, 0.5, 1.5), **TIGHT)


def test_2pl_with_priors_for_few_models(shared_dir):
    golden, data = read_results(shared_dir, FEW), read_data(shared_dir, FEW)
    # So flat here that mirt's EM stopped 2e-4 short, its objective 2e-7 below ours
    assert_is_mirts(data, OF_FEW, golden["par"], golden["fit"], golden["scores"], atol=1e-3, with_errors=False)


def test_standard_errors_with_priors_but_for_a_sign_in_mirts(shared_dir):
    par = read_results(shared_dir, FEW)["par"]
    problem, path = fit_items(read_data(shared_dir, FEW), OF_FEW)
    covariance = item_covariances(problem, path.end)[0]
    # The second derivative of the lognormal log density is 1/a^2 - 1/(s a)^2 + (log a - m)/(s a)^2. mirt 1.47 has
    # the last term with the other sign: its information becomes ours when twice that term is put right.
    slope = path.end.items[:, 0]
    information = np.linalg.inv(np.array(par["vcov"]["values"], dtype=float))
    wrong = np.zeros(len(information))
    wrong[::2] = 2.0 * np.log(slope) / (0.5 * slope) ** 2
    expected = np.sqrt(np.diag(np.linalg.inv(information - np.diag(wrong))))
    ours = np.sqrt(np.einsum("ijj->ij", covariance)).ravel()
    # mirt's parameters are up to 2e-4 off, and its smallest slopes' curvatures with them
    np.testing.assert_allclose(ours, expected, rtol=2e-3)
    assert np.abs(ours / np.sqrt(np.diag(np.linalg.inv(information))) - 1.0).max() > 0.5


def test_1pl_is_the_common_slope_model_and_rasch_in_another_scale(shared_dir):
    golden = read_results(shared_dir, "lsat7_rasch")
    spec = MarginalML("1pl", n_quadrature=61, prior=None, **TIGHT)
    data = read_data(shared_dir, "lsat7_rasch")
    assert_is_mirts(data, spec, golden["equal_slope"]["par"], golden["equal_slope"]["fit"])
    # Rasch: slope 1 and variance s^2 is common slope s and variance 1; its nodes are scaled by s, so the sums differ
    rasch = golden["rasch"]["par"]
    items = fit_items(data, spec)[1].end.items
    assert items[0, 0] == pytest.approx(np.sqrt(np.array(rasch["cov"], dtype=float).item()), abs=1e-3)
    np.testing.assert_allclose(items[:, 1], item_parameters(rasch)[:, 1], atol=1e-3)
