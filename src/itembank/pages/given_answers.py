"""Answers of one model beside what its other answers let expect."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.response_summary import ScoreBasis, score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Column, Table
from itembank.pages.theme import plural

MOST_PARTS = 200
"""Answers are left out one by one up to so many; of more, in so many parts."""
MOST_LISTED = 5000
"""Answers that a page lists: the most surprising."""


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """What one model answered to n items, and what was expected of it."""

    items: IntArray  # (n,): Positions in the bank
    given: FloatArray  # (n,): Responses in [0, 1]
    expected: FloatArray  # (n,): Expected response, without having seen the one given

    @classmethod
    def of(cls, bank: Bank, items: IntArray, given: FloatArray, n_trials: FloatArray | None = None) -> Self:
        """Find what is expected of answers (n,) to the items at these positions.

        By the item model at the ability that the other answers give; where there is no item model, what past models
        answered on average.
        """
        if not bank.calibration.is_fitted:
            return cls(items, given, bank.mean_responses[items])
        return cls(items, given, left_out_expectations(score_basis(bank), items, given, n_trials))

    @property
    def surprise(self) -> FloatArray:
        """Distance of each answer from what was expected, (n,): for right and wrong answers, how unlikely it was."""
        result: FloatArray = np.abs(self.given - self.expected)
        return result


def left_out_expectations(
    basis: ScoreBasis, items: IntArray, given: FloatArray, n_trials: FloatArray | None = None
) -> FloatArray:
    """Find the expected response to each item at the ability that the answers to the others give, (n,).

    Up to `MOST_PARTS` answers each is left out by itself, of more one in so many at a time.
    """
    if items.size == 0:
        return np.zeros(0)
    n_parts = min(items.size, MOST_PARTS)
    part = np.arange(items.size) % n_parts
    answers = basis.answers(given[None, :], items)
    others = np.where(part[None, :] == np.arange(n_parts)[:, None], np.nan, answers)
    trials = None if n_trials is None else np.broadcast_to(n_trials, others.shape)
    parameters = basis.parameters.take(items)
    theta = map_abilities(parameters, others, basis.prior, n_trials=trials).theta
    result: FloatArray = probability(parameters, theta)[part, np.arange(items.size)]
    return result


def answer_table(bank: Bank, answers: GivenAnswers, key: str) -> Table:
    """List given answers beside the expected ones, the most surprising first."""
    order = np.argsort(-np.nan_to_num(answers.surprise, nan=-1.0), kind="stable")[:MOST_LISTED]
    items = answers.items[order]
    table = bank.responses.items
    rows = {
        "item": table["item_id"].gather(items).to_list(),
        "scenario": table["scenario"].gather(items).to_list(),
        "expected": answers.expected[order],
        "given": answers.given[order],
        "surprise": (answers.given - answers.expected)[order],
        "past": bank.mean_responses[items],
    }
    what = "its other answers let expect" if bank.calibration.is_fitted else "past models answered"
    n_more = answers.items.size - order.size
    columns = (
        Column("item", "Item", "id"),
        Column("scenario", "Scenario", has_menu=True),
        Column("expected", "Expected", "percent", 0, f"What {what}"),
        Column("given", "Given", "percent", 0, "100 % is right, 0 % wrong"),
        Column("surprise", "Difference", "points", 0, "Given less expected, in points"),
        Column("past", "Past models", "percent", 0, "Mean answer of past models"),
    )
    note = f"{n_more:,} answers that surprise less are left out." if n_more else ""
    caption = f"{plural(answers.items.size, 'answer')}, the most surprising first"
    return Table.of(caption, f"{key}-answers", rows, columns, note=note)
