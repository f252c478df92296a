"""Past models that answered some items only: what sessions compare with, and what their errors rest on."""

import dataclasses

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.sessions.preparation import past_orders, past_sessions, prepare_sessions
from itembank.sessions.session_spec import SessionSpec
from tests.sessions.simulated import session_bank


def bank_with_gaps(n_answered, n_models=12):
    """Return a bank whose first ten models answered so many of its 60 items, the easy ones."""
    bank = session_bank(n_models=n_models, n_items=60)
    values = bank.responses.responses.copy()
    values[:10, np.argsort(-np.nanmean(values, axis=0))[n_answered:]] = np.nan
    return dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=values))


@pytest.mark.parametrize("is_custom", [False, True])
def test_a_session_compares_with_past_models_whose_score_is_known(is_custom):
    target = dict.fromkeys(session_bank(n_items=60).item_ids, 1.0) if is_custom else "overall"
    decision = Decision("custom" if is_custom else "overall", model=session_bank(n_items=60).responses.model_ids[0])
    spec = SessionSpec(target=target, stopping=Stopping(decision=decision), interval="model-based")
    with pytest.raises(DataError, match="answered too few of its items for it to be known"):
        prepare_sessions(bank_with_gaps(12), spec)


@pytest.mark.parametrize("is_custom", [False, True])
def test_the_score_to_beat_is_not_that_of_easy_items(is_custom):
    bank = bank_with_gaps(54)
    decision = Decision("custom" if is_custom else "overall", model=bank.responses.model_ids[0])
    target = dict(zip(bank.item_ids, bank.targets.target("overall").weights, strict=True)) if is_custom else "overall"
    spec = SessionSpec(target=target, stopping=Stopping(decision=decision), interval="model-based")
    threshold = prepare_sessions(bank, spec).threshold
    # one custom score is not put together from scenarios
    assert threshold == pytest.approx(bank.known_scores.value[0, -1], abs=0.01 if is_custom else 0.0)
    assert threshold < bank.targets.with_overall(bank.scenario_scores)[0, -1]


@pytest.mark.parametrize("name", ["mth", "custom"])
def test_a_rule_of_an_unknown_score_is_refused_in_words(name):
    bank = session_bank(n_items=60)
    spec = SessionSpec(stopping=Stopping(decision=Decision(name, model=bank.responses.model_ids[0])))
    with pytest.raises(ParameterError, match="a rule must name a score among 'math'"):
        prepare_sessions(bank, dataclasses.replace(spec, interval="model-based"))


@pytest.mark.usefixtures("few_folds")
def test_errors_of_a_score_of_some_items_are_those_of_models_that_answered_them():
    bank = bank_with_gaps(12, n_models=24)
    weights = dict.fromkeys(bank.item_ids[:30], 1.0)
    found = past_sessions(bank, SessionSpec(target=weights, budget=Budget(n_items=4)))
    assert np.isnan(found.truth[:10, -1]).all()
    whole = bank.responses.responses[10:, :30]
    np.testing.assert_allclose(found.truth[10:, -1], whole.mean(axis=1))


@pytest.mark.usefixtures("few_folds")
def test_past_models_of_other_scenarios_are_asked_no_more_of_their_own_than_new_models():
    """They were, and after 24 answers .82 and .85 of the intervals of two scenarios held."""
    whole = session_bank(n_models=24, n_items=60)
    lacks = whole.targets.scenario_index == 0
    values = whole.responses.responses.copy()
    values[:12, lacks] = np.nan
    bank = dataclasses.replace(whole, responses=dataclasses.replace(whole.responses, responses=values))
    orders = past_orders(bank, SessionSpec(budget=Budget(n_items=12)), 12)
    n_answers = np.sum(~np.isnan(orders), axis=1)
    assert set(n_answers[12:]) == {12}
    of_others = np.isin(orders[12:], np.flatnonzero(~lacks)).sum(axis=1).mean()
    assert 5 < of_others < 12
    assert n_answers[:12].mean() == pytest.approx(of_others, abs=1.5)


@pytest.mark.usefixtures("few_folds")
def test_errors_of_models_with_gaps_are_as_large_as_against_full_scores():
    """Known scores contain a session's own answers: of models that answered half, 85 % of the intervals held."""
    bank = bank_with_gaps(54)
    weights = dict.fromkeys(bank.item_ids, 1.0)
    found = past_sessions(bank, SessionSpec(target=weights, budget=Budget(n_items=8)))
    variance = bank.known_scores.variance
    np.testing.assert_array_equal(found.truth_variance[:, :-1], variance)
    assert (found.truth_variance[:10, -1] > 0.0).all()
    assert (found.truth_variance[10:] == 0.0).all()
    ((last, _),) = found.around(8, np.arange(variance.shape[1] + 1))
    ratio = np.abs(last.error / (last.value - last.truth))
    assert (ratio[:10, -1] > 1.0).all()
    np.testing.assert_array_equal(ratio[10:][~np.isnan(ratio[10:])], 1.0)
