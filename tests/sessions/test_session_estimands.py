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


@pytest.mark.parametrize("n_answers", [10, 40])
def test_intervals_are_those_of_estimate_on_the_same_answers(n_answers):
    bank = repeated(BANK)
    session = model_based(bank, estimand="expected", budget=Budget(n_answers))
    answers = true_answers(bank)
    told = {item: answers[item] for item in run(session, answers)}
    found = session.estimate().scores
    other = estimate(bank, as_responses(bank, told), method="p-irt", interval="model-based", estimand="expected")
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(other, name), rtol=1e-12, atol=1e-14)
    assert found.estimand == "expected"
    assert found.rows()[0]["estimand"] == "expected"


def test_a_rule_of_precision_waits_for_the_score_that_is_meant():
    bank = repeated(BANK)
    answers = true_answers(bank)
    n_asked = {}
    for estimand in ("run", "expected"):
        session = model_based(bank, estimand=estimand, stopping=Stopping(half_width={"overall": 0.165}))
        n_asked[estimand] = len(run(session, answers))
    assert n_asked["run"] < n_asked["expected"]


def test_the_choice_is_kept_and_checked():
    spec = SessionSpec(estimand="expected")
    assert SessionSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(ParameterError, match="estimand must be"):
        SessionSpec(estimand="always")
    with pytest.raises(DataError, match="repeated attempts"):
        model_based(BANK, estimand="expected")


def test_a_custom_score_has_its_own_chance():
    bank = repeated(BANK)
    custom = dict.fromkeys(bank.item_ids[:10], 1.0)
    widths = {}
    for estimand in ("run", "expected"):
        session = model_based(bank, estimand=estimand, target=custom)
        answers = true_answers(bank)
        for item in custom:
            session.tell(item, answers[item])
        scores = session.estimate().scores
        widths[estimand] = scores.high[0, -1] - scores.low[0, -1]
        theta = session.estimate().theta
    assert widths["run"] == pytest.approx(0.0, abs=1e-12)
    p = probability(bank.parameters, theta[None])[0, :10]
    assert widths["expected"] == pytest.approx(2 * 1.96 * np.sqrt(np.sum(p * (1 - p)) / 100.0), rel=0.2)
