import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational
from itembank.calibration.dimensions import NESTED_CANDIDATES, choose_n_dims, parallel_analysis
from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.responses.responses import ResponseMatrix

QUICK = Variational(tolerance=1e-4)


def simulated(n_models, n_items, n_dims, seed=0):
    """Responses to items that each ask for one of n_dims independent abilities."""
    rng = np.random.default_rng(seed)
    loadings = np.zeros((n_items, n_dims))
    loadings[np.arange(n_items), np.arange(n_items) % n_dims] = 2.0
    parameters = ItemParameters.create(loadings, rng.normal(size=n_items))
    chances = probability(parameters, rng.normal(size=(n_models, n_dims)))
    scenarios = [f"s{i % n_dims}" for i in range(n_items)]
    return ResponseMatrix.create((rng.random(chances.shape) < chances).astype(float), scenarios=scenarios)


@pytest.mark.parametrize(("n_dims", "size"), [(1, (80, 200)), (3, (120, 240))])
def test_as_many_abilities_are_found_as_there_are(n_dims, size):
    choice = choose_n_dims(simulated(*size, n_dims), QUICK, candidates=(1, 2, 3, 5))
    assert choice.n_dims == n_dims
    assert choice.candidates == (1, 2, 3, 5)
    if n_dims > 1:  # of one, others may be better by chance
        assert np.argmax(choice.log_likelihoods) == n_dims - 1


def test_models_without_a_known_score_are_not_held_out(monkeypatch):
    responses = simulated(20, 40, 1).responses
    responses[5:10, 10:] = np.nan
    held_out = []

    def remember(responses, split):
        held_out.extend(responses.model_ids[row] for row in split.test.tolist())
        raise DataError("enough")

    monkeypatch.setattr("itembank.calibration.dimensions.leave_out", remember)
    with pytest.raises(DataError, match="enough"):
        choose_n_dims(ResponseMatrix.create(responses), QUICK)
    assert len(held_out) == 3
    assert not {f"model-{number}" for number in range(6, 11)} & set(held_out)


def test_neither_names_nor_places_change_the_choice():
    responses = simulated(30, 40, 2)
    order = np.random.default_rng(5)
    taken = responses.take(models=order.permutation(30), items=np.concatenate([[0, 1], 2 + order.permutation(38)]))
    names = pl.Series("model_id", [f"m{number:02d}" for number in order.permutation(30)])
    other = taken.with_tables(models=taken.models.with_columns(names))
    one, two = (choose_n_dims(each, QUICK, candidates=(1, 2)) for each in (responses, other))
    assert_allclose(two.errors, one.errors, rtol=1e-6)
    assert two.n_dims == one.n_dims


def test_variational_trial_fits_stop_early_in_single_precision(monkeypatch):
    tried = []

    def remember(_, spec, *__, **___):
        tried.append((spec.tolerance, getattr(spec, "single_precision", None)))
        raise DataError("enough")

    monkeypatch.setattr("itembank.calibration.dimensions.fit_candidate", remember)
    exact, loose = Variational(single_precision=False), Variational(tolerance=0.01)
    for spec in (Variational(), exact, loose, JointMAP()):
        with pytest.raises(DataError, match="enough"):
            choose_n_dims(simulated(20, 40, 1), spec)
    assert tried == [(1e-3, True), (1e-3, False), (0.01, True), (JointMAP().tolerance, None)]


def test_few_models_or_items_are_not_asked_for_many_dimensions_nor_is_marginal_ml():
    for size, candidates in (((20, 60), (1, 2)), ((60, 5), (1, 2)), ((60, 3), (1,))):
        assert choose_n_dims(simulated(*size, 1)).candidates == candidates
    assert choose_n_dims(simulated(60, 30, 1), MarginalML(), candidates=(1, 3, 5)).candidates == (1,)


@pytest.mark.parametrize(
    ("size", "options", "error", "message"),
    [
        ((9, 30), {}, DataError, "at least 10 models, got 9"),
        ((30, 1), {}, DataError, r"got no such answer among 1 items\..*n_dims=1"),  # to predict
        ((20, 60), {"candidates": (10,)}, ParameterError, "at least 1"),
    ],
)
def test_what_leaves_no_choice_is_refused(size, options, error, message):
    with pytest.raises(error, match=message):
        choose_n_dims(simulated(*size, 1), **options)


@pytest.mark.parametrize("n_dims", [1, 2, 4])
def test_parallel_analysis_counts_the_abilities_and_finds_none_in_noise(n_dims):
    responses = simulated(300, 120, n_dims, seed=n_dims).responses
    assert parallel_analysis(responses, np.random.default_rng(0)).n_dims == n_dims
    rng = np.random.default_rng(0)
    noise = (rng.random((100, 300)) < rng.random(300)).astype(float)
    assert parallel_analysis(noise, rng).n_dims <= 1


@pytest.mark.parametrize("shape", [(40, 15), (15, 40)])
def test_eigenvalues_are_those_of_the_correlation_matrix(shape):
    rng = np.random.default_rng(1)
    responses = (rng.random(shape) < 0.5).astype(float)
    varying = responses[:, responses.std(axis=0) > 0]
    expected = np.linalg.eigvalsh(np.corrcoef(varying.T))[::-1]
    found = parallel_analysis(responses, rng, n_shuffles=1).eigenvalues
    assert_allclose(found, expected[: found.shape[0]], atol=1e-10)


def test_a_nested_model_stays_one_when_its_dimensions_are_chosen():
    choice = choose_n_dims(simulated(40, 60, 2), JointMAP("nested", n_dims=2, tolerance=1e-3))
    assert choice.candidates == NESTED_CANDIDATES
    assert choice.n_dims in NESTED_CANDIDATES
