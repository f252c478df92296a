import dataclasses
import re

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.irt.bernoulli import probability
from itembank.planning.auto import compare_stages
from itembank.planning.plan import plan
from itembank.planning.plan_spec import PlanSpec
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    made = make_bank(n_models=30, n_items=120)
    return dataclasses.replace(made, calibration=dataclasses.replace(made.calibration, tolerance=1e-3))


def quick(bank, **choices):
    return plan(bank, **{"method": "weighted", "selector": "random", **choices})


def test_the_answer_reaches_the_goal_and_one_item_less_does_not(bank):
    made = quick(bank, half_width=0.1)
    assert 10 < made.n_items < 120
    assert made.answer.half_width <= 0.1
    sizes = made.table.sizes
    assert np.all(made.table.half_widths[sizes >= made.n_items] <= 0.1)
    assert np.all(made.table.half_widths[sizes < made.n_items] > 0.1)
    assert str(made.n_items) in made.message
    assert made.answer.measured == pytest.approx(0.1, rel=0.5)


def test_precision_grows_with_items_down_to_no_error_at_all(bank):
    made = quick(bank)
    assert made.table.sizes[-1] == 120
    assert np.all(np.diff(made.table.half_widths) <= 0.0)
    assert np.all(np.diff(made.table.detectable_differences) <= 0.0)
    at_all_items = (
        made.table.half_widths[-1],
        made.table.detectable_differences[-1],
        made.table.mean_absolute_errors[-1],
    )
    assert at_all_items == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    assert made.n_items is None


def test_random_samples_have_the_half_width_of_sampling_theory(bank):
    made = quick(bank)
    responses, index = bank.responses.responses, bank.targets.scenario_index
    within = np.mean([responses[:, index == j].var(axis=1, ddof=1).mean() for j in range(3)])
    for size, found in zip(made.table.sizes[:-1], made.table.half_widths[:-1], strict=True):
        expected = 2.0 * np.sqrt(within * (1.0 / size - 1.0 / 120))
        assert 0.6 * expected < found < 1.7 * expected


def test_a_harder_goal_takes_more_items(bank):
    easy, hard = (quick(bank, difference=delta).n_items for delta in (0.3, 0.15))
    assert easy < hard
    assert quick(bank, difference=0.3, spec=PlanSpec(power=0.95)).n_items > easy


def test_every_goal_reads_the_same_curve(bank):
    plain = quick(bank)
    known = dict(zip(plain.table.sizes.tolist(), plain.table.half_widths.tolist(), strict=True))
    for choices in ({"half_width": 0.1}, {"half_width": 0.2}, {"difference": 0.2}, {"max_items": 40}):
        made = quick(bank, **choices)
        found = dict(zip(made.table.sizes.tolist(), made.table.half_widths.tolist(), strict=True))
        assert {10, 20, 30} <= found.keys() & known.keys()
        assert {size: found[size] for size in found.keys() & known.keys()} == pytest.approx(
            {size: known[size] for size in found.keys() & known.keys()}, rel=1e-12
        )


@pytest.mark.parametrize("half_width", [0.06, 0.08, 0.1, 0.13])
def test_so_many_items_are_enough_only_where_a_trial_of_as_many_agrees(bank, half_width):
    made = quick(bank, half_width=half_width)
    assert made.answer.reached is True
    assert made.answer.measured <= half_width
    assert made.answer.half_width <= half_width
    assert f"a trial of that many gave {100.0 * made.answer.measured:.2f} points" in made.message
    assert made.to_dict()["reached"] is True
    assert quick(bank).to_dict()["reached"] is None


def test_a_limit_that_does_not_do_is_said(bank):
    made = quick(bank, half_width=0.05, max_items=20)
    assert made.answer.reached is False
    assert made.n_items is None
    assert made.table.sizes.max() == 20
    assert made.answer.half_width > 0.05
    assert "20 items are too few" in made.message
    assert "no trial has checked" in made.message


def test_a_scenario_is_planned_for_with_items_of_all(bank):
    made = quick(bank, target="math", half_width=0.1)
    assert made.target == "math"
    assert made.n_items > quick(bank, half_width=0.1).n_items


def test_costs_are_those_of_the_chosen_items():
    bank = make_bank(n_models=20, n_items=60)
    costs = {"output_tokens": np.broadcast_to(np.full(60, 7.0), (20, 60)).copy()}
    responses = ResponseMatrix.create(
        bank.responses.responses, models=bank.responses.models, items=bank.responses.items, costs=costs
    )
    made = quick(dataclasses.replace(bank, responses=responses))
    np.testing.assert_allclose(made.table.costs["output_tokens"], 7.0 * made.table.sizes)
    assert made.rows()[0]["output_tokens"] == pytest.approx(70.0)


def test_the_same_seed_gives_the_same_plan(bank):
    one, two, other = (quick(bank, spec=PlanSpec(seed=seed), max_items=20) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.table.half_widths, two.table.half_widths)
    assert np.any(one.table.half_widths != other.table.half_widths)


def test_the_default_method_plans_too(bank):
    # 24 of 120 items drawn at random reach 0.16, half as many as may be asked for
    made = plan(bank, half_width=0.25, max_items=60)
    assert made.answer.half_width <= 0.25
    assert made.method == "auto"


@pytest.mark.parametrize(
    ("choices", "error", "text"),
    [
        ({"half_width": 0.1, "difference": 0.1}, ParameterError, "one goal"),
        ({"half_width": 0.0}, ParameterError, "half_width"),
        ({"difference": 1.0}, ParameterError, "difference"),
        ({"target": "history"}, ParameterError, "history"),
        ({"selector": "magic"}, ParameterError, "magic"),
        ({"method": "magic"}, ParameterError, "magic"),
        ({"max_items": 2}, ParameterError, "max_items"),
    ],
)
def test_what_cannot_be_planned_is_refused(bank, choices, error, text):
    with pytest.raises(error, match=text):
        quick(bank, **choices)


@pytest.mark.parametrize("choices", [{"level": 1.0}, {"power": float("nan")}, {"seed": -1}])
def test_choices_that_cannot_be_are_refused(choices):
    with pytest.raises(ParameterError, match=next(iter(choices))):
        PlanSpec(**choices)


def test_few_calibration_models_are_refused():
    with pytest.raises(DataError, match="at least 10 past models"):
        quick(make_bank(n_models=8, n_items=30), half_width=0.1)


def test_the_chance_of_the_run_stays_however_many_items_are_run(bank):
    trials = np.full(bank.responses.responses.shape, 4)
    p = probability(bank.parameters, bank.calibration.abilities)
    right = np.random.default_rng(1).binomial(trials, p)
    responses = dataclasses.replace(bank.responses, responses=right / 4.0, n_trials=trials)
    repeated = dataclasses.replace(bank, responses=responses)
    run, expected = quick(repeated), quick(repeated, half_width=0.02, spec=PlanSpec(estimand="repeated"))
    weights = bank.targets.target("overall").weights
    chance = np.sqrt(np.mean((p * (1.0 - p)) @ weights**2 / 4.0))
    assert run.table.half_widths[-1] == 0.0
    last, difference = expected.table.half_widths[-1], expected.table.detectable_differences[-1]
    assert last == pytest.approx(1.96 * chance, rel=0.1)
    assert difference == pytest.approx((1.96 + 0.8416) / 1.96 * np.sqrt(2.0) * last, rel=1e-4)
    assert expected.n_items is None
    assert "chance of the run" in expected.message


def test_a_plan_by_default_methods_says_whether_stages_pay(bank):
    found = plan(bank, max_items=100)
    routing, drawn = select(bank, 100, stages=2, rng=0), select(bank, 100, method="stratified", rng=0)
    compared = compare_stages(bank, select(bank, 100, rng=0), routing)
    by_hand = try_methods(bank, sample_of(bank, drawn), drawn, Stacked().members).by(Stacked())
    np.testing.assert_array_equal(compare_stages(bank, drawn, routing).batch.found.error, by_hand.error)
    errors = [f"{100.0 * tried.error:.2f}" for tried in (compared.batch, compared.stages)]
    assert sorted(re.findall(r"\d+\.\d\d", found.stages_advice)) == sorted(errors)
    assert ("Two stages pay" in found.stages_advice) == compared.stages_pay
    assert found.to_dict()["stages_advice"] == found.stages_advice
    assert quick(bank, max_items=15).stages_advice == ""


def test_a_plan_begins_where_the_selector_can(monkeypatch):
    made = make_bank(n_models=20, n_items=60)
    monkeypatch.setattr("itembank.planning.plan.grid_sizes", lambda *_: np.array([2, 20, 50]))
    told = {}
    found = plan(made, selector="random", method="weighted", progress=told.__setitem__)
    assert found.table.sizes.tolist() == [3, 20, 50]
    tried = [(text, done) for text, done in told.items() if text.startswith("trying")]
    assert tried == [("trying 50 items", 0.0), ("trying 20 items", 1 / 3), ("trying 3 items", 2 / 3)]
    assert plan(made, selector="v-optimal", method="weighted").table.sizes[0] == 3
    assert plan(made, selector="v-optimal").table.sizes[0] == 2


def test_auto_is_decided_at_each_number_of_items_as_select_decides_it(monkeypatch):
    bank = make_bank(n_models=20, n_items=60)
    monkeypatch.setattr("itembank.planning.plan.grid_sizes", lambda *_: np.array([6, 40]))
    monkeypatch.setattr("itembank.planning.plan.compare_stages", lambda *_: None)
    found = plan(bank, max_items=40)
    measured = []
    for n_items in (6, 40):
        chosen = select(bank, n_items, rng=0)
        # the trial on which the intervals of `estimate` rest
        past = try_methods(bank, sample_of(bank, chosen), chosen, Stacked().members).past(Stacked()).estimates
        measured.append(past.typical_half_width(level=0.95))
    assert measured[0] > measured[1]  # so none are pooled
    np.testing.assert_allclose(found.table.half_widths, measured, rtol=1e-9)
    assert found.selector == "auto"
