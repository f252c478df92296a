from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from itembank.calibration import start as starts
from itembank.calibration.calibration_specs import JointMAP, Variational
from itembank.calibration.fits import FitData, Point
from itembank.calibration.joint_map.fit import fit_joint_map
from itembank.calibration.start import DRAWN, additive_effects, linked_abilities, start_abilities
from itembank.calibration.variational import fit as fit_module
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.scale import transform
from itembank.progress import silent
from tests.calibration.simulated import random_posterior, simulate, tell_apart


@pytest.mark.parametrize(("n_models", "n_items"), [(50, 300), (300, 50), (700, 900)])
def test_spans_the_leading_singular_vectors(n_models, n_items):
    responses = simulate(n_models, n_items, n_dims=2, seed=3).data.responses
    standardised = (responses - responses.mean(axis=0)) / responses.std(axis=0)
    expected = np.linalg.svd(standardised, full_matrices=False)[0][:, :2]
    found = start_abilities(responses, None, n_dims=2)
    cosines = np.linalg.svd(expected.T @ np.linalg.qr(found)[0], compute_uv=False)
    assert_allclose(cosines, 1.0, atol=1e-4)
    assert_allclose(found.mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(np.mean(found**2, axis=0), 1.0)


def test_the_first_direction_points_to_more_right_answers_and_dimensions_beyond_the_data_are_zero():
    responses = simulate(60, 80, seed=4).data.responses
    found = start_abilities(responses, None, n_dims=1)[:, 0]
    assert np.corrcoef(found, responses.mean(axis=1))[0, 1] > 0.9
    data = simulate(80, 200, missing=0.3, seed=5).data
    found = start_abilities(data.responses, data.observed, n_dims=1)
    filled_otherwise = np.where(data.observed, data.responses, 1.0)
    assert_array_equal(found, start_abilities(filled_otherwise, data.observed, n_dims=1))
    responses = simulate(4, 30, seed=6).data.responses
    found = start_abilities(responses, None, n_dims=6)
    assert found.shape == (4, 6)
    assert np.isfinite(found).all()
    assert_array_equal(found[:, 3:], 0.0)


@pytest.mark.parametrize(("n_models", "n_items"), [(20, 35), (35, 20)])
def test_additive_effects_are_the_least_squares(n_models, n_items):
    rng = np.random.default_rng(7)
    observed = rng.random((n_models, n_items)) < 0.4
    values = np.where(observed, rng.normal(size=observed.shape), 0.0)
    theta, intercept = additive_effects(values, observed.astype(float))
    rows, columns = np.nonzero(observed)
    design = np.hstack([np.eye(n_models)[rows], np.eye(n_items)[columns]])
    design = np.vstack([design, np.sqrt(DRAWN) * np.eye(n_models, n_models + n_items)])
    expected = np.linalg.lstsq(design, np.append(values[observed], np.zeros(n_models)), rcond=None)[0]
    assert_allclose(np.append(theta, intercept), expected, atol=1e-10)


def test_linked_abilities_see_through_which_items_were_answered():
    """Strong models answered harder items only, and two models in the middle all of them."""
    rng = np.random.default_rng(8)
    theta = np.sort(rng.normal(size=(40, 1)), axis=0)
    observed = np.arange(40)[:, None] // 20 == np.arange(300) // 150
    observed[19:21] = True
    responses = np.where(observed, rng.random((40, 300)) < expit(theta + 1.5 * (np.arange(300) < 150)), 0.0)
    found = linked_abilities(responses, observed, n_dims=2)
    assert_allclose(found.mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(found.std(axis=0), 1.0)
    assert np.corrcoef(found[:, 0], theta[:, 0])[0, 1] > 0.95
    assert abs(np.corrcoef(start_abilities(responses, observed, n_dims=1)[:, 0], theta[:, 0])[0, 1]) < 0.8
    observed = np.array([[True, True, False], [False, True, True]])  # models that all do alike
    assert_allclose(linked_abilities(np.where(observed, 0.5, 0.0), observed, n_dims=1), 0.0, atol=1e-9)


N_MODELS, N_ITEMS, N_TRIALS = 60, 120, 10


def answered(family, blocks_of_models, seed=0):
    """Models in the order of their ability; each group of them answered some blocks of the items."""
    rng = np.random.default_rng(seed)
    theta = np.sort(rng.normal(size=N_MODELS))
    slope, difficulty = np.exp(rng.normal(0.3, 0.4, N_ITEMS)), rng.normal(size=N_ITEMS)
    has_block = np.repeat(np.array(blocks_of_models, dtype=bool), N_MODELS // len(blocks_of_models), axis=0)
    observed = np.repeat(has_block, N_ITEMS // has_block.shape[1], axis=1)
    chances = expit(slope * (theta[:, None] - difficulty))
    n = N_TRIALS if family == "binomial" else 1
    responses = np.where(observed, rng.binomial(n, chances) / n, 0.0)
    tell_apart(responses, observed, theta[:, None])
    return theta, FitData(
        responses, observed, np.zeros(N_ITEMS), family=family, n_trials=n * observed.astype(float) if n > 1 else None
    )


BRIDGE = [*[[1, 0]] * 9, [1, 1], *[[0, 1]] * 10]
"""The weaker half of the models answered one half of the items, the stronger half the other, and three models both."""
CHAIN = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
DESIGNS = [("bernoulli", BRIDGE, 0), ("binomial", CHAIN, 0)]


def from_start(fit, start, monkeypatch):
    """Fit from the given abilities only."""
    with monkeypatch.context() as patched:
        patched.setattr(starts, "start_abilities", lambda *_, n_dims: start[:, :n_dims])
        patched.setattr(starts, "ALIKE", -1.0)
        return fit()


def fit_by(spec, data):
    fit = fit_joint_map if isinstance(spec, JointMAP) else fit_variational
    return partial(fit, data, spec, progress=silent)


CASES = [(spec, *design) for spec in (Variational(), JointMAP()) for design in DESIGNS]
CASES[2] = (JointMAP(), "binomial", BRIDGE, 0)  # right and wrong alone do not determine it: see below
CASES.append((JointMAP("nested", n_dims=2), "binomial", CHAIN, 0))


@pytest.mark.parametrize(("spec", "family", "design", "seed"), CASES)
def test_blocks_of_items_come_out_turned_alike(spec, family, design, seed, monkeypatch):
    """The end is the one beside the truth; the leading directions alone lead to another, of a lower bound."""
    theta, data = answered(family, design, seed)
    fit = fit_by(spec, data)
    found = fit()
    assert found.converged
    assert np.mean(found.loadings[:, 0] < 0.0) < 0.05
    assert np.corrcoef(found.abilities[:, 0], theta)[0, 1] > 0.85
    truth = np.column_stack([theta, np.zeros((N_MODELS, spec.n_dims - 1))])
    beside_truth = from_start(fit, truth, monkeypatch)
    assert found.history[-1] > beside_truth.history[-1] - 0.5
    led = from_start(fit, start_abilities(data.responses, data.observed, n_dims=spec.n_dims), monkeypatch)
    assert abs(np.corrcoef(led.abilities[:, 0], theta)[0, 1]) < 0.5
    assert led.history[-1] < found.history[-1] - 20.0


def test_of_ends_that_are_as_good_the_one_is_taken_whose_items_agree():
    """Joint MAP does not know which half of the items is turned, and says so."""
    theta, data = answered("bernoulli", BRIDGE, 0)
    found = fit_joint_map(data, JointMAP(), progress=silent)
    assert not found.converged
    assert "a second start led to a different fit" in found.message
    assert np.mean(found.loadings < 0.0) < 0.2
    assert np.corrcoef(found.abilities[:, 0], theta)[0, 1] > 0.7


@pytest.mark.parametrize(("spec", "missing"), [(Variational(), 0.6), (JointMAP(), 0.3)])
def test_first_start_is_kept_where_both_lead_to_one_end(spec, missing, monkeypatch):
    monkeypatch.setattr(fit_module, "FIRST_SWEEPS", 10**6)  # as far from one start as from either of two
    data = simulate(30, 50, missing=missing, seed=3).data
    fit = fit_by(spec, data)
    alone = from_start(fit, start_abilities(data.responses, data.observed, n_dims=1), monkeypatch)
    monkeypatch.setattr(starts, "multiple_correlation", lambda *_: 0.0)
    assert_array_equal(fit().history, alone.history)


@pytest.mark.parametrize(("item_model", "n_dims", "advice"), [("2pl", 1, "positive_discr"), ("mirt", 2, "fewer ab")])
def test_ends_that_differ_and_are_as_good_do_not_count_as_converged(item_model, n_dims, advice, monkeypatch):
    fit = fit_by(Variational(item_model, n_dims), simulate(30, 50, n_dims=n_dims, missing=0.6, seed=3).data)
    monkeypatch.setattr(starts, "multiple_correlation", lambda *_: 0.0)
    assert fit().converged
    monkeypatch.setattr(starts, "correlation_of_logits", lambda *_: 0.0)
    found = fit()
    assert not found.converged
    assert "a second start led to a different fit" in found.message
    assert advice in found.message


def test_correlations_are_those_of_the_regression_and_of_logits_on_any_axes():
    rng = np.random.default_rng(4)
    abilities, score = rng.normal(size=(50, 3)) + 2.0, rng.normal(size=50)
    design = np.column_stack([np.ones(50), abilities])
    fitted = design @ np.linalg.lstsq(design, score, rcond=None)[0]
    assert starts.multiple_correlation(score, abilities) == pytest.approx(np.corrcoef(fitted, score)[0, 1])
    assert starts.multiple_correlation(abilities @ [1.0, -2.0, 3.0], abilities) == pytest.approx(1.0)
    assert starts.multiple_correlation(np.ones(50), abilities) == 1.0
    one, other = random_posterior(12, 20, 2, seed=5), random_posterior(12, 20, 2, seed=6)
    turned = transform(one, np.array([[0.0, -2.0], [0.5, 0.3]]), np.array([0.4, -1.0]))
    one, other, turned = (Point(p.item_mean, p.ability_mean) for p in (one, other, turned))
    assert starts.correlation_of_logits(one, turned) == pytest.approx(1.0)
    logits = [end.items[:, :2] @ (end.abilities - end.abilities.mean(axis=0)).T for end in (one, other)]
    expected = np.corrcoef(*[each.ravel() for each in logits])[0, 1]
    assert starts.correlation_of_logits(one, other) == pytest.approx(expected)
