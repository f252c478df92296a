"""Answers of one model beside what its other answers let expect."""

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


def answer_table(
    bank: Bank, items: IntArray, given: FloatArray, key: str, *, n_trials: FloatArray | None = None
) -> Table:
    """List the answers (n,) of one model to the items at these positions beside the expected ones.

    The most surprising come first. Expected is what the item model says at the ability that the other answers give;
    where there is no item model, what past models answered on average. `key` begins the name of the table's data.
    """
    if bank.calibration.is_fitted:
        expected, what = (
            left_out_expectations(score_basis(bank), items, given, n_trials),
            "its other answers let expect",
        )
    else:
        expected, what = bank.mean_responses[items], "past models answered"
    surprise = given - expected
    order = np.argsort(-np.nan_to_num(np.abs(surprise), nan=-1.0), kind="stable")[:MOST_LISTED]
    table = bank.responses.items
    rows = {
        "item": table["item_id"].gather(items[order]).to_list(),
        "scenario": table["scenario"].gather(items[order]).to_list(),
        "expected": expected[order],
        "given": given[order],
        "surprise": surprise[order],
        "past": bank.mean_responses[items[order]],
    }
    n_more = items.size - order.size
    columns = (
        Column("item", "Item", "id"),
        Column("scenario", "Scenario", has_menu=True),
        Column("expected", "Expected", "percent", 0, f"What {what}"),
        Column("given", "Given", "percent", 0, "100 % is right, 0 % wrong"),
        Column("surprise", "Difference", "points", 0, "Given less expected, in points"),
        Column("past", "Past models", "percent", 0, "Mean answer of past models"),
    )
    note = f"{n_more:,} answers that surprise less are left out." if n_more else ""
    caption = f"{plural(items.size, 'answer')}, the most surprising first"
    return Table.of(caption, f"{key}-answers", rows, columns, note=note)
