import dataclasses

import numpy as np
import pytest

from itembank.pages.blocks import Chart
from itembank_scaling.compute import training_compute
from itembank_scaling.pages.pretraining_charts import MOST_PANELS
from itembank_scaling.pages.pretraining_page import pretraining_page
from itembank_scaling.pretraining.law_specs import PretrainingSettings, SigmoidLaw
from itembank_scaling.pretraining.pretraining_law import pretraining_law
from tests.pages.reading import answers, cautions, check_charts, column, lead_text, of_kind, table
from tests.scaling.simulated_suite import simulated_suite


@pytest.fixture(scope="module")
def suite():
    return simulated_suite(np.random.default_rng(3), n_recipes=3, n_items=12, n_sizes=4, n_checkpoints=1)


@pytest.fixture(scope="module")
def law(suite):
    settings = PretrainingSettings(laws=("irsl", SigmoidLaw(n_starts=1)), n_checked=1)
    return pretraining_law(suite.probability, training_compute(suite.models), settings=settings)


@pytest.fixture(scope="module")
def page(law):
    return pretraining_page(law, name="irsl")


def test_the_answer_is_the_highest_forecast_of_each_scenario_with_its_interval(law, page):
    for answer, scenario in zip(answers(page), ("easy", "hard"), strict=True):
        rows = [row for row in law.rows() if (row["scenario"], row["law"]) == (scenario, "irsl")]
        best = max(rows, key=lambda row: row["score"])
        assert answer.label == scenario
        assert answer.value == f"{100.0 * best['score']:.1f} points"
        assert answer.interval == f"{100.0 * best['low']:.1f} to {100.0 * best['high']:.1f} points, 95 % interval"
        assert best["recipe"] in answer.words
    worth = next(row for row in law.comparison() if row["law"] == "irsl")
    assert f"off by {100.0 * worth['error']:.1f} points" in lead_text(page)
    check_charts(page)


def test_forecasts_of_sizes_held_out_stand_beside_what_the_models_scored(law, page):
    own = law.held_out.table.filter(law="irsl")
    chart = next(one for one in of_kind(page, Chart) if one.data[0].name == "held-out-shown")
    np.testing.assert_allclose(chart.data[0].columns["actual"], own["actual"])
    np.testing.assert_allclose(chart.data[0].columns["score"], own["score"])
    assert len(table(page, "Every forecast of a held-out size").data) == law.held_out.table.height
    wide = law.held_out.table.filter(law="irsl")["is_covered"].mean() < 0.92
    assert ("cover only" in cautions(page)) == wide


def test_a_law_chosen_by_its_errors_is_said_to_be(law, page):
    chosen = "The law shown was chosen by these errors, so its own error is somewhat larger."
    leads = [
        next(one.lead for one in found.sections if one.title == "Held-out sizes")
        for found in (page, pretraining_page(law))
    ]
    assert [chosen in lead for lead in leads] == [False, True]


def test_without_a_check_the_page_says_that_the_error_is_unknown(law):
    page = pretraining_page(dataclasses.replace(law, held_out=None))
    assert "so their error is unknown" in cautions(page)
    assert [section.title for section in page.sections] == ["Forecasts"]
    check_charts(page)


def test_one_recipe_needs_no_menu(suite):
    few = suite.models.filter(suite.models["recipe"] == suite.models["recipe"][0])
    matrix = suite.probability.take(models=suite.probability.model_indices(few["model_id"].to_list()))
    settings = PretrainingSettings(laws=(SigmoidLaw(n_starts=1),), n_checked=1)
    law = pretraining_law(matrix, training_compute(few), settings=settings)
    page = pretraining_page(law)
    assert "bind" not in str(of_kind(page, Chart)[0].spec)
    assert len(law.scenarios) <= MOST_PANELS
    check_charts(page)


def test_a_law_of_scores_alone_has_a_page_with_what_is_drawn_by_hand(suite):
    settings = PretrainingSettings(laws=("trend",), n_checked=1)
    law = pretraining_law(suite.accuracy, training_compute(suite.models), settings=settings)
    found = pretraining_page(law, name="trend")
    check_charts(found)
    assert "by the law of local trends" in lead_text(found)
    assert column(found, "Errors of the laws", "law")[-2:] == ["last-score", "last-line"]
    assert law.trust("trend").startswith("Trust these forecasts little: only 6 forecasts were checked")
    assert law.trust("trend") in cautions(found)
