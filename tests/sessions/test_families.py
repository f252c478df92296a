"""Sessions of banks whose responses are probabilities or counts."""

import dataclasses

import numpy as np
import pytest

from itembank.bank.norms import noise_ratio
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.estimation.model_abilities import estimate_abilities
from itembank.irt.bernoulli import logit, probability
from itembank.irt.families import information_weights
from itembank.irt.newton import map_abilities
from itembank.sessions.answers import session_responses
from itembank.sessions.limits import Budget
from tests.bank.banks import with_family
from tests.sessions.simulated import begin, model_based, session_bank

FAMILIES = ("binomial", "beta", "beta-binomial")
PLAIN = session_bank(n_items=40, n_dims=1)


def answers_of(bank, *, theta=0.4, seed=2):
    """Answers of a new model to every item, as arguments of `tell` by item id."""
    rng = np.random.default_rng(seed)
    p = probability(bank.parameters, np.array([[theta]]))[0]
    if bank.parameters.precision is not None:
        p = rng.beta(p * bank.parameters.precision, (1.0 - p) * bank.parameters.precision)
    if bank.parameters.family == "beta":
        return {item: {"response": value} for item, value in zip(bank.item_ids, p.tolist(), strict=True)}
    trials = rng.integers(1, 12, p.shape)
    right = rng.binomial(trials, p)
    return {
        item: {"n_correct": int(k), "n_trials": int(n)} for item, k, n in zip(bank.item_ids, right, trials, strict=True)
    }


def run(session, answers, most=12):
    """Answer what is asked."""
    asked = []
    while len(asked) < most and (items := session.ask()):
        session.tell(items[0], **answers[items[0]])
        asked.append(items[0])
    return asked


@pytest.mark.parametrize("family", FAMILIES)
def test_ability_is_that_of_scoring_the_same_answers(family):
    bank = with_family(PLAIN, family)
    session = model_based(bank, budget=Budget(n_items=12))
    assert len(run(session, answers_of(bank))) == 12
    found = session.estimate()
    scored = estimate_abilities(bank, session_responses(session))
    np.testing.assert_allclose(found.theta, scored.theta[0], rtol=1e-12)
    np.testing.assert_allclose(found.covariance, scored.covariance[0], rtol=1e-12)
    rows = found.scores.rows()
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_most_informative_item_is_asked(family):
    bank = with_family(PLAIN, family)
    parameters, answers = bank.parameters, answers_of(bank)
    session = model_based(bank, "fisher", budget=Budget(n_items=12))
    for _ in range(6):
        at = logit(parameters, session.estimate().theta[None])
        weights = information_weights(parameters, at)[0] * parameters.loadings[:, 0] ** 2
        is_told = [item in session.told for item in bank.item_ids]
        (item,) = session.ask()
        assert item == bank.item_ids[int(np.argmax(np.where(is_told, -1.0, weights)))]
        session.tell(item, **answers[item])


def test_a_probability_tells_more_than_a_right_answer():
    told = {}
    for family in ("bernoulli", "beta"):
        bank = PLAIN if family == "bernoulli" else with_family(PLAIN, "beta", precision=50.0)
        session = model_based(bank)
        session.tell(bank.item_ids[0], 0.37)
        told[family] = session.estimate()
    assert told["beta"].covariance[0, 0] < 0.5 * told["bernoulli"].covariance[0, 0]
    bank = with_family(PLAIN, "beta", precision=50.0)
    expected = map_abilities(bank.parameters.take(np.array([0])), np.array([[0.37]]), bank.calibration.prior)
    np.testing.assert_array_equal(told["beta"].theta, expected.theta[0])


def test_trials_behind_a_probability_change_nothing():
    bank = with_family(PLAIN, "beta")
    first, second = model_based(bank), model_based(bank)
    first.tell(bank.item_ids[3], 0.25)
    second.tell(bank.item_ids[3], n_correct=2, n_trials=8)
    np.testing.assert_array_equal(first.estimate().theta, second.estimate().theta)


@pytest.mark.parametrize("family", ["binomial", "beta-binomial"])
def test_more_trials_narrow_ability_and_overdispersion_holds_back(family):
    bank = with_family(PLAIN, family, precision=3.0)
    variances = []
    for factor in (1, 10, 1000):
        session = model_based(bank)
        for item in bank.item_ids[:8]:
            session.tell(item, n_correct=factor, n_trials=2 * factor)
        variances.append(float(session.estimate().covariance[0, 0]))
    assert variances[0] > variances[1] > variances[2]
    assert (variances[2] > 0.03) == (family == "beta-binomial")


def test_noise_of_raw_responses_is_that_of_the_family():
    """Of a Beta response the variance is ``p (1 - p) / (phi + 1)``."""
    bank = with_family(session_bank(n_models=400, n_items=60, n_dims=1), "beta", precision=9.0)
    np.testing.assert_allclose(noise_ratio(bank), 0.1, rtol=0.05)
    np.testing.assert_array_equal(noise_ratio(PLAIN), 1.0)
    single = dataclasses.replace(bank.responses, responses=bank.responses.responses.astype(np.float32))
    np.testing.assert_allclose(noise_ratio(dataclasses.replace(bank, responses=single)), noise_ratio(bank), rtol=1e-5)


@pytest.mark.slow
def test_scores_are_covered():
    """95 % intervals of the score on all items, from 25 probabilities of each of 60 models."""
    bank = with_family(session_bank(n_models=30, n_items=80, n_dims=1), "beta", precision=6.0)
    inside = 0
    for seed in range(60):
        theta = float(np.random.default_rng(seed).normal())
        answers = answers_of(bank, theta=theta, seed=seed)
        session = model_based(bank, "random", budget=Budget(n_items=25), seed=seed)
        run(session, answers, most=25)
        overall = session.estimate().scores.rows()[-1]
        weights = bank.targets.target("overall").weights
        truth = float(weights @ np.array([answers[item]["response"] for item in bank.item_ids]))
        inside += overall["low"] <= truth <= overall["high"]
    assert inside >= 52


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_calibrated_bank_runs_calibrated_sessions(family):
    """From responses to intervals: items are fitted, sessions of models left out are tried, a new model is asked."""
    drawn = with_family(session_bank(n_models=40, n_items=40, n_dims=1), family, precision=10.0)
    bank = calibrate(drawn.responses, Variational("2pl", family=family))
    assert bank.parameters.family == family
    answers = answers_of(drawn)
    session = begin(bank, budget=Budget(n_items=20))
    run(session, answers, most=20)
    scores = session.estimate().scores
    assert scores.interval_kind == "calibrated"
    each = [one.get("response", one.get("n_correct", 0) / one.get("n_trials", 1)) for one in answers.values()]
    overall = scores.rows()[-1]
    assert overall["low"] <= np.mean(each) <= overall["high"]
    assert overall["high"] - overall["low"] < 0.3
