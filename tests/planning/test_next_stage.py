"""The verb `next_stage`, the sizes of stages, and what their files say."""

import dataclasses
import json

import numpy as np
import polars as pl
import pytest

from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.comparison.compare import compare
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import IN_STAGES
from itembank.estimation.folds import folds
from itembank.planning.auto import stage_sizes
from itembank.planning.predicting import errors_of_mean
from itembank.planning.select import next_stage, select
from itembank.responses.responses import ResponseMatrix
from itembank.selection.recipes import read_recipe
from itembank.selection.select import select as select_by
from itembank.selection.selector_specs import METHODS, OptimalDesign, Stratified, VOptimal
from tests.estimation.simulated import new_models, shared_bank, small_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return shared_bank(n_models=14, n_items=36)


@pytest.fixture(scope="module")
def model(bank):
    return new_models(bank, 1)


@pytest.fixture(scope="module")
def routing(bank):
    return select(bank, 15, stages=2, rng=0)


def through_json(selection):
    return Selection.from_dict(json.loads(json.dumps(selection.to_dict())))


@pytest.mark.parametrize("sizes", [(5, 10), (5, 5, 5), (6, 6, 6), (5, 4, 4, 4), (5, 6, 5), (3, 1)], ids=str)
def test_a_third_comes_first_and_an_item_of_every_scenario(bank, sizes):
    assert stage_sizes(bank, sum(sizes), len(sizes)) == sizes


@pytest.mark.parametrize(("n_items", "stages"), [(3, 2), (4, 3), (37, 2)])
def test_too_few_or_too_many_items_are_refused(bank, n_items, stages):
    with pytest.raises(ParameterError, match=f"in {stages} stages must be from .* to 36 .*, got {n_items}"):
        stage_sizes(bank, n_items, stages)


def test_the_routing_stage_is_an_ordinary_selection_of_a_third(bank, routing, model):
    batch = select(bank, 5, method="v-optimal", rng=0)
    assert (routing.item_ids, routing.recipe) == (batch.item_ids, {**batch.recipe, "stages": [5, 10], "stage": 1})
    assert routing.to_dict()["schema_version"] == "itembank.selection/1"  # any release can run it, and estimate from it
    assert read_recipe(through_json(routing)) == read_recipe(batch)
    one, other = (estimate(bank, model, selection=selection) for selection in (routing, batch))
    np.testing.assert_array_equal(one.low, other.low)


def test_a_module_holds_what_is_to_be_run_and_what_was_answered(bank, routing, model):
    module = through_json(next_stage(bank, routing, model))
    assert (module.n_items, module.to_dict()["schema_version"]) == (10, "itembank.selection/1")
    assert not set(module.item_ids) & set(routing.item_ids)
    assert module.whole.item_ids == (*routing.item_ids, *module.item_ids)
    for scenario in bank.targets.scenarios:
        np.testing.assert_allclose(module.whole.weights[np.array(module.whole.scenarios) == scenario].sum(), 1.0)
    recipe = read_recipe(module.whole)
    assert (recipe.spec, recipe.n_items, recipe.stages) == (VOptimal(), 5, (5, 10))
    assert "new-0" in module.explanation


def test_three_stages_follow_each_other(bank, model):
    first = select(bank, 18, stages=3, method=Stratified(), rng=3)
    second = through_json(next_stage(bank, first, model))
    third = through_json(next_stage(bank, second, model))
    assert [one.whole.n_items for one in (first, second, third)] == [6, 12, 18]
    recipes = [read_recipe(one.whole) for one in (second, third)]
    assert (recipes[0].stages, recipes[1].spec) == ((6, 6), Stratified())
    assert recipes[1] == dataclasses.replace(recipes[0], stages=(6, 6, 6))
    assert (first.is_random, second.is_random) == (True, False)
    with pytest.raises(DataError, match="needs a selection that has one, got stage 3 of 3"):
        next_stage(bank, third, model)


def test_estimates_take_the_answers_of_all_stages_and_intervals_are_calibrated(bank, routing, model):
    module = next_stage(bank, routing, model)
    found = estimate(bank, model, selection=module)
    assert (found.n_items[0, -1], found.n_missing[0], found.interval_kind) == (15, 0, "calibrated")
    assert 0.0 <= found.typicality.typicality[0] <= 1.0
    # means of items that answers chose say little
    assert ("p-irt" in found.explanation, "weighted" in found.explanation) == (True, False)
    np.testing.assert_array_equal(found.low, estimate(bank, model, selection=module, method=IN_STAGES).low)


def test_a_model_is_not_asked_again_what_it_did_not_answer(bank, routing, model):
    left_out = routing.item_ids[:2]
    some = model.take(items=np.flatnonzero(~np.isin(model.item_ids, left_out)))
    with pytest.warns(DataWarning, match="2"):
        module = next_stage(bank, routing, some)
    assert not set(left_out) & set(module.item_ids)
    with pytest.warns(DataWarning, match="2"):
        assert np.isfinite(estimate(bank, some, selection=module).value).all()


def test_the_recipe_of_a_module_asks_for_what_is_left_and_excludes_the_same_items(bank, routing, model):
    content = next_stage(bank, routing, model).to_dict()
    content["items"] = content["items"][:4]
    assert read_recipe(Selection.from_dict(content).whole).stages == (5, 4)
    excluded = bank.item_ids[::4]
    routing = select(bank, 12, stages=2, excluded=excluded, rng=0)
    assert not set(excluded) & set(next_stage(bank, routing, model).whole.item_ids)


def test_one_batch_two_models_and_comparisons_have_no_next_stage(bank, model, routing):
    with pytest.raises(DataError, match=r"got one batch\. Choose the first stage with stages=2"):
        next_stage(bank, select(bank, 12, method="v-optimal"), model)
    with pytest.raises(DataError, match="the same for all models is needed, got one of a later stage"):
        compare(bank, new_models(bank, 2), selection=next_stage(bank, routing, model))
    with pytest.raises(DataError, match="one model, from its own answers, got 2 models: 'new-0', 'new-1'"):
        next_stage(bank, routing, new_models(bank, 2))


@pytest.mark.parametrize("change", [{"stage": 3}, {"stages": "x"}, {"stages": [5, 0]}, {"stage": None}])
def test_a_recipe_that_cannot_be_is_ignored(routing, change):
    assert read_recipe(dataclasses.replace(routing, recipe={**routing.recipe, **change})) is None


@pytest.fixture(scope="module")
def sixty_items():
    return small_bank(n_models=20, n_items=60)


def law(bank):
    return [item for item in bank.item_ids if item.startswith("law/")]


@pytest.mark.parametrize("method", ["auto", *METHODS.kinds])
def test_whatever_the_method_nothing_is_asked_and_the_error_is_said_beside_that_of_the_mean(sixty_items, method):
    found = select(sixty_items, 12, method=method, rng=5, predict="law")
    ((name, error, of_mean, half),) = (tuple(one.values()) for one in found.never_asked)
    assert (set(found.scenarios), name) == ({"math", "code"}, "law")
    assert 0.0 < error < half
    said = (
        f"'law' is never asked: cross-validated mean error {100.0 * error:.1f} points, by the past models' "
        f"mean alone {100.0 * of_mean:.1f}; 95 % interval about ±{100.0 * half:.1f}."
    )
    assert said in found.explanation


def test_the_items_are_for_the_scenarios_that_are_predicted(sixty_items):
    bank = sixty_items

    def check(spec, **how):
        expected = select_by(bank, 12, method=spec, excluded=law(bank), rng=0)
        assert set(select(bank, 12, predict="law", rng=0, **how).item_ids) == set(expected.item_ids)

    aimed = VOptimal({"law": 1.0}, minimum_per_scenario=0)
    check(aimed)
    check(aimed, method="v-optimal")
    check(OptimalDesign(target="law", at_least=0), method="optimal-design")
    # what a spec says of another score, and of numbers, is kept
    other = VOptimal(target="overall", minimum_per_scenario=3)
    check(other, method=other)
    assert OptimalDesign(at_least={"math": 2}).aimed_at(["law"]).at_least == {"math": 2}
    # several scores count alike
    found = select(bank, 8, predict=("law", "code"), rng=0)
    assert (set(found.scenarios), [one["target"] for one in found.never_asked]) == ({"math"}, ["law", "code"])
    both = OptimalDesign(target={"law": 1.0, "code": 1.0}, at_least=0)
    excluded = [item for item in bank.item_ids if not item.startswith("math/")]
    expected = select_by(bank, 8, method=both, excluded=excluded, rng=0)
    assert select(bank, 8, predict=["law", "code"], method="optimal-design", rng=0).item_ids == expected.item_ids


def test_the_error_of_the_mean_is_that_of_the_other_folds_models(sixty_items):
    bank = sixty_items
    truth = bank.known_scores.value
    for fold in folds(bank):
        others = np.setdiff1d(np.arange(bank.n_models), fold.held_out)
        expected = truth[others].mean(axis=0) - truth[fold.held_out]
        assert errors_of_mean(bank).error[fold.held_out] == pytest.approx(expected)
    record = select(bank, 12, predict="law", rng=0).never_asked[0]
    known = np.abs(errors_of_mean(bank).error[:, bank.targets.scenarios.index("law")])
    assert record["error_of_mean"] == pytest.approx(known.mean())


def test_answers_that_say_nothing_are_told_beforehand():
    """Answers to other scenarios have nothing in common with those to law: only the mean is known of it."""
    rng = np.random.default_rng(0)
    skill = np.repeat(rng.random((24, 2)), 20, axis=1)
    found = select(fitted((rng.random((24, 40)) < skill).astype(float), ["math", "law"]), 12, predict="law", rng=0)
    (record,) = found.never_asked
    assert record["error"] > 0.85 * record["error_of_mean"]
    assert "For 'law' the answers are not clearly better than that mean: ask some of its items." in found.explanation


def fitted(values, scenarios):
    """Calibrate items of as many scenarios, equally many of each."""
    n_each = values.shape[1] // len(scenarios)
    names = [(f"{name}/{item}", name) for name in scenarios for item in range(n_each)]
    items = pl.DataFrame(names, schema=["item_id", "scenario"], orient="row")
    return calibrate(ResponseMatrix.create(values, items=items), Variational("2pl", n_dims=1, tolerance=1e-3))


def test_an_estimate_says_what_is_predicted(sixty_items):
    bank, new = sixty_items, new_models(sixty_items)
    chosen = select(bank, 12, predict="law", rng=0)
    scores = estimate(bank, new, selection=chosen)
    at = scores.targets.index("law")
    widths = (scores.high - scores.low)[:, at] / 2.0
    assert chosen.never_asked[0]["half_width"] == pytest.approx(np.median(widths), rel=0.15)
    assert (scores.is_predicted[:, at].all(), scores.is_predicted[:, -1].any()) == (True, False)
    said = "'law': no item was answered, and the score is predicted from the other answers."
    assert scores.said_of_predicted() == said
    notes = {row["target"]: row["note"] for row in scores.rows() if row["model_id"] == "new-0"}
    assert "no item was answered" in notes["law"]
    assert "no item was answered" not in notes["overall"] + notes["math"]
    assert estimate(bank, new).said_of_predicted() == ""


def test_stages_ask_nothing_of_it_either_and_a_file_keeps_what_was_said(sixty_items, tmp_path):
    bank, new = sixty_items, new_models(sixty_items, n_models=1)
    found = select(bank, 12, predict="law", rng=0, stages=2)
    module = next_stage(bank, found, new.take(items=new.item_indices(found.item_ids)))
    assert (module.n_items, "law" in module.scenarios) == (8, False)
    assert found.never_asked[0]["error"] > 0.0
    found = select(bank, 12, predict="law", rng=0)
    found.save(tmp_path / "s.json")
    assert Selection.load(tmp_path / "s.json").never_asked == found.never_asked
    for wrong in ("law", ["law"]):
        with pytest.raises(DataError, match="never_asked must be a list of JSON objects"):
            Selection.from_dict({**found.to_dict(), "never_asked": wrong})


def test_few_past_models_cannot_say_how_well_it_predicts_and_one_scenario_needs_others():
    found = select(small_bank(n_models=9), 6, predict="law", rng=0)
    assert set(found.scenarios) == {"math", "code"}
    assert "'law': never asked, and how well it is predicted is not known, since 9 past models" in found.explanation
    assert found.never_asked == ({"target": "law", "error": None, "error_of_mean": None, "half_width": None},)
    values = (np.random.default_rng(0).random((12, 20)) < 0.5).astype(float)
    with pytest.raises(ParameterError, match="predicted from the items of others, and the bank has 1: got 'all'"):
        select(fitted(values, ["all"]), 4, predict="all")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"predict": "mathh"}, "must be scenarios of the bank, .*, got 'mathh'. Did you mean 'math'?"),
        ({"predict": ["law", "math", "code"]}, "the bank has 3: .* Leave one at least to be asked.$"),
        ({"predict": "law", "included": ["law/2", "math/0"]}, "those of 'law' never are: got 'law/2'"),
        ({"predict": "law", "method": OptimalDesign(at_least={"law": 1})}, r"at_least is above .* 'law \(1 > 0\)'"),
        ({"predict": "law", "method": "random", "n": 1}, "from 2 "),
        ({"predict": "law", "n": 41}, "to 40 "),
        ({"stages": 4}, "stages must be 1, 2 or 3, got 4"),
        ({"stages": "two"}, "stages must be 1, 2 or 3, got 'two'"),
        ({"stages": 2, "per_scenario": True}, "stages and per_scenario do not go together"),
    ],
)
def test_what_contradicts_is_refused(sixty_items, choices, message):
    with pytest.raises(ParameterError, match=message):
        select(sixty_items, **{"n": 12, "rng": 0, **choices})
