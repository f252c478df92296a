import dataclasses
import html
import sys
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import itembank
from itembank.bank.banks import Bank
from itembank.errors import MissingDependencyError
from itembank.estimation.estimate import estimate
from itembank.responses.coded_responses import CodedResponses
from itembank.tabular import MOST_LINES, WIDTH, Compact, Tabular
from tests.bank.banks import make_bank

HOSTILE = '<script>alert("x")</script>\x1b[31m'


def public_classes():
    homes = (itembank, *(getattr(itembank, name) for name in itembank.__all__))
    found = {getattr(home, name): None for home in homes for name in getattr(home, "__all__", ())}
    return [one for one in found if isinstance(one, type) and dataclasses.is_dataclass(one)]


def holds_arrays(kind):
    return any("ndarray" in str(one.type) or "DataFrame" in str(one.type) for one in dataclasses.fields(kind))


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_every_public_object_is_shown_short(kind):
    if hasattr(kind, "rows"):
        assert issubclass(kind, Tabular)
    if hasattr(kind, "rows") or holds_arrays(kind):
        assert issubclass(kind, Compact | Tabular)
        # coded responses say how many there are, without making the arrays that are otherwise shown
        assert "__repr__" not in vars(kind) or kind is CodedResponses


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Tabular):
    """A result of so many records."""

    n_rows: int
    name: str = "model"

    def rows(self):
        """One record a model."""
        return [{"model_id": f"{self.name}-{k}", "score": k / 8, "low": float("nan")} for k in range(self.n_rows)]


def check_short(thing):
    lines = repr(thing).split("\n")
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH
    assert "\x1b" not in repr(thing)


def test_a_result_shows_its_first_rows():
    check_short(Scores(300))
    assert repr(Scores(2)).split("\n") == [
        "Scores of 2 rows; scores in points",
        "  model_id   score   low",
        " ────────────────────────",
        "  model-0      0.0     -",
        "  model-1     12.5     -",
    ]
    assert repr(Scores(0)) == "Scores of 0 rows"
    assert repr(Scores(1)).split("\n")[1] == "  model_id   model-0"


def test_a_notebook_is_shown_a_table_in_which_nothing_is_markup():
    shown = Scores(3, HOSTILE)._repr_html_()
    assert "<script>" not in shown
    assert "\x1b" not in shown
    assert html.escape('<script>alert("x")</script>') in shown
    assert shown.count("<tr>") == 4
    assert "100 of 300 rows" in Scores(300)._repr_html_()


def test_a_result_becomes_a_data_frame():
    assert Scores(3).to_polars().equals(pl.DataFrame(Scores(3).rows()))
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(Scores(3).to_pandas(), pandas.DataFrame(Scores(3).rows()))


def test_without_pandas_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"pip install pandas$"):
        Scores(3).to_pandas()


def test_banks_responses_and_estimates_are_shown_short():
    bank = make_bank(with_extras=True)
    estimates = estimate(bank, bank.responses, method="mean", interval="model-based")
    for thing in (bank, bank.responses, bank.calibration, bank.parameters, bank.targets, estimates):
        check_short(thing)
        has_pieces = isinstance(thing, Bank | Tabular)  # tests/pages/test_shown.py
        assert has_pieces or "<" not in thing._repr_html_().replace("<pre>", "").replace("</pre>", "")
    assert repr(bank).startswith("Bank\n")
    assert "array (12, 30) of float64" in repr(bank.responses)
    assert estimates.to_polars().height == len(estimates.rows())


def test_a_hostile_name_is_escaped_in_a_notebook():
    responses = make_bank().responses
    named = dataclasses.replace(responses, models=responses.models.with_columns(pl.lit("<b>").alias("<i>")))
    assert np.all(named.responses == responses.responses)
    assert "<i>" not in named._repr_html_()
