import dataclasses

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.estimation import method_trials, past_errors
from itembank.estimation.calibrated_scores import OutOfFold
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import PIRT, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.planning import auto
from itembank.planning.auto import Tried, choose_selection
from itembank.planning.precision import expected_half_width
from itembank.selection.recipes import Recipe, read_recipe
from itembank.selection.select import select, select_by_recipe
from itembank.selection.selector_specs import METHODS, Stratified, VOptimal
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


def chosen_from(bank, n_items=12, **changes):
    return choose_selection(
        bank, n_items, **{"per_scenario": False, "excluded": (), "seed": 5, "is_explained": True, **changes}
    )


def with_errors(errors):
    """Estimates with these errors of the one score, all of the same expected size."""
    signed = np.asarray(errors, float)[:, None]
    return OutOfFold(np.zeros(signed.shape), signed, np.ones(signed.shape), np.ones(signed.shape))


@pytest.mark.parametrize("choices", [{"n_items": 0}, {"n_items": 1000}, {"n_items": 12, "excluded": ["nowhere"]}])
def test_what_no_method_could_choose_is_refused_before_anything_is_fitted(choices):
    fresh = small_bank(n_models=14, n_items=36)
    with pytest.raises((ParameterError, DataError)):
        choose_selection(fresh, **{"per_scenario": False, "excluded": (), "seed": 5, "is_explained": True, **choices})
    assert set(fresh.cache.memory) <= {"known scores"}


def test_items_are_v_optimal_and_the_error_told_is_that_of_models_left_out(bank, chosen):
    expected = select(bank, 12, method=VOptimal(), rng=5)
    assert (chosen.item_ids, chosen.method) == (expected.item_ids, "v-optimal")
    found = try_methods(bank, sample_of(bank, expected), expected, Stacked().members).by(Stacked())
    points = 100.0 * np.abs(found.error[:, -1]).mean()
    half = found.half_widths(found.scale, level=0.95)[:, -1]
    assert chosen.explanation.startswith(
        f"v-optimal. Cross-validated mean error of the overall score: {points:.2f} points. "
        f"95 % interval of a model like past ones about ±{100 * np.median(half):.1f} points. Drawn items give ±"
    )


def test_it_says_how_wide_intervals_of_drawn_items_are(bank):
    found = with_errors(0.02 * np.linspace(-1.0, 1.0, 41))
    drawn = select(bank, 12, method="drawn", rng=0)
    half = 100.0 * expected_half_width(bank, drawn, level=0.95)
    text = auto._widths_in_words(bank, Tried(Recipe(VOptimal(), 12, False, ()), found), 0)
    assert text.startswith("95 % interval of a model like past ones about ±")
    assert text.endswith(f"Drawn items give ±{half:.1f} whatever a model is (method='drawn').")
    explained = auto.with_expected_width(bank, drawn).explanation
    assert explained == f"drawn. 95 % interval of the overall score about ±{half:.1f} points, whatever a model is."


def test_the_width_that_is_told_is_the_one_that_models_get(bank):
    """Of past models themselves, within a third: the bank's spread of answers, less what it predicts of them."""
    drawn = select(bank, 18, method="drawn", rng=4)
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
        select(bank, 12, method=VOptimal())
    assert chosen_from(bank, n_items=7).method == "v-optimal"


def test_few_models_fall_back_on_strata():
    bank = small_bank(n_models=9)
    found = chosen_from(bank)
    expected = select(bank, 12, method=Stratified("proportional"), rng=5)
    assert found.item_ids == expected.item_ids
    assert (found.method, found.seed, found.recipe) == ("stratified", 5, expected.recipe)
    assert found.explanation == ("stratified, since 9 past models are too few to compare methods by cross-validation.")


def test_a_selection_says_how_it_was_made_and_a_file_keeps_it(bank, chosen, tmp_path):
    recipe = read_recipe(chosen)
    assert recipe.spec == VOptimal()
    assert METHODS.name_of(recipe.spec) == chosen.method
    assert select(bank, recipe.n_items, method=recipe.spec, rng=chosen.seed).item_ids == chosen.item_ids
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
    monkeypatch.setattr(past_errors, "_estimates", lambda *_: runs.append(1))
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
    monkeypatch.setattr(past_errors, "_estimates", lambda *_: runs.append(1))
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
    assert told[-2:] == [("trying the items on past models", share) for share in (0.7, 1.0)]
    texts, shares = zip(*told[:-2], strict=True)
    assert all(text.startswith("fitting without") for text in texts)
    assert min(shares) == pytest.approx(0.7 / 4)  # the first of four fits
    assert max(shares) <= 0.7
