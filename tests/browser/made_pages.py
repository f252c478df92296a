"""Pages that the browser opens: one of each kind, with names that would run scripts where they were not escaped."""

from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl
import pytest

from itembank.adaptive.limits import Budget
from itembank.adaptive.preparation import prepare_sessions
from itembank.adaptive.session import AdaptiveSession
from itembank.adaptive.session_spec import SessionSpec
from itembank.calibration.build import build_bank
from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.diagnostics.item_audit import audit_items
from itembank.errors import DataWarning
from itembank.estimation.estimate import estimate
from itembank.pages.audit_page import audit_page
from itembank.pages.bank_page import bank_page
from itembank.pages.blocks import Page
from itembank.pages.estimates_page import estimates_page
from itembank.pages.session_page import session_page

PAYLOADS = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "</script><script>window.hit=1</script>",
    "javascript:window.hit=1",
    "{{7*7}}{% raw %}",
    "<svg/onload=window.hit=1>",
    "=cmd|' /C calc'!A0",
    "'+window.hit=1+'",
    "https://example.org/beacon.png",
    "${window.hit=1}",
)
"""Ids as a stranger may choose them."""


@cache
def hostile_bank(n_models: int = 40, n_items: int = 60) -> Bank:
    """Return a bank whose models, items, scenarios and texts are payloads."""
    generator = np.random.default_rng(20261122)
    ability = generator.normal(size=(n_models, 1))
    difficulty = generator.normal(size=n_items)
    right = generator.random((n_models, n_items)) < 1.0 / (1.0 + np.exp(difficulty - 1.5 * ability))
    named = [f"{PAYLOADS[k % len(PAYLOADS)]} {k}" for k in range(max(n_models, n_items))]
    items = pl.DataFrame(
        {
            "item_id": named[:n_items],
            "scenario": [PAYLOADS[k % 3] for k in range(n_items)],
            "text": [f"What is {name}?" for name in named[:n_items]],
        }
    )
    models = pl.DataFrame(
        {
            "model_id": named[:n_models],
            "date": [f"2026-{1 + k % 12:02d}-01" for k in range(n_models)],
            "organisation": [PAYLOADS[k % 4] for k in range(n_models)],
            "size_b": [float(1 + k) for k in range(n_models)],
        }
    )
    return build_bank(ResponseMatrix.create(right.astype(float), models=models, items=items))


def bank() -> Page:
    """Return the page of a bank."""
    return bank_page(hostile_bank(), title=PAYLOADS[0], command=f"itembank report {PAYLOADS[1]}")


def audit() -> Page:
    """Return the page of an audit with groups of models and known bad items."""
    responses = hostile_bank().responses
    known = responses.item_ids[:12]
    return audit_page(audit_items(responses, known=known, by="organisation"), title=PAYLOADS[0])


def answers_of(bank: Bank, n_models: int, n_items: int = 30) -> ResponseMatrix:
    """Return new models, by names as strange, that answer items of a bank by chance."""
    generator = np.random.default_rng(7)
    names = [f"new {PAYLOADS[k % len(PAYLOADS)]} {k}" for k in range(n_models)]
    right = (generator.random((n_models, n_items)) < 0.5).astype(float)
    return ResponseMatrix.create(right, model_ids=names, item_ids=bank.item_ids[:n_items])


def one_model() -> Page:
    """Return the page of one model's estimates."""
    bank = hostile_bank()
    responses = answers_of(bank, 1)
    return estimates_page(bank, responses, estimate(bank, responses, method="p-irt", interval="model-based"))


def many_models() -> Page:
    """Return the page of estimates of many models."""
    bank = hostile_bank()
    responses = answers_of(bank, 12)
    with pytest.warns(DataWarning, match="unlike the bank's models"):  # chance answers nothing like a model
        estimates = estimate(bank, responses, method="p-irt")
    return estimates_page(bank, responses, estimates, title=PAYLOADS[2])


def session() -> Page:
    """Return the page of a session that ended with its budget."""
    bank = hostile_bank()
    spec = SessionSpec(budget=Budget(n_items=12), interval="model-based")
    asked = AdaptiveSession(prepare_sessions(bank, spec), model_id=PAYLOADS[0])
    for k in range(12):
        (item,) = asked.ask()
        asked.tell(item, float(k % 2), costs={"cost_usd": 0.01})
    return session_page(asked, bank)


PAGES: dict[str, Callable[[], Page]] = {
    "bank": bank,
    "audit": audit,
    "one-model": one_model,
    "many-models": many_models,
    "session": session,
}
"""Every kind of page, by name."""
