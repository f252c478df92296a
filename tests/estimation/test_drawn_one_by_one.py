"""Estimates of items drawn one by one: exact by enumeration of all draws, and right by simulation at every stop."""

import dataclasses
import itertools
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata, t

import itembank as ib
import itembank_studies
from itembank.bank.norms import fitted_factor_model
from itembank.calibration.build import calibrate
from itembank.estimation.asked import Asked
from itembank.estimation.difference_estimator import composite
from itembank.estimation.drawn_one_by_one import (
    FEWEST,
    FLAT,
    MANY_RARER,
    DrawnDesign,
    _single_estimates,
    certainty_at_any_stop,
    draw,
    reach_at_any_stop,
    scores_of_draws,
)
from itembank.estimation.drawn_predictions import (
    FACTORS,
    LEAST_CHANCE,
    _models_of_folds,
    _of_outcomes,
    factors_of,
    means_elsewhere,
    predicted_answers,
    truncated,
)
from itembank.estimation.observations import Observations, fewer_than_past, found_items
from itembank.estimation.point_methods import Known
from itembank.estimation.response_summary import score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import FactorModel, fit_factor_model
from itembank.numerics.intervals import binary_variance, wilson_ends
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.bank.banks import make_bank, with_family
from tests.estimation.simulated import held, with_a_small_scenario


def design_of(model, group, *, apart=np.nan):
    """Arrange a factor model for the mean of scenario means."""
    n = int(group.max()) + 1
    of_scenarios = np.stack([(group == one) / np.sum(group == one) for one in range(n)], axis=1)
    weights = np.column_stack([of_scenarios, of_scenarios.mean(axis=1)])
    return DrawnDesign(model, weights, n, group, np.arange(group.size), np.full(n, apart), np.ones(n), 60)


def small_design(rng, n_items=5):
    model = FactorModel(rng.random(n_items), rng.normal(0.0, 0.4, (n_items, 2)), rng.uniform(0.05, 0.3, n_items))
    return design_of(model, np.arange(n_items) % 2)


def drawn_so(design, answers, order):
    """Draw these items in this order; the draws, and the probability of it all."""
    is_open, draws, probability = np.ones(answers.size, dtype=bool), [], 1.0
    for item in order:
        known = np.flatnonzero(~is_open)
        draws.append(design.drawn(item, is_open, ~is_open, *design.predicted(known, answers[known])))
        probability *= draws[-1].probability
        is_open[item] = False
    return draws, probability


def session_of(design, answers, n, rng):
    """Draw n items by chance, and yield the draws and answers so far after each."""
    is_open, draws, known = design.wanted_weights > 0.0, [], np.full(answers.size, np.nan)
    for _ in range(n):
        items = np.flatnonzero(~np.isnan(known))
        expected, variances = design.predicted(items, known[items])
        item = draw(design.chances(is_open, variances), design.order, rng)
        draws.append(design.drawn(item, is_open, ~is_open, expected, variances))
        is_open[item] = False
        known[item] = answers[item]
        yield draws, known


def test_each_draw_is_right_on_average_over_all_draws_whatever_was_predicted(rng):
    design, answers = small_design(rng), np.array([1.0, 0.0, 1.0, 1.0, 0.3])
    mean, total = np.zeros((3, 3)), 0.0
    for order in itertools.permutations(range(5), 3):
        draws, probability = drawn_so(design, answers, order)
        mean += probability * _single_estimates(design, draws, answers)[0]
        total += probability
    assert total == pytest.approx(1.0)
    np.testing.assert_allclose(mean, np.tile(answers @ design.weights, (3, 1)), rtol=1e-12)


def test_what_is_predicted_is_the_conditional_mean_with_what_is_not_known_of_it(rng):
    design, items, answers = small_design(rng, n_items=40), np.array([1, 3, 8]), np.array([1.0, 0.0, 1.0])
    mean, loadings, noise = design.factors.mean, design.factors.loadings, design.factors.noise
    shared = loadings @ loadings.T
    gain = np.linalg.solve((shared + np.diag(noise))[np.ix_(items, items)], shared[items]).T
    expected, variances = design.predicted(items, answers)
    np.testing.assert_allclose(expected, np.clip(mean + gain @ (answers - mean[items]), 0.005, 0.995))
    left = np.diag(shared - gain @ shared[items])
    np.testing.assert_allclose(variances, (noise + expected * (1.0 - expected)) / 2.0 + left)


def test_the_expected_variance_is_that_of_a_draw_if_residuals_are_as_large_as_expected(rng):
    """``sum w^2 s^2 (1 / p - 1)`` is the variance of ``w r / p`` with independent r of mean 0 and variance s^2."""
    design, is_open = small_design(rng), np.array([True, True, False, True, True])
    expected, variances = design.predicted(np.array([2]), np.array([1.0]))
    found = design.drawn(0, is_open, ~is_open, expected, variances)
    p, w = design.chances(is_open, variances), design.wanted_weights
    second = np.sum(w[is_open] ** 2 * variances[is_open] / p[is_open])
    assert found.variances[-1] == pytest.approx(second - np.sum(w[is_open] ** 2 * variances[is_open]))
    assert found.squares[-1] == pytest.approx(np.sum(w[is_open] ** 2 * (1.0 / p[is_open] - 1.0)))


def test_chances_follow_weights_and_what_is_unsure_and_items_come_so_often(rng):
    design, is_open = small_design(rng), np.array([True, False, True, True, True])
    variances = design.predicted(np.array([1]), np.array([0.0]))[1]
    chances, weights = design.chances(is_open, variances), np.where(is_open, design.wanted_weights, 0.0)
    aimed = weights * np.sqrt(variances)
    np.testing.assert_allclose(chances, (1.0 - FLAT) * aimed / aimed.sum() + FLAT * weights / weights.sum())
    counts = np.bincount([draw(chances, rng.permutation(5), rng) for _ in range(4000)], minlength=5)
    assert counts[1] == 0
    assert np.all(np.abs(counts / 4000 - chances) <= 4.5 * np.sqrt(chances * (1.0 - chances) / 4000))


def test_with_everything_answered_scores_are_the_score_itself_and_without_any_answer_all_is_possible(rng):
    design, answers = small_design(rng), np.array([1.0, 0.0, 1.0, 0.0, 0.5])
    draws, _ = drawn_so(design, answers, (3, 0, 4, 1, 2))
    found = scores_of_draws(design, draws, answers, level=0.95)
    np.testing.assert_allclose(np.array(found)[[0, 2, 3], 0], [answers @ design.weights] * 3, atol=1e-12)
    nothing, found = np.zeros(0), scores_of_draws(design, [], np.full(5, np.nan), level=0.95)
    np.testing.assert_allclose(found.value[0], design.predicted(nothing.astype(int), nothing)[0] @ design.weights)
    for one, expected in ((found.standard_error, 0.5), (found.low, 0.0), (found.high, 1.0)):
        np.testing.assert_allclose(one, expected)


def test_what_is_predicted_of_a_scenario_is_put_right_by_what_is_off_in_the_other(rng, monkeypatch):
    design, known = replace(small_design(rng, n_items=30), apart=np.array([0.01, 0.02])), np.full(30, np.nan)
    found, plain = [], composite
    known[:8] = rng.integers(0, 2, 8)
    watched = "itembank.estimation.drawn_one_by_one.composite"
    monkeypatch.setattr(watched, lambda *about, **beside: found.extend(about) or plain(*about, **beside))
    scores_of_draws(design, drawn_so(design, known, range(8))[0], known, level=0.95)
    ((synthetic,), (direct,), _, apart, given), seen = found, ~np.isnan(known)
    plain = np.where(seen, known, design.predicted(np.arange(8), known[:8])[0]) @ design.weights[:, :2]
    left = ~seen @ design.weights[:, :2]
    np.testing.assert_allclose(given.unseen_weight[0], left)
    np.testing.assert_allclose(apart, design.apart * 60 / 8)  # from fewer answers than past models were tried with
    np.testing.assert_allclose(synthetic, plain + left * ((direct - plain) / left)[::-1])


@pytest.mark.parametrize("n_items", [1, 2, 3])
@pytest.mark.parametrize("at_any_stop", [False, True])
def test_banks_of_few_items_end_with_their_score(rng, n_items, at_any_stop):
    model = FactorModel(rng.random(n_items), np.zeros((n_items, 0)), np.full(n_items, 0.2))
    design = design_of(model, np.zeros(n_items, dtype=np.int64))
    for draws, known in session_of(design, np.ones(n_items), n_items, rng):
        found = scores_of_draws(design, draws, known, level=0.95, at_any_stop=at_any_stop)
        assert np.all((found.low <= found.value) & (found.value <= found.high))
    np.testing.assert_allclose(np.stack([found.low, found.value, found.high]), 1.0)


def test_a_draw_without_answer_is_left_out_and_others_speak_for_its_item(rng):
    design, answers = small_design(rng), np.array([1.0, 0.0, np.nan, 0.0, 1.0])
    draws, _ = drawn_so(design, np.nan_to_num(answers), (2, 0, 3))
    kept = [one for one in draws if one.item != 2]
    found, variances, _ = _single_estimates(design, kept, answers)
    w = design.wanted_weights
    for row, one in enumerate(kept):
        scale, by_hand = 1.0 + w[2] / one.open_weight, one.rest[-1] + w[2] * one.closed_expected[one.closed == 2][0]
        by_hand += sum(w[item] * answers[item] for item in one.closed if item != 2)
        by_hand += scale * w[one.item] * (answers[one.item] - one.expected) / one.probability
        assert found[row, -1] == pytest.approx(by_hand)
        assert variances[row, -1] == pytest.approx(scale**2 * one.variances[-1])
    both = (scores_of_draws(design, some, answers, level=0.95) for some in (draws, kept))
    np.testing.assert_array_equal(*(np.concatenate(one) for one in both))


@pytest.mark.parametrize("n_wrong", [0, 1, 3, 8])
def test_intervals_near_the_ends_are_wilsons_and_elsewhere_students(n_wrong):
    """Of 40 right and wrong answers to equal items; for few wrong ones between both."""
    design = design_of(FactorModel(np.full(2000, 0.5), np.zeros((2000, 0)), np.full(2000, 0.25)), np.zeros(2000, int))
    answers = np.full(2000, np.nan)
    answers[:40] = np.arange(40) >= n_wrong
    found = scores_of_draws(design, drawn_so(design, answers, range(40))[0], answers, level=0.95)
    value, half = found.value[0], t.ppf(0.975, 39) * found.standard_error[0]
    unit = (n_wrong * value * (1.0 - value) + binary_variance(value, 40)) / (n_wrong + 1.0)
    low, high = wilson_ends(value, half**2 / unit)
    near, share = (low, high if n_wrong else 1.0), max(1.0 - n_wrong / MANY_RARER, 0.0)
    low, high = (share * one + (1.0 - share) * two for one, two in zip(near, (value - half, value + half), strict=True))
    np.testing.assert_allclose(found.low[0], low, atol=1e-4)
    np.testing.assert_allclose(found.high[0], np.minimum(high, 1.0 - n_wrong / 2000), atol=1e-4)
    if n_wrong == 8:
        np.testing.assert_allclose(found.standard_error, np.sqrt(0.2 * 0.8 / 39 * 0.98), rtol=0.05)


@pytest.mark.parametrize("lost", [[], [60], [60, 62, 63, 64, 65], range(60, 66)])
def test_scenarios_of_which_few_items_are_open_or_lost_are_covered(lost):
    answers, scenarios = with_a_small_scenario()
    bank = ib.calibrate(ib.ResponseMatrix.create(answers[:30], scenarios=scenarios))
    truth = bank.targets.with_overall(bank.targets.scenario_means(answers[30:]))
    answers[:, list(lost)] = np.nan
    new = ib.ResponseMatrix.create(answers[30:], scenarios=scenarios)
    spec, covered = ib.SessionSpec(criterion="drawn", budget=ib.Budget(n_items=20)), []
    for seed in range(4):
        found = itembank_studies.replay(bank, new, replace(spec, seed=seed)).estimates
        covered.append(held(found, truth, 1e-9))
        np.testing.assert_allclose(found.value[:, :2].mean(axis=1), found.value[:, 2])
    assert np.all(np.mean(covered, axis=(0, 1)) > 0.85)


def test_a_reach_at_any_stop_is_crossed_as_rarely_as_it_says(rng):
    """Sums of independent normal numbers, looked at after each of 2000."""
    n = np.arange(1, 2001)
    reach = np.array([reach_at_any_stop(0.9, float(k)) for k in n.tolist()])
    sums = np.cumsum(rng.normal(size=(4000, n.size)), axis=1)
    assert 0.04 < np.mean(np.any(np.abs(sums) / np.sqrt(n) > reach, axis=1)) < 0.1
    assert reach[200] < 2.9
    assert certainty_at_any_stop(reach[200], 201.0) == pytest.approx(0.95)
    assert certainty_at_any_stop(0.1, 20.0) == 0.5


def world(rng, n_past, n_items, n_scenarios):
    """Past models of a two-dimensional item model, and chances of success of four kinds of new ones."""
    group = np.sort(rng.integers(0, n_scenarios, n_items))
    group[:n_scenarios] = np.arange(n_scenarios)
    group = np.sort(group)
    loadings = np.column_stack([np.abs(rng.normal(1.0, 0.4, n_items)), rng.normal(0.0, 0.5, n_items)])
    intercept = rng.normal(0.0, 1.5, n_items) + rng.normal(0.0, 0.5, n_scenarios)[group]

    def chances(theta, own=intercept):
        return 1.0 / (1.0 + np.exp(-(theta @ loadings.T + own)))

    past = (rng.random((n_past, n_items)) < chances(rng.normal(size=(n_past, 2)))).astype(float)
    model = fit_factor_model(past, n_factors=max(1, min(3, n_past // 4)))
    apart = float(np.var(past @ np.stack([group == one for one in range(n_scenarios)], axis=1) / n_items * n_scenarios))
    new, far = rng.normal(size=(12, 2)), np.array([2.5, 0.0])
    kinds = {"like": chances(new), "better": chances(0.3 * new + far), "worse": chances(0.3 * new - far)}
    kinds["another kind"] = chances(new, rng.permutation(intercept))
    answers = {kind: (rng.random(p.shape) < p).astype(float) for kind, p in kinds.items()}
    return design_of(model, group, apart=min(apart, 0.02)), answers


def coverage(rng, n_worlds, n_most):
    """Shares of sessions whose interval covers: at fixed sizes, at half-widths, and when a question is settled."""
    covered, wrong = defaultdict(list), []
    for number in range(n_worlds):
        design, by_kind = world(rng, *((40, 300, 3), (100, 400, 1), (15, 250, 5))[number % 3])
        for kind, some in by_kind.items():
            for answers in some:
                truth, waiting = answers @ design.weights, [0.1, 0.08, 0.06]
                threshold, is_settled = truth[-1] + rng.choice([-1.0, 1.0]) * rng.uniform(0.0, 0.15), False
                for n, (draws, known) in enumerate(session_of(design, answers, n_most, rng), start=1):
                    if n < FEWEST:
                        continue
                    found = scores_of_draws(design, draws, known, level=0.95)
                    is_in, half = held(found, truth, 1e-9)[0], float(found.high[0, -1] - found.low[0, -1]) / 2.0
                    if n in {30, 60, n_most}:
                        covered[kind, n].append(is_in[-1])
                        covered["scenarios", n].extend(is_in[:-1])
                    while waiting and (half <= waiting[0] or n == n_most):
                        covered[kind, f"±{waiting.pop(0)}"].append(is_in[-1])
                    error, value = float(found.standard_error[0, -1]), float(found.value[0, -1])
                    distance = (value - threshold) / error
                    is_sure = certainty_at_any_stop(distance, float(design.first[-1]) / error**2) >= 0.95
                    if not is_settled and (is_sure or n == n_most):
                        is_settled = True
                        wrong.append(is_sure and (value > threshold) != (truth[-1] > threshold))
                        always = scores_of_draws(design, draws, known, level=0.95, at_any_stop=True)
                        covered[kind, "settled"].append(held(always, truth, 1e-9)[0, -1])
    return covered, float(np.mean(wrong))


def test_intervals_cover_at_every_stop_whatever_the_model_is(rng):
    covered, wrong = coverage(rng, n_worlds=3, n_most=80)
    assert np.mean(list(itertools.chain(*covered.values()))) > 0.93
    assert min(np.mean(share) for share in covered.values()) > 0.8  # of 36 each
    assert wrong < 0.05


@pytest.mark.slow
def test_intervals_cover_at_every_stop_of_many_sessions(rng):
    covered, wrong = coverage(rng, n_worlds=30, n_most=120)
    shares = {at: np.mean(share) for at, share in covered.items()}
    # of 360 sessions each, whose shares of .95 have a standard error of .011
    assert min(shares.values()) > 0.915, shares
    assert np.mean([share for (_, at), share in shares.items() if at != "settled"]) > 0.94
    assert wrong < 0.03


ITEMS = np.arange(0, 60, 3) + np.arange(20) % 3


@pytest.fixture(scope="module")
def sixty_items():
    return make_bank(n_models=20, n_items=60)


def conditional(model, items, answers):
    """Expect all answers of one model, given those to some items."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    gain = np.linalg.solve(covariance[np.ix_(items, items)], answers - model.mean[items])
    return model.mean + model.loadings @ model.loadings[items].T @ gain


def known_of(bank, answers):
    return Known.of(Asked(bank, Observations.of_items(answers, ITEMS, np.full(20, 0.05), is_random=True)))


@pytest.mark.parametrize("n_factors", [-1, 0, 2])
@pytest.mark.parametrize("is_of_rates", [False, True])  # whose noise is less than that of right and wrong
def test_half_is_predicted_by_the_item_model_and_half_by_factors(sixty_items, n_factors, is_of_rates):
    bank = with_family(sixty_items, "beta") if is_of_rates else sixty_items
    answers = bank.responses.responses[:6][:, ITEMS]
    answers[2:4, 5] = np.nan
    known, weights = known_of(bank, answers), bank.targets.weights.copy()
    found, alone = predicted_answers(known, n_factors), predicted_answers(known, -1)
    chance = np.clip(found.left_out, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    ratio = np.minimum(score_basis(bank).noise_ratio, 1.0)[bank.targets.scenario_index[ITEMS]]
    variance = ratio * chance * (1.0 - chance)
    np.testing.assert_allclose(_of_outcomes(np.array([0.0, 0.5, 1.0])), [0.0196, 0.25, 0.0196])
    if n_factors < 0:
        np.testing.assert_allclose(found.variance, variance)
        np.testing.assert_allclose(found.fitted, probability(bank.parameters.take(ITEMS), known.summary.abilities))
        np.testing.assert_allclose(found.unseen, known.summary.posterior_mean - known.summary.known)
        return
    model = truncated(fitted_factor_model(bank), n_factors)
    np.testing.assert_allclose(found.variance, (variance + model.noise[ITEMS]) / 2.0)
    for row, given in enumerate(answers):
        there = np.flatnonzero(~np.isnan(given))
        everything, omega = conditional(model, ITEMS[there], given[there]), weights.copy()
        omega[ITEMS[there]] = 0.0
        np.testing.assert_allclose(2.0 * found.fitted[row, there], (alone.fitted[row] + everything[ITEMS])[there])
        unseen = np.bincount(bank.targets.scenario_index, omega * everything)
        np.testing.assert_allclose(2.0 * found.unseen[row], alone.unseen[row] + unseen)
        for column in there:
            others = there[there != column]
            of_others = conditional(model, ITEMS[others], given[others])[ITEMS[column]]
            np.testing.assert_allclose(2.0 * found.left_out[row, column], alone.left_out[row, column] + of_others)


def test_an_answer_is_predicted_from_others_and_from_nine_tenths_of_them(sixty_items):
    bank = sixty_items
    answers = bank.responses.responses[:6][:, ITEMS]
    before, is_same = predicted_answers(known_of(bank, answers), -1).left_out, []
    for column in range(20):
        changed = answers.copy()
        changed[:, column] = 1.0 - changed[:, column]
        after = predicted_answers(known_of(bank, changed), -1).left_out
        is_same.append(np.all(np.abs(after - before) < 1e-5, axis=0))
    assert np.all(np.diag(is_same))
    np.testing.assert_array_equal(np.sum(is_same, axis=1), 2)  # with the other one of its part, a tenth of 20


def test_residuals_elsewhere_and_factors_that_are_left_out_by_hand(rng):
    residuals, weights, index = rng.normal(size=(4, 6)), rng.random(6), np.array([0, 0, 1, 2, 2, 1])
    residuals[1, [0, 3]] = residuals[2, 2:] = np.nan
    found = means_elsewhere(residuals, weights, index, 3)
    for row, scenario in np.ndindex(4, 3):
        there = (index != scenario) & ~np.isnan(residuals[row])
        expected = np.average(residuals[row, there], weights=weights[there]) if there.any() else 0.0
        assert found[row, scenario] == pytest.approx(expected)


def test_as_many_factors_as_predict_past_models_best(sixty_items):
    bank = sixty_items
    targets, answers, chances = bank.targets, bank.responses.responses, np.linspace(0.1, 0.9, 20)
    asked = dataclasses.replace(known_of(bank, answers[:1, ITEMS]).asked, chances=chances)
    (found, apart), correction = factors_of(asked), targets.overall_weights[ITEMS] * (1.0 / chances - 1.0)
    index, weights, seen = targets.scenario_index, targets.weights.copy(), np.isin(np.arange(60), ITEMS)
    squares, errors = {}, {}
    for n_factors in (one for one in FACTORS if one <= 5):  # four past models each
        squares[n_factors], errors[n_factors] = 0.0, []
        for rows, model in _models_of_folds(bank):
            for row in rows:
                expected = conditional(truncated(model, n_factors), ITEMS, answers[row, ITEMS])
                off = answers[row] - expected
                squares[n_factors] += np.sum((off**2 * targets.overall_weights)[~seen])
                elsewhere = means_elsewhere(off[None, ITEMS], correction, index[ITEMS], 3)[0]
                errors[n_factors].append(np.bincount(index, weights * ~seen * (elsewhere[index] - off)))
    assert found == min(squares, key=squares.get)
    np.testing.assert_allclose(apart, np.mean(np.square(errors[found]), axis=0))
    for n_models, expected in ((3, -1), (4, 1), (9, 1)):
        found, apart = factors_of(dataclasses.replace(asked, bank=make_bank(n_models=n_models, n_items=60)))
        assert found == expected
        assert np.isnan(apart).all()


def test_the_weakest_and_the_strongest_past_models_are_in_one_part(sixty_items, monkeypatch):
    bank = sixty_items
    turned = dataclasses.replace(bank.responses, responses=1.0 - bank.responses.responses)
    expected = np.floor(np.abs(rankdata(np.round(bank.known_scores.value.mean(axis=1), 9)) - 10.5)) % 5
    for one in (bank, dataclasses.replace(bank, responses=turned)):
        found = _models_of_folds(one)
        assert len(found) == 5
        for number, (rows, _) in enumerate(found):
            np.testing.assert_array_equal(rows, np.flatnonzero(expected == number))
    monkeypatch.setattr("itembank.estimation.drawn_predictions.MOST_TRIED", 10)
    some = np.concatenate([rows for rows, _ in _models_of_folds(dataclasses.replace(bank))])
    np.testing.assert_array_equal(np.sort(some), np.linspace(0, 19, 10).astype(int))


def test_models_with_fewer_attempts_are_expected_to_vary_as_past_models_with_so_few_do(rng):
    chance, scenarios = 1.0 / (1.0 + np.exp(rng.normal(size=200) - rng.normal(size=(80, 1)))), ["one", "two"] * 100
    past = rng.binomial(40, chance[:40]) / 40
    bank = calibrate(ResponseMatrix.create(past, scenarios=scenarios, n_trials=np.full(past.shape, 40)))
    drawn_items, found = select(bank, 40, method="drawn", rng=0), {}
    for attempts in (1, 4, 40, 80):
        new = rng.binomial(attempts, chance[40:]) / attempts
        given = ResponseMatrix.create(new, scenarios=scenarios, n_trials=np.full(new.shape, attempts))
        asked = Asked.of_observations(bank, found_items(bank, given, drawn_items), drawn_items)
        found[attempts] = predicted_answers(Known.of(asked), 1), factors_of(asked)[1]
    columns = asked.observations.positions
    single = np.mean(past * (1.0 - past), axis=0)[columns] * 40 / 39
    noise, ratio = truncated(fitted_factor_model(bank), 1).noise[columns], score_basis(bank).noise_ratio
    ratio = ratio[bank.targets.scenario_index[columns]]
    for attempts, (predicted, _) in found.items():
        more = single * max(1.0 / attempts - 1.0 / 40.0, 0.0)
        np.testing.assert_allclose(predicted.variance, (noise + ratio * _of_outcomes(predicted.left_out)) / 2.0 + more)
    np.testing.assert_array_equal(found[80][1], found[40][1])
    np.testing.assert_array_less(2.0 * found[4][1], found[1][1])
    np.testing.assert_array_less(1.5 * found[40][1], found[4][1])
    each = bank.targets.weights[:, None] * (bank.targets.scenario_index[:, None] == np.arange(2))
    of_session = DrawnDesign.of_bank(bank, np.column_stack([each, bank.targets.overall_weights]), 2).apart
    np.testing.assert_array_less(3.0 * found[40][1], of_session)  # whose answers are single attempts
    assert fewer_than_past(bank, 1.0) == 1.0
    assert fewer_than_past(bank, 40.0) is None
    graded = dataclasses.replace(bank.responses, responses=np.clip(past + 0.0117, 0.0, 1.0))  # means, no counts
    assert fewer_than_past(dataclasses.replace(bank, responses=graded), 1.0) is None
