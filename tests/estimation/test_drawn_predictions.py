"""What is predicted of drawn items: by conditioning joint normal distributions, answer by answer."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import rankdata

from itembank.bank.norms import fitted_factor_model
from itembank.calibration.build import calibrate
from itembank.estimation.asked import Asked
from itembank.estimation.drawn_one_by_one import DrawnDesign
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
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.bank.banks import make_bank, with_family

ITEMS = np.arange(0, 60, 3) + np.arange(20) % 3


@pytest.fixture(scope="module")
def bank():
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
def test_half_is_predicted_by_the_item_model_and_half_by_factors(bank, n_factors, is_of_rates):
    bank = with_family(bank, "beta") if is_of_rates else bank
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


def test_an_answer_is_predicted_from_others_and_from_nine_tenths_of_them(bank):
    answers = bank.responses.responses[:6][:, ITEMS]
    before = predicted_answers(known_of(bank, answers), -1).left_out
    is_same = []
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


def test_as_many_factors_as_predict_past_models_best(bank):
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


def test_the_weakest_and_the_strongest_past_models_are_in_one_part(bank, monkeypatch):
    turned = dataclasses.replace(bank.responses, responses=1.0 - bank.responses.responses)
    ranks = rankdata(np.round(bank.known_scores.value.mean(axis=1), 9))
    expected = np.floor(np.abs(ranks - 10.5)) % 5
    for one in (bank, dataclasses.replace(bank, responses=turned)):
        found = _models_of_folds(one)
        assert len(found) == 5
        for number, (rows, _) in enumerate(found):
            np.testing.assert_array_equal(rows, np.flatnonzero(expected == number))
    monkeypatch.setattr("itembank.estimation.drawn_predictions.MOST_TRIED", 10)
    some = np.concatenate([rows for rows, _ in _models_of_folds(dataclasses.replace(bank))])
    np.testing.assert_array_equal(np.sort(some), np.linspace(0, 19, 10).astype(int))


def test_models_with_fewer_attempts_are_expected_to_vary_as_past_models_with_so_few_do(rng):
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=200) - rng.normal(size=(80, 1))))
    scenarios = ["one", "two"] * 100
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
