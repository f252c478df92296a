import numpy as np
import pytest

from itembank.calibration.calibration_specs import ItemPrior, MarginalML, RelativeItemPrior
from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml import fit as marginal_ml
from itembank.calibration.marginal_ml.fit import fit_items, fit_marginal_ml
from itembank.errors import ParameterError
from tests.calibration.simulated import simulate


@pytest.mark.parametrize(
    ("item_model", "missing", "guessing"), [("1pl", 0.0, 0.0), ("2pl", 0.2, 0.0), ("2pl", 0.0, 0.2)]
)
@pytest.mark.parametrize("prior", [None, ItemPrior(), RelativeItemPrior()])
def test_the_objective_never_falls(item_model, missing, guessing, prior):
    simulated = simulate(80, 30, missing=missing, guessing=guessing)
    fit = fit_marginal_ml(simulated.data, MarginalML(item_model, prior=prior, tolerance=1e-6))
    assert fit.converged
    assert np.all(np.diff(fit.history) >= -1e-9 * np.abs(fit.history[-1]))
    assert np.all(np.isfinite(fit.item_covariance))
    assert np.all(np.linalg.eigvalsh(fit.ability_covariance) > 0.0)


def test_abilities_have_mean_zero_and_total_variance_one():
    fit = fit_marginal_ml(simulate(50, 200).data, MarginalML())
    assert fit.abilities.mean() == pytest.approx(0.0, abs=1e-10)
    assert fit.abilities.var() + fit.ability_covariance.mean() == pytest.approx(1.0, rel=1e-10)


def test_at_maximum_likelihood_the_population_is_standard_normal_by_itself():
    step = fit_items(simulate(400, 25).data, MarginalML(prior=None, tolerance=1e-7))[1].end
    assert step.posterior.mean.mean() == pytest.approx(0.0, abs=1e-5)
    assert step.posterior.mean.var() + step.posterior.covariance.mean() == pytest.approx(1.0, abs=1e-5)


def test_more_nodes_than_needed_change_nothing():
    data = simulate(100, 150).data
    automatic = fit_marginal_ml(data, MarginalML(tolerance=1e-7))
    fine = fit_marginal_ml(data, MarginalML(n_quadrature=1001, tolerance=1e-7))
    np.testing.assert_allclose(automatic.loadings, fine.loadings, atol=2e-5)
    np.testing.assert_allclose(automatic.intercept, fine.intercept, atol=2e-5)
    np.testing.assert_allclose(automatic.ability_covariance, fine.ability_covariance, rtol=1e-3)


def test_nodes_that_cannot_hold_the_posteriors_are_refused_and_wide_ones_named():
    data = simulate(60, 400).data
    with pytest.raises(ParameterError, match=r"closer than 4 posterior standard deviations.*'auto'"):
        fit_marginal_ml(data, MarginalML(n_quadrature=21))
    wide = fit_marginal_ml(data, MarginalML(n_quadrature=61))
    assert "results depend on the nodes" in wide.message
    assert "results depend on the nodes" not in fit_marginal_ml(data, MarginalML()).message


def test_automatic_nodes_grow_with_the_test():
    counts = [len(fit_items(simulate(40, n_items).data, MarginalML())[0].grid.nodes) for n_items in (20, 500)]
    assert counts[0] == 61
    assert counts[1] > 100


def test_priors_by_shape():
    assert marginal_ml._prior(MarginalML(), 1000, 32) is None
    assert marginal_ml._prior(MarginalML(), 400, 5000) == RelativeItemPrior()
    assert marginal_ml._prior(MarginalML(), 200, 100) == RelativeItemPrior()
    assert marginal_ml._prior(MarginalML(prior=None), 10, 500) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_dims": 2, "item_model": "mirt"}, "must be one of '1pl', '2pl' for this method"),
        ({"bounds": (1.0, 6.0)}, "enclose 0"),
        ({"n_quadrature": 1}, "at least 2"),
    ],
)
def test_impossible_specs_are_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        MarginalML(**arguments)


@pytest.mark.parametrize("make", [lambda: ItemPrior(intercept_sd=0.0), lambda: RelativeItemPrior(slope_sd=-1.0)])
def test_priors_without_spread_are_refused(make):
    with pytest.raises(ParameterError, match="must be > 0"):
        make()


@pytest.mark.parametrize("n_items", [7, 30, 50])
def test_items_of_one_slope_have_no_line_of_intercepts(n_items):
    problem = fit_items(simulate(20, n_items).data, MarginalML("1pl"))[0]
    assert problem.prior.line_slope == 0.0


def test_an_item_with_the_wrong_key_gets_a_negative_slope():
    simulated = simulate(200, 40)
    simulated.data.responses[:, 5] = 1.0 - (simulated.theta[:, 0] > 0.3)
    fit = fit_marginal_ml(simulated.data, MarginalML())
    assert fit.loadings[5, 0] < -0.3


def test_known_guessing_is_taken_into_account():
    simulated = simulate(400, 60, guessing=0.25, seed=4)
    without = FitData(simulated.data.responses, None, np.zeros(60))
    right, wrong = (fit_marginal_ml(data, MarginalML()) for data in (simulated.data, without))
    errors = [np.sqrt(np.mean((fit.intercept - simulated.intercept) ** 2)) for fit in (right, wrong)]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.slow
def test_standard_errors_are_the_spread_over_data_sets():
    # new models from the same population each time: the errors must know that their abilities are unknown
    rng = np.random.default_rng(7)
    slope, intercept = rng.lognormal(0.0, 0.3, 20), rng.normal(size=20)
    found, claimed = [], []
    for _ in range(150):
        theta = rng.normal(size=400)
        chances = 1.0 / (1.0 + np.exp(-(theta[:, None] * slope + intercept)))
        data = FitData((rng.random(chances.shape) < chances).astype(float), None, np.zeros(20))
        fit = fit_marginal_ml(data, MarginalML(prior=None))
        found.append(np.column_stack([fit.loadings, fit.intercept]))
        claimed.append(np.sqrt(np.einsum("ijj->ij", fit.item_covariance)))
    ratio = np.std(found, axis=0) / np.mean(claimed, axis=0)  # (n_items, 2), each with error 0.06
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)
    assert np.all(np.abs(ratio - 1.0) < 0.25)
