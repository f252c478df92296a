import dataclasses
import hashlib

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.marks import ADDED, ANSWERED_HOW
from itembank.banks import add_items, add_models, recalibrate, retire, with_target
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.model_abilities import estimate_abilities
from itembank.responses.responses import ResponseMatrix
from tests.living.answers import answers_to
from tests.living.living import named_bank
from tests.living.test_link_items import APART, FEW, MOVED, few_links, linking

__all__ = ["few_links"]

pytestmark = [pytest.mark.filterwarnings(one) for one in (FEW, APART, MOVED)]


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
    assert grown.target_id == bank.target_id
    assert (grown.version, grown.history.changes[-1].note) == ("1.1.0", "May")
    assert grown.responses.models[ANSWERED_HOW].to_list() == [None] * 20 + ["random"] * 8
    assert np.isnan(grown.responses.responses[20:, 25:]).all()


def test_the_history_keeps_what_new_results_were_run_with(bank, tmp_path):
    given = new_models(bank)
    models = given.models.with_columns(
        lm_eval_version=pl.Series([f"0.4.{k % 5}" for k in range(8)]), system_prompt=pl.lit("You are. " * 9)
    )
    told = dataclasses.replace(given, models=models, items=given.items.with_columns(task_version=pl.lit("2.0")))
    save_bank(add_models(bank, told, how="random"), tmp_path / "bank")
    digest = hashlib.sha256(b"You are. " * 9).hexdigest()[:12]
    assert load_bank(tmp_path / "bank").history.changes[-1].arguments == {
        "how": "random",
        "run_with": {
            "lm_eval_version": "0.4.0, 0.4.1, 0.4.2 and 2 more",
            "system_prompt": f"sha256 {digest}",
            "task_version": "2.0",
        },
    }
    assert add_models(bank, given).history.changes[-1].arguments == {}


def test_models_must_be_new_and_items_known(bank):
    given = new_models(bank)
    with pytest.raises(DataError, match="in it already: 'late-0'"):
        add_models(add_models(bank, given), given.take(models=np.arange(1)))
    responses, _ = linking(bank)
    with pytest.raises(DataError, match=r"12 of 52 are not.*add_items"):
        add_models(bank, responses)
    empty = dataclasses.replace(given, responses=np.where(np.arange(8)[:, None] < 2, np.nan, given.responses))
    with pytest.raises(DataError, match="2 have none: 'late-0', 'late-1'"):
        add_models(bank, empty)
    with pytest.raises(DataError, match="must be one of complete, random, fixed, adaptive, got 'luck'"):
        add_models(bank, given, how="luck")


def test_added_items_are_linked_and_the_old_score_stays_known(bank, tmp_path):
    responses, _ = linking(bank)
    grown = add_items(bank, responses, note="questions of May")
    np.testing.assert_array_equal(grown.parameters.loadings[:40], bank.parameters.loadings)
    assert grown.item_ids == [*bank.item_ids, *(f"new/{k}" for k in range(12))]
    assert (grown.version, grown.target_id) == ("2.0.0", "quiz@2")
    link = grown.history.changes[-1].link
    assert (link.method, link.n_models) == ("fixed", 6)
    assert 0.0 < link.linking_error < 0.1
    old = with_target(grown, "quiz@1")
    assert old.item_ids == bank.item_ids
    assert old.target_digest == bank.target_digest
    save_bank(grown, tmp_path / "bank")
    np.testing.assert_array_equal(load_bank(tmp_path / "bank").parameters.intercept, grown.parameters.intercept)


def test_items_on_trial_do_not_count_yet(bank):
    responses, _ = linking(bank)
    grown = add_items(bank, responses, status="field-test")
    assert grown.item_ids == bank.item_ids
    assert grown.target_id == bank.target_id
    assert grown.whole.n_items == 52
    assert grown.version == "1.1.0"
    with pytest.raises(ParameterError, match="status must be one of"):
        add_items(bank, responses, status="new")


def test_items_are_linked_to_retired_ones_too(bank):
    smaller = retire(bank, bank.item_ids[:5], reason="wrong key")
    responses, _ = linking(bank)
    grown = add_items(smaller, responses)
    assert grown.n_items == 47
    assert grown.whole.n_items == 52


def test_difficulties_follow_models_that_found_items_easier(bank):
    grown = add_models(bank, new_models(bank, n_models=60, shift=1.0), how="adaptive")
    newer = recalibrate(grown)
    np.testing.assert_array_equal(newer.parameters.loadings, bank.parameters.loadings)
    # abilities take up a shift that all items share; what is left are the items' own changes, drawn to the old values
    assert np.isfinite(newer.parameters.intercept).all()
    assert (newer.calibration.standard_errors <= grown.calibration.standard_errors + 1e-12).all()
    assert newer.version == "1.2.0"
    assert newer.history.changes[-1].link.method == "difficulties"
    assert newer.responses.models[ADDED].null_count() == 80
    with pytest.raises(DataError, match="none of its 80 did"):
        recalibrate(newer)


def test_banks_without_errors_of_items_keep_their_difficulties(bank):
    covariance = np.full_like(bank.calibration.item_covariance, np.nan)
    blind = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, item_covariance=covariance))
    with pytest.raises(DataError, match="gave none"):
        recalibrate(blind, new_models(bank), how="random")


def test_an_item_whose_key_changed_moves_most(bank):
    given = new_models(bank, n_models=40)
    values = given.responses.copy()
    values[:, 7] = 1.0 - values[:, 7]
    newer = recalibrate(bank, dataclasses.replace(given, responses=values), how="random")
    moved = np.abs(newer.parameters.intercept - bank.parameters.intercept)
    assert np.argmax(moved) == 7 or moved[7] > np.quantile(moved, 0.9)


def test_everything_is_calibrated_anew_without_adaptive_answers(bank):
    asked = new_models(bank, n_models=6, seed=1)
    values = np.where(np.random.default_rng(0).random((6, 40)) < 0.5, np.nan, asked.responses)
    asked = dataclasses.replace(
        asked, responses=values, models=asked.models.with_columns(("asked-" + pl.col("model_id")).alias("model_id"))
    )
    both = add_models(add_models(bank, asked, how="adaptive"), new_models(bank))
    with pytest.warns(DataWarning, match="items of 6 models .* left out.*'asked-late-0'"):
        newer = recalibrate(both, parameters="all")
    without = recalibrate(add_models(bank, new_models(bank)), parameters="all")
    np.testing.assert_array_equal(newer.parameters.intercept, without.parameters.intercept)
    assert newer.version == "2.0.0"
    assert newer.target_id == bank.target_id
    with pytest.raises(DataError, match="none is known to be such"):
        recalibrate(bank, asked, parameters="all", how="adaptive")
