import re
from dataclasses import replace

import numpy as np
import pytest

from itembank.comparison.compare import compare
from itembank.irt.bernoulli import probability
from itembank.pages.blocks import Chart
from itembank.pages.comparison_charts import MOST_MODELS, PairFinding, pair_number, probability_words
from itembank.pages.comparison_page import comparison_page, deciding_items
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank
from tests.pages.reading import answers, cautions, check_charts, lead_text, of_kind, table

pytestmark = pytest.mark.usefixtures("few_folds")

PAYLOAD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=30, n_items=60)


def results(bank, abilities, *, n_items=30, names=None):
    """Responses of models of these abilities to the first items."""
    rng = np.random.default_rng(4)
    chances = probability(bank.parameters, np.tile(np.asarray(abilities)[:, None], (1, bank.calibration.n_dims)))
    values = (rng.random(chances.shape) < chances).astype(float)
    names = names or [f"m{k}" for k in range(len(abilities))]
    return ResponseMatrix.create(values, model_ids=names, items=bank.responses.items).take(items=np.arange(n_items))


def page_of(bank, matrix, **choices):
    found = compare(bank, matrix, **choices)
    every = compare(bank, matrix, **{**choices, "target": "all"})
    return found, comparison_page(found, bank, matrix, by_scenario=every)


@pytest.fixture(scope="module")
def pair(bank):
    return page_of(bank, results(bank, [-1.5, 1.5], names=["old", PAYLOAD]))


@pytest.fixture(scope="module")
def ranking(bank):
    return page_of(bank, results(bank, np.linspace(-2.0, 2.0, 6)))


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


def test_it_is_the_same_answer_with_the_models_the_other_way_round(bank, pair):
    found, page = pair
    matrix = results(bank, [-1.5, 1.5], names=["old", PAYLOAD])
    _, turned = page_of(bank, matrix, models=[PAYLOAD, "old"])
    assert answers(turned)[0].value == answers(page)[0].value
    assert answers(turned)[0].interval == answers(page)[0].interval
    assert found.model_ids == ("old", PAYLOAD)


def test_models_that_answered_alike_cannot_be_told_apart(bank):
    matrix = results(bank, [0.5, 0.5])
    same = ResponseMatrix.create(matrix.responses[[0, 0]], models=matrix.models, items=matrix.items)
    _, page = page_of(bank, same)
    assert "cannot be told apart" in lead_text(page)
    assert "equal" in lead_text(page)
    assert page.sections[-1].lead.startswith("m1 did better than m0 on 0 questions and worse on 0")
    check_charts(page)


def test_a_difference_beyond_all_scores_is_not_said_to_show(pair):
    found = PairFinding.of(pair[0], 0, 0)
    assert "would be detected" in found.detectable_words
    assert "too few" in replace(found, detectable=1.1).detectable_words


def test_items_that_decide_add_up_to_the_raw_difference(bank):
    matrix = results(bank, [0.0, 0.2], n_items=60)
    found = compare(bank, matrix, method="paired")
    items = deciding_items(bank, matrix, None, ("m1", "m0"))
    assert sum(items.columns["contribution"]) == pytest.approx(100.0 * found.pairs.raw_difference[0, 0])
    sizes = np.abs(items.columns["contribution"])
    assert list(sizes) == pytest.approx(sorted(sizes, reverse=True))
    for first, second, value in zip(
        *(items.columns[name] for name in ("first", "second", "contribution")), strict=True
    ):
        assert (first > second) == (value > 0.0)


def test_every_scenario_has_its_difference_the_overall_score_first(pair):
    found, page = pair
    (chart,) = page.sections[0].blocks
    data = chart.data[0].columns
    assert data["target"][0] == "overall"
    assert data["difference"][0] == pytest.approx(100.0 * found.difference.value[0, 0])
    for low, high, clear in zip(data["low"], data["high"], data["clear"], strict=True):
        assert (clear == "clear") == (low > 0.0 or high < 0.0)


def test_a_ranking_has_its_order_groups_and_differences_to_the_best(ranking):
    found, page = ranking
    rows = found.ranking.rows()
    ordered = table(page, "Models in order").data.columns
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


def test_a_long_name_does_not_fill_the_first_box(bank):
    long = [letter * 200 for letter in "abc"]
    _, page = page_of(bank, results(bank, [-1.0, 0.0, 1.0], names=long))
    first = answers(page)[0]
    assert re.fullmatch("([abc])\\1{28}…\\1{29}", first.value)
    assert max(map(len, first.words.split())) == 59
    assert long[2] in lead_text(page)


def test_every_pair_stands_in_the_table_the_better_model_first(ranking):
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


def test_every_pair_has_its_number():
    class Three:
        model_ids = ("a", "b", "c", "d")

    first, second = np.triu_indices(4, 1)
    assert [pair_number(Three, i, j) for i, j in zip(second, first, strict=True)] == list(range(6))


def test_of_all_scores_the_page_answers_for_the_overall_one(bank, pair):
    found = compare(bank, results(bank, [-1.5, 1.5], names=["old", PAYLOAD]), target="all")
    assert found.targets[0] != "overall"
    assert lead_text(comparison_page(found)) == lead_text(pair[1])


def test_of_many_models_the_best_are_drawn_and_all_stand_in_the_table(bank):
    many = results(bank, np.linspace(-2.0, 2.0, MOST_MODELS + 5))
    found = compare(bank, many, method="paired")
    page = comparison_page(found, bank, many)
    (order,) = of_kind(page, Chart)
    assert len(order.data[0]) == MOST_MODELS
    assert f"{MOST_MODELS} best of {MOST_MODELS + 5}" in order.note
    assert len(table(page, "Models in order").data) == MOST_MODELS + 5


def test_few_past_models_and_other_items_are_said(bank):
    few = make_bank(n_models=8, n_items=60)
    matrix = results(few, [-1.0, 1.0])
    gaps = matrix.responses.copy()
    gaps[0, :5] = np.nan
    holes = ResponseMatrix.create(gaps, models=matrix.models, items=matrix.items)
    found = compare(few, holes)
    page = comparison_page(found, few, holes)
    assert "random sample, since 8 past models are too few" in cautions(page)
    assert "answered different items" in cautions(page)
    assert not any("also uses past models" in section.lead for section in page.sections)
    whole = results(few, [-1.0, 1.0], n_items=60)
    page = comparison_page(compare(few, whole, estimand="run"), few, whole)
    assert "in this run, on exactly these questions. That says nothing of other questions." in lead_text(page)
    assert not cautions(page)
    text = str(comparison_page(compare(few, results(few, [-1.0, 0.0, 1.0], n_items=60), estimand="run")))
    assert "differ clearly" not in text
    assert "others may turn them" in text


@pytest.mark.parametrize(("chance", "said"), [(0.994, "0.99"), (0.996, "above 0.99"), (np.nan, "unknown")])
def test_a_probability_is_never_written_as_sure(chance, said):
    assert probability_words(chance) == said


@pytest.mark.parametrize("abilities", [[-1.5, 1.5], [-2.0, -1.0, 1.0, 2.0]])
def test_without_a_bank_nothing_is_said_of_past_models(bank, abilities):
    page = comparison_page(compare(results(bank, abilities)))
    assert "past model" not in page.html()
    check_charts(page)
