import numpy as np
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.planning import select as select_module
from itembank.planning.auto import choose_selection
from itembank.planning.select import select
from itembank.selection.select import select as select_by
from itembank.selection.selector_specs import METHODS, VOptimal
from tests.estimation.simulated import small_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return small_bank(n_models=14, n_items=36)


def test_auto_is_the_default_and_a_spec_is_taken_as_it_is(bank):
    found = select(bank, 12, rng=5)
    expected = choose_selection(bank, 12, per_scenario=False, excluded=(), seed=5)
    assert (found.item_ids, found.method) == (expected.item_ids, "drawn")
    assert found.item_ids == select(bank, 12, method="auto", rng=5).item_ids
    assert found.explanation
    spec = VOptimal(target="math")
    assert select(bank, 12, method=spec, rng=0).recipe["options"]["target"] == "math"


@pytest.mark.parametrize("method", METHODS.builtin_names)
def test_a_method_by_name_is_that_method(bank, method):
    found, expected = (one(bank, 12, method=method, rng=5) for one in (select, select_by))
    told = found.to_dict()
    assert {**told, "explanation": ""} == expected.to_dict()
    assert bool(told["explanation"]) == (method in {"drawn", "v-optimal"})  # how wide intervals will be


def test_the_same_seed_gives_the_same_items_and_where_chance_chooses_another_others(bank):
    one, two = (select(bank, 12, rng=7) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    assert one.seed == 7
    generated, again = (select(bank, 12, rng=np.random.default_rng(7)) for _ in range(2))
    assert generated.to_dict() == again.to_dict()
    bank = small_bank(n_models=9)
    chosen = {select(bank, 12, rng=seed).item_ids for seed in range(3)}
    assert len(chosen) == 3
    made = [np.random.default_rng(seed) for seed in (1, 2)]
    assert select(bank, 12, rng=made[0]).item_ids != select(bank, 12, rng=made[1]).item_ids


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
    assert found.n_items == 12
    assert not set(bank.item_ids[:3]) & set(found.item_ids)
    assert found.explanation == "drawn. Items are excluded, so no interval rests on the draw."


def test_unknown_methods_are_refused_with_the_list(bank):
    names = ", ".join(map(repr, ["auto", *METHODS.kinds]))
    with pytest.raises(ParameterError) as caught:
        select(bank, 12, method="anchors")
    assert str(caught.value) == (f"selection method must be one of {names}, got 'anchors'. Did you mean 'anchor-irt'?")
    with pytest.raises(ParameterError, match="selection method must be one of"):
        select(bank, 12, method=7)


def test_only_auto_asks_for_the_work_of_comparing(bank, monkeypatch):
    asked = []
    monkeypatch.setattr(select_module, "choose_selection", lambda *_, **__: asked.append(1) or select_by(bank, 12))
    select(bank, 12, method="random", rng=0)
    assert asked == []
    select(bank, 12)
    assert asked == [1]


@pytest.mark.parametrize("method", ["auto", "v-optimal", "optimal-design"])
def test_fewer_items_than_scenarios_are_chosen_and_what_is_left_out_is_said(bank, method):
    n_scenarios = bank.targets.n_scenarios
    with pytest.warns(DataWarning, match=f"None of the {n_scenarios - 1} items is of.* each of the {n_scenarios}: n="):
        found = select(bank, n_scenarios - 1, method=method, rng=0)
    assert found.n_items == n_scenarios - 1
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
    assert np.all(scores.low[:, at] < scores.value[:, at])
    assert np.all(scores.high[:, at] > scores.value[:, at])


def test_methods_that_draw_from_every_scenario_say_which_can_leave_some_out(bank):
    with pytest.raises(ParameterError, match="To leave scenarios out: method='auto', 'v-optimal'"):
        select(bank, bank.targets.n_scenarios - 1, method="stratified", rng=0)
