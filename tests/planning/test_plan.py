import dataclasses

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

import itembank as ib
from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.living.starting import start
from itembank.planning.plan import overall_plan, plan, table_sizes
from itembank.planning.precision import USUAL_AGREEMENT, between_models, plan_models
from itembank.publishing.without_responses import without_responses
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.bank.banks import make_bank


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=30, n_items=120)


@pytest.mark.parametrize("goal", [{"half_width": 0.1}, {"half_width": 0.04}, {"difference": 0.2}])
@pytest.mark.parametrize("target", ["overall", "math"])
def test_so_many_items_reach_the_goal_and_one_less_does_not(bank, goal, target):
    made = plan(bank, target=target, **goal)
    (name, value), measure = *goal.items(), "half_width" if "half_width" in goal else "detectable_difference"
    assert 10 < made.n_items < 120
    assert getattr(made.at, measure) <= value
    one_less = plan(bank, target=target, max_items=made.n_items - 1)
    assert getattr(one_less.table[-1], measure) > value
    assert (made.goal, made.goal_value, made.reached) == (name, value, True)
    assert f"{made.n_items} of 120 items are enough" in made.message
    assert made.to_dict()["n_items"] == made.n_items == made.at.n_items


def test_precision_grows_with_items_down_to_no_error_at_all(bank):
    made = plan(bank)
    assert [one.n_items for one in made.table] == [10, 20, 30, 50, 120]
    halves, apart = ([getattr(one, name) for one in made.table] for name in ("half_width", "detectable_difference"))
    assert np.all(np.diff(halves) < 0.0)
    assert np.all(np.diff(apart) < 0.0)
    assert (halves[-1], apart[-1]) == (0.0, 0.0)
    assert (made.n_items, made.at, made.reached, made.message, made.notes) == (None, None, None, "", ())
    assert made.near(100).n_items == 50
    assert table_sizes(1000) == [10, 20, 30, 50, 100, 200, 300, 500, 1000]
    assert table_sizes(240) == [10, 20, 30, 50, 100, 240]
    assert table_sizes(7) == [7]


def test_harder_goals_take_more_items(bank):
    easy, hard = (plan(bank, difference=delta).n_items for delta in (0.3, 0.15))
    assert easy < hard
    assert plan(bank, difference=0.3, power=0.95).n_items > easy
    assert plan(bank, half_width=0.1, level=0.99).n_items > plan(bank, half_width=0.1).n_items
    assert plan(bank, half_width=0.1, target="math").n_items > plan(bank, half_width=0.1).n_items


def test_a_limit_that_does_not_do_is_said(bank):
    made = plan(bank, half_width=0.05, max_items=25)
    enough = plan(bank, half_width=0.05).n_items
    assert (made.reached, made.n_items, made.at.n_items) == (False, None, 25)
    assert made.table[-1] == made.at
    assert made.at.half_width > 0.05
    assert "25 items are too few" in made.message
    assert f"{enough} of 120 items would be enough" in made.message
    assert [one.n_items for one in plan(bank, max_items=4).table] == [4]
    assert plan(bank, half_width=1e-6).message.startswith("Only all 120 items are enough for a half-width of 1e-06")
    assert "Only all 120 items are enough" in plan(bank, half_width=1e-6, max_items=20).message


def test_costs_are_those_that_a_draw_will_have():
    bank = make_bank(n_models=20, n_items=60)
    costs = {"output_tokens": np.broadcast_to(np.linspace(1.0, 9.0, 60), (20, 60)).copy()}
    responses = ResponseMatrix.create(
        bank.responses.responses, models=bank.responses.models, items=bank.responses.items, costs=costs
    )
    bank = dataclasses.replace(bank, responses=responses)
    found = [
        costs["output_tokens"][0, bank.responses.item_indices(select(bank, 20, method="drawn", rng=k).item_ids)].sum()
        for k in range(200)
    ]
    row = next(row for row in plan(bank).rows() if row["n_items"] == 20)
    assert abs(np.mean(found) - row["output_tokens"]) < 4.5 * np.std(found) / np.sqrt(200)


def test_widths_and_costs_are_of_as_many_trials_as_past_models_had():
    """Costs are of a trial each; widths of items that are all tried so often."""
    bank = make_bank(n_models=20, n_items=60, seed=3)
    of_one = np.ones(bank.responses.responses.shape)
    tried = dataclasses.replace(
        bank.responses, n_trials=5 * of_one.astype(np.int64), costs={"cost_usd": of_one}, lost=None
    )
    found = plan(dataclasses.replace(bank, responses=tried), half_width=0.1)
    assert [row["cost_usd"] for row in found.rows()] == pytest.approx([5.0 * row["n_items"] for row in found.rows()])
    assert found.notes[-1].text.startswith("Widths and costs are of 5 trials an item")
    assert not plan(bank).notes


@pytest.mark.parametrize("n_models", [0, 1, 3, 6])
def test_any_number_of_past_models_will_do(bank, n_models):
    """Half-widths that are said come true within a fifth, with few past models, too."""
    past = bank.responses.take(models=np.arange(n_models)) if n_models else None
    few = ib.banks.start(bank.responses.items, past)
    new, found = bank.responses.take(models=np.arange(10, 30)), []
    for seed in range(5):
        selection = select(few, 30, method="drawn", rng=seed)
        estimates = ib.estimate(few, new, selection=selection)
        found.append(np.mean(estimates.high[:, -1] - estimates.low[:, -1]) / 2.0)
    assert plan(few).table[2].half_width == pytest.approx(np.mean(found), rel=0.2)


def test_a_bank_without_responses_plans_as_the_whole_one_unless_items_lack(bank):
    published = without_responses(bank, selections=[select(bank, 12, method="random", rng=0)])
    assert plan(published).table[2].half_width == pytest.approx(plan(bank).table[2].half_width, rel=0.05)
    bank = make_bank(n_models=12, n_dims=1)
    kept = without_responses(bank, selections=[select(bank, 12, method="random", rng=0)], only_chosen=True)
    assert overall_plan(kept) is None
    with pytest.raises(DataError, match="a plan needs all items"):
        plan(kept)


@pytest.mark.parametrize(
    ("choices", "error", "text"),
    [
        ({"half_width": 0.1, "difference": 0.1}, ParameterError, "one goal"),
        ({"half_width": 0.0}, ParameterError, "half_width"),
        ({"difference": 1.0}, ParameterError, "difference"),
        ({"target": "history"}, ParameterError, "history"),
        ({"target": "mean_win_rate"}, ParameterError, "no draw gives the score 'mean_win_rate' an interval"),
        ({"max_items": 1}, ParameterError, "max_items"),
        ({"level": 1.0}, ParameterError, "level"),
        ({"power": float("nan")}, ParameterError, "power"),
        ({"estimand": "questions"}, ParameterError, "estimand"),
        ({"estimand": "repeated"}, DataError, "repeated"),
    ],
)
def test_what_cannot_be_planned_is_refused(bank, choices, error, text):
    with pytest.raises(error, match=text):
        plan(bank, **choices)


def test_the_chance_of_the_run_stays_however_many_items_are_run(bank):
    trials = np.full(bank.responses.responses.shape, 4)
    p = probability(bank.parameters, bank.calibration.abilities)
    right = np.random.default_rng(1).binomial(trials, p)
    responses = dataclasses.replace(bank.responses, responses=right / 4.0, n_trials=trials)
    repeated = dataclasses.replace(bank, responses=responses)
    run, expected = plan(repeated).table[-1], plan(repeated, half_width=0.02, estimand="repeated")
    weights = bank.targets.target("overall").weights
    chance = np.sqrt(np.mean((p * (1.0 - p)) @ weights**2 / 4.0))
    assert run.half_width == 0.0
    last = expected.table[-1]
    assert last.half_width == pytest.approx(1.96 * chance, rel=0.1)
    assert last.detectable_difference == pytest.approx(
        (1.96 + 0.8416) / 1.96 * np.sqrt(2.0) * last.half_width, rel=1e-4
    )
    assert expected.n_items is None
    assert "chance of the run" in expected.message


def simulated(n_models: int, rng: np.random.Generator, *, agreement: float, n_items: int = 4000) -> ResponseMatrix:
    """Answers whose items are solved with chances of beta distribution: two models correlate by `agreement`."""
    count = (1.0 - agreement) / agreement
    chance = rng.beta(count / 2.0, count / 2.0, n_items)
    return ResponseMatrix.create((rng.random((n_models, n_items)) < chance).astype(float))


def test_forecasts_begin_with_what_a_plan_says():
    bank = start(pl.DataFrame({"item_id": [f"q{number}" for number in range(1000)]}))
    found = plan_models(bank, 100, more=(1,))
    now, later = found["half_width"]
    assert now == pytest.approx(plan(bank, max_items=100).table[-1].half_width)
    # one model explains the square of a correlation
    assert later == pytest.approx(now * np.sqrt(1.0 - USUAL_AGREEMENT**2))
    assert np.isnan(between_models(bank))


def test_agreement_of_models_is_found_unless_there_is_one_only(rng):
    for agreement in (0.2, 0.5):
        responses = simulated(8, rng, agreement=agreement)
        assert between_models(start(responses.items, responses)) == pytest.approx(agreement, abs=0.03)
    values = responses.responses.copy()  # of which half miss a part
    values[::2, :40] = values[1, ::3] = np.nan
    missing = start(responses.items, dataclasses.replace(responses, responses=values))
    assert between_models(missing) == pytest.approx(0.5, abs=0.03)
    responses = simulated(1, rng, agreement=0.5, n_items=50)
    assert np.isnan(between_models(start(responses.items, responses)))


def test_forecast_is_what_more_models_bring(rng):
    responses = simulated(9, rng, agreement=0.5)
    said = plan_models(start(responses.items, responses.take(models=np.arange(3))), 200, more=(5,))["half_width"]
    # what 3 and 8 past means explain of the ninth model's answers, by least squares
    for half, n_past in zip(said, (3, 8), strict=True):
        mean, last = responses.responses[:n_past].mean(axis=0), responses.responses[8]
        left = 1.0 - np.corrcoef(mean, last)[0, 1] ** 2
        sample = t.ppf(0.975, 199) * np.sqrt(0.25 / 200 * 0.95)
        assert half == pytest.approx(sample * np.sqrt(left), rel=0.05)


def test_level_and_size_are_checked():
    bank = start(pl.DataFrame({"item_id": ["a", "b"]}))
    with pytest.raises(ParameterError, match="number of items"):
        plan_models(bank, 0)
    with pytest.raises(ParameterError, match="level"):
        plan_models(bank, 1, level=1.5)
