"""How well a bank's items will tell the next models apart: the verb `outlook` and its result."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.responses.model_features import months_between
from itembank.tabular import Tabular, records

MODELS = {"typical past models": 0.0, "best quarter of these": 1.0, "twice as far ahead": 2.0}
"""Places of `abilities_ahead`: the last is where the best quarter was, for banks made without it."""


@dataclass(frozen=True, slots=True, repr=False)
class Outlook(Tabular):
    """How well a bank's items will tell the next models apart.

    Attributes
    ----------
    bank_id : str
    newest : date or None
        Of the newest past model; None if the table of models has no dates.
    n_items : int
    n_never_solved : int or None
        Items with no response above 0.5 of any past model, of counts no success; None in a bank without responses.
    table : table of one row a place ahead of the typical past model
        What the item model expects of `models` there (names of `MODELS`): their overall `score`, and the shares of its
        weight on items that tell such models apart (`open`), that nearly all of them solve (`solved`) and that nearly
        all fail (`unsolved`), which sum to one. Empty if the bank has no item model, or no past models.
    """

    bank_id: str
    newest: datetime.date | None
    n_items: int
    n_never_solved: int | None
    table: pl.DataFrame

    @property
    def ahead(self) -> tuple[SimpleNamespace, ...]:
        """The rows of the table, whose columns are their attributes."""
        return records(self.table)

    def months_old(self, today: datetime.date | None = None) -> float | None:
        """Months from the newest past model to this day, by default today; None if no dates are known."""
        return None if self.newest is None else months_between(self.newest, today or datetime.date.today())

    @property
    def in_words(self) -> str:
        """Say which share of the score tells models apart, and how many items nobody solved; '' if unknown."""
        if self.table.is_empty():
            return ""
        now, *_, later = self.table["open"]
        never = f" No past model solved {self.n_never_solved} of {self.n_items} items." if self.n_never_solved else ""
        return (
            f"Items that tell typical past models apart carry {100.0 * now:.0f} % of the score. Items that would still "
            "tell apart models twice as far ahead of these as the best quarter is carry "
            f"{100.0 * later:.0f} %.{never}"
        )


def outlook(bank: GivenBank) -> Outlook:
    """Tell how old a bank is, and which share of it will tell better models apart than those it was made of.

    An item tells models apart whose expected response to it lies between 0.1 and 0.9. Models that are better than all
    past ones are judged by what is open to them: where that share is small, the benchmark is nearly saturated, and
    where items that no past model solved make it up, nobody knows yet how hard they are.

    Parameters
    ----------
    bank : Bank or path

    Examples
    --------
    >>> outlook(bank).in_words  # doctest: +SKIP
    """
    bank = as_bank(bank)
    places: dict[str, Any] = {name: [] for name in ("models", "score", "open", "solved", "unsolved")}
    n_never_solved = None
    if bank.n_models:
        best = np.zeros(bank.n_items)
        for part in bank.responses.parts():
            best = np.fmax(best, np.fmax.reduce(part.responses, axis=0, initial=0.0))
        # of counts any success is a solution
        n_never_solved = int((best <= (0.5 if bank.responses.n_trials is None else 0.0)).sum())
    if bank.n_models and bank.calibration.is_fitted:
        weights = bank.targets.overall_weights
        expected = probability(bank.parameters, abilities_ahead(bank, tuple(MODELS.values())))
        solved, unsolved = (
            [float(weights[items].sum()) for items in some] for some in (expected >= 0.9, expected <= 0.1)
        )
        places = {
            "models": list(MODELS),
            "score": [weights @ p for p in expected],
            "open": [max(0.0, 1.0 - easy - hard) for easy, hard in zip(solved, unsolved, strict=True)],
            "solved": solved,
            "unsolved": unsolved,
        }
    return Outlook(bank.bank_id, bank.newest, bank.n_items, n_never_solved, pl.DataFrame(places))


def abilities_ahead(bank: Bank, places: Sequence[float]) -> FloatArray:
    """Abilities on the line from the middle half of past models to the mean of their best quarter, (n_places, n_dims).

    Past models are in the order of the overall score that the item model expects of them.
    """
    abilities = bank.calibration.abilities
    score = probability(bank.parameters, abilities) @ bank.targets.overall_weights
    order = np.argsort(score, kind="stable")
    n_top = max(bank.n_models // 4, 1)
    top, middle = abilities[order[-n_top:]].mean(axis=0), abilities[order[bank.n_models // 4 : -n_top]]
    start = middle.mean(axis=0) if middle.size else top
    result: FloatArray = start + np.outer(places, top - start)
    return result
