import dataclasses

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.estimation import method_trials, past_errors
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import PIRT, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import SEED, sample_of
from itembank.estimation.point_methods import Known, point_scores
from itembank.estimation.response_summary import summarise_responses
from itembank.planning import auto as auto_module
from itembank.planning.auto import CANDIDATES, Tried, best_of, choose_selection
from itembank.selection.recipes import Recipe, read_recipe
from itembank.selection.select import select, select_by_recipe
from itembank.selection.selector_specs import METHODS, AnchorLatent, Stratified, VOptimal
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
    return choose_selection(bank, n_items, **{"per_scenario": False, "excluded": (), "seed": 5, **changes})


def tried(*errors):
    """Candidates with these errors, one array each."""
    return [Tried(Recipe(CANDIDATES[k], 10, False, ()), np.asarray(one, float)) for k, one in enumerate(errors)]


def test_the_first_is_kept_while_another_is_better_by_less_than_the_doubt():
    first = np.array([0.03, 0.05, 0.04, 0.06])
    saving = np.array([0.04, -0.02, 0.03, -0.01])  # mean 0.01; standard deviation 0.0294, standard error 0.0147
    assert best_of(tried(first, first - saving)).recipe.spec == CANDIDATES[0]


def test_another_is_taken_once_it_is_better_by_more_than_the_doubt():
    first = np.array([0.08, 0.09, 0.08, 0.09])
    saving = np.array([0.04, 0.01, 0.03, 0.02])  # mean 0.025; standard error 0.0065
    assert best_of(tried(first, first + 0.01, first - saving)).recipe.spec == CANDIDATES[2]


def test_the_doubt_is_that_of_the_pairs_and_not_of_the_errors_themselves():
    first = np.array([0.01, 0.20, 0.05, 0.12, 0.30])  # its standard error is 0.053
    saving = np.array([0.004, 0.006, 0.005, 0.005, 0.005])
    assert best_of(tried(first, first - saving)).recipe.spec == CANDIDATES[1]


def test_the_border_is_one_standard_error():
    saving = np.array([-1.0, 1.0, -1.0, 1.0]) * 0.01
    doubt = np.std(saving, ddof=1) / 2.0
    first = np.full(4, 0.1)
    for factor, spec in ((0.99, CANDIDATES[0]), (1.01, CANDIDATES[1])):
        assert best_of(tried(first, first - saving - factor * doubt)).recipe.spec == spec


def test_models_without_a_score_do_not_count():
    first = np.array([0.08, 0.09, np.nan, 0.08, 0.09])
    other = np.array([0.04, 0.08, 0.01, 0.05, np.nan])
    assert best_of(tried(first, other)).recipe.spec == CANDIDATES[1]


def test_a_first_without_any_error_known_gives_way():
    nothing = np.full(4, np.nan)
    assert tried(nothing)[0].error == np.inf
    assert best_of(tried(nothing, np.full(4, 0.1))).recipe.spec == CANDIDATES[1]
    assert best_of(tried(nothing, nothing)).recipe.spec == CANDIDATES[0]


@pytest.mark.parametrize("better", [1, 2])
def test_the_items_are_those_of_the_candidate_that_is_clearly_better(bank, monkeypatch, better):
    wanted = CANDIDATES[better]

    def planted(bank, recipe, seed):
        return np.full(bank.n_models, 0.01 if recipe.spec == wanted else 0.05)

    monkeypatch.setattr(auto_module, "errors_of", planted)
    found = chosen_from(bank)
    expected = select(bank, 12, method=wanted, rng=5)
    assert (found.item_ids, found.method) == (expected.item_ids, expected.method)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.explanation.startswith(METHODS.label(wanted))


def test_why_a_method_is_kept_though_another_erred_less_is_said(bank, monkeypatch):
    sizes = dict(zip(CANDIDATES, (0.05, 0.07, 0.049), strict=True))
    alternating = np.where(np.arange(bank.n_models) % 2, 0.02, -0.02)  # too uneven a saving to be clear

    def planted(bank, recipe, seed):
        return np.full(bank.n_models, sizes[recipe.spec]) + (alternating if recipe.spec == CANDIDATES[2] else 0.0)

    monkeypatch.setattr(auto_module, "errors_of", planted)
    found = chosen_from(bank)
    first = METHODS.label(CANDIDATES[0])
    assert found.method == first
    assert found.explanation.endswith(f"4.90; {first} is taken unless another is clearly better.")


@pytest.mark.parametrize("choices", [{"n_items": 0}, {"n_items": 1000}, {"n_items": 12, "excluded": ["nowhere"]}])
def test_what_no_method_could_choose_is_refused_before_anything_is_fitted(choices):
    fresh = small_bank(n_models=14, n_items=36)
    with pytest.raises((ParameterError, DataError)):
        choose_selection(fresh, **{"per_scenario": False, "excluded": (), "seed": 5, **choices})
    assert set(fresh.cache.memory) <= {"known scores"}


def test_the_choice_follows_from_the_errors_of_models_left_out(bank, chosen):
    """Everything again by hand: items, estimates and stack weights of each fold without its models."""
    errors = {METHODS.label(spec): errors_by_hand(bank, spec) for spec in CANDIDATES}
    labels = list(errors)
    best = min(labels, key=lambda label: errors[label].mean())
    saving = errors[labels[0]] - errors[best]
    if saving.mean() <= saving.std(ddof=1) / np.sqrt(saving.size):
        best = labels[0]
    listed = ", ".join(f"{label} {100.0 * one.mean():.2f}" for label, one in errors.items())
    assert chosen.explanation.startswith(f"{best}. Mean errors of the overall score of calibration models left")
    assert f"in points: {listed}" in chosen.explanation
    assert chosen.method == best.split(" ")[0]


def errors_by_hand(bank, spec):
    members = Stacked().members
    truth = bank.known_scores.value
    values = np.empty((len(members), *truth.shape))
    parts = folds(bank)
    whole = select(bank, 12, method=spec, rng=5)
    for fold in parts:
        own = whole if isinstance(spec, Stratified) else select(fold.bank, 12, method=spec, rng=SEED)
        assert isinstance(spec, Stratified) or own.bank != bank.bank_id
        sample = sample_of(bank, own)
        held_out = sample.answered_by_calibration_models(bank, fold.held_out)
        summary = summarise_responses(fold.bank, held_out)
        values[:, fold.held_out] = [point_scores(Known(fold.bank, held_out, summary), member) for member in members]
    stacked = np.empty(bank.n_models)
    for fold in parts:
        others = np.setdiff1d(np.arange(bank.n_models), fold.held_out)
        past = (values - truth)[:, others, -1]
        weights = past_errors.stack_weights(past.T, prior_models=Stacked().prior_models)
        stacked[fold.held_out] = weights @ values[:, fold.held_out, -1]
    return np.abs(stacked - truth[:, -1])


def test_candidates_choose_anew_without_the_models_they_are_judged_by(monkeypatch):
    bank = small_bank(n_models=14, n_items=36, seed=3)
    asked = []

    def recorded(bank, recipe, rng):
        asked.append((METHODS.name_of(recipe.spec), tuple(bank.responses.model_ids)))
        return select_by_recipe(bank, recipe, rng)

    monkeypatch.setattr(method_trials, "select_by_recipe", recorded)
    chosen_from(bank)
    ids = np.array(bank.responses.model_ids)
    unseen = [tuple(np.delete(ids, fold.held_out).tolist()) for fold in folds(bank)]
    expected = [(name, rest) for name in ("v-optimal", "anchor-latent") for rest in unseen]
    assert asked == expected  # chance does not look at the models: strata are drawn once


def degenerate_bank():
    """Only seven items of 36 tell the calibration models apart, some of each scenario."""
    bank = small_bank(n_models=14, n_items=36)
    is_degenerate = np.ones(36, dtype=bool)
    is_degenerate[[0, 1, 2, 3, 4, 5, 7]] = False
    return dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, is_degenerate=is_degenerate))


def test_a_candidate_that_cannot_choose_is_left_out():
    bank = degenerate_bank()
    with pytest.raises(ParameterError, match="n_items must be from 3"):
        select(bank, 12, method=VOptimal())
    found = chosen_from(bank)
    assert found.n_items == 12
    assert found.method in {"anchor-latent", "stratified"}
    assert "v-optimal" not in found.explanation
    assert "anchor-latent" in found.explanation
    assert "stratified" in found.explanation


def test_where_no_candidate_can_choose_the_last_error_is_raised(monkeypatch):
    bank = degenerate_bank()
    with pytest.raises(ParameterError, match=r"to 36 \(all that can be chosen\), got 37"):
        chosen_from(bank, n_items=37)
    monkeypatch.setattr(auto_module, "CANDIDATES", CANDIDATES[:1])
    with pytest.raises(ParameterError, match=r"to 7 \(all that can be chosen\), got 12"):
        chosen_from(bank)


def test_few_models_fall_back_on_strata():
    bank = small_bank(n_models=9)
    found = chosen_from(bank)
    expected = select(bank, 12, method=Stratified("proportional"), rng=5)
    assert found.item_ids == expected.item_ids
    assert (found.method, found.seed, found.recipe) == ("stratified", 5, expected.recipe)
    assert found.explanation == (
        "stratified, since 9 calibration models are too few to leave some out and compare methods."
    )


def test_a_selection_says_how_it_was_made_and_a_file_keeps_it(bank, chosen, tmp_path):
    recipe = read_recipe(chosen)
    assert recipe.spec in CANDIDATES
    assert METHODS.name_of(recipe.spec) == chosen.method
    assert select(bank, recipe.n_items, method=recipe.spec, rng=chosen.seed).item_ids == chosen.item_ids
    chosen.save(tmp_path / "selection.json")
    read = Selection.load(tmp_path / "selection.json")
    for name in ("item_ids", "method", "bank", "seed", "explanation"):
        assert getattr(read, name) == getattr(chosen, name)
    assert read_recipe(read) == recipe
    assert chosen.explanation
    np.testing.assert_array_equal(read.weights, chosen.weights)


@pytest.mark.parametrize("spec", CANDIDATES, ids=METHODS.label)
def test_estimates_use_the_work_that_the_choice_has_done(spec, monkeypatch):
    bank = small_bank(n_models=14, n_items=36)
    monkeypatch.setattr(auto_module, "CANDIDATES", (spec,))
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
    assert sum(name.startswith("out-of-fold-") for name in kept) == len(CANDIDATES)
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


def test_progress_tells_of_the_fits_and_then_of_each_candidate():
    told = []
    chosen_from(small_bank(n_models=14, n_items=36), progress=lambda text, share: told.append((text, share)))
    texts, shares = zip(*told, strict=True)
    n_after = len(CANDIDATES) + 1
    assert texts[-n_after:] == (*[f"trying {METHODS.label(spec)}" for spec in CANDIDATES], "trying methods")
    np.testing.assert_allclose(shares[-n_after:], np.linspace(0.7, 1.0, n_after))
    assert all(text.startswith("fitting without") for text in texts[:-n_after])
    assert min(shares) == pytest.approx(0.7 / 4)  # the first of four fits
    assert max(shares[:-n_after]) <= 0.7


def test_candidates_that_are_named_exist():
    assert CANDIDATES[0] == VOptimal()
    assert AnchorLatent(allow_degenerate=True) in CANDIDATES
