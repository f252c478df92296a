import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.reports.canvas import save_figure
from itembank.reports.figures import (
    ErrorCurve,
    PredictionPanel,
    figure_error_by_n,
    figure_predicted_against_true,
)


@pytest.fixture
def panel(rng):
    true = rng.uniform(0.3, 0.9, 12)
    estimate = true + rng.normal(0.0, 0.05, 12)
    return PredictionPanel("gp-IRT", true, estimate, estimate - 0.04, estimate + 0.06)


def points_of(axes):
    """x, y of the points and the lower and upper ends of their error bars."""
    container = axes.containers[0]
    data_line, _, (bars,) = container
    segments = np.array(bars.get_segments())  # (n_points, 2, 2)
    return data_line.get_xdata(), data_line.get_ydata(), segments[:, 0, 1], segments[:, 1, 1]


def test_points_and_intervals_stand_where_the_numbers_are(panel):
    figure = figure_predicted_against_true([panel])
    x, y, low, high = points_of(figure.axes[0])
    np.testing.assert_allclose(x, 100.0 * panel.true)
    np.testing.assert_allclose(y, 100.0 * panel.estimate)
    np.testing.assert_allclose(low, 100.0 * panel.low)
    np.testing.assert_allclose(high, 100.0 * panel.high)


def test_both_axes_have_one_range_that_holds_everything(panel):
    axes = figure_predicted_against_true([panel, panel]).axes
    assert all(one.get_xlim() == axes[0].get_xlim() == one.get_ylim() for one in axes)
    low, high = axes[0].get_xlim()
    assert low < 100.0 * panel.low.min()
    assert high > 100.0 * panel.high.max()


def test_title_states_the_error(panel):
    figure = figure_predicted_against_true([panel])
    error = 100.0 * np.abs(panel.estimate - panel.true).mean()
    assert figure.axes[0].get_title(loc="left") == f"gp-IRT\nmean absolute error {error:.1f} points"


def test_estimates_without_an_interval_are_drawn_as_points(panel, tmp_path):
    nothing = np.full(12, np.nan)
    figure = figure_predicted_against_true([PredictionPanel("plain", panel.true, panel.estimate, nothing, nothing)])
    _, y, low, high = points_of(figure.axes[0])
    np.testing.assert_array_equal(low, y)
    np.testing.assert_array_equal(high, y)
    assert save_figure(figure, tmp_path / "figure.png").is_file()


def test_the_score_is_named_on_the_axes(panel):
    figure = figure_predicted_against_true([panel], target="$math")
    assert figure.axes[0].get_xlabel() == "true $math score (%)"
    assert figure.axes[0].get_ylabel() == "estimated $math score (%)"


def curve(panel, method, group="", scale=1.0):
    error, spread = np.array([0.04, 0.02, 0.03]), np.array([0.004, 0.002, 0.003])
    return ErrorCurve(panel, method, np.array([30, 100, 60]), scale * error, spread, group)


def test_every_panel_holds_its_own_curves():
    curves = [curve("one", "random"), curve("two", "random", scale=2.0), curve("one", "IRT", scale=0.5)]
    figure = figure_error_by_n(curves)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    heights = [[container[0].get_ydata()[0] for container in axes.containers] for axes in figure.axes]
    np.testing.assert_allclose(heights[0], [4.0, 2.0])
    np.testing.assert_allclose(heights[1], [8.0])


def test_axis_marks_the_sizes_that_were_run():
    axes = figure_error_by_n([curve("one", "random")]).axes[0]
    assert axes.get_xticks().tolist() == [30, 60, 100]
    assert axes.get_ylim()[0] == 0.0


def test_a_line_goes_from_few_items_to_many():
    container = figure_error_by_n([curve("one", "random")]).axes[0].containers[0]
    np.testing.assert_allclose(container[0].get_data(), [[30, 60, 100], [4.0, 3.0, 2.0]])
    bars = np.array(container[2][0].get_segments())  # (n_sizes, 2, 2)
    np.testing.assert_allclose(bars[:, 1, 1] - bars[:, 0, 1], [0.8, 0.6, 0.4])


def test_methods_of_a_group_share_a_colour_and_differ_in_line():
    curves = [curve("one", "IRT", "IRT"), curve("one", "IRT++", "IRT"), curve("one", "random", "random")]
    lines = [container[0] for container in figure_error_by_n(curves).axes[0].containers]
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert lines[0].get_linestyle() != lines[1].get_linestyle()
    assert lines[0].get_marker() != lines[1].get_marker()


def test_legend_names_every_method_once():
    curves = [curve(panel, method) for panel in ("one", "two") for method in ("random", "$IRT$")]
    figure = figure_error_by_n(curves)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["random", "$IRT$"]


@pytest.mark.parametrize("draw", [figure_predicted_against_true, figure_error_by_n])
def test_nothing_to_draw_is_refused(draw):
    with pytest.raises(ParameterError, match="at least one"):
        draw([])
