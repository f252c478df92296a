import numpy as np
import pytest

from itembank.estimation.response_summary import score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.pages import given_answers
from itembank.pages.given_answers import GivenAnswers, expectation_chart, left_out_expectations
from tests.bank.banks import make_bank


def test_each_expectation_is_that_of_a_model_that_did_not_give_the_answer():
    bank = make_bank()
    basis, items = score_basis(bank), np.arange(3, 21)
    given = (np.random.default_rng(1).random(items.size) < 0.6).astype(float)
    found = left_out_expectations(basis, items, given)
    for k in range(items.size):
        others = np.delete(np.arange(items.size), k)
        answers = basis.answers(given[None, others], items[others])
        theta = map_abilities(basis.parameters.take(items[others]), answers, basis.prior).theta
        assert found[k] == pytest.approx(probability(basis.parameters.take(items[[k]]), theta)[0, 0], abs=1e-6)


def test_with_more_answers_than_parts_none_knows_itself(monkeypatch):
    monkeypatch.setattr(given_answers, "MOST_PARTS", 4)
    bank = make_bank()
    basis, items = score_basis(bank), np.arange(30)
    given = np.ones(30)
    before = left_out_expectations(basis, items, given)
    given[7] = 0.0
    after = left_out_expectations(basis, items, given)
    assert after[7] == pytest.approx(before[7], abs=1e-6)
    assert after[8] < before[8] - 1e-3


def test_answers_that_come_as_expected_lie_within_their_bands_and_reversed_ones_do_not():
    rng = np.random.default_rng(3)
    expected = rng.uniform(0.02, 0.98, 400)
    given = (rng.random(400) < expected).astype(float)
    right = GivenAnswers(np.arange(400), given, expected, expected * (1.0 - expected))
    wrong = GivenAnswers(np.arange(400), 1.0 - given, expected, expected * (1.0 - expected))
    good, bad = (np.sum(expectation_chart(one, "m").data[0].columns["is_within"]) for one in (right, wrong))
    assert good >= 7
    assert bad <= 3


def test_few_answers_have_no_chart():
    few = GivenAnswers(np.arange(9), np.ones(9), np.full(9, 0.5), np.full(9, 0.25))
    assert expectation_chart(few, "m") is None
