"""The items of a bank that should be looked at, as a part of its page."""

import numpy as np

from itembank.auditing.item_audit import audit_items
from itembank.auditing.panel import LEAST_MODELS
from itembank.bank.banks import Bank
from itembank.numerics.arrays import IntArray
from itembank.pages.audit_blocks import items_table, reasons_table, said
from itembank.pages.blocks import Block, Caution, Section, Text
from itembank.pages.common import plural
from itembank.pages.theme import count
from itembank.responses.responses import ResponseMatrix

MOST_CELLS = 2_000_000
"""Responses that the audit of a page looks at; of more it takes some of the models."""
MOST_ROWS = 200
TITLE = "Items to look at"


def audit_section(bank: Bank) -> Section:
    """Return the worst items with reasons; of a large bank, by some of its models."""
    n_models = int(bank.responses.observed.any(axis=1).sum()) if bank.n_models else 0
    if n_models < LEAST_MODELS:
        why = f"An audit compares what models answered, and needs at least {LEAST_MODELS} of them."
        return Section(TITLE, (Text(why),))
    responses, note = _audited(bank)
    audit = audit_items(responses, duplicates=False)
    flagged = audit.flagged
    shown = flagged.head(MOST_ROWS)
    if flagged.height > MOST_ROWS:
        note += f" The first {MOST_ROWS} of {count(flagged.height)}."
    blocks: list[Block] = [Caution(one) for one in audit.cautions]
    if shown.height:
        blocks += [reasons_table(audit), items_table(audit, shown, "Flagged items", note.strip())]
    blocks.append(
        Text(
            "Duplicates were not looked for, which takes longest: itembank check BANK --report FILE.html does, for all "
            "items."
        )
    )
    return Section(TITLE, tuple(blocks), said(audit))


def _audited(bank: Bank) -> tuple[ResponseMatrix, str]:
    """Return the answers to look at, and in words which they are where not all."""
    responses = bank.responses
    if responses.responses.size <= MOST_CELLS:
        return responses, ""
    rows = evenly_by_score(bank, max(MOST_CELLS // bank.n_items, 10 * LEAST_MODELS))
    note = (
        f"Looked at by {plural(rows.size, 'model')} of {count(bank.n_models)}, spread evenly from the weakest to the "
        "best, to be quick."
    )
    return responses.take(models=rows), note


def evenly_by_score(bank: Bank, n_models: int) -> IntArray:
    """Return rows of models that are spread evenly by their score, the best and the weakest among them."""
    order = np.argsort(bank.best_known_scores[:, -1], kind="stable")  # models without a score come last
    order = order[: int(np.isfinite(bank.best_known_scores[:, -1]).sum())]
    places = np.unique(np.linspace(0, order.size - 1, min(n_models, order.size)).round().astype(np.int64))
    return np.sort(order[places])
