import dataclasses
import hashlib

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.marks import ADDED, ANSWERED_HOW
from itembank.banks import with_target
from itembank.errors import DataError, ParameterError
from itembank.estimation.model_abilities import estimate_abilities
from itembank.responses.responses import ResponseMatrix
from itembank_living import add_items, add_models, recalibrate, retire
from itembank_living.changes.fixed_parameters import ability_nodes
from itembank_living.changes.growing import update_intercepts, updated_covariance
from tests.living.answers import answers_to, linking_data
from tests.living.living import named_bank
from tests.living.test_link_items import FEW, MOVED, few_links, linking

__all__ = ["few_links"]

pytestmark = [pytest.mark.filterwarnings(one) for one in (FEW, MOVED)]


@pytest.fixture(scope="module")
def bank():
    return named_bank(n_models=20, n_items=40, n_dims=1)


def new_models(bank, *, n_models=8, n_items=40, seed=5, shift=0.0):
    """Answers of new models to the first items, which may have become easier."""
    rng = np.random.default_rng(seed)
    items = dataclasses.replace(bank.parameters, intercept=bank.parameters.intercept + shift)
    values = answers_to(rng, items, rng.normal(size=(n_models, 1)))[:, :n_items]
    ids = [f"late-{k}" for k in range(n_models)]
    return ResponseMatrix.create(values, model_ids=ids, items=bank.responses.items[:n_items])


def test_added_models_leave_items_and_scores_as_they_are(bank):
    given = new_models(bank, n_items=25)
    grown = add_models(bank, given, how="random", note="May")
    np.testing.assert_array_equal(grown.parameters.loadings, bank.parameters.loadings)
    np.testing.assert_array_equal(grown.parameters.intercept, bank.parameters.intercept)
    np.testing.assert_array_equal(grown.calibration.abilities[:20], bank.calibration.abilities)
    np.testing.assert_allclose(grown.calibration.abilities[20:], estimate_abilities(bank, given).theta)
    last = (grown.target_id, grown.version, grown.history.changes[-1].note)
    assert last == (bank.target_id, "1.1.0", "May")
    assert grown.responses.models[ANSWERED_HOW].to_list() == [None] * 20 + ["random"] * 8
    assert np.isnan(grown.responses.responses[20:, 25:]).all()


def test_the_history_keeps_what_new_results_were_run_with(bank, tmp_path):
    given, prompt = new_models(bank), "You are. " * 9
    versions = pl.Series([f"0.4.{k % 5}" for k in range(8)])
    models = given.models.with_columns(lm_eval_version=versions, system_prompt=pl.lit(prompt))
    told = dataclasses.replace(given, models=models, items=given.items.with_columns(task_version=pl.lit("2.0")))
    save_bank(add_models(bank, told, how="random"), tmp_path / "bank")
    digest = f"sha256 {hashlib.sha256(prompt.encode()).hexdigest()[:12]}"
    run_with = {"lm_eval_version": "0.4.0, 0.4.1, 0.4.2 and 2 more", "system_prompt": digest, "task_version": "2.0"}
    arguments = load_bank(tmp_path / "bank").history.changes[-1].arguments
    assert arguments == {"how": "random", "run_with": run_with}
    assert add_models(bank, given).history.changes[-1].arguments == {}


def test_models_must_be_new_and_items_known(bank):
    given = new_models(bank)
    empty = dataclasses.replace(given, responses=np.where(np.arange(8)[:, None] < 2, np.nan, given.responses))
    old = bank.responses.with_tables(items=bank.responses.items.with_columns(content_hash=pl.lit("a")))
    hashed = dataclasses.replace(bank, responses=old)
    new = given.with_tables(items=given.items.with_columns(content_hash=pl.lit("b")))
    for one, responses, choices, message in (
        (add_models(bank, given), given.take(models=np.arange(1)), {}, "in it already: 'late-0'"),
        (bank, linking(bank)[0], {}, r"12 of 52 are not.*add_items"),
        (bank, empty, {}, "2 have none: 'late-0', 'late-1'"),
        (bank, given, {"how": "luck"}, "must be one of complete, random, fixed, adaptive, got 'luck'"),
        (hashed, new, {}, "must have the content the bank was calibrated on, got 40 of 40 with another"),
    ):
        with pytest.raises(DataError, match=message):
            add_models(one, responses, **choices)


def test_models_of_the_bank_bring_the_answers_that_it_has_not(bank):
    given, after = new_models(bank, n_items=40), np.arange(40) >= 25
    first = add_models(bank, given.take(items=np.arange(25)), how="random")
    grown = add_models(first, given.take(models=np.arange(3)))
    assert (grown.n_models, grown.version, grown.target_id) == (28, "1.2.0", bank.target_id)
    rows = np.isnan(grown.responses.responses).any(axis=1)
    np.testing.assert_array_equal(rows, np.arange(28) >= 23)
    np.testing.assert_array_equal(grown.responses.responses[20:23, after], given.responses[:3, after])
    abilities = estimate_abilities(bank, given).theta
    np.testing.assert_allclose(grown.calibration.abilities[20:23], abilities[:3])
    np.testing.assert_array_equal(grown.calibration.abilities[23:], first.calibration.abilities[23:])
    other = dataclasses.replace(given, responses=1.0 - given.responses)
    with pytest.raises(DataError, match="must have answered an item as it did in the bank, and 8 did not in 200 cells"):
        add_models(first, other)


def test_added_items_are_linked_and_the_old_score_stays_known(bank, tmp_path):
    grown = add_items(bank, linking(bank)[0], note="questions of May")
    np.testing.assert_array_equal(grown.parameters.loadings[:40], bank.parameters.loadings)
    assert grown.item_ids == [*bank.item_ids, *(f"new/{k}" for k in range(12))]
    link, old = grown.history.changes[-1].link, with_target(grown, "quiz@1")
    assert (grown.version, grown.target_id, link.method, link.n_models) == ("2.0.0", "quiz@2", "fixed", 6)
    assert 0.0 < link.linking_error < 0.1
    assert (old.item_ids, old.target_digest) == (bank.item_ids, bank.target_digest)
    save_bank(grown, tmp_path / "bank")
    np.testing.assert_array_equal(load_bank(tmp_path / "bank").parameters.intercept, grown.parameters.intercept)


def test_an_old_item_whose_answers_were_all_lost_does_not_link(bank):
    responses, _ = linking(bank)
    responses.responses[:, 0] = np.nan
    grown = add_items(bank, responses)  # without a warning of numpy's
    np.testing.assert_array_equal(grown.calibration.is_degenerate[:40], bank.calibration.is_degenerate)
    assert np.isnan(grown.responses.responses[20:, 0]).all()


def test_items_on_trial_do_not_count_yet(bank):
    responses, _ = linking(bank)
    grown = add_items(bank, responses, status="field-test")
    assert (grown.item_ids, grown.target_id) == (bank.item_ids, bank.target_id)
    assert (grown.whole.n_items, grown.version) == (52, "1.1.0")
    with pytest.raises(ParameterError, match="status must be one of"):
        add_items(bank, responses, status="new")


def test_retired_items_neither_link_nor_teach(bank):
    def knowing(responses):
        leaked = np.where(np.arange(responses.n_items) < 5, 1.0, responses.responses)
        return dataclasses.replace(responses, responses=leaked)

    responses, given = linking(bank)[0], new_models(bank)
    smaller = retire(bank, bank.item_ids[:5], reason="leaked")
    grown, spoilt = (add_items(smaller, one) for one in (responses, knowing(responses)))
    assert (grown.n_items, grown.whole.n_items) == (47, 52)
    np.testing.assert_array_equal(spoilt.parameters.intercept, grown.parameters.intercept)
    new, same = (recalibrate(smaller, one).whole.parameters.intercept for one in (given, knowing(given)))
    np.testing.assert_array_equal(new, same)
    np.testing.assert_array_equal(new[:5], bank.parameters.intercept[:5])


def test_difficulties_follow_models_that_found_items_easier(bank):
    grown = add_models(bank, new_models(bank, n_models=60, shift=1.0), how="adaptive")
    newer = recalibrate(grown)
    np.testing.assert_array_equal(newer.parameters.loadings, bank.parameters.loadings)
    # abilities take up a shift that all items share; what is left are the items' own changes, drawn to the old values
    assert np.isfinite(newer.parameters.intercept).all()
    assert (newer.calibration.standard_errors <= grown.calibration.standard_errors + 1e-12).all()
    assert (newer.version, newer.history.changes[-1].link.method) == ("1.2.0", "difficulties")
    assert newer.responses.models[ADDED].null_count() == 80
    with pytest.raises(DataError, match="none of its 80 did"):
        recalibrate(newer)


def test_new_items_do_not_learn_again_from_the_answers_that_linked_them(bank):
    grown = add_items(add_models(bank, new_models(bank)), linking(bank)[0])
    again = recalibrate(grown)
    np.testing.assert_array_equal(again.parameters.intercept[40:], grown.parameters.intercept[40:])
    np.testing.assert_array_equal(again.calibration.item_covariance[40:], grown.calibration.item_covariance[40:])
    assert (again.parameters.intercept[:40] != grown.parameters.intercept[:40]).all()  # by both kinds of models
    later = new_models(grown, n_models=10, n_items=52).take(models=np.arange(8, 10))
    assert (recalibrate(grown, later).parameters.intercept[40:] != grown.parameters.intercept[40:]).all()


def test_information_about_intercepts_is_added_unless_errors_of_items_are_unknown(rng, bank):
    covariance, information = covariance_of(rng, 4), np.array([0.0, 1.0, 5.0, 100.0])
    expected = np.linalg.inv(covariance)
    expected[:, 1, 1] += information
    np.testing.assert_allclose(updated_covariance(covariance, information), np.linalg.inv(expected))
    data, _, _ = linking_data(rng, n_models=10, n_old=20)
    found, _ = update_intercepts(data.old, np.tile(1e-8 * np.eye(2), (20, 1, 1)), data.old_responses, data.prior)
    assert found == pytest.approx(data.old.intercept, abs=1e-5)
    covariance = np.full_like(bank.calibration.item_covariance, np.nan)
    blind = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, item_covariance=covariance))
    with pytest.raises(DataError, match="gave none"):
        recalibrate(blind, new_models(bank), how="random")


def test_an_item_whose_key_changed_moves_most(bank):
    given = new_models(bank, n_models=40)
    given.responses[:, 7] = 1.0 - given.responses[:, 7]
    newer = recalibrate(bank, given, how="random")
    moved = np.abs(newer.parameters.intercept - bank.parameters.intercept)
    assert np.argmax(moved) == 7 or moved[7] > np.quantile(moved, 0.9)


def covariance_of(rng, n_items):
    roots = 0.3 * rng.normal(size=(n_items, 2, 2))
    return roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(2)


def test_the_mode_has_no_slope(rng):
    data, _, _ = linking_data(rng, n_models=15, n_old=20)
    answers = np.where(rng.random(data.old_responses.shape) < 0.3, np.nan, data.old_responses)
    answers[:, 0] = np.nan
    covariance = covariance_of(rng, 20)
    found, _ = update_intercepts(data.old, covariance, answers, data.prior)
    assert found[0] == data.old.intercept[0]
    nodes = ability_nodes(data.old, answers, data.prior, n_quadrature=3)
    variance = covariance[:, 1, 1] - covariance[:, 0, 1] ** 2 / covariance[:, 0, 0]

    def objective(intercept):
        x = nodes.theta[..., 0, None] * data.old.loadings[:, 0] + intercept  # (n_models, n_quadrature, n_items)
        p, y = expit(x), answers[:, None, :]
        terms = np.where(np.isnan(y), 0.0, np.where(y > 0.5, np.log(p), np.log1p(-p)))
        fit = np.einsum("mq,mqi->i", nodes.weights, terms)
        return fit - 0.5 * (intercept - data.old.intercept) ** 2 / variance

    step = 1e-5
    slope = (objective(found + step) - objective(found - step)) / (2.0 * step)
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)
