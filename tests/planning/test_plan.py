import dataclasses
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t

import itembank as ib
from itembank.calibration.starting import start
from itembank.errors import DataError, ParameterError
from itembank.estimation.design_based import design_based_estimates
from itembank.irt.bernoulli import probability
from itembank.planning.plan import overall_plan, plan, table_sizes
from itembank.planning.precision import (
    USUAL_AGREEMENT,
    Prospect,
    answer_variances,
    between_models,
    draw_freedom,
    expected_half_width,
    plan_models,
)
from itembank.responses.responses import ResponseMatrix
from itembank.selection.drawn import inclusion_probabilities, shares_of_draw, systematic_sample
from itembank.selection.select import select
from itembank.selection.selector_specs import Drawn
from itembank_living.publishing.without_responses import without_responses
from tests.bank.banks import make_bank, with_family


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=30, n_items=120)


@pytest.mark.parametrize("goal", [{"half_width": 0.1}, {"half_width": 0.04}, {"difference": 0.2}])
@pytest.mark.parametrize("target", ["overall", "math"])
def test_so_many_items_reach_the_goal_and_one_less_does_not(bank, goal, target):
    made = plan(bank, target=target, **goal)
    (name, value), measure = *goal.items(), "half_width" if "half_width" in goal else "detectable_difference"
    one_less = plan(bank, target=target, max_items=made.n_items - 1)
    assert 10 < made.n_items < 120
    assert getattr(made.at, measure) <= value < getattr(one_less.table[-1], measure)
    assert (made.goal, made.goal_value, made.reached) == (name, value, True)
    assert f"{made.n_items} of 120 items are enough" in made.message
    assert made.to_dict()["n_items"] == made.n_items == made.at.n_items


def test_precision_grows_with_items_down_to_no_error_at_all(bank):
    made = plan(bank)
    assert [one.n_items for one in made.table] == [10, 20, 30, 50, 120]
    halves, apart = ([getattr(one, name) for one in made.table] for name in ("half_width", "detectable_difference"))
    assert np.all(np.diff([halves, apart]) < 0.0)
    assert (halves[-1], apart[-1]) == (0.0, 0.0)
    assert (made.n_items, made.at, made.reached, made.message, made.notes) == (None, None, None, "", ())
    assert made.near(100).n_items == 50
    for n, rest in ((1000, [100, 200, 300, 500, 1000]), (240, [100, 240])):
        assert table_sizes(n) == [10, 20, 30, 50, *rest]
    assert table_sizes(7) == [7]


def test_harder_goals_take_more_items(bank):
    easy, hard = (plan(bank, difference=delta).n_items for delta in (0.3, 0.15))
    assert easy < min(hard, plan(bank, difference=0.3, power=0.95).n_items)
    usual, *harder = (plan(bank, half_width=0.1, **one).n_items for one in ({}, {"level": 0.99}, {"target": "math"}))
    assert usual < min(harder)


def test_a_limit_that_does_not_do_is_said(bank):
    made, enough = plan(bank, half_width=0.05, max_items=25), plan(bank, half_width=0.05).n_items
    assert (made.reached, made.n_items, made.at.n_items, made.table[-1]) == (False, None, 25, made.at)
    assert made.at.half_width > 0.05
    assert "25 items are too few" in made.message
    assert f"{enough} of 120 items would be enough" in made.message
    assert [one.n_items for one in plan(bank, max_items=4).table] == [4]
    assert plan(bank, half_width=1e-6).message.startswith("Only all 120 items are enough for a half-width of 1e-06")
    assert "Only all 120 items are enough" in plan(bank, half_width=1e-6, max_items=20).message


def test_costs_are_those_that_a_draw_will_have():
    bank = make_bank(n_models=20, n_items=60)
    costs = {"output_tokens": np.broadcast_to(np.linspace(1.0, 9.0, 60), (20, 60)).copy()}
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs=costs))
    drawn = [select(bank, 20, method="drawn", rng=k).item_ids for k in range(200)]
    found = [costs["output_tokens"][0, bank.responses.item_indices(ids)].sum() for ids in drawn]
    row = next(row for row in plan(bank).rows() if row["n_items"] == 20)
    assert abs(np.mean(found) - row["output_tokens"]) < 4.5 * np.std(found) / np.sqrt(200)


def test_widths_and_costs_are_of_as_many_trials_as_past_models_had():
    """Costs are of a trial each; widths of items that are all tried so often."""
    bank = make_bank(n_models=20, n_items=60, seed=3)
    of_one = np.ones(bank.responses.responses.shape)
    tried = {"n_trials": 5 * of_one.astype(np.int64), "costs": {"cost_usd": of_one}, "lost": None}
    tried = dataclasses.replace(bank.responses, **tried)
    found = plan(dataclasses.replace(bank, responses=tried), half_width=0.1)
    assert [row["cost_usd"] for row in found.rows()] == pytest.approx([5.0 * row["n_items"] for row in found.rows()])
    assert found.notes[-1].text.startswith("Widths and costs are of 5 trials an item")
    assert not plan(bank).notes


@pytest.mark.parametrize("n_models", [0, 1, 3, 6])
def test_any_number_of_past_models_will_do(bank, n_models):
    past = bank.responses.take(models=np.arange(n_models)) if n_models else None
    few = ib.banks.start(bank.responses.items, past)
    new, found = bank.responses.take(models=np.arange(10, 30)), []
    for seed in range(5):
        estimates = ib.estimate(few, new, selection=select(few, 30, method="drawn", rng=seed))
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
    trials, p = np.full(bank.responses.responses.shape, 4), probability(bank.parameters, bank.calibration.abilities)
    right = np.random.default_rng(1).binomial(trials, p)
    responses = dataclasses.replace(bank.responses, responses=right / 4.0, n_trials=trials)
    repeated = dataclasses.replace(bank, responses=responses)
    run, expected = plan(repeated).table[-1], plan(repeated, half_width=0.02, estimand="repeated")
    chance = np.sqrt(np.mean((p * (1.0 - p)) @ bank.targets.target("overall").weights ** 2 / 4.0))
    last = expected.table[-1]
    assert (run.half_width, last.half_width) == (0.0, pytest.approx(1.96 * chance, rel=0.1))
    of_pair = (1.96 + 0.8416) / 1.96 * np.sqrt(2.0) * last.half_width
    assert last.detectable_difference == pytest.approx(of_pair, rel=1e-4)
    assert (expected.n_items, "chance of the run" in expected.message) == (None, True)


def simulated(n_models, rng, *, agreement, n_items=4000):
    """Answers whose items are solved with chances of beta distribution: two models correlate by `agreement`."""
    count = (1.0 - agreement) / agreement
    chance = rng.beta(count / 2.0, count / 2.0, n_items)
    return ResponseMatrix.create((rng.random((n_models, n_items)) < chance).astype(float))


def test_forecasts_begin_with_what_a_plan_says():
    bank = start(pl.DataFrame({"item_id": [f"q{number}" for number in range(1000)]}))
    now, later = plan_models(bank, 100, more=(1,))["half_width"]
    assert now == pytest.approx(plan(bank, max_items=100).table[-1].half_width)
    # one model explains the square of a correlation
    assert later == pytest.approx(now * np.sqrt(1.0 - USUAL_AGREEMENT**2))
    assert np.isnan(between_models(bank))
    for wrong, says in (({"n_items": 0}, "number of items"), ({"n_items": 1, "level": 1.5}, "level")):
        with pytest.raises(ParameterError, match=says):
            plan_models(bank, **wrong)


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
        left, sample = 1.0 - np.corrcoef(mean, last)[0, 1] ** 2, t.ppf(0.975, 199) * np.sqrt(0.25 / 200 * 0.95)
        assert half == pytest.approx(sample * np.sqrt(left), rel=0.05)
    alike = ResponseMatrix.create(np.repeat(responses.responses[:1], 3, axis=0))
    now, later = plan_models(start(alike.items, alike), 200, more=(5,))["half_width"]
    left = [1.0 - 0.99**2 * k / (1.0 + 0.99 * (k - 1)) for k in (3, 8)]  # never sure: a correlation of 0.99
    assert later / now == pytest.approx(np.sqrt(left[1] / left[0]))


def prospect(bank, **choices):
    return Prospect.of(bank, bank.targets.overall_weights, **choices)


def test_the_variance_is_the_mean_over_all_draws():
    """Every start of a systematic sample between two steps of its sums gives the same draw."""
    bank = make_bank(n_models=12, n_items=9)
    weights, variances = bank.targets.overall_weights, answer_variances(bank)
    shares, certain = shares_of_draw(bank, Drawn()), np.zeros(9, dtype=bool)
    pi = inclusion_probabilities(shares, bank.targets.scenario_index, 4, certain=certain)

    class Fixed:
        def random(self):
            return self.start

    generator, order = Fixed(), np.argsort(bank.targets.scenario_index, kind="stable")
    starts = np.unique([0.0, 1.0, *(np.cumsum(pi[order]) % 1.0)])
    total, often = 0.0, np.zeros(9)
    for low, high in pairwise(starts):
        generator.start = (low + high) / 2.0
        chosen = systematic_sample(pi, order, generator)
        often[chosen] += high - low
        total += (high - low) * np.sum((1.0 - pi[chosen]) * (weights / pi)[chosen] ** 2 * variances[chosen])
    np.testing.assert_allclose(often, pi, atol=1e-9)
    reach = t.ppf(0.975, draw_freedom((1.0 - pi) * (weights / pi) ** 2, pi))
    assert prospect(bank).at(4).half_width == pytest.approx(min(reach * np.sqrt(total), 0.5), rel=1e-6)


def test_equal_items_have_the_variance_of_the_textbook(bank):
    """Items alike in all make a simple random sample, of (1 - n / N) s^2 / n with n - 1 degrees of freedom."""
    shares = np.full(120, 1.0 / 120)
    equal = {"shares": shares, "weights": shares, "overall_weights": shares, "variances": np.full(120, 0.2)}
    alike = dataclasses.replace(prospect(bank), **equal, scenario_index=np.zeros(120, dtype=np.int64))
    variance, found = (1.0 - 40 / 120) * 0.2 / 40, alike.at(40)
    assert found.half_width == pytest.approx(t.ppf(0.975, 39) * np.sqrt(variance))
    reach = t.ppf(0.975, 39) + t.ppf(0.8, 39)
    assert found.detectable_difference == pytest.approx(reach * np.sqrt(2.0 * variance))
    noisy = dataclasses.replace(alike, chance=0.001).at(40)
    assert noisy.half_width == pytest.approx(np.hypot(found.half_width, norm.ppf(0.975) * np.sqrt(0.001)))


def test_answers_vary_as_they_do_when_abilities_are_known(bank):
    """Over the prior of abilities the mean of p (1 - p), by simulation; of pass rates as much less as they vary."""
    prior, rng = bank.calibration.prior, np.random.default_rng(0)
    p = probability(bank.parameters, rng.multivariate_normal(prior.mean, prior.covariance, 4000))
    np.testing.assert_allclose(answer_variances(bank), np.mean(p * (1.0 - p), axis=0), atol=0.01)
    rates = with_family(make_bank(n_models=20, n_items=30), "beta")
    assert answer_variances(rates).mean() < answer_variances(make_bank(n_models=20, n_items=30)).mean()


def test_half_widths_come_true_for_models_like_past_ones(bank):
    rng, prior = np.random.default_rng(1), bank.calibration.prior
    p = probability(bank.parameters, rng.multivariate_normal(prior.mean, prior.covariance, 40))
    new = ResponseMatrix.create((rng.random(p.shape) < p).astype(float), items=bank.responses.items)
    for n_items in (20, 50):
        found, said = [], []
        for seed in range(10):
            chosen = select(bank, n_items, method="drawn", rng=seed)
            scores = design_based_estimates(bank, new, chosen)
            found.append(np.mean(scores.high[:, -1] - scores.low[:, -1]) / 2.0)
            said.append(expected_half_width(bank, chosen, level=0.95))
        expected = prospect(bank).at(n_items).half_width
        assert expected == pytest.approx(np.mean(found), rel=0.08)
        assert expected == pytest.approx(np.mean(said), rel=0.03)


def test_two_models_on_the_same_items_differ_by_about_what_is_said(bank):
    rng, prior, errors = np.random.default_rng(2), bank.calibration.prior, []
    p = probability(bank.parameters, rng.multivariate_normal(prior.mean, prior.covariance, 40))
    responses = (rng.random(p.shape) < p).astype(float)
    new, truth = ResponseMatrix.create(responses, items=bank.responses.items), responses @ bank.targets.overall_weights
    for seed in range(40):
        found = design_based_estimates(bank, new, select(bank, 30, method="drawn", rng=seed)).value[:, -1] - truth
        errors.append(found[::2] - found[1::2])
    said = prospect(bank).at(30)
    spread = said.detectable_difference / (t.ppf(0.975, 25) + t.ppf(0.8, 25))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(spread, rel=0.1)  # 1.04 of it from 120 draws
    shares = said.half_width / said.detectable_difference
    assert shares == pytest.approx(norm.ppf(0.975) / (norm.ppf(0.975) + norm.ppf(0.8)) / np.sqrt(2.0), rel=0.02)


def test_items_chosen_without_chance_have_no_half_width_of_a_draw(bank):
    assert np.isnan(expected_half_width(bank, select(bank, 10, method="v-optimal", rng=0), level=0.95))
    assert expected_half_width(bank, select(bank, 2, method="drawn", rng=0), level=0.95) == 0.5  # of all there is
