"""Which score a session's intervals are for: against `estimate` on the same answers."""

import dataclasses

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.irt.bernoulli import probability
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import model_based, run, session_bank, true_answers
from tests.sessions.test_estimates import as_responses

BANK = session_bank(n_items=40)


def repeated(bank):
    """Give the bank's models four attempts at each item."""
    trials = np.full(bank.responses.responses.shape, 4)
    right = np.random.default_rng(1).binomial(trials, probability(bank.parameters, bank.calibration.abilities))
    responses = dataclasses.replace(bank.responses, responses=right / 4.0, n_trials=trials)
    return dataclasses.replace(bank, responses=responses)


@pytest.mark.parametrize("estimand", ["expected", "items-like-these"])
@pytest.mark.parametrize("n_answers", [10, 40])
def test_intervals_are_those_of_estimate_on_the_same_answers(estimand, n_answers):
    bank = repeated(BANK)
    session = model_based(bank, estimand=estimand, budget=Budget(n_answers))
    answers = true_answers(bank)
    told = {item: answers[item] for item in run(session, answers)}
    found = session.estimate().scores
    other = estimate(bank, as_responses(bank, told), method="p-irt", interval="model-based", estimand=estimand)
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(other, name), rtol=1e-12, atol=1e-14)
    assert found.estimand == estimand
    assert found.rows()[0]["estimand"] == estimand


def test_a_rule_of_precision_waits_for_the_score_that_is_meant():
    answers = true_answers(BANK)
    n_asked = {}
    for estimand in ("run", "items-like-these"):
        session = model_based(BANK, estimand=estimand, stopping=Stopping(half_width={"overall": 0.165}))
        n_asked[estimand] = len(run(session, answers))
    assert n_asked["run"] < n_asked["items-like-these"]


def test_the_choice_is_kept_and_checked():
    spec = SessionSpec(estimand="items-like-these")
    assert SessionSpec.from_dict(spec.to_dict()) == spec
    of_before = {name: value for name, value in SessionSpec().to_dict().items() if name != "estimand"}
    assert SessionSpec.from_dict(of_before) == SessionSpec()
    with pytest.raises(ParameterError, match="estimand must be"):
        SessionSpec(estimand="always")
    with pytest.raises(DataError, match="repeated attempts"):
        model_based(BANK, estimand="expected")


def test_a_custom_score_has_its_own_chance():
    custom = dict.fromkeys(BANK.item_ids[:10], 1.0)
    widths = {}
    for estimand in ("run", "items-like-these"):
        session = model_based(BANK, estimand=estimand, target=custom)
        answers = true_answers(BANK)
        session_answers = {item: answers[item] for item in custom}
        for item, answer in session_answers.items():
            session.tell(item, answer)
        scores = session.estimate().scores
        widths[estimand] = scores.high[0, -1] - scores.low[0, -1]
    assert widths["run"] == pytest.approx(0.0, abs=1e-12)
    mean = np.mean(list(session_answers.values()))
    assert widths["items-like-these"] == pytest.approx(2 * 1.96 * np.sqrt(mean * (1 - mean) / 9.0), rel=0.2)
