import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational
from itembank.calibration.fits import Fit, FitData, standardise
from itembank.calibration.joint_map.fit import fit_joint_map
from itembank.calibration.marginal_ml.fit import fit_marginal_ml
from itembank.calibration.variational.fit import fit_variational
from itembank.irt.parameters import AbilityPrior
from itembank.progress import silent
from tests.calibration.counts import once_each
from tests.calibration.simulated import simulate
from tests.numerics.compare import alike

FITS = {Variational: fit_variational, JointMAP: fit_joint_map, MarginalML: fit_marginal_ml}
METHODS = pytest.mark.parametrize("method", FITS, ids=lambda method: method.__name__)


def fitted(data, spec):
    return FITS[type(spec)](data, spec, progress=silent)


@METHODS
def test_order_of_models_and_items_does_not_matter(method):
    data, rng = simulate(60, 40, missing=0.2).data, np.random.default_rng(1)
    cut = np.ix_(rng.permutation(60), rng.permutation(40))
    shuffled = FitData(data.responses[cut], data.observed[cut], data.lower_asymptote)
    spec = method(tolerance=1e-8 if method is MarginalML else 1e-12)
    one, other = (fitted(each, spec) for each in (data, shuffled))
    closeness = {MarginalML: 1e-5, JointMAP: 1e-3, Variational: 2e-3}[method]
    assert_allclose(other.loadings, one.loadings[cut[1][0]], atol=closeness)
    assert_allclose(other.abilities, one.abilities[cut[0][:, 0]], atol=closeness)


@METHODS
def test_stopping_early_says_so(method):
    found = fitted(simulate(40, 60).data, method(max_iterations=2, tolerance=1e-12))
    assert not found.converged
    assert "aise max_iterations" in found.message


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    "spec", [JointMAP(), JointMAP("mirt", n_dims=2), JointMAP("nested", n_dims=3), MarginalML()], ids=str
)
def test_one_trial_a_cell_is_a_single_answer_and_none_is_missing(spec, missing):
    data = simulate(50, 20, n_dims=spec.n_dims, missing=missing).data
    single, counts = fitted(data, spec), fitted(once_each(data), spec)
    alike(counts, single, "loadings intercept", atol=1e-6)
    alike(counts, single, "item_covariance", rtol=1e-4, atol=1e-9)


def simulated_at_scale(n_models, n_items, seed=5):
    """Lognormal slopes, normal difficulties; abilities with mean 0 and variance 1 exactly, as fits report them."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    theta = (theta - theta.mean()) / theta.std()
    slope, difficulty = rng.lognormal(0.0, 0.4, n_items), rng.normal(size=n_items)
    chances = 1.0 / (1.0 + np.exp(-slope * (theta[:, None] - difficulty)))
    responses = (rng.random(chances.shape) < chances).astype(np.float64)
    kept = np.ptp(responses, axis=0) > 0.0
    return FitData(responses[:, kept], None, np.zeros(kept.sum())), theta, slope[kept], difficulty[kept]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [MarginalML(prior=None), MarginalML(), JointMAP()], ids=str)
def test_benchmark_scale(spec):
    data, theta, slope, difficulty = simulated_at_scale(400, 5000)
    found = fitted(data, spec)
    assert found.converged
    assert np.corrcoef(found.abilities[:, 0], theta)[0, 1] >= 0.9995
    assert all(np.all(np.isfinite(part)) for part in (found.loadings, found.intercept, found.item_covariance))
    errors = np.sqrt(np.einsum("ijj->ij", found.item_covariance))
    z = (np.column_stack([found.loadings, found.intercept]) - np.column_stack([slope, -slope * difficulty])) / errors
    # Binomial error is 0.003. Without a prior, items with few right or wrong answers have skewed errors; with one,
    # slopes are drawn to each other more (0.4) than these differ (0.42). Joint MAP takes abilities as known, to 0.03.
    assert_allclose(np.mean(np.abs(z) < 1.96, axis=0), 0.95, atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "n_items", "bias"),
    [(MarginalML(prior=None), 300, 0.005), (JointMAP(), 1000, 0.01)],  # of a ratio; of abilities estimated along
    ids=["mml", "map"],
)
def test_difficulty_is_recovered_with_slope_one(spec, n_items, bias):
    # An errors-in-both-variables bias is avoided by items that 1,500 models tell well: slope >= 0.7, |b| < 1.5
    slopes = []
    for seed in range(6):
        data, _, slope, difficulty = simulated_at_scale(1500, n_items, seed)
        found = fitted(data, spec)
        known = (slope >= 0.7) & (np.abs(difficulty) < 1.5)
        estimated = -found.intercept / found.loadings[:, 0]
        slopes.append(np.polyfit(difficulty[known], estimated[known], 1)[0])
    standard_error = np.std(slopes, ddof=1) / np.sqrt(len(slopes))
    assert abs(np.mean(slopes) - 1.0) < 3.0 * standard_error + bias
    assert standard_error < 0.01


def turned(arrays):
    return standardise(Fit(*arrays, AbilityPrior.standard(3), True, 1, "", np.zeros(1)))


def problem(seed, n_models=30, n_items=40, n_dims=3):
    """Loadings, intercepts, covariances of items, abilities and their covariances, on any scale and axes."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_items, n_dims + 1, n_dims + 1))
    spread = 0.3 * rng.normal(size=(n_models, n_dims, n_dims))
    loadings, intercept = rng.normal(size=(n_items, n_dims)), rng.normal(size=n_items)
    abilities = 2.0 * rng.normal(size=(n_models, n_dims)) @ rng.normal(size=(n_dims, n_dims)) + 1.5
    return loadings, intercept, factors @ factors.transpose(0, 2, 1), abilities, spread @ spread.transpose(0, 2, 1)


@pytest.mark.parametrize("n_dims", [1, 3])
def test_logits_and_their_variances_are_those_of_the_moved_ability(n_dims):
    loadings, intercept, item_covariance, abilities, ability_covariance = before = problem(1, n_dims=n_dims)
    after = turned(before)
    logits = abilities @ loadings.T + intercept
    assert_allclose(after.abilities @ after.loadings.T + after.intercept, logits, atol=1e-12)

    def forms(vectors, matrices):  # of every vector with every matrix, (n_vectors, n_matrices)
        return np.einsum("va,mab,vb->vm", vectors, matrices, vectors)

    from_ability = forms(loadings, ability_covariance)
    assert_allclose(forms(after.loadings, after.ability_covariance), from_ability, rtol=1e-10)
    design, moved = (np.column_stack([one, np.ones(30)]) for one in (abilities, after.abilities))
    assert_allclose(forms(moved, after.item_covariance), forms(design, item_covariance), rtol=1e-9)


def test_abilities_have_mean_zero_and_total_covariance_one_on_principal_axes():
    after = turned(problem(3))
    assert_allclose(after.abilities.mean(axis=0), 0.0, atol=1e-12)
    total = np.cov(after.abilities.T, bias=True) + after.ability_covariance.mean(axis=0)
    assert_allclose(total, np.eye(3), atol=1e-12)
    gram = after.loadings.T @ after.loadings
    assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
    assert np.all(np.diff(np.diag(gram)) < 0.0)
    assert np.all(after.loadings.sum(axis=0) > 0.0)


def test_result_does_not_depend_on_the_scale_and_axes_of_the_input():
    loadings, intercept, item_covariance, abilities, ability_covariance = before = problem(4)
    rng = np.random.default_rng(5)
    turn, shift = rng.normal(size=(3, 3)), rng.normal(size=3)  # theta = shift + turn theta'
    item_map, back = np.eye(4), np.linalg.inv(turn)
    item_map[:3, :3], item_map[3, :3] = turn.T, shift
    of_items = (loadings @ turn, intercept + loadings @ shift, item_map @ item_covariance @ item_map.T)
    moved = (*of_items, (abilities - shift) @ back.T, back @ ability_covariance @ back.T)
    alike(turned(before), turned(moved), "loadings intercept item_covariance abilities ability_covariance", atol=1e-9)


def test_a_dimension_that_nobody_uses_keeps_its_prior_variance():
    loadings, _, _, abilities, ability_covariance = before = problem(6)
    loadings[:, 2], abilities[:, 2], ability_covariance[:, 2, :], ability_covariance[:, :, 2] = (0.0, 0.0, 0.0, 0.0)
    ability_covariance[:, 2, 2] = 1.0
    after = turned(before)
    assert_allclose(after.loadings[:, 2], 0.0, atol=1e-12)
    assert_allclose(after.ability_covariance[:, 2, 2], 1.0, atol=1e-10)
