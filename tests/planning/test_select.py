import dataclasses

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning, ParameterError
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
from itembank.selection.select import select as select_by
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import METHODS, VOptimal
from tests.estimation.simulated import new_models, small_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return small_bank(n_models=14, n_items=36)


@pytest.mark.parametrize("method", METHODS.builtin_names)
def test_a_method_by_name_is_that_method(bank, method):
    found, expected = (one(bank, 12, method=method, rng=5) for one in (select, select_by))
    told = found.to_dict()
    assert {**told, "explanation": ""} == expected.to_dict()
    assert bool(told["explanation"]) == (method in {"drawn", "v-optimal"})  # how wide intervals will be
    assert select(bank, 12, method=VOptimal(target="math"), rng=0).recipe["options"]["target"] == "math"


def test_the_same_seed_gives_the_same_items_and_where_chance_chooses_another_others(bank):
    one, two, generated, again = (
        select(bank, 12, rng=rng) for rng in (7, 7, np.random.default_rng(7), np.random.default_rng(7))
    )
    assert (one.to_dict(), generated.to_dict(), one.seed) == (two.to_dict(), again.to_dict(), 7)
    bank = small_bank(n_models=9)
    for seeds in (range(3), [np.random.default_rng(seed) for seed in (1, 2, 3)]):
        assert len({select(bank, 12, rng=seed).item_ids for seed in seeds}) == 3


def test_excluded_items_are_not_chosen(bank):
    unwanted = select(bank, 12, rng=5).item_ids[:4]
    found = select(bank, 12, rng=5, excluded=np.array(unwanted))
    assert not set(unwanted) & set(found.item_ids)
    assert found.recipe["excluded"] == sorted(unwanted)
    with pytest.raises(DataError, match="nowhere/1"):
        select(bank, 12, excluded=["nowhere/1"])


def test_per_scenario_gives_each_scenario_its_number(bank):
    found = select(bank, 4, rng=5, per_scenario=True)
    assert sorted(found.scenarios) == ["code"] * 4 + ["law"] * 4 + ["math"] * 4
    bank = small_bank(n_models=9)
    found = select(bank, 4, rng=5, per_scenario=True, excluded=bank.item_ids[:3])
    assert (found.n_items, set(bank.item_ids[:3]) & set(found.item_ids)) == (12, set())
    assert found.explanation == "drawn. Items are excluded, so no interval rests on the draw."


def test_unknown_methods_are_refused_with_the_list_and_those_that_cannot_leave_scenarios_out_with_others(bank):
    names = ", ".join(map(repr, ["auto", *METHODS.kinds]))
    with pytest.raises(ParameterError) as caught:
        select(bank, 12, method="anchors")
    assert str(caught.value) == (f"selection method must be one of {names}, got 'anchors'. Did you mean 'anchor-irt'?")
    with pytest.raises(ParameterError, match="selection method must be one of"):
        select(bank, 12, method=7)
    with pytest.raises(ParameterError, match="To leave scenarios out: method='auto', 'v-optimal'"):
        select(bank, bank.targets.n_scenarios - 1, method="stratified", rng=0)


@pytest.mark.parametrize("method", ["auto", "v-optimal", "optimal-design"])
def test_fewer_items_than_scenarios_are_chosen_and_what_is_left_out_is_said(bank, method):
    n = bank.targets.n_scenarios - 1
    with pytest.warns(DataWarning, match=f"None of the {n} items is of.* each of the {n + 1}: n="):
        found = select(bank, n, method=method, rng=0)
    assert found.n_items == n
    new = bank.responses.take(models=np.arange(2), items=bank.responses.item_indices(found.item_ids))
    scores = estimate(bank, new, selection=found)
    assert scores.targets == bank.targets.names
    assert np.isfinite(scores.value).all()
    if method != "auto":  # of two drawn items the scenario scores are cut to what is possible, the overall one less
        known = bank.targets.with_overall(scores.value[:, :-1])[:, -1]
        assert scores.value[:, -1] == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("choices", [{}, {"stages": 2}, {"method": "random"}, {"method": "optimal-design"}])
def test_an_excluded_scenario_is_asked_nothing_and_its_score_is_predicted(bank, choices):
    law = [item for item in bank.item_ids if item.startswith("law/")]
    with pytest.warns(DataWarning, match="None of the .* items is of 'law'.* the overall score still covers all"):
        found = select(bank, 12, rng=0, excluded=law, **choices)
    assert set(found.scenarios) == {"math", "code"}
    new = bank.responses.take(models=np.arange(2), items=bank.responses.item_indices(found.item_ids))
    scores = estimate(bank, new, selection=found)
    at = scores.targets.index("law")
    assert scores.n_items[:, at].tolist() == [0, 0]
    assert np.all((scores.low < scores.value)[:, at] & (scores.value < scores.high)[:, at])


@pytest.fixture(scope="module")
def chosen(bank):
    return chosen_from(bank)


def chosen_from(bank, n=12, **changes):
    """V-optimal items, tried on past models."""
    return select(bank, n, **{"method": "v-optimal", "rng": 5, **changes})


def fresh():
    """The same bank, of which nothing is known yet."""
    return small_bank(n_models=14, n_items=36)


@pytest.mark.parametrize("choices", [{"n": 0}, {"n": 1000}, {"n": 12, "excluded": ["nowhere"]}])
@pytest.mark.parametrize("method", ["auto", "v-optimal"])
def test_what_no_method_could_choose_is_refused_before_anything_is_fitted(method, choices):
    unknown = fresh()
    with pytest.raises((ParameterError, DataError)):
        select(unknown, method=method, rng=5, **choices)
    assert "folds" not in unknown.cache.memory


def test_auto_draws_items_and_says_both_widths(bank):
    found, expected = select(bank, 12, rng=5), select_by(bank, 12, method="drawn", rng=5)
    assert (found.item_ids, found.method) == (expected.item_ids, "drawn")
    half = 100.0 * expected_half_width(bank, expected, level=0.95)
    optimal = try_recipe(bank, Recipe(VOptimal(), 12, False, ()), 5).typical_half_width(level=0.95)
    assert found.explanation == (
        f"drawn. 95 % interval of the overall score: about ±{half:.1f} points, valid whatever the model is; "
        f"±{100.0 * optimal:.1f} points, valid if it is like the 14 past ones (method='v-optimal')."
    )


def test_v_optimal_items_say_the_error_of_models_left_out_and_both_widths(bank, chosen):
    expected = select_by(bank, 12, method=VOptimal(), rng=5)
    assert (chosen.item_ids, chosen.method) == (expected.item_ids, "v-optimal")
    found = try_methods(Asked.of_past(bank, expected), Stacked().members).by(Stacked())
    points, half = 100.0 * np.abs(found.error[:, -1]).mean(), found.half_widths(found.scale, level=0.95)[:, -1]
    like = f"±{100 * np.median(half):.1f} points, valid if it is like the 14 past ones"
    assert chosen.explanation.startswith(f"v-optimal. 95 % interval of the overall score: about {like}; ±")
    assert chosen.explanation.endswith(
        f"points, valid whatever the model is (method='drawn'). Cross-validated mean error: {points:.1f} points."
    )


def test_a_large_bank_tries_v_optimal_items_only_where_they_are_asked_for(monkeypatch):
    bank = fresh()
    monkeypatch.setattr(auto, "LARGE", 100)
    drawn = select(bank, 12, rng=5).explanation
    assert ("whatever the model is" in drawn, "v-optimal" in drawn) == (True, False)
    assert "folds" not in bank.cache.memory
    assert "if it is like the 14 past ones" in chosen_from(bank).explanation


def test_where_no_draw_can_speak_for_the_score_items_are_v_optimal_and_no_width_is_told(bank):
    without, drawn = (
        select(bank, 12, method=method, rng=5, excluded=bank.item_ids[:2]) for method in ("auto", "drawn")
    )
    assert drawn.explanation == "drawn. Items are excluded, so no interval rests on the draw."
    assert (without.method, "whatever the model is" in without.explanation) == ("v-optimal", False)
    assert not select(bank, 12, method=VOptimal(target="math"), rng=0).explanation
    found = select(small_bank(n_models=9), 12, rng=5)
    assert (found.method, found.explanation.endswith("points, valid whatever the model is.")) == ("drawn", True)


def test_the_width_that_is_told_is_the_one_that_models_get(bank):
    """Of past models themselves, within a third: the bank's spread of answers, less what it predicts of them."""
    drawn = select_by(bank, 18, method="drawn", rng=4)
    scores = estimate(bank, bank.responses, selection=drawn)
    assert scores.interval_kind == "design"
    typical = np.median((scores.high - scores.low)[:, -1]) / 2.0
    assert expected_half_width(bank, drawn, level=0.95) == pytest.approx(typical, rel=0.35)


def test_items_are_chosen_anew_without_the_models_they_are_judged_by(monkeypatch):
    bank, asked = small_bank(n_models=14, n_items=36, seed=3), []

    def recorded(bank, recipe, rng):
        asked.append((METHODS.name_of(recipe.spec), tuple(bank.responses.model_ids)))
        return select_by_recipe(bank, recipe, rng)

    monkeypatch.setattr(method_trials, "select_by_recipe", recorded)
    chosen_from(bank)
    ids, parts = np.array(bank.responses.model_ids), folds(bank)
    assert all(not set(fold.seen) & set(fold.held_out) for fold in parts)
    assert sorted(asked) == sorted(("v-optimal", tuple(ids[fold.seen].tolist())) for fold in parts)


def test_items_that_tell_no_past_models_apart_do_not_come():
    is_degenerate, bank = ~np.isin(np.arange(36), [0, 1, 2, 3, 4, 5, 7]), fresh()
    bank = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, is_degenerate=is_degenerate))
    with pytest.raises(ParameterError, match="n_items must be from 3"):
        select_by(bank, 12, method=VOptimal())
    assert chosen_from(bank, n=7).method == "v-optimal"


def test_a_selection_says_how_it_was_made_and_a_file_keeps_it(bank, chosen, tmp_path):
    recipe = read_recipe(chosen)
    assert (recipe.spec, METHODS.name_of(recipe.spec)) == (VOptimal(), chosen.method)
    assert select_by(bank, recipe.n_items, method=recipe.spec, rng=chosen.seed).item_ids == chosen.item_ids
    chosen.save(tmp_path / "selection.json")
    read = Selection.load(tmp_path / "selection.json")
    for name in ("item_ids", "method", "bank", "seed", "explanation"):
        assert getattr(read, name) == getattr(chosen, name) != ""
    assert read_recipe(read) == recipe
    np.testing.assert_array_equal(read.weights, chosen.weights)


def test_estimates_use_the_work_that_the_choice_has_done(monkeypatch):
    bank = fresh()
    found = chosen_from(bank)
    before, runs = set(bank.cache.memory), []
    assert {("arrays", "folds"), "folds"} <= before
    assert sum(key[1].startswith("out-of-fold-") for key in before if key[0] == "arrays") == 1
    monkeypatch.setattr(trials, "point_scores", lambda *_: runs.append(1))
    assert estimate(bank, new_models(bank), selection=found).method == "stacked"
    new = {key[1] for key in set(bank.cache.memory) - before if key[0] == "arrays"}
    assert (runs, new - {"discrepancy", "factor-model-auto"}) == ([], set())  # those two are of the whole bank


def test_a_loaded_bank_and_selection_find_the_work_that_was_kept(tmp_path, monkeypatch, user_cache):
    save_bank(fresh(), tmp_path / "bank")
    chosen_from(load_bank(tmp_path / "bank")).save(tmp_path / "selection.json")
    kept, runs = {path.name for path in user_cache.rglob("*.safetensors")}, []
    assert {"folds.safetensors"} < kept
    assert sum(name.startswith("out-of-fold-") for name in kept) == 1
    monkeypatch.setattr(trials, "point_scores", lambda *_: runs.append(1))
    again = load_bank(tmp_path / "bank")
    estimate(again, new_models(again), selection=Selection.load(tmp_path / "selection.json"))
    assert (runs, {path.name for path in user_cache.rglob("*.safetensors")}) == ([], kept)
    assert not (tmp_path / "bank" / "cache").exists()  # others may share it


def test_other_methods_of_estimation_are_not_mistaken_for_it(bank, chosen):
    other = estimate(bank, new_models(bank), selection=chosen, method=Stacked((PIRT(), Weighted())))
    assert not np.array_equal(estimate(bank, new_models(bank), selection=chosen).value, other.value)


def test_progress_tells_of_the_fits_and_then_of_the_trial():
    told = []
    chosen_from(fresh(), progress=lambda text, share: told.append((text, share)))
    assert told[-2:] == [("trying V-optimal items on past models", share) for share in (0.7, 1.0)]
    texts, shares = zip(*told[:-2], strict=True)
    assert all(text.startswith("fitting without") for text in texts)
    assert (min(shares), max(shares) <= 0.7) == (pytest.approx(0.7 / 3), True)  # the first of three fits
