import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational
from itembank.calibration.fit_item_model import fit_item_model, known_lower_asymptote
from itembank.calibration.variational import fit
from itembank.errors import ConvergenceWarning, DataError, DataWarning, ParameterError
from itembank.irt.bernoulli import probability
from itembank.responses import responses as response_matrices
from itembank.responses.responses import ResponseMatrix
from tests.calibration.simulated import simulate


def matrix_of(data, **columns):
    responses = data.responses if data.observed is None else np.where(data.observed, data.responses, np.nan)
    return ResponseMatrix.create(responses, **columns)


@pytest.mark.parametrize(
    "spec",
    [Variational(), Variational("1pl"), Variational("mirt", n_dims=2), JointMAP(), MarginalML(), "variational"],
    ids=lambda spec: spec if isinstance(spec, str) else f"{type(spec).__name__} {spec.item_model}",
)
def test_every_method_gives_parameters_for_every_item(spec):
    data = simulate(60, 50, missing=0.1, seed=1).data
    data.responses[:, 7] = 1.0
    data.responses[~data.observed] = 0.0
    found = fit_item_model(matrix_of(data), spec)
    assert found.converged
    assert found.n_items == 50
    assert found.abilities.shape == (60, found.n_dims)
    assert np.flatnonzero(found.is_degenerate).tolist() == [7]
    assert np.isfinite(found.standard_errors).all()
    chances = probability(found.parameters, found.abilities)
    assert chances[:, 7].mean() > 0.9
    observed = data.observed & ~found.is_degenerate
    assert np.mean((chances - data.responses)[observed] ** 2) < 0.2  # 0.25 says nothing


def test_fractions_are_made_binary_and_thresholds_kept():
    truth = simulate(60, 50, seed=2)
    fractions = np.clip(truth.data.responses * 0.7 + 0.1, 0.0, 1.0)
    matrix = ResponseMatrix.create(
        np.column_stack([fractions[:, :30], truth.data.responses[:, 30:]]), scenarios=["graded"] * 30 + ["binary"] * 20
    )
    with pytest.warns(DataWarning, match=r"'graded' lie between 0 and 1, .* right from 0.8 on.* n_trials"):
        found = fit_item_model(matrix)
    assert set(found.thresholds) == {"graded"}
    assert 0.1 < found.thresholds["graded"] <= 0.8
    assert_allclose(found.parameters.loadings, fit_item_model(matrix_of(truth.data)).parameters.loadings)


def test_input_is_left_alone():
    matrix = matrix_of(simulate(30, 20, missing=0.2, seed=3).data)
    before = matrix.responses.copy()
    fit_item_model(matrix)
    assert_array_equal(matrix.responses, before)


def test_too_few_models():
    with pytest.raises(DataError, match="at least 3 models, got 2"):
        fit_item_model(ResponseMatrix.create(np.array([[0.0, 1.0], [1.0, 0.0]])))


def test_model_and_item_without_responses_are_named():
    responses = simulate(10, 8, seed=4).data.responses
    responses[3], responses[:, 5] = np.nan, np.nan
    with pytest.raises(DataError, match=r"'model-4'.*'item-6'"):
        fit_item_model(ResponseMatrix.create(responses))


def test_items_that_tell_nobody_apart():
    with pytest.raises(DataError, match="at least one item must tell models apart, got 4 items"):
        fit_item_model(ResponseMatrix.create(np.tile([0.0, 1.0, 1.0, 0.0], (5, 1))))


def test_unknown_method():
    with pytest.raises(ParameterError, match="'variational', 'map', 'mml'"):
        fit_item_model(matrix_of(simulate(10, 8, seed=5).data), "bayes")


def test_stopping_early_warns_with_advice():
    with pytest.warns(ConvergenceWarning, match="max_iterations"):
        found = fit_item_model(matrix_of(simulate(30, 20, seed=6).data), Variational(max_iterations=1))
    assert not found.converged


def test_chance_comes_first_then_options():
    items = pl.DataFrame({"item_id": ["a", "b"], "chance": [0.1, None], "n_options": [4, 5]})
    assert_allclose(known_lower_asymptote(items), [0.1, 0.2])


@pytest.mark.parametrize("chance", [None, 1.0, -0.1, float("nan")])
def test_items_without_a_usable_chance_are_named(chance):
    items = pl.DataFrame({"item_id": ["a", "b"], "chance": [0.1, chance]}, schema_overrides={"chance": pl.Float64})
    with pytest.raises(DataError, match=r"chance must lie in .* 1 of 2 items: 'b'"):
        known_lower_asymptote(items)


def test_known_guessing_needs_to_be_told():
    with pytest.raises(DataError, match="'chance' or 'n_options'"):
        fit_item_model(matrix_of(simulate(30, 20, seed=7).data), Variational(known_guessing=True))


def test_known_guessing_becomes_the_lower_asymptote():
    data = simulate(60, 30, guessing=0.25, seed=8).data
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(30)], "n_options": [4] * 30})
    found = fit_item_model(matrix_of(data, items=items), Variational(known_guessing=True))
    assert_array_equal(found.parameters.lower_asymptote, 0.25)


def test_a_method_without_an_item_model_says_so():
    with pytest.raises(ParameterError, match=r"for this method, got 'nested'\. The variational method has it"):
        MarginalML(item_model="nested", n_dims=2)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_many_answers_are_fitted_where_they_are_to_the_same_end(missing, monkeypatch):
    rng = np.random.default_rng(8)
    ability, slope = rng.normal(size=(50, 1)), rng.lognormal(0.0, 0.3, size=60)
    answers = (expit(slope * ability + rng.normal(size=60)) > rng.random((50, 60))).astype(float)
    answers[rng.random(answers.shape) < missing] = np.nan
    answers[:, 7], answers[:, 30] = 1.0, 0.0  # which all models answered alike
    spec = Variational("2pl", tolerance=1e-8)
    expected = fit_item_model(ResponseMatrix.create(answers), spec)
    monkeypatch.setattr(response_matrices, "LARGE", 1000)
    monkeypatch.setattr(fit, "SUBSET_SIZE", 40)
    found = fit_item_model(ResponseMatrix.create(answers), spec)
    again = fit_item_model(ResponseMatrix.create(answers.astype(np.float32)), spec)
    assert {7, 30} <= set(np.flatnonzero(found.is_degenerate).tolist())
    assert_array_equal(found.is_degenerate, expected.is_degenerate)
    assert_array_equal(again.parameters.loadings, found.parameters.loadings)
    assert_allclose(found.parameters.loadings, expected.parameters.loadings, atol=1e-3)
    assert_allclose(found.parameters.intercept, expected.parameters.intercept, atol=1e-3)
    assert_allclose(found.abilities, expected.abilities, atol=1e-3)
