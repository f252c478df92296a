"""What a run would send, without a model."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import INPUT_TOKENS, OUTPUT_TOKENS, mean_cost
from itembank.harnesses.lm_eval.documents import Documents, item_id
from itembank.harnesses.lm_eval.patches import Original, hooked
from itembank.harnesses.lm_eval.prompts import BankPrompts
from itembank.harnesses.lm_eval.selected import ChosenItems
from itembank.harnesses.protocol import contents_of

CHARACTERS_A_TOKEN = 4.0
"""Of English text, about; for a bank whose responses recorded no tokens."""


class _DryRunOverError(Exception):
    """Ends an evaluation before its first request."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a run would send."""

    n_items: int
    n_requests: int
    # As the bank's models needed them, else input tokens as the length of prompts suggests; None where unknown.
    input_tokens: float | None
    output_tokens: float | None
    basis: str  # Where the tokens come from

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "n_items": self.n_items,
            "n_requests": self.n_requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "tokens_from": self.basis,
        }


class _Counting(ChosenItems):
    """Hooks that build and check requests, and end the evaluation there."""

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Build the requests of all chosen documents."""
        self.prepare_all(original, arguments)
        raise _DryRunOverError


def dry_run(
    launch: Callable[[], Any],
    bank: Bank,
    documents: Documents,
    *,
    n_items: int | None = None,
    prompts: BankPrompts | None = None,
) -> DryRun:
    """Compare documents and prompts with the bank's and count what would be sent.

    Parameters
    ----------
    launch : function
        Calls the harness, with a model that asks for nothing.
    bank : Bank
    documents : documents by task
        Those that may be run.
    n_items : int, optional
        Run so many of them; their requests and tokens are then those of a mean item times as many.
    prompts : BankPrompts, optional
        What prompts must be.

    Raises
    ------
    IntegrityError
        When a document or prompt is not the one of the bank.
    """
    hooks = _Counting(documents, contents_of(bank.responses.items), prompts=prompts)
    with hooked(hooks), suppress(_DryRunOverError):
        launch()
    return _counted(hooks, bank, documents, n_items)


def _counted(hooks: ChosenItems, bank: Bank, documents: Documents, n_items: int | None) -> DryRun:
    requests = [
        request
        for task, numbers in documents.items()
        for number in numbers
        for request in hooks.prepared[task].requests[number]
    ]
    ids = [item_id(task, number) for task, numbers in documents.items() for number in numbers]
    share = 1.0 if n_items is None else min(n_items / len(ids), 1.0)
    n_requests = sum(request.repeats or 1 for request in requests)
    n_characters = sum(
        (request.repeats or 1) * len(part) for request in requests for part in request.args if isinstance(part, str)
    )
    recorded = _recorded(bank, ids)
    tokens: Mapping[str, float] = recorded or {INPUT_TOKENS: n_characters / CHARACTERS_A_TOKEN}
    basis = "the bank's models" if recorded else f"the length of prompts, at {CHARACTERS_A_TOKEN:g} characters a token"
    return DryRun(
        round(len(ids) * share),
        round(n_requests * share),
        _scaled(tokens.get(INPUT_TOKENS), share),
        _scaled(tokens.get(OUTPUT_TOKENS), share),
        basis,
    )


def _scaled(amount: float | None, share: float) -> float | None:
    return None if amount is None else round(amount * share)


def _recorded(bank: Bank, ids: list[str]) -> dict[str, float]:
    """Tokens that the bank's models needed for these items, by unit; items without any count as the mean."""
    is_wanted = bank.responses.items["item_id"].is_in(ids).to_numpy()
    found = {}
    for unit in (INPUT_TOKENS, OUTPUT_TOKENS):
        if unit in bank.responses.costs:
            costs = mean_cost(bank.responses, unit)[is_wanted]
            if np.isfinite(costs).any():
                found[unit] = float(np.nanmean(costs)) * len(ids)
    return found
