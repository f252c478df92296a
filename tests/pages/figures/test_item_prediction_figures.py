import dataclasses

import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.figures.item_prediction_figures import figure_item_predictions
from itembank.studies.papers.item_predictions_results import Cells, ItemPredictions, ScenarioPredictions
from tests.pages.figures.drawn import message_of, note_of


def made(scenario, *, is_graded):
    rng = np.random.default_rng(4)
    p = rng.random(600)
    y = rng.beta(20.0 * p, 20.0 * (1.0 - p)) if is_graded else (rng.random(600) < p).astype(float)
    model, item = np.repeat(np.arange(20), 30), np.tile(np.arange(30), 20)
    return ScenarioPredictions.of(scenario, Cells(p, y, np.full(600, 0.5), model, item))


@pytest.fixture(scope="module")
def found():
    parts = tuple(made(f"s{place}", is_graded=place > 0) for place in range(3))
    return ItemPredictions(parts, "beta", "b")


def test_points_are_the_bins_and_the_background_the_responses(found):
    figure = figure_item_predictions(found)
    assert len(figure.axes) == 3
    for axes, one in zip(figure.axes, found.scenarios, strict=True):
        points = next(line for line in axes.lines if line.get_marker() == "o")
        np.testing.assert_allclose(points.get_xdata(), 100.0 * one.bins.predicted)
        np.testing.assert_allclose(points.get_ydata(), 100.0 * one.bins.observed)
        assert f"r = {one.association.correlation:.2f}" in axes.get_title(loc="left")
    binary, graded = figure.axes[:2]
    assert len(binary.patches) == 30
    (mesh,) = (part for part in graded.collections if part.get_array() is not None)
    assert np.nansum(np.ma.filled(mesh.get_array(), 0.0)) == 600
    assert "Blue: how many responses lie there" in note_of(figure)


def test_the_message_has_the_range_and_the_error(found):
    low, high = sorted(one.association.correlation for one in found.scenarios)[::2]
    assert message_of(figure_item_predictions(found)).startswith(
        f"Predicted responses correlate {low:.2f} to {high:.2f}"
    )
    alone = message_of(figure_item_predictions(found, scenarios=("s1",)))
    assert f"{100.0 * found.scenarios[1].bins.calibration_error:.1f} points off" in alone


def test_scenarios_must_be_there_and_have_room(found):
    with pytest.raises(ParameterError, match="got 's9'"):
        figure_item_predictions(found, scenarios=("s9",))
    many = dataclasses.replace(found, scenarios=tuple(made(f"s{k}", is_graded=False) for k in range(18)))
    with pytest.raises(ParameterError, match="at most 16"):
        figure_item_predictions(many, scenarios=tuple(one.scenario for one in many.scenarios))
