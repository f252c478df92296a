"""Answers of one model beside those that its other answers predict."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from itembank.auditing.item_audit import text_column
from itembank.bank.banks import Bank
from itembank.estimation.response_summary import ScoreBasis, score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Column, Facts, Pair, Table, heads
from itembank.pages.render import cell
from itembank.pages.theme import percent
from itembank.tables import plural

MOST_PARTS = 200
"""Answers are left out one by one up to so many; of more, in so many parts."""


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
    return probability(parameters, theta)[part, np.arange(items.size)]


def answer_table(
    bank: Bank,
    items: IntArray,
    given: FloatArray,
    key: str,
    *,
    n_trials: FloatArray | None = None,
    beside: Sequence[str] = (),
) -> Table:
    """List the answers (n,) of one model to the items at these positions beside the expected ones.

    The most surprising come first, and each of these leads to its text and to what the past models `beside` answered.
    Expected is what the item model says at the ability that the other answers give; without an item model, what past
    models answered on average. `key` begins the name of the table's data.
    """
    if bank.calibration.is_fitted:
        expected = left_out_expectations(score_basis(bank), items, given, n_trials)
        what = "what its other answers predict"
    else:
        expected, what = bank.mean_responses[items], "the share of past models that are right"
    surprise = given - expected
    most_listed = 5000  # answers that a page lists: the most surprising
    order = np.argsort(-np.nan_to_num(np.abs(surprise), nan=-1.0), kind="stable")[:most_listed]
    table = bank.responses.items
    rows = {
        "item": table["item_id"].gather(items[order]).to_list(),
        "given": given[order],
        "expected": expected[order],
        "past": bank.mean_responses[items[order]],
        "scenario": table["scenario"].gather(items[order]).to_list(),
    }
    n_more = items.size - order.size
    columns = (
        *heads("item", "given"),
        Column("expected", "Expected right", "percent", 0, f"Probability of a right answer: {what}"),
        Column("past", "Past models right", "percent", 0, "Mean answer of past models"),
        *heads("scenario"),
    )
    note = f"{plural(n_more, 'less surprising answer', 'are')} not listed." if n_more else ""
    caption = f"{plural(items.size, 'answer')}, the most surprising first"
    entries = item_entries(bank, items[order], {"This model": given[order]}, beside)
    return Table.of(caption, f"{key}-answers", rows, columns, note=note, entries=entries)


def item_entries(
    bank: Bank, items: IntArray, given: Mapping[str, FloatArray], beside: Sequence[str] = ()
) -> tuple[Facts, ...]:
    """Tell of the first items at these positions (n,) their text and who answered what.

    `given` are the answers (n,) of new models by name, `beside` names past models whose answers are told, too.
    """
    most_entries = 200  # items that a page tells the text of, and who answered what
    shown = items[:most_entries]
    table = bank.responses.items[shown.tolist()]
    column = text_column(table)
    texts: list[str | None] = [None] * shown.size if column is None else table[column].to_list()
    past = bank.responses.of_items(shown, models=bank.responses.model_indices(beside)) if beside else np.zeros((0, 0))
    answers = [*given.items(), *zip(beside, past, strict=True)]
    written = Column("answer", "", "response")
    mean = bank.mean_responses[shown]

    def pairs(place: int) -> Iterator[Pair]:
        text = texts[place]
        longest_text = 1500  # letters of such a text
        if text is not None:
            yield "Text", text if len(text) <= longest_text else f"{text[:longest_text]}…"
        yield from ((name, cell(float(values[place]), written)) for name, values in answers)
        yield "Past models right", percent(float(mean[place]), 0)

    return tuple(Facts(tuple(pairs(k)), item) for k, item in enumerate(table["item_id"].to_list()))
