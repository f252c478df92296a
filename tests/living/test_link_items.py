import dataclasses
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.irt.abilities import expected_difficulties
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank_living import link_items
from itembank_living.changes.fixed_parameters import FixedParameters
from tests.living.answers import answers_to, items_of
from tests.living.living import measured_bank

FEW = "ignore:.*models link; 10 to 20:itembank.errors.DataWarning"
MOVED = "ignore:.*easier or harder:itembank.errors.DataWarning"
pytestmark = [pytest.mark.filterwarnings(one) for one in (FEW, MOVED)]


@pytest.fixture(scope="module")
def bank():
    return measured_bank(n_models=20, n_items=40, n_dims=1)


@pytest.fixture(autouse=True)
def few_links(monkeypatch):
    """Link by few steps, and twice for the linking error, not ten times: nothing here turns on it."""
    monkeypatch.setattr("itembank_living.changes.linking.MOST_GROUPS", 2)
    monkeypatch.setattr("itembank_living.changes.link_items.SPEC", FixedParameters(n_quadrature=3, max_steps=6))
    monkeypatch.setattr("itembank_living.changes.link_items.AGAIN", FixedParameters(n_quadrature=3, max_steps=2))


def linking(bank, *, n_models=6, n_new=12, seed=0, with_old=True, theta=None, new=None, ids=None):
    """Answers of models that span the abilities, to old and new items; the new ones' truth."""
    rng = np.random.default_rng(seed)
    theta = np.linspace(-1.5, 1.5, n_models)[:, None] if theta is None else theta
    new = items_of(rng, n_new) if new is None else new
    values = [answers_to(rng, new, theta)]
    items = pl.DataFrame({"item_id": [f"new/{k}" for k in range(new.n_items)], "scenario": "math"})
    if with_old:
        values.insert(0, answers_to(rng, bank.parameters, theta))
        items = pl.concat([bank.responses.items.select("item_id", "scenario"), items])
    ids = [f"link-{k}" for k in range(len(theta))] if ids is None else ids
    return ResponseMatrix.create(np.concatenate(values, axis=1), model_ids=ids, items=items), new


def test_new_items_come_onto_the_banks_scale(bank):
    responses, new = linking(bank, n_models=30, n_new=20)
    linked = link_items(bank, responses)
    theta = bank.calibration.abilities
    missed = probability(linked.parameters, theta) - probability(new, theta)
    assert np.sqrt(np.mean(missed**2)) < 0.12
    assert abs(missed.mean()) < 0.05
    row = linked.rows()[0]
    assert (linked.bank_id, linked.item_ids[0], row["n_answers"]) == (bank.bank_id, "new/0", 30)
    assert linked.covered > 0.5
    assert 0.0 < linked.linking_error < 0.1
    assert set(linked.further_models) <= set(bank.responses.model_ids)
    error = expected_difficulties(linked.parameters.loadings[:, 0], linked.parameters.intercept, linked.item_covariance)
    reach = 1.959964 * error.standard_error[0]
    assert (row["low"], row["high"]) == pytest.approx((row["difficulty"] - reach, row["difficulty"] + reach))


def test_models_of_the_bank_need_no_old_items(bank):
    ids, theta = bank.responses.model_ids, bank.calibration.abilities
    responses, _ = linking(bank, with_old=False, theta=theta[::2], ids=ids[::2])
    linked = link_items(bank, responses)
    assert linked.model_ids == tuple(ids[::2])
    assert not set(linked.further_models) & set(linked.model_ids)
    old = bank.responses.take(models=np.arange(0, 20, 2))  # the same answers, with the old ones given
    values = np.concatenate([old.responses, responses.responses], axis=1)
    items = pl.concat([one.items.select("item_id", "scenario") for one in (old, responses)])
    both = ResponseMatrix.create(values, model_ids=[f"again-{k}" for k in range(10)], items=items)
    np.testing.assert_allclose(link_items(bank, both).parameters.intercept, linked.parameters.intercept)


def test_the_order_of_models_and_items_does_not_matter(bank):
    responses, _ = linking(bank)
    linked = link_items(bank, responses)
    rng = np.random.default_rng(3)
    turned = link_items(bank, responses.take(models=rng.permutation(6), items=rng.permutation(52)))
    order = [turned.item_ids.index(name) for name in linked.item_ids]
    np.testing.assert_allclose(turned.parameters.loadings[order], linked.parameters.loadings, atol=1e-6)
    np.testing.assert_allclose(turned.parameters.intercept[order], linked.parameters.intercept, atol=1e-6)


@pytest.mark.parametrize("n_dims", [2, 3])
def test_several_abilities(n_dims):
    bank, rng = measured_bank(n_models=20, n_items=40, n_dims=n_dims), np.random.default_rng(0)
    responses, _ = linking(bank, theta=rng.normal(size=(10, n_dims)), new=items_of(rng, 5, n_dims))
    # by few old items slopes are right with two abilities, and said to be too small with more
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        linked = link_items(bank, responses)
    assert [("slopes of the new items" in str(one.message)) for one in told].count(True) == (n_dims > 2)
    assert linked.parameters.loadings.shape == (5, n_dims)
    assert "difficulty" not in linked.rows()[0]


def test_models_with_too_few_old_answers_do_not_link(bank):
    responses, _ = linking(bank)
    responses.responses[5, :31] = np.nan
    with pytest.warns(DataWarning, match="fewer than 10 answers .* 'link-5'"):
        linked = link_items(bank, responses)
    assert linked.model_ids == ("link-0", "link-1", "link-2", "link-3", "link-4")


def test_what_cannot_be_linked_is_refused(bank):
    responses, _ = linking(bank)
    values = responses.responses.copy()
    values[:, -1] = np.nan

    def told(column, value):
        return responses.with_tables(items=responses.items.with_columns(value.alias(column)))

    items = ItemParameters.create(bank.parameters.loadings, bank.parameters.intercept, family="beta", precision=5.0)
    beta = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, parameters=items))
    upper = pl.col("item_id").str.to_uppercase()
    for one, given, words in (
        (bank, responses.take(models=np.arange(0)), "at least 3 models .* got 0"),
        (bank, responses.take(models=np.arange(2)), "at least 3 models .* got 2"),
        (bank, dataclasses.replace(responses, responses=values), "none for 1 of 12: 'new/11'"),
        (bank, responses.take(items=np.arange(40)), "all 40 are in it already"),
        (bank, told("scenario", pl.lit("elsewhere")), "must belong to one scenario, and 40 belong to another"),
        (bank, told("scenario", pl.lit("all")), "new items must name their scenario: one of the bank's"),
        (bank, told("item_id", upper), "40 of 52 are the bank's but for case.* Did you mean"),
        (beta, responses, "family 'beta'"),
    ):
        with pytest.raises(DataError, match=words):
            link_items(one, given)


@pytest.mark.filterwarnings("default:.*10 to 20:itembank.errors.DataWarning")
def test_few_models_and_a_narrow_range_are_said(bank):
    responses, _ = linking(bank, theta=np.linspace(1.0, 1.2, 4)[:, None])
    with pytest.warns(DataWarning, match="4 models link"), pytest.warns(DataWarning, match="half of the range"):
        linked = link_items(bank, responses)
    assert linked.covered < 0.5


@pytest.mark.filterwarnings("default:.*easier or harder:itembank.errors.DataWarning")
def test_moved_items_do_not_link(bank):
    responses, _ = linking(bank, n_models=40)
    easy = int(np.argmax(responses.responses[:, :40].mean(axis=0)))
    responses.responses[:, easy] = np.arange(40) % 8 == 0
    with pytest.warns(DataWarning, match="easier or harder"):
        linked = link_items(bank, responses)
    assert bank.item_ids[easy] in linked.unlinked
