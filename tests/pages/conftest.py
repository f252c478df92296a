import pytest

from tests.bank.banks import make_bank


@pytest.fixture
def without_library(monkeypatch):
    """Leave the charts' library out of pages: to bundle it takes seconds, and it has tests of its own."""
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")


@pytest.fixture(scope="package")
def bank():
    return make_bank()
