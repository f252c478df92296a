import numpy as np
import pytest

from itembank.calibration.start import start_abilities
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
