"""Sessions whose past speaks for factor models."""

import pytest

from itembank.sessions.preparation import STACKED
from tests.sessions.simulated import forget_past_sessions, session_bank


@pytest.fixture
def stacked(monkeypatch):
    """Let p-IRT and factor models be weighed together, whether or not that served past sessions better."""
    bank = session_bank(n_items=40)
    forget_past_sessions(bank)
    monkeypatch.setattr("itembank.sessions.preparation.CANDIDATES", (STACKED,))
    yield
    forget_past_sessions(bank)
