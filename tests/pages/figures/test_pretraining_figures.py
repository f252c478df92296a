import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.pages import theme
from itembank.pages.figures.canvas import save_figure
from itembank.pages.figures.pretraining_figures import (
    LAW_STYLES,
    figure_abilities,
    figure_decisions,
    figure_item_curves,
    figure_laws,
    figure_score_forecasts,
    mean_decisions,
    recipe_colors,
)
from itembank.readers.compute import training_compute
from itembank.scaling.pretraining.law_spec import SigmoidLaw
from itembank.scaling.pretraining.method_specs import LAWS, PretrainingSettings
from itembank.scaling.pretraining.pretraining_law import pretraining_law
from tests.pages.figures.drawn import message_of, names_of, note_of
from tests.scaling.simulated_suite import simulated_suite


@pytest.fixture(scope="module")
def suite():
    return simulated_suite(np.random.default_rng(3), n_items=24, n_sizes=5, n_checkpoints=2)


@pytest.fixture(scope="module")
def law(suite):
    compute = training_compute(suite.models)
    return pretraining_law(
        suite.probability, compute, settings=PretrainingSettings(laws=("irsl", SigmoidLaw(n_starts=1)))
    )


def lines(axes, least=11):
    """Curves of a panel, by how many points they have at least."""
    return [line for line in axes.get_lines() if len(line.get_xdata()) >= least and line.get_marker() == "None"]


def test_scores_have_a_curve_a_recipe_that_is_the_forecast(law):
    figure = figure_score_forecasts(law, "irsl")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["easy", "hard"]
    flops = np.exp(law.log_flops[law.is_final])
    for number, (ahead, behind) in enumerate(zip(*[iter(lines(figure.axes[1], least=3))] * 2, strict=True)):
        for curve in (ahead, behind):
            expected = law.forecast("hard", "irsl", flops=curve.get_xdata()).score[number]
            np.testing.assert_allclose(curve.get_ydata(), 100.0 * expected)
        largest = flops[law.recipe_index[law.is_final] == number].max()
        assert behind.get_xdata().max() < largest <= ahead.get_xdata().min()
        assert (ahead.get_linestyle(), behind.get_linestyle()) == ("-", ":")
        assert ahead.get_xdata()[-1] == pytest.approx(law.target_flops)
    assert "carries on what the recipe's largest model scores" in note_of(figure)
    assert set(names_of(figure.axes[1])) == set(law.recipes)
    end = [law.forecast(one, "irsl") for one in ("easy", "hard")]
    half = 50.0 * np.median([one.high - one.low for one in end])
    assert f"reach {half:.1f} points to either side" in message_of(figure)


def test_points_are_the_scores_of_finished_models(law):
    axes = figure_score_forecasts(law, scenarios=["hard"]).axes[0]
    drawn = {tuple(point) for line in axes.get_lines() if line.get_marker() == "o" for point in line.get_xydata()}
    observed = law.of_scenario("hard").scores.observed[law.is_final]
    assert sorted(y for _, y in drawn) == pytest.approx(sorted(100.0 * observed))


def test_forecasts_of_sizes_held_out_are_hollow(law):
    axes = figure_score_forecasts(law, "irsl", scenarios=["hard"]).axes[0]
    diamonds = [line for line in axes.get_lines() if line.get_marker() == "D"]
    hollow = {round(float(one.get_ydata()[0]), 6) for one in diamonds if one.get_markerfacecolor() == "white"}
    table = law.held_out.table.filter(scenario="hard", law="irsl").sort("largest_flops")
    last = table.unique(["recipe", "flops"], keep="last")
    assert hollow == {round(100.0 * score, 6) for score in last["score"]}
    assert sum(one.get_markerfacecolor() != "white" for one in diamonds) == len(law.recipes)


def test_in_many_panels_the_highest_and_the_lowest_have_names(law):
    figure = figure_score_forecasts(law, "irsl", scenarios=["easy", "hard", "easy"])
    end = law.forecast("hard", "irsl").score[:, 0]
    words = [text.get_text() for text in figure.axes[1].texts]
    assert words == [f"↑{law.recipes[end.argmax()]}", f"↓{law.recipes[end.argmin()]}"]


def test_laws_of_a_recipe_stand_beside_each_other(law):
    figure = figure_laws(law, "recipe-4")
    curves = lines(figure.axes[0])[:2]
    for curve, name in zip(curves, law.names, strict=True):
        expected = law.forecast("easy", name, flops=curve.get_xdata()).score[4]
        np.testing.assert_allclose(curve.get_ydata(), 100.0 * expected)
    assert message_of(figure).startswith(f"recipe-4 at {theme.compute(law.target_flops)}")
    with pytest.raises(ParameterError, match="recipe must be one of"):
        figure_laws(law, "recipe-9")


def test_abilities_have_the_lines_of_the_law(law):
    figure = figure_abilities(law)
    means = law.of_scenario("easy").ability_laws.predict(np.log(lines(figure.axes[0])[0].get_xdata()))[0]
    drawn = [line.get_ydata() for line in lines(figure.axes[0])]
    np.testing.assert_allclose(drawn, means)
    assert "one standard error" in note_of(figure)


def test_decisions_have_a_panel_a_law_with_the_mean_over_scenarios(law):
    decisions = law.held_out.decisions()
    figure = figure_decisions(decisions)
    means = mean_decisions(decisions)
    assert len(figure.axes) == len(law.names)
    for axes, name in zip(figure.axes, law.names, strict=True):
        (mean,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
        np.testing.assert_allclose(mean.get_ydata(), 100.0 * means.filter(law=name)["mean"].to_numpy())
        assert (np.diff(mean.get_xdata()) > 0.0).all()
    assert "2 standard errors" in note_of(figure)
    with pytest.raises(ParameterError, match="at least one row"):
        figure_decisions(pl.DataFrame())


def test_decisions_are_averaged_over_scenarios():
    table = pl.DataFrame(
        {
            "scenario": ["a", "b", "a", "b"],
            "law": "irsl",
            "share_of_target": [0.1, 0.1, 0.5, 0.5],
            "decision_accuracy": [0.4, 0.6, 0.7, float("nan")],
        }
    )
    found = mean_decisions(table).rows(named=True)
    assert [row["mean"] for row in found] == pytest.approx([0.5, 0.7])
    assert found[0]["standard_error"] == pytest.approx(0.1)
    assert np.isnan(found[1]["standard_error"])
    assert message_of(figure_decisions(table)) == (
        "Pairs of recipes ordered rightly: 50 % with 10 % of the target's compute, "
        "70 % with 50 % of the target's compute"
    )


def test_items_have_their_curves(law, suite, tmp_path):
    figure = figure_item_curves(law, suite.probability, suite.probability.item_ids[:3])
    assert len(figure.axes) == 3
    for axes in figure.axes:
        assert (np.diff(lines(axes)[-1].get_ydata()) > 0.0).all()
    assert save_figure(figure, tmp_path / "items.png").stat().st_size > 1000


def test_many_recipes_have_colours_of_their_own():
    assert len(set(recipe_colors(12))) == 12
    assert recipe_colors(2) == ["#0072B2", "#D55E00"]


def test_every_law_has_a_line_of_its_own():
    assert set(LAW_STYLES) == set(LAWS.builtin_names)
    looks = [(color, line) for _, color, line in LAW_STYLES.values()]
    assert len(set(looks)) == len(looks)
