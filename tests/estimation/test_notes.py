"""Models that are made better, worse or otherwise unlike past ones, and what is said of their intervals."""

import dataclasses

import numpy as np
import pytest

from itembank.bank.past_models import PastModels
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import Typicality
from itembank.estimation.notes import notes_on_unlike
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.estimation.simulated import shared_bank

PAST = PastModels(("a", "b", "c"), np.array([0.3, np.nan, 0.6]))


@pytest.fixture(scope="module")
def estimates():
    """Of three models, from twelve items that were not drawn by chance."""
    bank = shared_bank()
    chosen = bank.item_ids[:12]
    answers = np.stack([np.ones(12), np.zeros(12), np.arange(12) % 2])
    new = ResponseMatrix.create(answers, item_ids=chosen, model_ids=["right", "wrong", "half"])
    return estimate(bank, new)


def with_scores(estimates, *values, typicality=(0.5, 0.5, 0.5), half=0.1):
    value = np.tile(np.array(values)[:, None], len(estimates.targets))
    scores = estimates.scores._replace(value=value, low=value - half, high=value + half)
    typical = Typicality.unknown(3)._replace(typicality=np.array(typicality))
    return dataclasses.replace(estimates, scores=scores, typicality=typical)


def test_each_kind_is_said_once_with_the_drawn_items_that_would_settle_it(estimates):
    made = with_scores(estimates, 0.61, 0.29, 0.5, typicality=(0.5, 0.5, 0.09))
    found = notes_on_unlike(made, PAST, 3)
    assert [(one.kind, one.models) for one in found] == [
        ("better", ("right",)),
        ("worse", ("wrong",)),
        ("unlike", ("half",)),
    ]
    how = "and the interval holds for models like these. 12 items of `select` by method 'drawn' would settle it."
    assert found[0].text == f"better than all 3 past models, {how}"
    assert {one.more.partition(". ")[0].rstrip(".") for one in found} == {"select(bank, 12, method='drawn')"}
    assert found[1].text == f"worse than all 3 past models, {how}"
    assert found[2].text == f"answered unlike nearly all of the 3 past models (typicality below 0.1), {how}"


def test_nothing_is_said_of_models_among_past_ones_or_where_nothing_is_known(estimates):
    assert notes_on_unlike(with_scores(estimates, 0.6, 0.3, 0.5, typicality=(0.1, 0.5, np.nan)), PAST, 3) == []
    assert notes_on_unlike(with_scores(estimates, 0.9, 0.1, 0.5), PastModels((), np.zeros(0)), 3) == []


def test_past_models_themselves_are_not_compared_with_each_other(estimates):
    past = PAST._replace(names=("right", "b", "c"))
    kinds = [one.kind for one in notes_on_unlike(with_scores(estimates, 0.9, 0.1, 0.5), past, 3)]
    assert kinds == ["worse"]


def test_an_interval_by_design_holds_for_any_model(estimates):
    made = dataclasses.replace(with_scores(estimates, 0.9, 0.1, 0.5), interval_kind="design")
    assert notes_on_unlike(made, PAST, 3) == []


def test_of_a_score_that_is_known_no_interval_is_spoken_of(estimates):
    (note,) = notes_on_unlike(with_scores(estimates, 0.9, 0.4, 0.5, half=0.0), PAST, 3)
    assert note.text == "better than all 3 past models."


def test_drawn_items_of_any_model_bring_no_such_note_and_others_do():
    bank = shared_bank()
    for method, expected in (("drawn", set()), ("v-optimal", {"better", "worse"})):
        selection = select(bank, 20, method=method, rng=0)
        answers = np.stack([np.ones(20), np.zeros(20)])
        new = ResponseMatrix.create(answers, item_ids=list(selection.item_ids), model_ids=["best", "worst"])
        kinds = {one.kind for one in estimate(bank, new, selection=selection).notes}
        assert kinds & {"better", "worse", "unlike"} - {"unlike"} == expected
