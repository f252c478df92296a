"""Pages that the browser opens: one of each kind, with names that would run scripts where they were not escaped."""

from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl

from itembank.adaptive.limits import Budget
from itembank.adaptive.preparation import prepare_sessions
from itembank.adaptive.session import AdaptiveSession
from itembank.adaptive.session_spec import SessionSpec
from itembank.calibration.build import build_bank
from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.diagnostics.item_audit import audit_items
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


@cache
def one_bank() -> Bank:
    """Return the bank that pages of new models and sessions stand beside."""
    return hostile_bank()


def _new_models(n_models: int) -> Page:
    bank = one_bank()
    answers = bank.responses.responses[:n_models, :40]  # those of past models, so that they are not unlike them
    names = [f"{PAYLOADS[k % len(PAYLOADS)]} new {k}" for k in range(n_models)]
    new = ResponseMatrix.create(answers, model_ids=names, items=bank.responses.items[:40])
    return estimates_page(bank, new, estimate(bank, new), command=f"itembank report {PAYLOADS[1]}")


def estimates() -> Page:
    """Return the page of one new model."""
    return _new_models(1)


def many_estimates() -> Page:
    """Return the page of a dozen new models."""
    return _new_models(12)


def session() -> Page:
    """Return the page of an adaptive session."""
    bank = one_bank()
    spec = SessionSpec(budget=Budget(n_items=20), interval="model-based")
    made = AdaptiveSession(prepare_sessions(bank, spec), model_id=PAYLOADS[0])
    for k in range(20):
        made.tell(made.ask()[0], float(k % 3 > 0), costs={PAYLOADS[1]: 0.5}, new_units=True)
    return session_page(made, bank, command=f"itembank report {PAYLOADS[1]}")


PAGES: dict[str, Callable[[], Page]] = {
    "bank": bank,
    "audit": audit,
    "estimates": estimates,
    "many estimates": many_estimates,
    "session": session,
}
"""Every kind of page, by name."""
