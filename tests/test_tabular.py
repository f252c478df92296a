import dataclasses
import html
import sys
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import itembank
import itembank_living
import itembank_scaling
import itembank_studies
from itembank.bank.banks import Bank
from itembank.errors import MissingDependencyError
from itembank.estimation.estimate import estimate
from itembank.output_keys import outputs, unit_of
from itembank.tabular import MOST_LINES, WIDTH, Compact, Note, Tabular, few_of_each, joined_notes, notes_on
from tests.bank.banks import make_bank

HOSTILE = '<script>alert("x")</script>\x1b[31m'


HOMES = (itembank, *(getattr(itembank, name) for name in itembank.__all__))


def classes(*homes):
    found = {getattr(home, name): None for home in homes for name in getattr(home, "__all__", ())}
    return [one for one in found if isinstance(one, type) and dataclasses.is_dataclass(one)]


def holds_arrays(kind):
    return any("ndarray" in str(one.type) or "DataFrame" in str(one.type) for one in dataclasses.fields(kind))


def test_every_public_object_is_shown_short():
    for kind in classes(*HOMES):
        assert issubclass(kind, Tabular) or not hasattr(kind, "rows"), kind
        if hasattr(kind, "rows") or holds_arrays(kind):
            assert issubclass(kind, Compact | Tabular), kind
            assert "__repr__" not in vars(kind) or kind is Bank, kind


def test_facts_are_attributes_and_their_keys_are_documented():
    documented = {key for output in outputs().values() for keys in output.keys.values() for key in keys}
    homes = (*HOMES, itembank_living, itembank_scaling, itembank_studies)
    kinds = [one for one in classes(*homes) if issubclass(one, Tabular)]
    facts = [(kind, *one.partition("=")) for kind in kinds for one in kind.header]
    assert len(facts) > 20
    for kind, key, _, attribute in facts:
        assert key in documented, (kind, key)
        assert hasattr(kind, attribute or key), (kind, key)


def test_facts_are_what_json_has():
    @dataclass(frozen=True, slots=True, repr=False)
    class Facts(Tabular):
        header = ("ids", "numbers=values", "parts", "table")
        ids: tuple
        values: np.ndarray
        parts: dict
        table: pl.DataFrame

    found = Facts(("a", "b"), np.array([0.5, np.nan]), {"one": (np.int64(1),)}, pl.DataFrame({"score": [0.25]}))
    assert found.rows() == [{"score": 0.25}]
    plain = {"ids": ["a", "b"], "numbers": [0.5, None], "parts": {"one": [1]}, "table": [{"score": 0.25}]}
    assert found.to_dict() == plain
    assert type(found.to_dict()["parts"]["one"][0]) is int


@dataclass(frozen=True, slots=True, repr=False)
class Told(Tabular):
    """A result with something to say."""

    notes: tuple

    @property
    def table(self):
        """One row."""
        return pl.DataFrame([{"score": 0.5}])


def test_notes_are_said_below_the_table_and_of_each_kind_three():
    notes = [Note("a", "well known.", "And more.", (f"m{k}",)) for k in range(5)]
    told = Told((*notes, Note("b", "The <b> is lost.")))
    for text in (repr(told), html.unescape(told._repr_html_())):
        assert all(words in text for words in ("'m2': well known. (And 2 more like it", "The <b> is lost."))
        assert not any(words in text for words in ("'m3'", "And more."))
    assert "<b>" not in told._repr_html_()
    assert notes_on(told.notes, "m4") == "Well known. The <b> is lost."
    assert notes_on([Note("warning", "new.csv: 2 ids differ.")], "m4") == "new.csv: 2 ids differ."
    assert few_of_each(notes[:1], is_brief=False) == ["'m0': well known. And more."]
    (joined,) = joined_notes(notes)
    assert joined.models == ("m0", "m1", "m2", "m3", "m4")


@dataclass(frozen=True, slots=True, repr=False)
class Scores(Tabular):
    """A result of so many records."""

    n_rows: int
    name: str = "model"

    @property
    def table(self):
        """One row a model."""
        records = [{"model_id": f"{self.name}-{k}", "score": k / 8, "low": float("nan")} for k in range(self.n_rows)]
        return pl.DataFrame(records)


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
    assert not any(words in shown for words in ("<script>", "\x1b"))
    assert html.escape('<script>alert("x")</script>') in shown
    assert shown.count("<tr>") == 4
    assert "100 of 300 rows" in Scores(300)._repr_html_()
    responses = make_bank().responses
    named = dataclasses.replace(responses, models=responses.models.with_columns(pl.lit("<b>").alias("<i>")))
    assert "<i>" not in named._repr_html_()


def test_a_result_becomes_a_data_frame_or_says_what_to_install(monkeypatch):
    assert Scores(3).to_polars().equals(pl.DataFrame(Scores(3).rows()))
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(Scores(3).to_pandas(), pandas.DataFrame(Scores(3).rows()))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"pip install pandas$"):
        Scores(3).to_pandas()


def test_banks_responses_and_estimates_are_shown_short():
    bank = make_bank(with_extras=True)
    estimates = estimate(bank, bank.responses, method="mean", interval="model-based")
    for thing in (bank, bank.responses, bank.calibration, bank.parameters, bank.targets, estimates):
        check_short(thing)
        has_pieces = isinstance(thing, Bank | Tabular)  # tests/pages/test_render.py
        assert has_pieces or "<" not in thing._repr_html_().replace("<pre>", "").replace("</pre>", "")
    assert "12 past models x 30 items\n  3 scenarios: 'math', 'code', 'law'" in repr(bank)
    assert "array (12, 2) of float64" in repr(bank.calibration)
    assert estimates.to_polars().height == len(estimates.rows())


def test_units_of_keys_with_a_number_in_them():
    assert unit_of("half_width_5_models", "calibrate") == unit_of("half_width", "calibrate") == "score"
    assert unit_of("half_width_5_items", "calibrate") == ""
