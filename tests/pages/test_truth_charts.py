import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.truth_charts import PredictionPanel, predicted_against_true_chart
from tests.pages.reading import check_chart, columns_of


@pytest.fixture
def panel(rng):
    true = rng.uniform(0.3, 0.9, 12)
    estimate = true + rng.normal(0.0, 0.05, 12)
    return PredictionPanel("gp-IRT", true, estimate, estimate - 0.04, estimate + 0.06)


def domain_of(chart):
    return chart.spec["spec"]["layer"][1]["encoding"]["y"]["scale"]["domain"]


def test_points_and_intervals_stand_where_the_numbers_are(panel, tmp_path):
    chart = predicted_against_true_chart([panel])
    data = columns_of(chart)
    for name in ("true", "estimate", "low", "high"):
        np.testing.assert_array_equal(data[name], getattr(panel, name))
    low, high = domain_of(chart)
    assert low < panel.low.min()
    assert high > panel.high.max()
    assert "Bars: 95 % intervals." in chart.note
    assert chart.save(tmp_path / "figure.png").stat().st_size > 5_000
    check_chart(chart)


def test_an_interval_that_goes_far_squeezes_nothing(panel):
    high = panel.high.copy()
    high[3] = 9.0
    chart = predicted_against_true_chart([PredictionPanel("wide", panel.true, panel.estimate, panel.low, high)])
    assert domain_of(chart)[1] < 1.5
    assert chart.spec["spec"]["layer"][1]["mark"]["clip"]


def test_models_that_answered_unlike_past_ones_are_hollow(panel):
    flagged = np.arange(12) == 5
    drawn = PredictionPanel("one", panel.true, panel.estimate, panel.low, panel.high, flagged)
    chart = predicted_against_true_chart([drawn])
    np.testing.assert_array_equal(columns_of(chart)["is_flagged"], flagged)
    assert "Hollow: answered unlike past models." in chart.note


def test_titles_state_the_errors(panel):
    error = 100.0 * np.abs(panel.estimate - panel.true).mean()
    alone = predicted_against_true_chart([panel])
    assert alone.title == f"Estimates are off by {error:.1f} points on average"
    assert set(columns_of(alone)["panel"]) == {"gp-IRT"}
    worse = PredictionPanel("mean", panel.true, panel.true + 0.2, panel.low, panel.high)
    both = predicted_against_true_chart([worse, panel])
    assert both.title.endswith(f"off by {error:.1f} points on average (gp-IRT), 20.0 points at worst (mean)")
    assert columns_of(both)["panel"][0] == "mean: off by 20.0 points"
    assert predicted_against_true_chart([panel], title="Mine").title == "Mine"


def test_estimates_without_an_interval_are_drawn_as_points(panel, tmp_path):
    nothing = np.full(12, np.nan)
    chart = predicted_against_true_chart([PredictionPanel("plain", panel.true, panel.estimate, nothing, nothing)])
    assert "intervals" not in chart.note
    assert chart.save(tmp_path / "figure.svg").is_file()


def test_the_score_is_named_on_the_axes(panel, tmp_path):
    picture = predicted_against_true_chart([panel], target="$math").save(tmp_path / "f.svg").read_text(encoding="utf-8")
    assert "True $math score" in picture
    assert "Estimated $math score" in picture


def test_nothing_to_draw_is_refused():
    with pytest.raises(ParameterError, match="at least one"):
        predicted_against_true_chart([])
