"""Pages of comparisons and of gates."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.irt.bernoulli import probability
from itembank.pages.blocks import Caution, Chart, Facts, Text
from itembank.pages.comparison_charts import (
    MOST_MODELS,
    PairFinding,
    pair_number,
    probability_words,
    scenario_differences,
)
from itembank.pages.comparison_page import comparison_page, deciding_items
from itembank.pages.gate_page import gate_page
from itembank.tabular import Fact
from tests.bank.banks import make_bank
from tests.pages.reading import answers, cautions, check_charts, column, columns_of, holds, lead_text, of_kind, table

pytestmark = pytest.mark.usefixtures("few_folds")

PAYLOAD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=30, n_items=60)


def results(bank, abilities, *, n_items=30, names=None):
    rng = np.random.default_rng(4)
    chances = probability(bank.parameters, np.tile(np.asarray(abilities)[:, None], (1, bank.calibration.n_dims)))
    values = (rng.random(chances.shape) < chances).astype(float)
    names = names or [f"m{k}" for k in range(len(abilities))]
    return ib.ResponseMatrix.create(values, model_ids=names, items=bank.responses.items).take(items=np.arange(n_items))


def page_of(bank, matrix, **choices):
    found = ib.compare(bank, matrix, **choices)
    every = ib.compare(bank, matrix, **{**choices, "target": "all"})
    return found, comparison_page(found, bank, matrix, by_scenario=every)


@pytest.fixture(scope="module")
def pair(bank):
    return page_of(bank, results(bank, [-1.5, 1.5], names=["old", PAYLOAD]))


@pytest.fixture(scope="module")
def ranking(bank):
    return page_of(bank, results(bank, [-2.0, 0.4, -1.2, 2.0, -0.4, 1.2]))


def test_the_answer_names_the_better_model_its_lead_and_how_sure_that_is(pair):
    found, page = pair
    row = found.rows()[0]
    (answer,) = answers(page)
    assert answer.value == f"{100 * row['difference']:+.1f} points"
    assert answer.interval == f"{100 * row['low']:.1f} to {100 * row['high']:.1f} points, 95 % interval"
    assert lead_text(page).startswith(
        f"{PAYLOAD} beats old by {100 * row['difference']:.1f} points on the overall score"
    )
    assert probability_words(row["probability_b_better"]) in answer.words
    assert "80 % of the time" in lead_text(page)
    check_charts(page, PAYLOAD)
    found = PairFinding.of(pair[0], 0, 0)
    assert "would be detected" in found.detectable_words
    assert "too few" in replace(found, detectable=1.1).detectable_words
    found, page = pair
    (chart,) = page.sections[0].blocks
    data = chart.data[0].columns
    assert data["target"][0] == "overall"
    assert data["difference"][0] == pytest.approx(100.0 * found.difference.value[0, 0])
    for low, high, clear in zip(data["low"], data["high"], data["clear"], strict=True):
        assert (clear == "clear") == (low > 0.0 or high < 0.0)


def test_the_answer_is_the_same_with_the_models_the_other_way_round_or_of_all_scores(bank, pair):
    found, page = pair
    matrix = results(bank, [-1.5, 1.5], names=["old", PAYLOAD])
    _, turned = page_of(bank, matrix, models=[PAYLOAD, "old"])
    assert answers(turned)[0].value == answers(page)[0].value
    assert (answers(turned)[0].interval, found.model_ids) == (answers(page)[0].interval, ("old", PAYLOAD))
    found = ib.compare(bank, results(bank, [-1.5, 1.5], names=["old", PAYLOAD]), target="all")
    assert found.targets[0] != "overall"
    assert lead_text(comparison_page(found)) == lead_text(pair[1])


def test_models_that_answered_alike_cannot_be_told_apart(bank):
    matrix = results(bank, [0.5, 0.5])
    same = ib.ResponseMatrix.create(matrix.responses[[0, 0]], models=matrix.models, items=matrix.items)
    _, page = page_of(bank, same)
    holds(lead_text(page), "cannot be told apart", "equal")
    assert page.sections[-1].lead.startswith("m1 did better than m0 on 0 questions and worse on 0")
    check_charts(page)


def test_items_that_decide_add_up_to_the_raw_difference(bank):
    matrix = results(bank, [0.2, 0.0], n_items=60)
    found = ib.compare(bank, matrix, method="paired")
    items = deciding_items(bank, matrix, None, ("m1", "m0"))
    assert sum(items.columns["contribution"]) == pytest.approx(100.0 * found.pairs.raw_difference[0, 0])
    sizes = np.abs(items.columns["contribution"])
    assert list(sizes) == pytest.approx(sorted(sizes, reverse=True))
    columns = [items.columns[name] for name in ("first", "second", "contribution")]
    for first, second, value in zip(*columns, strict=True):
        assert (first > second) == (value > 0.0)
    every = ib.compare(bank, matrix, target="all")
    drawn = scenario_differences(every, PairFinding.of(every, 0, every.targets.index(every.last))).data[0].columns
    places = [every.targets.index(name) for name in drawn["target"]]
    assert drawn["difference"][0] > 0.0 > min(drawn["difference"])  # the one that is better overall is not in all
    for name, ends in (("difference", every.difference.value), ("low", every.tests.joint_low)):
        np.testing.assert_allclose(drawn[name], 100.0 * ends[0, places])
    np.testing.assert_allclose(drawn["probability"], every.tests.probability_b_better[0, places])


def test_a_ranking_has_its_order_groups_and_pairs(ranking):
    found, page = ranking
    rows, ordered = found.ranking.rows(), table(page, "Models in order").data.columns
    assert ordered["model_id"] == [row["model_id"] for row in rows]
    assert ordered["group"] == [row["group"] for row in rows]
    best, second = (found.model_ids.index(name) for name in ordered["model_id"][:2])
    own = PairFinding.of(found, pair_number(found, best, second), 0)
    assert ordered["behind"][1] == pytest.approx(100.0 * own.difference)
    tied = [row["model_id"] for row in rows[1:] if row["group"] == 1]
    scores, distances = of_kind(page, Chart)
    assert ("no model is tied" in scores.title) != bool(tied)
    assert scores.data[0].columns["score"] == [row["score"] for row in rows]
    for low, score, high in zip(*(ordered[name] for name in ("from", "score", "to")), strict=True):
        assert low < score < high
    assert distances.data[0].columns["behind"] == ordered["behind"]
    assert answers(page)[0].words.startswith(f"{100.0 * own.difference:.1f} points ahead of {ordered['model_id'][1]}")
    assert answers(page)[0].value == rows[0]["model_id"]
    check_charts(page)
    found, page = ranking
    data = table(page, "Differences of pairs").data.columns
    named = zip(data["better"], data["worse"], strict=True)
    listed = dict(zip(named, zip(data["probability"], data["clear"], strict=True), strict=True))
    assert len(listed) == found.n_pairs
    for row in found.rows():
        pair, chance = (row["model_b"], row["model_a"]), row["probability_b_better"]
        if row["difference"] < 0.0:
            pair, chance = pair[::-1], 1.0 - chance
        assert listed[pair] == (pytest.approx(chance), row["p_holm"] < 0.05)


def test_long_names_and_many_models_leave_room(bank):
    long = [letter * 200 for letter in "abc"]
    _, page = page_of(bank, results(bank, [-1.0, 0.0, 1.0], names=long))
    first = answers(page)[0]
    assert re.fullmatch("([abc])\\1{28}…\\1{29}", first.value)
    assert max(map(len, first.words.split())) == 59
    assert long[2] in lead_text(page)
    many = results(bank, np.linspace(-2.0, 2.0, MOST_MODELS + 5))
    page = comparison_page(ib.compare(bank, many, method="paired"), bank, many)
    (order,) = of_kind(page, Chart)
    assert len(order.data[0]) == MOST_MODELS
    assert f"{MOST_MODELS} best of {MOST_MODELS + 5}" in order.note
    assert len(table(page, "Models in order").data) == MOST_MODELS + 5


def test_every_pair_has_its_number():
    class Three:
        model_ids = ("a", "b", "c", "d")

    first, second = np.triu_indices(4, 1)
    assert [pair_number(Three, i, j) for i, j in zip(second, first, strict=True)] == list(range(6))


def test_few_past_models_and_other_items_are_said(bank):
    few = make_bank(n_models=8, n_items=60)
    matrix = results(few, [-1.0, 1.0])
    gaps = matrix.responses.copy()
    gaps[0, :5] = np.nan
    holes = ib.ResponseMatrix.create(gaps, models=matrix.models, items=matrix.items)
    page = comparison_page(ib.compare(few, holes), few, holes)
    holds(cautions(page), "random sample, since 8 past models are too few", "answered different items")
    assert not any("also uses past models" in section.lead for section in page.sections)
    whole = results(few, [-1.0, 1.0], n_items=60)
    page = comparison_page(ib.compare(few, whole, estimand="run"), few, whole)
    assert "in this run, on exactly these questions. That says nothing of other questions." in lead_text(page)
    assert not cautions(page)
    several = ib.compare(few, results(few, [-1.0, 0.0, 1.0], n_items=60), estimand="run")
    text = str([*comparison_page(several).blocks()])
    assert ("differ clearly" in text, "others may turn them" in text) == (False, True)


@pytest.mark.parametrize(("chance", "said"), [(0.994, "0.99"), (0.996, "above 0.99"), (np.nan, "unknown")])
def test_a_probability_is_never_written_as_sure(chance, said):
    assert probability_words(chance) == said


@pytest.mark.parametrize("abilities", [[-1.5, 1.5], [-2.0, -1.0, 1.0, 2.0]])
def test_without_a_bank_nothing_is_said_of_past_models(bank, abilities):
    page = comparison_page(ib.compare(results(bank, abilities)))
    assert "past model" not in page.html()
    check_charts(page)


N = 3000


def one_run(name, values):
    rows = {"item_id": [f"q{k}" for k in range(N)], "scenario": [("a", PAYLOAD)[k % 2] for k in range(N)]}
    return ib.ResponseMatrix.create(values[None], model_ids=[name], items=pl.DataFrame(rows))


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(3)
    right = (rng.random(N) < 0.6).astype(float)
    changed = np.where(rng.random(N) < 0.1, 1.0 - right, right)
    return one_run("old", right), one_run(PAYLOAD, changed)


def test_it_says_the_verdict_first_and_lists_what_changed(runs):
    found = ib.gate(*runs)
    page = gate_page(found, then=[("Go on", "itembank gate next g 'a b'")])
    assert lead_text(page) == found.sentence
    noted = gate_page(replace(found, notes=("the items were chosen", Fact("the candidate's answers cost 2"))))
    assert (noted.lead[-2:]) == (Caution("The items were chosen."), Text("The candidate's answers cost 2."))
    assert answers(page)[0].tone == {"pass": "good", "fail": "bad", "undecided": "open"}[found.verdict]
    scores = [f"{100 * one.responses.mean():.1f} points" for one in runs]
    assert answers(page)[1].words == f"{scores[0]} to {scores[1]}, from 3,000 of 3,000 questions"
    difference = runs[1].responses[0] - runs[0].responses[0]
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
def test_bounds_that_decide_are_drawn_against_margin_and_tolerance(runs, both_sides):
    found = ib.gate(*reversed(runs), spec=ib.GateSpec(margin=0.05, tolerance=0.01, both_sides=both_sides))
    drawn = of_kind(gate_page(found), Chart)[0]
    lines = columns_of(drawn, "gate-lines")
    assert lines["at"] == pytest.approx([0.0, -1.0, 1.0, -5.0, 5.0] if both_sides else [0.0, -1.0, -5.0])
    assert found.difference > 0.0
    look, bars = found.last, columns_of(drawn)
    bounds = (look.by_alarm[0], look.by_miss[1]) if both_sides else (look.by_miss[0], look.by_alarm[1])
    assert (bars["lower"][0], bars["upper"][0]) == pytest.approx([100.0 * end for end in bounds])


def test_a_gate_in_stages_shows_every_look(runs):
    found = ib.start_gate(runs[0], spec=ib.GateSpec(margin=0.03, first_look=100)).look(runs[1], in_stages=True)
    assert len(found.looks) > 2
    page = ib.show(found)
    data = columns_of(of_kind(page, Chart)[1])
    assert data["n_items"] == [look.n_items for look in found.looks]
    widths = np.subtract(data["high"], data["low"])
    assert np.all(np.diff(widths) < 0.0)
    check_charts(page, PAYLOAD)


def test_nothing_that_changed_is_drawn_and_shown_in_a_notebook(runs):
    found = ib.gate(runs[0], runs[0])
    page = gate_page(found)
    assert (answers(page)[0].value, answers(page)[0].tone) == ("PASS", "good")
    assert 'class="answer one good"' in found._repr_html_()
    assert not found.flipped
    assert "What changed" in [one.title for one in page.sections]
    assert not any("rose" in one.title for one in page.charts)  # no bar would be in it
    check_charts(page)
    assert "PASS: old" in found._repr_html_()
