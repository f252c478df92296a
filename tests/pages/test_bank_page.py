import dataclasses
import json

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.ability_axis import AbilityAxis
from itembank.bank.bank_views import with_target
from itembank.banks import start
from itembank.irt.bernoulli import logit, probability
from itembank.irt.families import information_weights
from itembank.irt.family_names import FAMILIES
from itembank.irt.parameters import AbilityPrior
from itembank.pages import bank_items, bank_page
from itembank.pages.blocks import Chart, benchmark_title
from itembank.responses.responses import DEFAULT_SCENARIO, ResponseMatrix
from itembank.selection.select import select
from itembank_living import note
from itembank_living.publishing.without_responses import without_responses
from tests.bank.banks import make_bank, with_family
from tests.pages.reading import answers, holds, of_kind, rows, section, table, titles, words

pytestmark = pytest.mark.usefixtures("without_library")
SECTIONS = ["How good estimates are", "What it contains", "Past models", "Questions"]


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=24)


@pytest.fixture(scope="module")
def page(bank):
    return bank_page(bank)


def test_sections_stand_in_order_and_numbers_are_the_banks_and_of_its_plan(bank, page):
    assert titles(page) == SECTIONS
    assert "Questions 30  in 3 scenarios" in words(page)
    first, scores = rows(table(page, "Scenarios"))[0], 100.0 * bank.best_known_scores[:, 0]
    assert first[:3] == ["math", "10", "33.3 %"]
    assert first[3:6] == [f"{value:.1f}" for value in (np.median(scores), scores.min(), scores.max())]
    models = table(page, "Past models")
    assert models.data.columns["score"].tolist() == sorted(bank.best_known_scores[:, -1], reverse=True)
    made, said = ib.plan(bank), words(page)
    usual = made.near(100)
    assert f"A score from {usual.n_items} questions ± {100.0 * usual.half_width:.1f} points" in said
    by_size = rows(table(page, "Precision by number of items"))
    assert [row[:2] for row in by_size] == [[str(one.n_items), f"{100.0 * one.half_width:.1f}"] for one in made.table]
    assert by_size[-1][2:4] == ["100.0 %", "0.0"]
    assert titles(bank_page(with_target(bank, "mean_win_rate"))) == SECTIONS[1:]


def test_harder_items_stand_to_the_right_and_many_are_counted_in_cells(bank, page, monkeypatch):
    items = section(page, "Questions").blocks[-1]
    place, right = (np.asarray(items.data.columns[name]) for name in ("place", "right"))
    assert np.corrcoef(place, right)[0, 1] < -0.7
    negative = int((np.asarray(items.data.columns["slope"]) < 0.0).sum())
    assert (f"{negative} question" if negative else "no question") in section(page, "Questions").lead
    monkeypatch.setattr(bank_items, "MOST_POINTS", 20)
    chart, *_ = (one for one in section(bank_page(bank), "Questions").blocks if isinstance(one, Chart))
    assert chart.data[0].name == "item_cells"
    outside = np.abs(np.asarray(chart.filters.data.columns["place"])) > 3.0
    assert np.sum(chart.data[0].columns["n"]) == 30 - outside.sum()
    assert "how many questions lie in each cell" in chart.note


def replaced(bank, responses):
    return dataclasses.replace(bank, responses=responses)


@pytest.mark.parametrize("family", [one for one in FAMILIES if one != "bernoulli"])
def test_counts_and_probabilities_have_a_mean(family):
    page = bank_page(with_family(make_bank(), family))
    assert "Mean" in [column.title for column in section(page, "Questions").blocks[-1].columns]
    assert "NaN" not in json.dumps(section(page, "Questions").blocks[0].spec)


def test_missing_answers_and_costs(bank):
    page = bank_page(make_bank(with_extras=True))
    costs = rows(table(page, "Cost of a run by scenario"))
    assert [row[0] for row in costs] == ["math", "code", "law"]
    assert "is expected to cost" in words(page)
    assert "Costs" not in titles(bank_page(bank))
    answered = np.where(np.arange(bank.n_models)[:, None] == 0, np.nan, bank.responses.responses)
    answered[0, :3] = 1.0
    known = bank_page(replaced(bank, dataclasses.replace(bank.responses, responses=answered)))
    n = bank.n_models
    assert section(known, "Past models").lead.startswith(f"{n - 1} of {n} past models, with scores from ")
    assert f"{n - 1} of them with scores" in answers(known)[-1].words


def test_a_bank_begun_with_few_models_says_what_it_cannot(bank):
    for responses in (None, make_bank(n_models=3).responses):
        page = bank_page(start(bank.responses.items, *([] if responses is None else [responses])))
        assert "too few for an item model" in words(page)
        assert ("Past models" in titles(page)) == (responses is not None)
        assert len(section(page, "Questions").blocks[-1].data) == 30
        assert "<html" in page.html()


def test_a_published_bank_shows_its_items_and_the_errors_that_were_measured():
    whole = make_bank(n_models=12)
    published = without_responses(whole, selections=[select(whole, n, method="v-optimal") for n in (12, 9)])
    page = bank_page(published)
    said = words(page)
    assert "published without the answers of its 12 past models" in said
    assert "questions that may be faulty" not in said  # nobody can tell without responses
    first, sets = published.subsets[0].measured, rows(table(page, "Past models, cross-validated"))
    assert [row[0] for row in sets] == ["9", "12"]
    assert sets[1][1:3] == [f"{100.0 * first[name]:.1f}" for name in ("error", "half_width")]
    assert [row[0] for row in rows(table(page, "Scores of single scenarios"))] == ["math", "code", "law"]
    assert "Past models" not in titles(page)
    best = np.argsort(-whole.known_scores.value[:, -1], kind="stable")[0]
    for names, column in ((True, ["Past model", "Score"]), (False, ["Score"])):
        published = without_responses(whole, keep_scores=True, keep_names=names)
        strip = section(bank_page(published), "Past models").blocks[0]
        assert [one.title for one in strip.table.columns] == column
        assert strip.data[0].columns["model"][0] == (whole.responses.model_ids[best] if names else "not named")
        assert len(strip.data[0]) == 12
    assert dict(page.provenance)["Published from bank"] == whole.bank_id


@pytest.mark.parametrize(("n_models", "n_items"), [(1, 30), (2, 3), (12, 3)])
def test_tiny_banks_have_pages(n_models, n_items):
    page = bank_page(make_bank(n_models=n_models, n_items=n_items))
    assert ("nan" in words(page), "unknown" in words(page)) == (False, False)
    assert page.html().count("<h2") == len(page.sections) + 1
    assert ("How good estimates are" in titles(page)) == (n_items > 3)  # all of three are no draw


def test_one_scenario_has_no_comparison_of_scenarios(bank):
    from itembank.calibration.build import calibrate  # noqa: PLC0415

    items = ["<script>alert(1)</script>", *(f"item-{k}" for k in range(1, 12))]
    alone = calibrate(ResponseMatrix.create(bank.responses.responses[:, :12], item_ids=items))
    page = bank_page(alone)
    assert not [one for one in of_kind(page, Chart) if one.data[0].name in {"scenarios", "loadings"}]
    html = page.html()
    assert ("<script>alert" in html, "&lt;script&gt;alert(1)" in html) == (False, True)


@pytest.mark.parametrize(
    ("file", "scenarios", "title"),
    [
        ("my-bench", ["a", "b"], "my-bench"),
        ("bank-3", ["a", "b"], "90 questions in 2 scenarios"),
        ("Responses", ["gsm8k"], "gsm8k"),
        ("", [DEFAULT_SCENARIO], "90 questions"),
    ],
)
def test_a_file_that_says_nothing_is_no_title(file, scenarios, title):
    assert benchmark_title(file, scenarios, 90) == title


def test_history_files_release_and_how_answers_were_taken_are_told(bank, tmp_path):
    note(bank, "as <i>published</i>", name="bench").save(tmp_path / "bank")
    loaded = ib.load_bank(tmp_path / "bank")
    page = bank_page(loaded, command="itembank report bank -o bank.html")
    assert (page.title, rows(table(page, "Changes of the bank"))[0][1]) == ("bench", "note")
    told = dict(page.provenance)
    assert told["Version"] == "1.0.1"
    record = json.loads((tmp_path / "bank" / "bank.json").read_text())
    digests = {f"SHA-256 of {name}": one["sha256"] for name, one in record["files"].items()}
    assert {name: told[name] for name in digests} == digests
    assert "<i>published" not in page.html()
    assert "itembank report bank -o bank.html" in page.html()
    items = bank.responses.items.with_columns(n_shot=pl.lit(5), source=pl.lit("a paper"))
    responses = ResponseMatrix.create(bank.responses.responses, models=bank.responses.models, items=items)
    holds(words(bank_page(replaced(bank, responses))), "n_shot 5", "source, of items a paper")
    assert bank_page(ib.load_bank("bank:swebench-verified")).title == "SWE-bench Verified"


@pytest.mark.parametrize("family", FAMILIES)
def test_information_is_the_variance_of_the_score_function_and_that_of_the_family(family):
    """An item tells ``E[(d log p(Y) / d t)^2]``: of right and wrong answers, the derivatives taken by differences."""
    bank = make_bank(n_dims=2)
    bank = bank if family == "bernoulli" else with_family(bank, family, precision=30.0)
    axis, parameters, grid = AbilityAxis.of(bank), bank.parameters, np.linspace(-2.0, 2.0, 9)
    theta = axis.origin + grid[:, None] * axis.direction
    weights = information_weights(parameters, logit(parameters, theta))
    found = axis.information(bank.calibration, grid)
    np.testing.assert_allclose(found, weights * (parameters.loadings @ axis.direction) ** 2, rtol=1e-10)
    if family == "bernoulli":
        step = 1e-5
        p, after, before = (probability(parameters, theta + shift * axis.direction) for shift in (0.0, step, -step))
        right = (np.log(after) - np.log(before)) / (2 * step)
        wrong = (np.log1p(-after) - np.log1p(-before)) / (2 * step)
        np.testing.assert_allclose(found, p * right**2 + (1 - p) * wrong**2, rtol=1e-6)


def test_scale_of_ability_does_not_matter():
    """Doubling abilities and the prior's spread while halving the loadings changes no information."""
    bank = make_bank(n_dims=2)
    calibration, grid = bank.calibration, np.linspace(-2.0, 2.0, 9)
    parameters = dataclasses.replace(calibration.parameters, loadings=calibration.parameters.loadings / 2.0)
    abilities, prior = 2.0 * calibration.abilities, AbilityPrior(np.zeros(2), 4.0 * np.eye(2))
    wider = dataclasses.replace(calibration, parameters=parameters, abilities=abilities, prior=prior)
    after = AbilityAxis.of(dataclasses.replace(bank, calibration=wider)).information(wider, grid)
    np.testing.assert_allclose(after, AbilityAxis.of(bank).information(calibration, grid))
