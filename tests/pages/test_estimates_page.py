"""Pages of estimates and of sessions."""

import dataclasses
import shlex
from importlib import import_module

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.past_models import PastModels
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, RunError
from itembank.estimation.estimate import estimate
from itembank.estimation.notes import notes_on_unlike
from itembank.estimation.response_summary import score_basis
from itembank.harnesses import drive
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.pages import given_answers
from itembank.pages.blocks import Caution, Chart, Facts
from itembank.pages.estimates_page import MOST_NAMED, estimates_page
from itembank.pages.given_answers import left_out_expectations
from itembank.pages.session_page import session_page
from itembank.responses.score_names import OVERALL
from itembank_living.publishing.without_responses import without_responses
from tests.bank.banks import make_bank, with_family
from tests.pages.reading import answers, chart, column, holds, of_kind, table, titles, words

pytestmark = pytest.mark.usefixtures("few_folds")
SCRIPT = "<script>window.hit=1</script>"


def new_models(bank, n_models, *, seed=9, names=None):
    values = (np.random.default_rng(seed).random((n_models, bank.n_items)) < 0.6).astype(float)
    names = names or [f"new/{k}" for k in range(n_models)]
    return ib.ResponseMatrix.create(values, model_ids=names, items=bank.responses.items)


def by_model(bank, responses, **files):
    """A page of estimates that take a moment."""
    found = estimate(bank, responses, method="p-irt", interval="model-based")
    return estimates_page(bank, responses, found, **files)


@pytest.fixture(scope="module")
def made(bank):
    """One new model on 15 of 30 items, and its page."""
    selection, responses = ib.select(bank, 15, method="random", rng=1), new_models(bank, 1)
    chosen = responses.take(items=responses.item_indices(selection.item_ids))
    estimates = estimate(bank, chosen, selection=selection)
    return chosen, estimates, estimates_page(bank, chosen, estimates, selection, command="itembank estimate")


def test_the_number_comes_first_with_its_interval_what_it_took_and_how_to_cite_it(made, bank):
    _, estimates, page = made
    row = next(one for one in estimates.rows() if one["target"] == OVERALL)
    (answer,) = answers(page)
    interval = f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"
    assert answer.value == f"{100 * row['estimate']:.1f} points"
    assert answer.interval == f"{interval} points, 95 % interval"
    assert answer.words == "From 15 of 30 questions, which saves 50 % of the questions."
    for part in (answer.value, interval, "95 %", "15 of 30 questions", row["method"], bank.bank_id, "itembank "):
        assert part in answer.citation


def test_scenarios_and_models_stand_beside_past_models(made, bank):
    _, estimates, page = made
    past = bank.known_scores.value[:, :3]
    assert column(page, "Scenarios", "scenario") == ["math", "code", "law"]
    np.testing.assert_allclose(column(page, "Scenarios", "middle"), np.median(past, axis=0))
    np.testing.assert_allclose(column(page, "Scenarios", "below"), np.mean(past < estimates.value[0, :3], axis=0))
    assert "strongest on" in chart(page, "Against past models").title
    known, score = bank.known_scores.value[:, -1], estimates.column(OVERALL)[0]
    below, above = int(np.sum(known < score)), int(np.sum(known > score))
    assert page.summary == (
        f"{estimates.model_ids[0]} scores an estimated {100.0 * score:.1f} points, higher than {below} of "
        f"{known.size} past models and lower than {above}."
    )
    note = chart(page, "of past models").note
    score_of = dict(zip(bank.responses.model_ids, known, strict=True))
    wanted = {"Best": known.max(), "next above": known[known > score].min(), "next below": known[known < score].max()}
    for how, value in wanted.items():
        name, told = note.split(f"{how}: ")[1].split(" points")[0].split(", ")
        assert (score_of[name], told) == (value, f"{100.0 * value:.1f}")


def test_past_models_are_compared_by_their_known_scores_and_answers_by_their_surprise(made, bank):
    responses, estimates, page = made
    known, score = bank.known_scores.value[:, -1], estimates.column(OVERALL)[0]
    names = column(page, "the best past model", "model")
    assert names[0] == bank.responses.model_ids[int(np.argmax(known))]
    rows, distances = bank.responses.model_indices(names), np.abs(known - score)
    assert np.max(distances[rows[1:]]) <= np.min(np.delete(distances, rows))
    np.testing.assert_allclose(column(page, "the best past model", "difference"), score - known[rows])
    probability = np.array(column(page, "the best past model", "probability"))
    assert np.array_equal(probability > 0.5, score > known[rows])
    theirs = bank.responses.responses[rows][:, bank.responses.item_indices(responses.item_ids)]
    for_new = np.sum(responses.responses[0] > theirs, axis=1)
    assert column(page, "the best past model", "for_new") == for_new.tolist()
    responses, _, page = made
    assert sorted(column(page, "15 answers", "item")) == sorted(responses.item_ids)
    given = dict(zip(responses.item_ids, responses.responses[0].tolist(), strict=True))
    assert [given[item] for item in column(page, "15 answers", "item")] == column(page, "15 answers", "given")
    expected = column(page, "15 answers", "expected")
    surprise = np.abs(np.subtract(column(page, "15 answers", "given"), expected))
    assert np.all(np.diff(surprise) <= 1e-12)


def test_each_answer_leads_to_the_text_of_its_question_and_to_who_else_was_right(bank):
    texts = pl.Series([f"{SCRIPT} {k}?" for k in range(bank.n_items)])
    items = bank.responses.items.with_columns(question=texts)
    told = dataclasses.replace(bank, responses=bank.responses.with_tables(items=items))
    page = by_model(told, new_models(told, 1))
    answered = table(page, "30 answers")
    items, all_given = (answered.data.columns[name] for name in ("item", "given"))
    for item, given, entry in zip(items, all_given, answered.entries, strict=True):
        pairs = dict(entry.pairs)
        assert (entry.title, pairs["Text"]) == (item, texts[told.item_ids.index(item)])
        assert pairs["This model"] == ("right" if given else "wrong")
        for name in column(page, "the best past model", "model"):
            theirs = told.responses.responses[told.responses.model_indices([name])[0], told.item_ids.index(item)]
            assert pairs[name] == ("right" if theirs else "wrong")
    html = page.html()
    assert SCRIPT not in html
    assert 'href="#m1-answers-1"' in html
    assert 'id="m1-answers-30"' in html


def test_commands_have_the_names_of_bank_selection_and_model_and_quote_them(bank, tmp_path):
    bank.save(tmp_path / "our bank")
    loaded = ib.load_bank(tmp_path / "our bank")
    hostile = "x; rm -rf ~ #"
    responses = new_models(loaded, 1, names=[hostile]).take(items=np.arange(12))
    page = by_model(loaded, responses, files=["a b.csv"], selection_file="s.json")
    assert page.title == f"{hostile} on our bank"
    commands = [shlex.split(text) for one in of_kind(page, Facts) if one.are_commands for _, text in one.pairs]
    assert ["itembank", "check", str(tmp_path / "our bank"), "a b.csv"] in commands
    assert hostile in next(one for one in commands if one[1] == "session")


def test_what_an_estimate_rests_on_and_what_halves_the_interval_is_said(made):
    half = 50.0 * (made[1].high - made[1].low)[0, -1]
    assert f"The interval is ± {half:.1f} points" in words(made[2])
    assert f"itembank plan BANK --half-width {half / 200.0:.4f}" in words(made[2])
    page = made[2]
    said = words(page)
    assert "This run: one full run on exactly these questions." in said
    assert made[1].explanation in said
    assert ("Score", made[1].target_id) in page.provenance
    assert page.command == "itembank estimate"


def test_missing_answers_known_models_and_scores_without_items_are_cautions(bank):
    selection, ids = ib.select(bank, 12, method="random", rng=1), [bank.responses.model_ids[0]]
    known = new_models(bank, 1, names=ids).take(items=bank.responses.item_indices(selection.item_ids[:5]))
    with pytest.warns(match="have no response"):
        estimates = estimate(bank, known, selection=selection, method="p-irt", interval="model-based")
    cautions = " ".join(one.text for one in of_kind(estimates_page(bank, known, estimates, selection), Caution))
    holds(cautions, "no answer to 7 of the chosen items", "among the past models")
    assert ids[0] not in column(estimates_page(bank, known, estimates, selection), "the best past model", "model")
    math = new_models(bank, 1).take(items=np.arange(0, 30, 3))
    page = estimates_page(bank, math, estimate(bank, math, method="weighted", interval="model-based"))
    assert "no estimate of some scores" in " ".join(one.text for one in of_kind(page, Caution))
    assert answers(page)[0].value == "unknown"
    assert np.isnan(column(page, "Scenarios", "below")).tolist() == [False, True, True]
    assert chart(page, "of past models on math").title.startswith("Above ")


def test_models_that_answer_unlike_past_ones_are_hollow_and_a_caution(bank):
    responses = new_models(bank, 5)
    estimates = estimate(bank, responses, method="p-irt", interval="model-based")
    typicality = estimates.typicality._replace(typicality=np.array([0.5, 0.02, 0.6, 0.7, 0.8]))
    estimates = dataclasses.replace(estimates, typicality=typicality)
    notes = tuple(notes_on_unlike(estimates, PastModels((), np.zeros(0)), 30))
    page = estimates_page(bank, responses, dataclasses.replace(estimates, notes=notes))
    assert [one.text.partition(" unlike")[0] for one in of_kind(page, Caution)] == ["'new/1': answered"]
    flags = dict(zip(column(page, "Models", "model"), column(page, "Models", "is_flagged"), strict=True))
    assert [name for name, is_flagged in flags.items() if is_flagged] == ["new/1"]
    assert "Hollow" in chart(page, "has the highest estimate").note
    assert "drawn hollow" in words(page)
    drawn = ib.select(bank, 12, method="drawn", rng=0)
    unknown = estimate(bank, responses, selection=drawn)
    assert "drawn hollow" not in words(estimates_page(bank, responses, unknown, drawn))


@pytest.mark.parametrize("n_models", [4, 70])
def test_many_models_stand_in_order_without_sections_of_their_own(bank, n_models):
    page = by_model(bank, new_models(bank, n_models).take(items=np.arange(20)))
    values = np.array(column(page, "Models", "estimate"))
    assert values.size == n_models
    assert np.all(np.diff(values) <= 0.0)
    assert (len(page.sections), len(column(page, "Scenarios of all", "model"))) == (4, 3 * n_models)
    assert (answers(page)[0].value, answers(page)[1].value) == (str(n_models), f"{100 * values[0]:.1f} points")
    heat = chart(page, "score least in")
    assert len(heat.data[0]) == 3 * min(n_models, MOST_NAMED)
    assert heat.data[0].columns["model"][0] == column(page, "Models", "model")[0]


def test_few_models_have_a_section_each_and_hostile_names_stay_words(bank, made):
    page = by_model(bank, new_models(bank, 2))
    assert [section.title for section in page.sections] == ["new/0", "new/1", "How to read this"]
    page = by_model(bank, new_models(bank, 1, names=[SCRIPT]))
    for one in of_kind(page, Chart):
        assert SCRIPT not in repr(one.spec)
    _, estimates, _ = made
    with pytest.raises(DataError, match="that were estimated"):
        estimates_page(bank, new_models(bank, 1, names=["another"]), estimates)


@pytest.mark.parametrize(("how", "title"), [("p-irt", "Typical or not"), ("auto", "Where it differs from past models")])
def test_typicality_is_promised_where_it_is_known(bank, how, title):
    drawn = ib.select(bank, 6, method="drawn")
    responses = new_models(bank, 1).take(items=np.flatnonzero(np.isin(bank.item_ids, drawn.item_ids)))
    page = estimates_page(bank, responses, estimate(bank, responses, selection=drawn, method=how), drawn)
    assert title in titles(page)


def test_names_of_many_scenarios_stand_upright_and_one_has_no_chart(bank):
    items = pl.DataFrame({"item_id": bank.item_ids, "scenario": [f"s{k}" for k in range(bank.n_items)]})
    more = pl.DataFrame({"item_id": ["more-0", "more-1"], "scenario": ["more"] * 2})
    items = pl.concat([items, more])
    right = (np.random.default_rng(1).random((8, items.height)) < 0.5).astype(float)
    many = ib.calibrate(ib.ResponseMatrix.create(right, model_ids=[f"m{k}" for k in range(8)], items=items))
    page = by_model(many, new_models(many, 4))
    axis = chart(page, "These models score least").spec["encoding"]["x"]["axis"]
    assert (axis["labelAngle"], axis["labelOverlap"]) == (-90, "greedy")
    rng = np.random.default_rng(4)
    past = ib.ResponseMatrix.create((rng.random((12, 20)) < rng.random((12, 1))).astype(float))
    bank = ib.calibrate(past, Variational("2pl", n_dims=1, tolerance=1e-2))
    page = by_model(bank, past.take(models=np.array([3]), items=np.arange(8)))
    assert "Scenario by scenario" not in [section.title for section in page.sections]
    assert "Its answers" in [section.title for section in page.sections]


def test_one_answer_all_answers_and_costs_have_pages(bank):
    page = by_model(bank, new_models(bank, 1).take(items=np.arange(1)))
    assert answers(page)[0].words.startswith("From 1 of 30 questions")
    page = by_model(bank, new_models(bank, 1))
    assert "known exactly" in answers(page)[0].interval
    assert "saves" not in answers(page)[0].words
    assert "To halve" not in words(page)
    rich = make_bank(with_extras=True)
    cost = np.where(np.arange(30) < 3, 90.0, 10.0)  # a tenth of the items costs half
    costs = {"cost_usd": np.where(np.isnan(rich.responses.responses), np.nan, cost)}
    rich = dataclasses.replace(rich, responses=dataclasses.replace(rich.responses, costs=costs))
    page = by_model(rich, new_models(rich, 1).take(items=np.arange(3)))
    assert answers(page)[0].words == "From 3 of 30 questions, which saves 50 % of the cost."


@pytest.mark.parametrize("family", ["beta", "binomial"])
def test_probabilities_and_counts_have_pages(family):
    other = with_family(make_bank(n_models=8), family)
    responses = other.responses.take(models=np.array([2]), items=np.arange(12))
    assert any(0.0 < one < 1.0 for one in column(by_model(other, responses), "12 answers", "given"))


def test_a_bank_without_past_models_has_neither_their_scores_nor_their_answers():
    whole = make_bank()
    selection = ib.select(whole, 12, method="random", rng=1)
    published = without_responses(whole, selections=[selection])
    responses = new_models(whole, 1).take(items=whole.responses.item_indices(selection.item_ids))
    page = estimates_page(published, responses, estimate(published, responses))
    titles = [section.title for section in page.sections]
    assert "Compared with past models" not in titles
    assert "Past models below" not in repr(chart(page, "From").spec)
    assert len(column(page, "12 answers", "item")) == 12


def test_each_expectation_is_that_of_a_model_that_did_not_give_the_answer():
    bank = make_bank()
    basis, items = score_basis(bank), np.arange(3, 21)
    given = (np.random.default_rng(1).random(items.size) < 0.6).astype(float)
    found = left_out_expectations(basis, items, given)
    for k in range(items.size):
        others = np.delete(np.arange(items.size), k)
        answers = basis.answers(given[None, others], items[others])
        theta = map_abilities(basis.parameters.take(items[others]), answers, basis.prior).theta
        assert found[k] == pytest.approx(probability(basis.parameters.take(items[[k]]), theta)[0, 0], abs=1e-6)


def test_with_more_answers_than_parts_none_knows_itself(monkeypatch):
    monkeypatch.setattr(given_answers, "MOST_PARTS", 4)
    bank = make_bank()
    basis, items = score_basis(bank), np.arange(30)
    given = np.ones(30)
    before = left_out_expectations(basis, items, given)
    given[7] = 0.0
    after = left_out_expectations(basis, items, given)
    assert after[7] == pytest.approx(before[7], abs=1e-6)
    assert after[8] < before[8] - 1e-3


def answered(bank, n_answers, *, spec=None, model_id="new"):
    """A session of a model that answers every second item rightly, each for half a cent."""
    spec = spec or ib.SessionSpec(budget=ib.Budget(n_items=10), interval="model-based")
    session = ib.AdaptiveSession(ib.prepare_sessions(bank, spec), model_id=model_id)
    for k in range(n_answers):
        (item,) = session.ask()
        session.tell(item, float(k % 2), costs={"cost_usd": 0.005, "output_tokens": 100})
    return session


@pytest.fixture(scope="module")
def ended(bank):
    session = answered(bank, 10)
    return session, session_page(session, bank)


def test_the_page_begins_with_the_estimate_and_lists_answers_by_how_far_they_moved_it(ended):
    session, page = ended
    row = session.estimate().scores.rows()[-1]
    score, state, spent = answers(page)
    assert (score.value, state.value) == (f"{100 * row['estimate']:.1f} points", "Ended")
    assert state.interval == session.conclusion
    assert state.interval.startswith("Stopped by the budget of 10 items: no precision was asked for, the half-width")
    assert (spent.value, spent.interval) == ("0.05 USD", "and 1,000 output tokens")
    page = ended[1]
    moved = np.abs(column(page, "moved the estimate most", "moved"))
    assert moved.size == 10
    assert np.all(np.diff(moved) <= 0.0)
    assert column(page, "moved the estimate most", "cost")[0] <= 0.05
    assert [one.title for one in table(page, "moved the estimate most").columns][-1] == "USD so far"


def test_each_step_is_the_estimate_of_the_session_as_it_stood_then(ended, bank):
    session, page = ended
    data = chart(page, "After 10 answers").data[0].columns
    assert list(data["number"]) == list(range(11))
    again = ib.AdaptiveSession(session.pool, model_id="new")
    for k in range(11):
        estimate = again.estimate()
        scores = estimate.scores.rows()[-1]
        found = (data["estimate"][k], data["low"][k], data["high"][k])
        assert found == pytest.approx((scores["estimate"], scores["low"], scores["high"]))
        if k < 10:
            (item,) = again.ask()
            assert data["item"][k + 1] == item
            place = bank.parameters.take(np.array([bank.item_ids.index(item)]))
            expected = probability(place, estimate.theta[None, :])[0, 0]
            assert data["expected"][k + 1] == pytest.approx(expected)
            again.tell(item, float(k % 2))


def test_a_long_session_is_estimated_at_some_answers_and_says_so(bank, monkeypatch):
    monkeypatch.setattr(import_module("itembank.pages.session_page"), "MOST_STEPS", 4)
    page = session_page(answered(bank, 10), bank)
    data = chart(page, "After 10 answers").data[0].columns
    assert list(data["number"]) == [0, 2, 5, 8, 10]
    assert np.isnan(data["moved"]).all()
    assert "Of 10 answers, 4 are shown" in words(page)


def test_a_session_that_has_just_begun_or_has_a_pending_item_has_a_page(bank):
    page = session_page(answered(bank, 0), bank)
    assert "answered nothing yet" in page.summary
    assert (answers(page)[1].value, answers(page)[2].value) == ("Going on", "0 answers")
    session = answered(bank, 3)
    session.ask()
    assert "1 question asked and not answered yet" in answers(session_page(session, bank))[1].words
    spec = ib.SessionSpec(budget=ib.Budget(n_items=2), stopping=ib.Stopping(half_width=0.01), interval="model-based")
    page = session_page(answered(bank, 2, spec=spec), bank)
    assert "the goal of ±0.01 (1 points) was not reached" in answers(page)[1].interval


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_failure_counts_once_though_the_item_is_told_again_at_the_end_of_a_run(bank, retries):
    session = answered(bank, 2)
    with pytest.raises(RunError):
        drive(session, {}.__getitem__, 1, retries=retries, max_failures=4)
    assert "4 attempts failed." in answers(session_page(session, bank))[-1].words


def test_a_threshold_that_decides_is_drawn_and_weights_of_items_can_be_a_target(bank):
    rule = ib.Stopping(decision=ib.Decision(threshold=0.2), min_items=2)
    spec = ib.SessionSpec(target="code", stopping=dataclasses.replace(rule, decision=ib.Decision("code", 0.2)))
    spec = dataclasses.replace(spec, interval="model-based", budget=ib.Budget(n_items=3))
    page = session_page(answered(bank, 2, spec=spec), bank)
    drawn = chart(page, "After 2 answers")
    assert [one for one in drawn.spec["layer"] if one["encoding"] == {"y": {"datum": 0.2}}]
    assert "Dashed" in drawn.note
    assert answers(page)[0].label == "Code, new"
    target = {"math/0": 2.0, "code/1": 1.0}
    spec = ib.SessionSpec(target=target, budget=ib.Budget(n_items=2), interval="model-based")
    assert answers(session_page(answered(bank, 2, spec=spec), bank))[0].label == "Custom, new"


def test_costs_that_were_assumed_or_passed_are_said(bank):
    spec = ib.SessionSpec(budget=ib.Budget(costs={"cost_usd": 1.0}), interval="model-based")
    costs = {"cost_usd": np.full(bank.responses.responses.shape, 0.01)}
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs=costs))
    session = ib.AdaptiveSession(ib.prepare_sessions(bank, spec), model_id="new")
    first, second = session.ask(2)
    session.tell(first, 1.0)
    session.tell(second, 1.0, costs={"cost_usd": 1.25})
    (n_silent, assumed), passed = session.assumed_costs["cost_usd"], session.passed["cost_usd"]
    assert (n_silent, passed) == (1, pytest.approx(0.25 + assumed))
    told = answers(session_page(session, bank))[2].words
    holds(told, "No cost was reported 1 time:", "Left of the budget: 0 USD.", "The maximum was exceeded by")
    assert "The whole benchmark should cost" in told
