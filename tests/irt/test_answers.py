import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.irt import answers as layout
from itembank.irt.bernoulli import logit
from itembank.irt.parameters import ItemParameters
from tests.irt.scores import log_likelihood


@pytest.fixture(params=["shared", "own"])
def case(request, rng):
    parameters = ItemParameters.create(rng.normal(size=(50, 3)), rng.normal(size=50), 0.1)
    share = 0.3 if request.param == "shared" else 0.9
    responses = rng.random((6, 50))
    responses[rng.random(responses.shape) < share] = np.nan
    responses[:, 7] = np.nan
    laid_out = layout.gather(parameters, responses)
    assert laid_out.is_shared == (request.param == "shared")
    return parameters, responses, laid_out


def test_sums_and_rows_are_those_of_the_full_matrix(case, rng):
    parameters, responses, laid_out = case
    theta, ones = rng.normal(size=(6, 3)), np.ones_like(laid_out.responses)
    observed = ~np.isnan(responses)
    weights = layout.only_answered(laid_out, layout.logits(laid_out, theta))
    expected = np.where(observed, logit(parameters, theta), 0.0)
    assert_allclose(layout.sum_loadings(laid_out, weights), expected @ parameters.loadings, atol=1e-12)
    products = np.einsum("mi,id,ie->mde", expected, parameters.loadings, parameters.loadings)
    assert_allclose(layout.sum_products(laid_out, weights), products, atol=1e-12)
    matrices = rng.normal(size=(6, 3, 3))
    lengths = layout.only_answered(laid_out, layout.quadratic_forms(laid_out, matrices))
    full = np.einsum("id,mde,ie->mi", parameters.loadings, matrices, parameters.loadings) * observed
    assert_allclose(lengths.sum(axis=1), full.sum(axis=1), atol=1e-12)
    assert_array_equal(laid_out.counts, observed.sum(axis=1))
    assert_array_equal(layout.only_answered(laid_out, ones).sum(axis=1), observed.sum(axis=1))
    parameters, responses, laid_out = case
    rows, theta = np.array([4, 1]), rng.normal(size=(2, 3))
    some, again = laid_out.take(rows), layout.gather(parameters, responses[rows])
    assert some.n_models == again.n_models == 2
    assert_allclose(layout.log_likelihood_at(some, theta), layout.log_likelihood_at(again, theta), rtol=1e-12)


def test_log_likelihood_at_common_points_where_an_answer_of_weight_k_counts_k_times(case, rng):
    parameters, responses, laid_out = case
    weights, points = rng.integers(0, 4, responses.shape).astype(float), rng.normal(size=(5, 3))
    plain = layout.log_likelihood_at(laid_out, points)
    weighted = layout.log_likelihood_at(layout.gather(parameters, responses, weights), points)
    for index, point in enumerate(points):
        everywhere = np.tile(point, (6, 1))
        assert_allclose(plain[:, index], log_likelihood(parameters, everywhere, responses), rtol=1e-12)
        copies = (np.where(weights > k, responses, np.nan) for k in range(3))
        expected = sum(log_likelihood(parameters, everywhere, copy) for copy in copies)
        assert_allclose(weighted[:, index], expected, rtol=1e-12)


def test_only_answered_informative_columns_are_kept(rng):
    parameters = ItemParameters.create(rng.normal(size=(28, 1)), np.zeros(28))
    parameters.loadings[3] = 0.0
    responses = np.full((1, 28), np.nan)
    responses[0, [3, 5, 20]] = 1.0
    laid_out = layout.gather(parameters, responses)
    assert laid_out.is_answered is None
    assert_array_equal(laid_out.loadings[:, 0], parameters.loadings[[5, 20], 0])


@pytest.mark.parametrize("n_models", [0, 1, 7])
def test_blocks_cover_every_model_once(n_models, monkeypatch):
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 25)
    rows = [np.arange(n_models)[run] for run in layout.blocks(np.zeros((n_models, 10)))]
    assert_array_equal(np.concatenate(rows), np.arange(n_models))
    assert max(len(run) for run in rows) <= 2


@pytest.mark.parametrize("most", [10, 60, 1000])
def test_thinned_answers_are_every_so_many(case, most):
    _, _, laid_out = case
    n, some = laid_out.responses.shape[1], layout.thinned(laid_out, most)
    step = -(-n // most)
    assert some.responses.shape[1] == len(range(0, n, step)) <= max(most, 1)
    assert_array_equal(some.responses, laid_out.responses[:, ::step])
    theta = np.full((6, 3), 0.2)
    assert_allclose(layout.logits(some, theta), layout.logits(laid_out, theta)[:, ::step], rtol=1e-12)
    full = laid_out.model.log_likelihood_terms(layout.logits(laid_out, theta), laid_out.responses)
    ours = some.model.log_likelihood_terms(layout.logits(some, theta), some.responses)
    assert_allclose(ours, full[:, ::step], rtol=1e-12)
