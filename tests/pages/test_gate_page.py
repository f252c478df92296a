from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.gating.gate import gate
from itembank.gating.gate_spec import GateSpec
from itembank.gating.stages import start_gate
from itembank.pages.blocks import Caution, Chart, Facts, Text
from itembank.pages.gate_page import gate_page
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Fact
from tests.pages.reading import answers, check_charts, column, columns_of, lead_text, of_kind

PAYLOAD = "<script>alert(1)</script>"
N = 3000


def one(name, values):
    rows = {"item_id": [f"q{k}" for k in range(N)], "scenario": [("a", PAYLOAD)[k % 2] for k in range(N)]}
    return ResponseMatrix.create(values[None], model_ids=[name], items=pl.DataFrame(rows))


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(3)
    right = (rng.random(N) < 0.6).astype(float)
    changed = np.where(rng.random(N) < 0.1, 1.0 - right, right)
    return one("old", right), one(PAYLOAD, changed)


def test_it_says_the_verdict_first_and_lists_what_changed(pair):
    found = gate(*pair)
    page = gate_page(found, then=[("Go on", "itembank gate next g 'a b'")])
    assert lead_text(page) == found.sentence
    noted = gate_page(replace(found, notes=("the items were chosen", Fact("the candidate's answers cost 2"))))
    assert (noted.lead[-2:]) == (Caution("The items were chosen."), Text("The candidate's answers cost 2."))
    assert answers(page)[0].tone == {"pass": "good", "fail": "bad", "undecided": "open"}[found.verdict]
    scores = [f"{100 * one.responses.mean():.1f} points" for one in pair]
    assert answers(page)[1].words == f"{scores[0]} to {scores[1]}, from 3,000 of 3,000 questions"
    difference = pair[1].responses[0] - pair[0].responses[0]
    assert answers(page)[1].value == f"{100 * difference.mean():+.1f} points"
    fell, rose = int((difference < 0).sum()), int((difference > 0).sum())
    assert answers(page)[2].words == f"{fell} fell, {rose} rose"
    flipped = np.flatnonzero(difference)
    assert [item.item_id for item in found.flipped] == [f"q{k}" for k in flipped]
    assert column(page, "Questions whose", "item_id") == [f"q{k}" for k in flipped[:200]]
    assert column(page, "Questions whose", "way") == ["fell" if difference[k] < 0 else "rose" for k in flipped[:200]]
    changes = dict(zip(column(page, "Scenarios", "scenario"), column(page, "Scenarios", "change"), strict=True))
    assert changes == {"a": pytest.approx(difference[::2].mean()), PAYLOAD: pytest.approx(difference[1::2].mean())}
    assert of_kind(page, Facts)[0].pairs == (("Go on", "itembank gate next g 'a b'"),)
    check_charts(page, PAYLOAD)


@pytest.mark.parametrize("both_sides", [False, True])
def test_bounds_that_decide_are_drawn_against_margin_and_tolerance(pair, both_sides):
    found = gate(*reversed(pair), spec=GateSpec(margin=0.05, tolerance=0.01, both_sides=both_sides))
    drawn = of_kind(gate_page(found), Chart)[0]
    lines = columns_of(drawn, "gate-lines")
    assert lines["at"] == pytest.approx([0.0, -1.0, 1.0, -5.0, 5.0] if both_sides else [0.0, -1.0, -5.0])
    assert found.difference > 0.0
    look, bars = found.last, columns_of(drawn)
    bounds = (look.by_alarm[0], look.by_miss[1]) if both_sides else (look.by_miss[0], look.by_alarm[1])
    assert (bars["lower"][0], bars["upper"][0]) == pytest.approx([100.0 * end for end in bounds])


def test_a_gate_in_stages_shows_every_look(pair):
    found = start_gate(pair[0], spec=GateSpec(margin=0.03, first_look=100)).look(pair[1], in_stages=True)
    assert len(found.looks) > 2
    page = ib.show(found)
    data = columns_of(of_kind(page, Chart)[1])
    assert data["n_items"] == [look.n_items for look in found.looks]
    widths = np.subtract(data["high"], data["low"])
    assert np.all(np.diff(widths) < 0.0)
    check_charts(page, PAYLOAD)


def test_nothing_that_changed_is_drawn_and_shown_in_a_notebook(pair):
    found = gate(pair[0], pair[0])
    page = gate_page(found)
    assert (answers(page)[0].value, answers(page)[0].tone) == ("PASS", "good")
    assert 'class="answer one good"' in found._repr_html_()
    assert not found.flipped
    assert "What changed" in [one.title for one in page.sections]
    assert not any("rose" in one.title for one in page.charts)  # no bar would be in it
    check_charts(page)
    assert "PASS: old" in found._repr_html_()
