"""Charts and pages of scaling laws."""

import dataclasses
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.pages import theme
from itembank.pages.blocks import Chart
from itembank.pages.shown import show
from itembank_scaling.compute import training_compute
from itembank_scaling.pages import pass_at_k_page
from itembank_scaling.pages.pass_at_k_page import middle_model
from itembank_scaling.pages.pretraining_charts import (
    LAW_WORDS,
    MOST_PANELS,
    _score_axis,
    ability_chart,
    decision_chart,
    forecast_chart,
    item_curves_chart,
    laws_chart,
)
from itembank_scaling.pages.pretraining_page import pretraining_page
from itembank_scaling.pages.transfer_charts import agreement_chart
from itembank_scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank_scaling.pass_at_k.specs import PassAtKSpec
from itembank_scaling.pretraining.decision_study import mean_decisions
from itembank_scaling.pretraining.law_specs import LAWS, PretrainingSettings, SigmoidLaw
from itembank_scaling.pretraining.pretraining_law import pretraining_law
from itembank_scaling.transfers.convergent import convergent_validity
from itembank_scaling.transfers.transfer_specs import TransferSpec
from itembank_scaling.transfers.transfers import transfer
from tests.pages.reading import (
    answers,
    cautions,
    check_chart,
    check_charts,
    column,
    columns_of,
    lead_text,
    of_kind,
    table,
)
from tests.scaling.samples import known_bank, simulated_samples
from tests.scaling.simulated_suite import simulated_suite
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def suite():
    return simulated_suite(np.random.default_rng(3), n_items=24, n_sizes=5, n_checkpoints=2)


@pytest.fixture(scope="module")
def law(suite):
    settings = PretrainingSettings(laws=("irsl", SigmoidLaw(n_starts=1)))
    return pretraining_law(suite.probability, training_compute(suite.models), settings=settings)


def rows_of(chart, **wanted):
    return pl.DataFrame({name: list(values) for name, values in columns_of(chart).items()}).filter(**wanted)


def test_scores_have_a_curve_a_recipe_that_is_the_forecast_and_points_of_finished_models(law, tmp_path):
    chart = forecast_chart(law, "irsl")
    for number, recipe in enumerate(law.recipes):
        curve = rows_of(chart, scenario="hard", recipe=recipe, what="line")
        expected = law.forecast("hard", "irsl", flops=curve["flops"].to_numpy())
        for name, values in (("value", expected.score), ("low", expected.low), ("high", expected.high)):
            np.testing.assert_allclose(curve[name], values[number], rtol=1e-6)
        assert curve["flops"][-1] == pytest.approx(law.target_flops)
    assert chart.save(tmp_path / "scores.png").stat().st_size > 5_000
    check_chart(chart)
    drawn = rows_of(forecast_chart(law, scenarios=["hard"]), what="model")
    assert drawn["scenario"].unique().to_list() == ["hard"]
    observed = law.of_scenario("hard").scores.observed[law.is_final]
    assert sorted(drawn["value"]) == pytest.approx(sorted(observed))
    for draw in (forecast_chart, ability_chart):
        assert draw(law, recipe="recipe-4").spec["params"][0]["value"] == "recipe-4"
        with pytest.raises(ParameterError, match="recipe must be one of"):
            draw(law, recipe="recipe-9")
    assert set(LAW_WORDS) == set(LAWS.builtin_names)


def test_scores_near_zero_have_an_axis_on_which_they_can_be_told_apart():
    assert _score_axis([])["scale"]["domain"] == [0.0, 1.0]
    axes = [_score_axis([("s", 0, "r", "line", 1e20, top / 2, 0.0, top, "")]) for top in (0.7, 0.3, 0.04)]
    assert [one["scale"]["domain"] for one in axes] == [[0.0, 1.0], [0.0, 0.3], [0.0, 0.04]]
    assert [one["axis"]["format"] for one in axes] == ["%", "%", ".1%"]


def test_laws_abilities_and_items_have_their_curves(law, suite, tmp_path):
    chart = laws_chart(law, "recipe-4")
    for name in law.names:
        curve = rows_of(chart, scenario="easy", recipe=LAW_WORDS[name], what="line")
        expected = law.forecast("easy", name, flops=curve["flops"].to_numpy()).score[4]
        np.testing.assert_allclose(curve["value"], expected, rtol=1e-6)
    assert chart.title.startswith(f"recipe-4 at {theme.compute(law.target_flops)}")
    check_chart(chart)
    with pytest.raises(ParameterError, match="recipe must be one of"):
        laws_chart(law, "recipe-9")
    chart = ability_chart(law)
    curve = rows_of(chart, scenario="easy", recipe=law.recipes[0], what="line")
    means = law.of_scenario("easy").ability_laws.predict(np.log(curve["flops"].to_numpy()))[0]
    np.testing.assert_allclose(curve["value"], means[0])
    assert "one standard error" in chart.note
    items = suite.probability.item_ids[:3]
    chart = item_curves_chart(law, suite.probability, items)
    for item in items:
        assert (np.diff(rows_of(chart, item=item, what="curve")["response"]) > 0.0).all()
        assert rows_of(chart, item=item, what="model").height == len(law.model_ids)
    check_chart(chart)
    assert chart.save(tmp_path / "items.png").stat().st_size > 1000


def test_decisions_are_the_means_over_scenarios_whose_shares_may_differ_a_little(law):
    decisions = law.held_out.decisions()
    chart, means = decision_chart(decisions), mean_decisions(decisions)
    for name in law.names:
        drawn = rows_of(chart, law=LAW_WORDS[name])
        np.testing.assert_allclose(drawn["accuracy"], means.filter(law=name)["mean"])
        assert (np.diff(drawn["share"]) > 0.0).all()
    check_chart(chart)
    with pytest.raises(ParameterError, match="at least one row"):
        decision_chart(pl.DataFrame())
    shares = {"share_of_target": [0.1, 0.1001, 0.5, 0.5], "decision_accuracy": [0.4, 0.6, 0.7, float("nan")]}
    table = pl.DataFrame({"scenario": ["a", "b", "a", "b"], "law": "irsl", **shares})
    found = mean_decisions(table).rows(named=True)
    assert [row["mean"] for row in found] == pytest.approx([0.5, 0.7])
    assert found[0]["standard_error"] == pytest.approx(0.1)
    assert np.isnan(found[1]["standard_error"])
    assert rows_of(decision_chart(table))["accuracy"].to_list() == pytest.approx([0.5, 0.7])


def test_more_laws_than_colours_have_a_panel_each():
    """Each line is drawn, and the axis begins where the shares do."""
    laws = [f"law {number}" for number in range(10)]
    shares = {"share_of_target": [0.01, 0.5] * 10, "decision_accuracy": [0.5, 0.7] * 10}
    table = pl.DataFrame({"scenario": "a", "law": np.repeat(laws, 2), **shares})
    chart = decision_chart(table)
    check_chart(chart)
    assert chart.spec["facet"]["field"] == "law"
    assert "facet" not in decision_chart(table[:8]).spec


@pytest.fixture(scope="module")
def small_suite():
    return simulated_suite(np.random.default_rng(3), n_recipes=3, n_items=12, n_sizes=4, n_checkpoints=1)


@pytest.fixture(scope="module")
def small_law(small_suite):
    settings = PretrainingSettings(laws=("irsl", SigmoidLaw(n_starts=1)), n_checked=1)
    return pretraining_law(small_suite.probability, training_compute(small_suite.models), settings=settings)


@pytest.fixture(scope="module")
def page(small_law):
    return pretraining_page(small_law, name="irsl")


def test_the_answer_is_the_highest_forecast_of_each_scenario_with_its_interval(small_law, page):
    for answer, scenario in zip(answers(page), ("easy", "hard"), strict=True):
        rows = [row for row in small_law.rows() if (row["scenario"], row["law"]) == (scenario, "irsl")]
        best = max(rows, key=lambda row: row["score"])
        assert (answer.label, answer.value) == (scenario, f"{100.0 * best['score']:.1f} points")
        assert answer.interval == f"{100.0 * best['low']:.1f} to {100.0 * best['high']:.1f} points, 95 % interval"
        assert best["recipe"] in answer.words
    worth = next(row for row in small_law.comparison() if row["law"] == "irsl")
    assert f"off by {100.0 * worth['error']:.1f} points" in lead_text(page)
    check_charts(page)


def test_forecasts_of_sizes_held_out_stand_beside_what_the_models_scored(small_law, page):
    own = small_law.held_out.table.filter(law="irsl")
    chart = next(one for one in of_kind(page, Chart) if one.data[0].name == "held-out-shown")
    np.testing.assert_allclose(chart.data[0].columns["actual"], own["actual"])
    np.testing.assert_allclose(chart.data[0].columns["score"], own["score"])
    assert len(table(page, "Every forecast of a held-out size").data) == small_law.held_out.table.height
    wide = small_law.held_out.table.filter(law="irsl")["is_covered"].mean() < 0.92
    assert ("cover only" in cautions(page)) == wide
    chosen = "The law shown was chosen by these errors, so its own error is somewhat larger."
    pages = (page, pretraining_page(small_law))
    leads = [next(one.lead for one in found.sections if one.title == "Held-out sizes") for found in pages]
    assert [chosen in lead for lead in leads] == [False, True]
    page = pretraining_page(dataclasses.replace(small_law, held_out=None))
    assert "so their error is unknown" in cautions(page)
    assert [section.title for section in page.sections] == ["Forecasts"]
    check_charts(page)


def test_one_recipe_needs_no_menu(small_suite):
    few = small_suite.models.filter(small_suite.models["recipe"] == small_suite.models["recipe"][0])
    matrix = small_suite.probability.take(models=small_suite.probability.model_indices(few["model_id"].to_list()))
    settings = PretrainingSettings(laws=(SigmoidLaw(n_starts=1),), n_checked=1)
    small_law = pretraining_law(matrix, training_compute(few), settings=settings)
    page = pretraining_page(small_law)
    assert "bind" not in str(of_kind(page, Chart)[0].spec)
    assert len(small_law.scenarios) <= MOST_PANELS
    check_charts(page)


def test_a_law_of_scores_alone_has_a_page_with_what_is_drawn_by_hand(small_suite):
    settings = PretrainingSettings(laws=("trend",), n_checked=1)
    small_law = pretraining_law(small_suite.accuracy, training_compute(small_suite.models), settings=settings)
    found = pretraining_page(small_law, name="trend")
    check_charts(found)
    assert "by the law of local trends" in lead_text(found)
    assert column(found, "Errors of the laws", "law")[-2:] == ["last-score", "last-line"]
    assert small_law.trust("trend").startswith("Trust these forecasts little: only 6 forecasts were checked")
    assert small_law.trust("trend") in cautions(found)


@pytest.fixture(scope="module")
def samples():
    return simulated_samples(n_models=8, n_items=20, n_trials=60)


@pytest.fixture(scope="module")
def pass_law(samples):
    spec = PassAtKSpec(k=(1, 10, 100), budget=20, n_draws=200)
    return pass_at_k_law(samples.responses, spec, bank=known_bank(samples))


def test_curves_hold_model_band_and_what_all_samples_say(pass_law):
    (chart,) = show(pass_law).charts
    data = chart.data[0].columns
    np.testing.assert_allclose(data["value"], 100.0 * pass_law.values("irsl").ravel())
    np.testing.assert_allclose(data["low"], 100.0 * pass_law.all_items.low.ravel())
    np.testing.assert_allclose(data["observed"], 100.0 * pass_law.all_items.truth.ravel())
    np.testing.assert_array_equal(data["is_forecast"], np.tile(pass_law.k > 20, len(pass_law.model_ids)))
    few = simulated_samples(n_models=4, n_items=9, n_trials=20).responses
    alone = pass_at_k_law(few, PassAtKSpec(k=(1,), n_draws=100))
    one = show(alone).charts[0]
    assert one.note.startswith("The point in colour is the item response law, the bar its 95 % interval. The other is")
    assert [part["mark"]["type"] for part in one.spec["layer"][:2]] == ["rule", "point"]
    scales = [part["encoding"]["y"]["scale"]["domain"] for part in chart.spec["layer"]]
    assert scales == [[0.0, 100.0]] * len(scales)


def test_the_page_begins_with_the_first_forecast_beyond_the_samples_and_lists_all(pass_law):
    page, i = show(pass_law), pass_law.model_ids.index(middle_model(pass_law))
    found = (pass_law.all_items.low, pass_law.values("irsl"), pass_law.all_items.high)
    low, value, high = (100.0 * part[i, 2] for part in found)
    assert lead_text(page).startswith(
        f"{pass_law.model_ids[i]} reaches {value:.1f} points on {pass_law.scenarios[i]} at k = 100 "
        f"({low:.1f} to {high:.1f}), from 20 samples of each question: a forecast."
    )
    sentence = pass_at_k_page._sentence(replace(pass_law, n_trials=np.minimum(pass_law.n_trials, 5)), i)
    assert f" on {pass_law.scenarios[i]} at k = 10 (" in sentence
    assert f" and {value:.1f} points at k = 100 ({low:.1f} to {high:.1f}), from 5 samples of each" in sentence
    uneven = pass_law.n_trials.copy()
    uneven[i, np.argmax(uneven[i] > 0)] = 1
    assert "from 1 to 20 samples of each question" in pass_at_k_page._sentence(replace(pass_law, n_trials=uneven), i)
    np.testing.assert_allclose(column(page, "pass@k in points", "jeffreys"), pass_law.values("jeffreys").ravel())
    np.testing.assert_allclose(column(page, "pass@k in points", "truth"), pass_law.all_items.truth.ravel())


def test_many_curves_are_taken_evenly_and_without_the_law_there_is_no_interval(samples, pass_law, monkeypatch):
    page = show(pass_at_k_law(samples.responses, PassAtKSpec(k=(1, 10), methods=("jeffreys", "unbiased"))))
    assert "band" not in page.charts[0].note
    assert np.isfinite(page.charts[0].data[0].columns["observed"]).any()
    check_charts(page)
    monkeypatch.setattr(pass_at_k_page, "MOST_CURVES", 3)
    data = show(pass_law).charts[0].data[0].columns
    drawn, first = np.asarray(data["value"])[np.asarray(data["k"]) == 1], 100.0 * pass_law.values("irsl")[:, 0]
    np.testing.assert_allclose([drawn.min(), drawn.max()], [first.min(), first.max()])
    assert len(drawn) == 3


@pytest.fixture(scope="module")
def made():
    return simulated(np.random.default_rng(1), n_models=40, n_items=24, n_scenarios=3)[0]


@pytest.fixture(scope="module")
def validity(made):
    return convergent_validity(made, compute=training_compute(made.models, made.model_ids), rng=0)


def test_predicted_stands_over_actual_with_its_interval(made):
    found = transfer(made, "s0", "s1", compute=training_compute(made.models, made.model_ids))
    page = show(found)
    check_charts(page)
    data = page.charts[0].data[0].columns
    np.testing.assert_allclose(data["actual"], found.actual[:, 0])
    np.testing.assert_allclose(data["value"], found.prediction.value[:, 0])
    np.testing.assert_allclose(data["high"], found.prediction.upper[:, 0])
    assert data["group"] == list(found.groups)
    assert f"The two abilities have a correlation of {found.correlation:.2f}." in page.charts[0].note
    several = agreement_chart([dataclasses.replace(found, source="s2"), found])
    assert "r is the correlation of the two abilities." in several.note
    assert len(set(several.data[0].columns["place"])) == 2


def test_pass_at_k_has_curves_from_0_to_1():
    samples = simulated(np.random.default_rng(2), n_models=40, n_items=30, n_trials=30)[0]
    one = transfer(samples, "s0", spec=TransferSpec(k=(1, 5, 30)), calibration=samples.model_ids[:30])
    page = show(one)
    chart = page.charts[1]
    np.testing.assert_allclose(chart.data[0].columns["actual"], one.actual.ravel())
    assert [part["encoding"]["y"]["scale"]["domain"] for part in chart.spec["layer"]] == [[0.0, 1.0]] * 3
    assert chart.spec["params"][0]["bind"]["options"] == list(one.model_ids)
    check_charts(page)


def test_each_matrix_holds_its_correlations_or_says_that_there_are_none(validity):
    page = show(validity)
    check_charts(page)
    tables = (validity.observed, validity.disattenuated, validity.beyond_compute)
    for chart, correlations in zip(page.charts, tables, strict=True):
        data = chart.data[0].columns
        for row, other, value in zip(data["row"], data["column"], data["value"], strict=True):
            place = validity.scenarios.index(row), validity.scenarios.index(other)
            assert value == pytest.approx(correlations.value[place])
    nothing = dataclasses.replace(validity.observed, value=np.where(np.eye(3) > 0.0, 1.0, np.nan))
    page = show(dataclasses.replace(validity, observed=nothing, disattenuated=nothing, beyond_compute=None))
    assert [chart.title for chart in page.charts] == ["No two scenarios have models in common"] * 2
