"""Answers of one model beside what its other answers let expect."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.response_summary import ScoreBasis, score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import normal_reach
from itembank.pages.blocks import Block, Chart, Column, Data, Table
from itembank.pages.grammar import PRECISE, equal, equals, marks, picture, score, span, tips, when
from itembank.pages.theme import percent, plural

MOST_PARTS = 200
"""Answers are left out one by one up to so many; of more, in so many parts."""
MOST_BINS, FEWEST_IN_BIN = 8, 5
BAND = 0.95
MOST_LISTED = 5000
"""Answers that a page lists: the most surprising."""


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """What one model answered to n items, and what was expected of it."""

    items: IntArray  # (n,): Positions in the bank
    given: FloatArray  # (n,): Responses in [0, 1]
    expected: FloatArray  # (n,): Expected response, without having seen the one given
    variance: FloatArray  # (n,): Of a response around the expected one

    @classmethod
    def of(cls, bank: Bank, items: IntArray, given: FloatArray, n_trials: FloatArray | None = None) -> Self:
        """Find what is expected of answers (n,) to the items at these positions.

        By the item model at the ability that the other answers give; where there is no item model, what past models
        answered on average.
        """
        if not bank.calibration.is_fitted:
            expected = bank.mean_responses[items]
            return cls(items, given, expected, expected * (1.0 - expected))
        basis = score_basis(bank)
        expected = left_out_expectations(basis, items, given, n_trials)
        ratio = basis.noise_ratio[bank.targets.scenario_index[items]]
        return cls(items, given, expected, ratio * expected * (1.0 - expected))

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


def answer_blocks(bank: Bank, answers: GivenAnswers, key: str) -> tuple[Block, ...]:
    """Draw expected against given answers, and list them, the most surprising first."""
    chart = expectation_chart(answers, key) if bank.calibration.is_fitted else None
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
    return (*(() if chart is None else (chart,)), Table.of(caption, f"{key}-answers", rows, columns, note=note))


def expectation_chart(answers: GivenAnswers, key: str) -> Chart | None:
    """Draw the mean of given answers against what was expected, in bins; None where there are too few for two bins."""
    n_bins = min(MOST_BINS, answers.items.size // FEWEST_IN_BIN)
    if n_bins < 2:
        return None
    data = _binned(answers, n_bins, key)
    columns = data.columns
    n_within = int(np.sum(columns["is_within"]))
    x = score("expected", "Expected, from the model's other answers", domain=[0.0, 1.0])
    y = score("given", "Given", domain=[0.0, 1.0])
    tip = tips(
        expected=("Expected", PRECISE),
        given=("Given", PRECISE),
        low=("Chance from", PRECISE),
        high=("to", PRECISE),
        n_answers=("Answers", ","),
    )
    color = when(equals("is_within", False), "@other", "@main")
    spec = picture(
        {**equal(x, y, 0.0, 1.0), "mark": {"type": "line", "color": "@soft", "strokeDash": [4, 4], "strokeWidth": 1.2}},
        marks("rule", x, span(y), tip=tip, color="@soft", strokeWidth=8, opacity=0.6),
        marks("point", x, y, tip=tip, color=color, size=80, filled=True, opacity=1),
        height=300,
    )
    title = f"Given against expected: {n_within} of {n_bins} groups of answers lie within what chance allows"
    pairs = zip(columns["expected"].tolist(), columns["given"].tolist(), strict=True)
    said = "; ".join(f"{percent(expected, 0)} expected, {percent(given, 0)} given" for expected, given in pairs)
    table = (
        Column("expected", "Expected", "percent"),
        Column("given", "Given", "percent"),
        Column("low", "Chance from", "percent"),
        Column("high", "to", "percent"),
        Column("n_answers", "Answers", "count"),
        Column("is_within", "Within chance", "flag"),
    )
    return Chart(
        title,
        spec,
        (data,),
        f"{title}. {said}.",
        Table("Groups of answers", data, table),
        "Answers are grouped by what was expected of them, as many in each group. Grey bars: where "
        f"{100 * BAND:g} % of groups lie if expectations hold. A group outside its bar has the other colour.",
    )


def _binned(answers: GivenAnswers, n_bins: int, key: str) -> Data:
    order = np.argsort(answers.expected, kind="stable")
    parts = np.array_split(order, n_bins)
    expected, given = (
        np.array([values[part].mean() for part in parts]) for values in (answers.expected, answers.given)
    )
    spread = np.array([np.sqrt(answers.variance[part].sum()) / part.size for part in parts])
    half_step = np.array([0.5 / part.size for part in parts])  # a mean of few right and wrong answers moves in steps
    reach = normal_reach(BAND) * spread + half_step
    low, high = np.maximum(expected - reach, 0.0), np.minimum(expected + reach, 1.0)
    return Data(
        f"{key}-bins",
        {
            "expected": expected,
            "given": given,
            "low": low,
            "high": high,
            "n_answers": [int(part.size) for part in parts],
            "is_within": (given >= low) & (given <= high),
        },
    )
