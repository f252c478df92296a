import numpy as np
import polars as pl
import pytest

from itembank.data.compute import training_compute
from itembank.errors import ParameterError
from itembank.reports.canvas import save_figure
from itembank.reports.pretraining_figures import (
    figure_abilities,
    figure_decisions,
    figure_item_curves,
    figure_laws,
    figure_score_forecasts,
    recipe_colors,
)
from itembank.scaling.pretraining.law_spec import SigmoidLaw
from itembank.scaling.pretraining.pretraining_law import pretraining_law
from itembank.scaling.pretraining.specs import PretrainingSettings
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


def lines(axes):
    return [line for line in axes.get_lines() if len(line.get_xdata()) > 10]


def test_scores_have_a_curve_a_recipe_that_is_the_forecast(law):
    figure = figure_score_forecasts(law)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["easy", "hard"]
    curve = lines(figure.axes[1])[2]
    expected = law.forecast("hard", flops=curve.get_xdata()).score[2]
    np.testing.assert_allclose(curve.get_ydata(), expected)
    assert curve.get_xdata()[-1] == pytest.approx(law.target_flops)


def test_points_are_the_scores_of_finished_models(law):
    axes = figure_score_forecasts(law, scenarios=["hard"]).axes[0]
    drawn = {tuple(point) for line in axes.get_lines() if line.get_marker() == "o" for point in line.get_xydata()}
    observed = law.of_scenario("hard").scores.observed[law.is_final]
    assert sorted(y for _, y in drawn) == pytest.approx(sorted(observed))


def test_laws_of_a_recipe_stand_beside_each_other(law):
    figure = figure_laws(law, "recipe-4")
    curves = lines(figure.axes[0])[:2]
    for curve, name in zip(curves, law.names, strict=True):
        expected = law.forecast("easy", name, flops=curve.get_xdata()).score[4]
        np.testing.assert_allclose(curve.get_ydata(), expected)
    with pytest.raises(ParameterError, match="recipe must be one of"):
        figure_laws(law, "recipe-9")


def test_abilities_have_the_lines_of_the_law(law):
    line = lines(figure_abilities(law).axes[0])[1]
    expected = law.of_scenario("easy").ability_laws.predict(np.log(line.get_xdata()))[0][1]
    np.testing.assert_allclose(line.get_ydata(), expected)


def test_decisions_are_drawn_by_rising_share(law):
    figure = figure_decisions(law.held_out.decisions())
    for line in figure.axes[0].get_lines()[1:]:
        assert (np.diff(line.get_xdata()) > 0.0).all()
    with pytest.raises(ParameterError, match="at least one row"):
        figure_decisions(pl.DataFrame())


def test_items_have_their_curves(law, suite, tmp_path):
    figure = figure_item_curves(law, suite.probability, suite.probability.item_ids[:3])
    assert len(figure.axes) == 3
    for axes in figure.axes:
        assert (np.diff(lines(axes)[-1].get_ydata()) > 0.0).all()
    assert save_figure(figure, tmp_path / "items.png").stat().st_size > 1000


def test_many_recipes_have_colours_of_their_own():
    assert len(set(recipe_colors(12))) == 12
    assert recipe_colors(2) == ["#0072B2", "#D55E00"]
