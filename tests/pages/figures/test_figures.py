import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.figures.canvas import save_figure
from itembank.pages.figures.figures import PredictionPanel, figure_gain, figure_predicted_against_true
from tests.pages.figures.drawn import message_of, note_of


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
    assert "Bars: 95 % intervals." in note_of(figure)
    assert "Arrows" not in note_of(figure)


def test_both_axes_have_one_range_that_holds_everything(panel):
    axes = figure_predicted_against_true([panel, panel]).axes
    assert all(one.get_xlim() == axes[0].get_xlim() == one.get_ylim() for one in axes)
    low, high = axes[0].get_xlim()
    assert low < 100.0 * panel.low.min()
    assert high > 100.0 * panel.high.max()


def test_an_interval_that_goes_far_ends_in_an_arrow_and_squeezes_nothing(panel):
    high = panel.high.copy()
    high[3] = 9.0
    figure = figure_predicted_against_true([PredictionPanel("wide", panel.true, panel.estimate, panel.low, high)])
    (axes,) = figure.axes
    assert axes.get_ylim()[1] < 150.0
    (arrow,) = [line for line in axes.get_lines() if line.get_marker() == "^"]
    assert (arrow.get_xdata()[0], arrow.get_ydata()[0]) == (100.0 * panel.true[3], axes.get_ylim()[1])
    assert "Arrows: the interval goes on." in note_of(figure)


def test_models_that_answered_unlike_past_ones_are_hollow(panel):
    flagged = np.arange(12) == 5
    drawn = PredictionPanel("one", panel.true, panel.estimate, panel.low, panel.high, flagged)
    figure = figure_predicted_against_true([drawn])
    hollow = [one for one in figure.axes[0].containers if one.lines[0].get_markerfacecolor() == "white"]
    assert [one.lines[0].get_xdata().tolist() for one in hollow] == [[100.0 * panel.true[5]]]
    assert "Hollow: answered unlike past models." in note_of(figure)


def test_message_and_titles_state_the_errors(panel):
    error = 100.0 * np.abs(panel.estimate - panel.true).mean()
    alone = figure_predicted_against_true([panel])
    assert message_of(alone) == f"Estimates are off by {error:.1f} points on average"
    assert alone.axes[0].get_title(loc="left") == "gp-IRT"
    worse = PredictionPanel("mean", panel.true, panel.true + 0.2, panel.low, panel.high)
    both = figure_predicted_against_true([worse, panel])
    assert message_of(both).endswith(f"off by {error:.1f} points on average (gp-IRT), 20.0 points at worst (mean)")
    assert both.axes[0].get_title(loc="left") == "mean\nmean error 20.0 points"


def test_estimates_without_an_interval_are_drawn_as_points(panel, tmp_path):
    nothing = np.full(12, np.nan)
    figure = figure_predicted_against_true([PredictionPanel("plain", panel.true, panel.estimate, nothing, nothing)])
    _, y, low, high = points_of(figure.axes[0])
    np.testing.assert_array_equal(low, y)
    np.testing.assert_array_equal(high, y)
    assert "intervals" not in note_of(figure)
    assert save_figure(figure, tmp_path / "figure.png").is_file()


def test_the_score_is_named_on_the_axes(panel):
    figure = figure_predicted_against_true([panel], target="$math")
    assert figure.axes[0].get_xlabel() == "true $math score (%)"
    assert figure.axes[0].get_ylabel() == "estimated $math score (%)"


def test_nothing_to_draw_is_refused(panel):
    with pytest.raises(ParameterError, match="at least one"):
        figure_predicted_against_true([])
    with pytest.raises(ParameterError, match="two methods or more, got 1"):
        figure_gain([panel], n_items=10, n_total=100)


def test_the_gain_is_the_message_and_the_bars(panel):
    worse = PredictionPanel("random sampling", panel.true, panel.true + 0.1, panel.low, panel.high)
    figure = figure_gain([worse, panel, panel], n_items=10, n_total=1820)
    ours = 100.0 * np.abs(panel.estimate - panel.true).mean()
    assert message_of(figure) == (
        f"10 of 1,820 items give the full score to {ours:.1f} points on average, "
        "where random sampling errs by 10.0 points"
    )
    items, errors, first, last = figure.axes
    assert [bar.get_width() for bar in items.patches] == [1820, 10]
    np.testing.assert_allclose([bar.get_width() for bar in errors.patches], [10.0, ours, ours])
    np.testing.assert_allclose(points_of(first)[1], 100.0 * worse.estimate)
    np.testing.assert_allclose(points_of(last)[1], 100.0 * panel.estimate)
    assert first.get_xlim() == last.get_xlim() == last.get_ylim()


def test_the_mean_errors_may_be_of_more_repeats_than_are_drawn(panel):
    worse, worst = (
        PredictionPanel("random sampling", panel.true, panel.true + one, panel.low, panel.high) for one in (0.1, 0.2)
    )
    figure = figure_gain([worse, panel], n_items=10, n_total=1820, all_repeats=[worst, panel])
    assert message_of(figure).endswith("where random sampling errs by 20.0 points")
    np.testing.assert_allclose(points_of(figure.axes[2])[1], 100.0 * worse.estimate)
    assert figure.axes[1].patches[0].get_width() == pytest.approx(20.0)
