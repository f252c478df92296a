import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.start import DRAWN, additive_effects, linked_abilities, start_abilities
from tests.calibration.simulated import simulate


@pytest.mark.parametrize(("n_models", "n_items"), [(50, 300), (300, 50), (700, 900)])
def test_spans_the_leading_singular_vectors(n_models, n_items):
    responses = simulate(n_models, n_items, n_dims=2, seed=3).data.responses
    standardised = (responses - responses.mean(axis=0)) / responses.std(axis=0)
    expected = np.linalg.svd(standardised, full_matrices=False)[0][:, :2]
    found = start_abilities(responses, None, n_dims=2)
    cosines = np.linalg.svd(expected.T @ np.linalg.qr(found)[0], compute_uv=False)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-4)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.mean(found**2, axis=0), 1.0)


def test_first_direction_points_to_more_right_answers():
    responses = simulate(60, 80, seed=4).data.responses
    found = start_abilities(responses, None, n_dims=1)[:, 0]
    assert np.corrcoef(found, responses.mean(axis=1))[0, 1] > 0.9


def test_missing_cells_say_nothing():
    data = simulate(80, 200, missing=0.3, seed=5).data
    found = start_abilities(data.responses, data.observed, n_dims=1)
    filled_otherwise = np.where(data.observed, data.responses, 1.0)
    np.testing.assert_array_equal(found, start_abilities(filled_otherwise, data.observed, n_dims=1))


def test_more_dimensions_than_the_data_have_are_zero():
    responses = simulate(4, 30, seed=6).data.responses
    found = start_abilities(responses, None, n_dims=6)
    assert found.shape == (4, 6)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, 3:], 0.0)


@pytest.mark.parametrize(("n_models", "n_items"), [(20, 35), (35, 20)])
def test_additive_effects_are_the_least_squares(n_models, n_items):
    rng = np.random.default_rng(7)
    observed = rng.random((n_models, n_items)) < 0.4
    values = np.where(observed, rng.normal(size=observed.shape), 0.0)
    theta, intercept = additive_effects(values, observed.astype(float))
    rows, columns = np.nonzero(observed)
    design = np.zeros((rows.size + n_models, n_models + n_items))
    design[np.arange(rows.size), rows] = 1.0
    design[np.arange(rows.size), n_models + columns] = 1.0
    design[rows.size + np.arange(n_models), np.arange(n_models)] = np.sqrt(DRAWN)
    expected = np.linalg.lstsq(design, np.append(values[observed], np.zeros(n_models)), rcond=None)[0]
    np.testing.assert_allclose(np.append(theta, intercept), expected, atol=1e-10)


def test_linked_abilities_see_through_which_items_were_answered():
    """Strong models answered harder items only, and two models in the middle all of them."""
    rng = np.random.default_rng(8)
    theta = np.sort(rng.normal(size=(40, 1)), axis=0)
    observed = np.arange(40)[:, None] // 20 == np.arange(300) // 150
    observed[19:21] = True
    responses = np.where(observed, rng.random((40, 300)) < expit(theta + 1.5 * (np.arange(300) < 150)), 0.0)
    found = linked_abilities(responses, observed, n_dims=2)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.std(axis=0), 1.0)
    assert np.corrcoef(found[:, 0], theta[:, 0])[0, 1] > 0.95
    assert abs(np.corrcoef(start_abilities(responses, observed, n_dims=1)[:, 0], theta[:, 0])[0, 1]) < 0.8


def test_linked_abilities_of_models_that_all_do_alike_are_zero():
    observed = np.array([[True, True, False], [False, True, True]])
    found = linked_abilities(np.where(observed, 0.5, 0.0), observed, n_dims=1)
    np.testing.assert_allclose(found, 0.0, atol=1e-9)
