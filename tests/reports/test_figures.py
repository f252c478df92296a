import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.reports.canvas import save_figure
from itembank.reports.figures import PredictionPanel, figure_predicted_against_true


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


def test_nothing_to_draw_is_refused():
    with pytest.raises(ParameterError, match="at least one"):
        figure_predicted_against_true([])
