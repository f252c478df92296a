"""What a page of estimates is made of: a bank, the answers of new models, and what was estimated from them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, shown
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.observations import Observations, found_items
from itembank.estimation.past_errors import selection_or_published
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.given_answers import GivenAnswers
from itembank.pages.past_models import OneModel, PastScores
from itembank.readers.agreement import only_items
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimates with the answers that they were made from."""

    bank: Bank
    responses: ResponseMatrix  # Of the new models, to items of the bank
    observed: Observations  # The answers that count, in the bank's order
    estimates: ScoreEstimates
    past: PastScores

    @classmethod
    def of(
        cls, bank: Bank, responses: ResponseMatrix, estimates: ScoreEstimates, selection: Selection | None = None
    ) -> Self:
        """Find the answers that the estimates were made from, as `estimate` does.

        Raises
        ------
        DataError
            When the responses are not those of the models that were estimated, in their order.
        """
        if tuple(responses.model_ids) != estimates.model_ids:
            raise DataError(
                f"responses must be those of the {estimates.n_models} models that were estimated, in their order, got "
                f"{shown(responses.model_ids)}. Give what estimate was given."
            )
        known = only_items(responses, bank.responses.items["item_id"])[0]
        chosen = selection_or_published(bank, None if selection is None else selection.whole)
        return cls(bank, known, found_items(bank, known, chosen), estimates, PastScores.of(bank))

    @property
    def n_models(self) -> int:
        """Number of models."""
        return self.estimates.n_models

    @property
    def overall(self) -> int:
        """Where the overall score, or a headline score in its place, stands among the targets."""
        return self.estimates.targets.index(self.estimates.main_target)

    def model(self, row: int, target: str = "") -> OneModel:
        """Return the estimates of one model, for a page about this score; by default the overall or headline score."""
        made = self.estimates
        return OneModel(
            model_id=made.model_ids[row],
            key=f"m{row + 1}",
            targets=made.targets,
            value=made.value[row],
            low=made.low[row],
            high=made.high[row],
            n_items=tuple(made.n_items[row].tolist()),
            n_total=tuple(made.n_total.tolist()),
            level=made.level,
            is_flagged=bool(made.typicality.is_flagged[row]),
            target=target or made.main_target,
        )

    def answered(self, row: int) -> tuple[IntArray, FloatArray]:
        """Positions in the bank of what one model answered, and the responses, each (n,)."""
        responses = self.observed.responses[row]
        is_known = ~np.isnan(responses)
        return self.observed.positions[is_known], responses[is_known]

    def answers(self, row: int) -> GivenAnswers:
        """Return one model's answers beside what was expected."""
        items, given = self.answered(row)
        trials = self.observed.n_trials
        own = None if trials is None else trials[row][~np.isnan(self.observed.responses[row])]
        return GivenAnswers.of(self.bank, items, given, own)
