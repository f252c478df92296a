import dataclasses

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.estimation import method_trials, trials
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import PIRT, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import try_methods
from itembank.planning import auto
from itembank.planning.auto import try_recipe
from itembank.planning.precision import expected_half_width
from itembank.planning.select import select
from itembank.selection.recipes import Recipe, read_recipe
from itembank.selection.select import select as by_method
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import METHODS, VOptimal
from tests.estimation.simulated import new_models, small_bank


@pytest.fixture(scope="module", autouse=True)
def few_folds():
    """Four instead of ten: what is tried on them does not turn on their number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 4)
        yield


@pytest.fixture(scope="module")
def bank():
    return small_bank(n_models=14, n_items=36)


@pytest.fixture(scope="module")
def chosen(bank):
    return chosen_from(bank)


def chosen_from(bank, n=12, **changes):
    """V-optimal items, tried on past models."""
    return select(bank, n, **{"method": "v-optimal", "rng": 5, **changes})


@pytest.mark.parametrize("choices", [{"n": 0}, {"n": 1000}, {"n": 12, "excluded": ["nowhere"]}])
@pytest.mark.parametrize("method", ["auto", "v-optimal"])
def test_what_no_method_could_choose_is_refused_before_anything_is_fitted(method, choices):
    fresh = small_bank(n_models=14, n_items=36)
    with pytest.raises((ParameterError, DataError)):
        select(fresh, method=method, rng=5, **choices)
    assert "folds" not in fresh.cache.memory


def test_auto_draws_items_and_says_both_widths(bank):
    found, expected = select(bank, 12, rng=5), by_method(bank, 12, method="drawn", rng=5)
    assert (found.item_ids, found.method) == (expected.item_ids, "drawn")
    half = 100.0 * expected_half_width(bank, expected, level=0.95)
    optimal = try_recipe(bank, Recipe(VOptimal(), 12, False, ()), 5).typical_half_width(level=0.95)
    assert found.explanation == (
        f"drawn. 95 % interval of the overall score: about ±{half:.1f} points, valid whatever the model is; "
        f"±{100.0 * optimal:.1f} points, valid if it is like the 14 past ones (method='v-optimal')."
    )


def test_v_optimal_items_say_the_error_of_models_left_out_and_both_widths(bank, chosen):
    expected = by_method(bank, 12, method=VOptimal(), rng=5)
    assert (chosen.item_ids, chosen.method) == (expected.item_ids, "v-optimal")
    found = try_methods(Asked.of_past(bank, expected), Stacked().members).by(Stacked())
    points = 100.0 * np.abs(found.error[:, -1]).mean()
    half = found.half_widths(found.scale, level=0.95)[:, -1]
    like = f"±{100 * np.median(half):.1f} points, valid if it is like the 14 past ones"
    assert chosen.explanation.startswith(f"v-optimal. 95 % interval of the overall score: about {like}; ±")
    assert chosen.explanation.endswith(
        f"points, valid whatever the model is (method='drawn'). Cross-validated mean error: {points:.1f} points."
    )


def test_a_large_bank_tries_v_optimal_items_only_where_they_are_asked_for(monkeypatch):
    bank = small_bank(n_models=14, n_items=36)
    monkeypatch.setattr(auto, "LARGE", 100)
    drawn = select(bank, 12, rng=5)
    assert "whatever the model is" in drawn.explanation
    assert "v-optimal" not in drawn.explanation
    assert "folds" not in bank.cache.memory
    assert "if it is like the 14 past ones" in chosen_from(bank).explanation


def test_where_no_draw_can_speak_for_the_score_items_are_v_optimal_and_no_width_is_told(bank):
    without = select(bank, 12, rng=5, excluded=bank.item_ids[:2])
    drawn = select(bank, 12, method="drawn", rng=5, excluded=bank.item_ids[:2])
    assert drawn.explanation == "drawn. Items are excluded, so no interval rests on the draw."
    assert without.method == "v-optimal"
    assert "whatever the model is" not in without.explanation
    assert not select(bank, 12, method=VOptimal(target="math"), rng=0).explanation
    bank = small_bank(n_models=9)
    found = select(bank, 12, rng=5)
    assert found.method == "drawn"
    assert found.explanation.endswith("points, valid whatever the model is.")


def test_the_width_that_is_told_is_the_one_that_models_get(bank):
    """Of past models themselves, within a third: the bank's spread of answers, less what it predicts of them."""
    drawn = by_method(bank, 18, method="drawn", rng=4)
    scores = estimate(bank, bank.responses, selection=drawn)
    assert scores.interval_kind == "design"
    typical = np.median((scores.high - scores.low)[:, -1]) / 2.0
    assert expected_half_width(bank, drawn, level=0.95) == pytest.approx(typical, rel=0.35)


def test_items_are_chosen_anew_without_the_models_they_are_judged_by(monkeypatch):
    bank = small_bank(n_models=14, n_items=36, seed=3)
    asked = []

    def recorded(bank, recipe, rng):
        asked.append((METHODS.name_of(recipe.spec), tuple(bank.responses.model_ids)))
        return select_by_recipe(bank, recipe, rng)

    monkeypatch.setattr(method_trials, "select_by_recipe", recorded)
    chosen_from(bank)
    ids = np.array(bank.responses.model_ids)
    unseen = [tuple(ids[fold.seen].tolist()) for fold in folds(bank)]
    assert all(not set(fold.seen) & set(fold.held_out) for fold in folds(bank))
    assert sorted(asked) == sorted(("v-optimal", rest) for rest in unseen)


def test_items_that_tell_no_past_models_apart_do_not_come():
    """Only seven items of 36 tell the past models apart, some of each scenario."""
    bank = small_bank(n_models=14, n_items=36)
    is_degenerate = np.ones(36, dtype=bool)
    is_degenerate[[0, 1, 2, 3, 4, 5, 7]] = False
    bank = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, is_degenerate=is_degenerate))
    with pytest.raises(ParameterError, match="n_items must be from 3"):
        by_method(bank, 12, method=VOptimal())
    assert chosen_from(bank, n=7).method == "v-optimal"


def test_a_selection_says_how_it_was_made_and_a_file_keeps_it(bank, chosen, tmp_path):
    recipe = read_recipe(chosen)
    assert recipe.spec == VOptimal()
    assert METHODS.name_of(recipe.spec) == chosen.method
    assert by_method(bank, recipe.n_items, method=recipe.spec, rng=chosen.seed).item_ids == chosen.item_ids
    chosen.save(tmp_path / "selection.json")
    read = Selection.load(tmp_path / "selection.json")
    for name in ("item_ids", "method", "bank", "seed", "explanation"):
        assert getattr(read, name) == getattr(chosen, name)
    assert read_recipe(read) == recipe
    assert chosen.explanation
    np.testing.assert_array_equal(read.weights, chosen.weights)


def test_estimates_use_the_work_that_the_choice_has_done(monkeypatch):
    bank = small_bank(n_models=14, n_items=36)
    found = chosen_from(bank)
    before = set(bank.cache.memory)
    assert {("arrays", "folds"), "folds"} <= before
    assert sum(key[1].startswith("out-of-fold-") for key in before if key[0] == "arrays") == 1
    runs = []
    monkeypatch.setattr(trials, "point_scores", lambda *_: runs.append(1))
    assert estimate(bank, new_models(bank), selection=found).method == "stacked"
    new = {key[1] for key in set(bank.cache.memory) - before if key[0] == "arrays"}
    assert (runs, new - {"discrepancy", "factor-model-auto"}) == ([], set())  # those two are of the whole bank


def test_a_loaded_bank_and_selection_find_the_work_that_was_kept(tmp_path, monkeypatch, user_cache):
    made = small_bank(n_models=14, n_items=36)
    save_bank(made, tmp_path / "bank")
    chosen_from(load_bank(tmp_path / "bank")).save(tmp_path / "selection.json")
    kept = {path.name for path in user_cache.rglob("*.safetensors")}
    assert {"folds.safetensors"} < kept
    assert sum(name.startswith("out-of-fold-") for name in kept) == 1
    runs = []
    monkeypatch.setattr(trials, "point_scores", lambda *_: runs.append(1))
    again = load_bank(tmp_path / "bank")
    estimate(again, new_models(again), selection=Selection.load(tmp_path / "selection.json"))
    assert runs == []
    assert {path.name for path in user_cache.rglob("*.safetensors")} == kept
    assert not (tmp_path / "bank" / "cache").exists()  # others may share it


def test_other_methods_of_estimation_are_not_mistaken_for_it(bank, chosen):
    """The work kept is that of the members it was done for."""
    responses = new_models(bank)
    default = estimate(bank, responses, selection=chosen)
    other = estimate(bank, responses, selection=chosen, method=Stacked((PIRT(), Weighted())))
    assert not np.array_equal(default.value, other.value)


def test_progress_tells_of_the_fits_and_then_of_the_trial():
    told = []
    chosen_from(small_bank(n_models=14, n_items=36), progress=lambda text, share: told.append((text, share)))
    assert told[-2:] == [("trying V-optimal items on past models", share) for share in (0.7, 1.0)]
    texts, shares = zip(*told[:-2], strict=True)
    assert all(text.startswith("fitting without") for text in texts)
    assert min(shares) == pytest.approx(0.7 / 4)  # the first of four fits
    assert max(shares) <= 0.7
