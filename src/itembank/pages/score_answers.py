"""The number first: an estimate with its interval, what it was made from and how to cite it."""

import math
from importlib.metadata import version

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.numerics.arrays import IntArray
from itembank.pages.blocks import Answer
from itembank.pages.common import plural
from itembank.pages.past_models import OneModel
from itembank.pages.theme import UNKNOWN, count, interval_words, level_words, percent
from itembank.responses.score_names import OVERALL

UNITS = {"cost_usd": "cost", "tokens": "tokens", "seconds": "time", "output_tokens": "output tokens"}
"""Costs that a saving is told in, the most wanted first, and what they are called."""


def score_answer(bank: Bank, model: OneModel, items: IntArray, *, method: str) -> Answer:
    """Return the estimated score of one model with its interval in words.

    Parameters
    ----------
    bank : Bank
    model : OneModel
    items : (n,)
        Positions of the items that it answered.
    method : str
        By which it was estimated.
    """
    at, target = model.at, model.target
    value, low, high = (float(one[at]) for one in (model.value, model.low, model.high))
    used = f"{count(model.n_items[at])} of {plural(model.n_total[at], 'item')}"
    what = "Score on the full benchmark" if target == OVERALL else target.replace("_", " ").capitalize()
    if math.isnan(value):
        return Answer(f"{what}, {model.model_id}", UNKNOWN, words=f"From {used}.")
    level, interval = level_words(model.level), interval_words(low, high)
    saved = saving_words(bank, items)
    return Answer(
        f"{what}, {model.model_id}",
        percent(value),
        f"{interval}, {level} interval" if high > low else "known exactly: every item was answered",
        f"From {used}{f', {saved}' if saved else ''}.",
        f"{model.model_id}: {percent(value)} ({level} interval {interval}), {target} score {bank.target_id} estimated "
        f"from {used} by {method}; item bank {bank.bank_id}, itembank {version('itembank')}",
    )


def saving_words(bank: Bank, items: IntArray) -> str:
    """Say what running these items saves of a full run: costs where the bank knows them, else items; '' for nothing."""
    rest = np.ones(bank.n_items, dtype=bool)
    rest[items] = False
    costs = costs_of_items(bank.responses)
    unit = next((one for one in UNITS if one in costs and costs[one].sum() > 0.0), None)
    weights = np.ones(bank.n_items) if unit is None else costs[unit]
    saved = math.floor(100.0 * float(weights[rest].sum() / weights.sum()) + 1e-9)
    return f"which saves {saved} % of the {'items' if unit is None else UNITS[unit]}" if 0 < saved < 100 else ""
