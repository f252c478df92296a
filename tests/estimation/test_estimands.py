"""Which score is meant: variances against closed forms and simulation, and what intervals make of them."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from scipy.stats import poisson

from itembank.bank.marks import BATCH, LINKING_ERROR, batches
from itembank.calibration.build import calibrate
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimands import run_variance, widened
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import Scores
from itembank.estimation.observations import Observations, _drawn_attempts, past_runs, scores_of_past
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.estimation.simulated import held, new_models, shared_bank
from tests.living.living import measured_bank

Z = 1.959964


def attempted(bank, n_attempts, n_models=4, luck=0.0, seed=3, decided=()):
    """Responses of new models with so many attempts at each item, their rates, and abilities.

    Items of scenarios that are `decided` are solved always or never.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, bank.parameters.n_dims))
    rates = np.clip(probability(bank.parameters, theta) + luck * rng.normal(size=(n_models, bank.n_items)), 0.0, 1.0)
    is_decided = np.isin(bank.targets.scenario_index, decided)
    rates[:, is_decided] = rng.random((n_models, is_decided.sum())) < rates[:, is_decided]
    models = pl.DataFrame({"model_id": [f"new-{index}" for index in range(n_models)]})
    trials = np.broadcast_to(n_attempts, rates.shape)
    made = ResponseMatrix.from_counts(rng.binomial(trials, rates), trials, models=models, items=bank.responses.items)
    return made, rates, theta


def test_means_of_graded_attempts_do_not_tell_how_they_vary():
    """Their attempts vary less than ``y (1 - y)``, which only right and wrong ones reach."""
    bank = shared_bank()
    past, _, theta = attempted(bank, 4, n_models=bank.n_models)
    graded = dataclasses.replace(past, responses=np.where(past.responses == 0.5, 0.6, past.responses))
    tried = [dataclasses.replace(bank, responses=one) for one in (past, graded)]
    of_past = dataclasses.replace(graded, n_trials=np.ones_like(past.n_trials))
    found = [run_variance(tried[0], one, theta) for one in (graded, of_past)]
    np.testing.assert_allclose(4.0 * found[0], found[1])  # by past models, at a quarter of the chance of one attempt
    with pytest.raises(DataError, match="means of graded ones"):
        run_variance(tried[1], graded, theta)
    of_run = Observations.of_items(past.responses, np.arange(bank.n_items), bank.targets.weights, is_random=True)
    of_run = dataclasses.replace(of_run, n_trials=np.full(past.responses.shape, 2.0))
    parameters = dataclasses.replace(bank.parameters, family="binomial")
    calibration = dataclasses.replace(bank.calibration, parameters=parameters)
    fewer = [of_run.fewer_attempts(dataclasses.replace(one, calibration=calibration)) for one in tried]
    assert fewer == [2.0, None]


@pytest.mark.parametrize("more", [0, 5])  # attempts at every other item, or at one scenario
@pytest.mark.parametrize("is_of_scenario", [False, True])
def test_the_variance_of_a_run_is_unbiased_whatever_luck_models_have(more, is_of_scenario):
    bank, found, of_runs = shared_bank(), [], []
    is_more = bank.targets.scenario_index == 0 if is_of_scenario else np.arange(bank.n_items) % 2 == 0
    trials = np.where(is_more, 3 + more, 2 if more else 3)
    weights = np.array([bank.targets.target(name).weights for name in bank.targets.names])
    for seed in range(150):
        answers, rates, theta = attempted(bank, trials, n_models=20, luck=0.3, seed=seed)
        found.append(run_variance(bank, answers, theta))
        of_runs.append(rates * (1.0 - rates) / trials @ weights.T**2)
    found, of_runs = np.mean(found, axis=(0, 1)), np.mean(of_runs, axis=(0, 1))
    np.testing.assert_allclose(found, of_runs, rtol=0.1)
    assert found[-1] == pytest.approx(of_runs[-1], rel=0.05)


@pytest.mark.parametrize("successes", [0.0, 0.5, 2.0, 4.0])  # in all attempts, on average
def test_the_expected_score_of_rare_successes_is_held(successes):
    """Over the Poisson distribution of successes, where a width of zero would hold nothing of the first 0.6."""
    bank, n_attempts, counts = shared_bank(), 1000, np.arange(15)
    right = (np.arange(bank.n_items) < counts[:, None]).astype(np.int64)
    answers = ResponseMatrix.from_counts(right, np.full(right.shape, n_attempts), items=bank.responses.items)
    variance = run_variance(bank, answers, np.full((counts.size, bank.parameters.n_dims), -1.0))[:, -1]
    weights = bank.targets.target("overall").weights
    off = answers.responses @ weights - successes / n_attempts * weights.mean()
    assert poisson.pmf(counts, successes) @ (np.abs(off) <= Z * np.sqrt(variance)) > 0.93


def test_intervals_of_full_runs_hold_the_expected_score():
    bank, inside = shared_bank(), []
    for seed in range(40):
        answers, rates, _ = attempted(bank, 4, n_models=20, luck=0.2, seed=seed)
        found = estimate(bank, answers, interval="model-based", estimand="repeated", method="weighted")
        inside.append(held(found, (rates @ bank.targets.target("overall").weights)[:, None])[:, -1])
    assert 0.93 < np.mean(inside) < 0.97  # 800 models: a standard error of 0.008


def test_other_estimands_and_expected_scores_without_repeated_attempts_are_refused():
    for estimand, error, says in (
        ("repeated", DataError, "repeated attempts at 20 items"),
        ("always", ParameterError, "estimand must be"),
    ):
        with pytest.raises(error, match=says):
            estimate(shared_bank(), new_models(shared_bank()), estimand=estimand, interval="model-based")


def test_calibration_models_tell_how_answers_vary_where_new_ones_cannot():
    bank = shared_bank()
    trials = np.full(bank.responses.responses.shape, 4)
    right = np.random.default_rng(1).binomial(trials, probability(bank.parameters, bank.calibration.abilities))
    bank = dataclasses.replace(
        bank, responses=dataclasses.replace(bank.responses, responses=right / 4.0, n_trials=trials)
    )
    answers, theta = new_models(bank), np.zeros((6, bank.parameters.n_dims))
    p = probability(bank.parameters, theta)[0]
    expected = (p * (1.0 - p)) @ bank.targets.target("overall").weights ** 2
    # attempts were drawn from the item model: the ratio is near one
    assert run_variance(bank, answers, theta)[0, -1] == pytest.approx(expected, rel=0.25)


# attempts of each new model, who leans on its other scenarios, or of many past ones
@pytest.mark.parametrize(("is_own", "at_most"), [(True, 0.75), (False, 0.1)])
def test_scenarios_may_vary_unlike_each_other_from_run_to_run(is_own, at_most):
    bank, of_runs, found = shared_bank(), [], []
    weights = np.array([bank.targets.target(name).weights for name in bank.targets.names])
    for seed in range(20):
        past, _, theta = attempted(bank, 4, n_models=bank.n_models, luck=0.2, seed=100 + seed, decided=(0,))
        tried = dataclasses.replace(
            bank,
            responses=dataclasses.replace(past, models=bank.responses.models),
            calibration=dataclasses.replace(bank.calibration, abilities=theta),
        )
        attempts = 6 if is_own else 1
        answers, rates, theta = attempted(bank, attempts, n_models=40, luck=0.2, seed=seed, decided=(0,))
        found.append(np.mean(run_variance(tried, answers, theta), axis=0))
        of_runs.append(np.mean(rates * (1.0 - rates) / attempts @ weights.T**2, axis=0))
    found, of_runs = np.mean(found, axis=0), np.mean(of_runs, axis=0)
    assert of_runs[0] == 0.0
    assert found[0] < at_most * found[1:-1].max()
    np.testing.assert_allclose(found[1:], of_runs[1:], rtol=0.2)


def test_an_interval_takes_in_the_variance_on_either_side():
    scores = Scores(*(np.array([[value]]) for value in (0.5, 0.02, 0.47, 0.54)))
    _, error, low, high = np.array(widened(scores, np.array([[0.01**2]]), level=0.95))[:, 0, 0]
    assert (low, high) == pytest.approx((0.5 - np.hypot(0.03, Z * 0.01), 0.5 + np.hypot(0.04, Z * 0.01)), abs=1e-7)
    assert error == pytest.approx(np.hypot(0.02, 0.01))
    at_the_edge = widened(Scores(*(np.array([[1.0]]) for _ in range(4))), np.array([[0.1]]), level=0.95)
    assert at_the_edge.high[0, 0] == 1.0


def test_attempts_are_drawn_without_putting_back():
    responses, trials = np.full((1, 4000), 0.3), np.full((1, 4000), 10.0)
    kept, drawn = _drawn_attempts(responses, trials, 4.0)
    assert np.all(drawn == 4.0)
    assert kept.mean() == pytest.approx(0.3, abs=0.015)  # standard error 0.003
    # variance of a hypergeometric share: p (1 - p) / m (n - m) / (n - 1)
    assert kept.var() == pytest.approx(0.21 / 4.0 * 6.0 / 9.0, rel=0.1)
    whole, same = _drawn_attempts(np.array([[0.3, np.nan]]), np.array([[10.0, 0.0]]), 12.0)
    np.testing.assert_allclose(whole, [[0.3, np.nan]])
    np.testing.assert_allclose(same, [[10.0, 0.0]])


def test_past_models_are_tried_by_the_scores_of_runs_like_the_new_models(rng):
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=120) - rng.normal(size=(44, 1))))
    past, new = rng.binomial(32, chance[:24]) / 32, rng.binomial(1, chance[24:])
    past[0, 3] = np.nan
    scenarios, trials = ["one", "two"] * 60, np.where(np.isnan(past), 0, 32)
    bank = calibrate(ResponseMatrix.create(past, scenarios=scenarios, n_trials=trials))
    runs, n_trials = past_runs(bank, 1.0)
    assert np.isin(runs[~np.isnan(runs)], (0.0, 1.0)).all()
    np.testing.assert_array_equal(n_trials, trials > 0)
    known = bank.targets.with_overall(bank.targets.scenario_means(runs))
    np.testing.assert_allclose(scores_of_past(bank, 1.0)[1:], known[1:])
    np.testing.assert_array_equal(scores_of_past(bank, None), bank.known_scores.value)
    # half of a run is known, and the other half varies from run to run
    selection = select(bank, 60, method="v-optimal", rng=0)
    given = ResponseMatrix.create(new, scenarios=scenarios, n_trials=np.ones(new.shape, dtype=int))
    found = estimate(bank, given.take(items=given.item_indices(selection.item_ids)), selection)
    width, spread = np.mean(found.high - found.low, axis=0)[-1], np.sqrt(np.mean(chance * (1.0 - chance)) * 60) / 120
    assert 3.92 * spread < width < 9.0 * spread


def with_links(bank, n_first, n_second):
    versions, errors = (
        [*[first] * n_first, *[second] * n_second, *[None] * (bank.n_items - n_first - n_second)]
        for first, second in (("1.1.0", "1.2.0"), (0.02, 0.03))
    )
    batch, error = pl.Series(BATCH, versions, dtype=pl.String), pl.Series(LINKING_ERROR, errors, dtype=pl.Float64)
    items = bank.responses.items.with_columns(batch, error)
    return dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=items))


def estimated(bank, answered, interval="model-based"):
    ids = [bank.item_ids[k] for k in answered]
    answers = np.random.default_rng(1).integers(0, 2, (2, len(ids))).astype(float)
    return estimate(bank, ResponseMatrix.create(answers, item_ids=ids), method="p-irt", interval=interval)


def test_the_variance_of_links_is_that_of_the_items_not_answered():
    bank, answered = measured_bank(n_dims=1), np.arange(3, 30, 2)
    plain, linked = estimated(bank, answered), estimated(with_links(bank, 6, 9), answered)
    np.testing.assert_array_equal(plain.value, linked.value)
    # of 30 items, every third in each of three scenarios that count alike: unanswered are 0, 1, 2 and 4; 6, 8, ..., 14
    added = (linked.standard_error**2 - plain.standard_error**2)[:, -1]
    np.testing.assert_allclose(added, (0.02 * 4 / 30) ** 2 + (0.03 * 5 / 30) ** 2)
    assert (linked.high - linked.low >= plain.high - plain.low).all()
    full = estimated(with_links(bank, 6, 9), np.arange(30))
    np.testing.assert_array_equal(full.standard_error, estimated(bank, np.arange(30)).standard_error)


def test_batches_are_told_by_their_version_and_one_column_alone_says_nothing():
    items = with_links(measured_bank(n_dims=1), 6, 9).responses.items
    assert [(int(members.sum()), error) for members, error in batches(items)] == [(6, 0.02), (9, 0.03)]
    unknown = items.with_columns(pl.lit(None, dtype=pl.Float64).alias(LINKING_ERROR))
    for rest in (unknown, items.drop(BATCH), items.drop(LINKING_ERROR), items.drop(BATCH, LINKING_ERROR)):
        assert list(batches(rest)) == []
