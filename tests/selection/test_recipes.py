import dataclasses
import json

import pytest

from itembank.bank.selections import Selection
from itembank.selection.recipes import Recipe, n_items_asked, read_recipe
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS, AnchorIRT, OptimalDesign, Stratified, VOptimal
from tests.bank.banks import make_bank

SPECS = [
    *(METHODS.kinds[name]() for name in METHODS.builtin_names),
    VOptimal(target={"overall": 1.0, "law": 0.5}, n_factors=3, allocation="equal", discrepancy=0.1),
    VOptimal(target="math", minimum_per_scenario=0),
    AnchorIRT(n_restarts=2, standardise=False, allow_degenerate=True),
    Stratified("proportional"),
    OptimalDesign("d-optimal", per_cost=True, cost="output_tokens", at_least={"law": 3}, at_most=5, randomesque=2),
    OptimalDesign(target="math", input_weight=0.1, at_least=0, randomesque=3),
]


@pytest.fixture(scope="module")
def bank():
    return make_bank(with_extras=True)


def through_json(selection):
    return Selection.from_dict(json.loads(json.dumps(selection.to_dict())))


@pytest.mark.parametrize("spec", SPECS, ids=METHODS.label)
def test_a_recipe_comes_back_from_a_file(bank, spec, tmp_path):
    chosen = select(bank, 12, method=spec, rng=7, excluded=("math/0", "law/2"))
    chosen.save(tmp_path / "s.json")
    found = read_recipe(Selection.load(tmp_path / "s.json"))
    assert found == Recipe(spec, 12, False, ("law/2", "math/0"))  # in order, whatever came
    again = select(bank, found.n_items, method=found.spec, rng=7, excluded=found.excluded)
    assert again.item_ids == chosen.item_ids


def test_the_order_of_what_is_excluded_does_not_matter_and_numbers_for_each_scenario_come_back(bank):
    names = ["math/0", "law/2", "code/1"]
    first, second = (select(bank, 12, method="v-optimal", excluded=one, rng=0) for one in (names, names[::-1]))
    assert first.to_dict() == second.to_dict()
    assert first.to_dict() == select(bank, 12, method="v-optimal", excluded=set(names), rng=0).to_dict()
    found = read_recipe(through_json(select(bank, 3, method="anchor-irt", per_scenario=True, rng=0)))
    assert (found.n_items, found.per_scenario) == (3, True)
    wanted = read_recipe(through_json(select(bank, 3, method="v-optimal", per_scenario=True, rng=0)))
    assert wanted.spec == VOptimal(allocation="equal")


@pytest.mark.parametrize("per_scenario", [False, True])
def test_the_recipe_of_a_selection_that_was_cut_asks_for_what_is_left(bank, per_scenario):
    content = select(bank, 5 if per_scenario else 15, method="anchor-irt", per_scenario=per_scenario, rng=0).to_dict()
    content["items"] = content["items"][::2]
    cut = Selection.from_dict(content)
    found = read_recipe(cut)
    assert (found.n_items, found.per_scenario) == (8, False)
    assert (n_items_asked(cut), cut.n_items) == (15, 8)
    assert n_items_asked(Selection.from_dict({**content, "recipe": None})) is None


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": None},
        {"method": "of a later release"},
        {"recipe": {"options": {"n_restarts": 5, "of_a_later_release": 1}}},
        {"recipe": {"options": {"n_restarts": 0}}},
        {"recipe": {"options": None}},
        {"recipe": {"n_items": "many"}},
        {"recipe": {"excluded": None}},
        *({"without": name} for name in ("n_items", "per_scenario", "options", "excluded")),
    ],
    ids=str,
)
def test_what_this_release_cannot_follow_is_ignored(bank, change):
    chosen = select(bank, 12, method="anchor-irt", rng=0)
    if change.get("recipe"):
        change = {"recipe": {**chosen.recipe, **change["recipe"]}}
    if "without" in change:
        change = {"recipe": {key: value for key, value in chosen.recipe.items() if key != change["without"]}}
    assert read_recipe(dataclasses.replace(chosen, **change)) is None
