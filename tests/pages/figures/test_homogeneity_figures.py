import dataclasses

import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.figures.homogeneity_figures import figure_homogeneity
from itembank.studies.papers.scenario_homogeneity import homogeneity
from tests.pages.figures.drawn import message_of
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def found():
    return homogeneity(simulated(np.random.default_rng(1), n_models=60, n_items=40, n_scenarios=3)[0])


def test_four_panels_for_each_scenario(found):
    figure = figure_homogeneity(found)
    assert len(figure.axes) == 12 + 1  # with the scale of colours
    for row, one in enumerate(sorted(found.scenarios, key=lambda each: each.is_fit)):
        pattern, difficulty, discrimination, information = figure.axes[4 * row : 4 * row + 4]
        np.testing.assert_allclose(pattern.images[0].get_array(), 100.0 * one.pattern)
        for axes, values in ((difficulty, one.difficulty), (discrimination, one.discrimination)):
            beyond = sum(int("".join(filter(str.isdigit, text.get_text()))) for text in axes.texts)
            assert sum(bar.get_height() for bar in axes.patches) + beyond == values.size
        np.testing.assert_allclose(information.lines[0].get_ydata(), one.information / 40)
        shaded = information.patches[0].get_extents().transformed(information.transData.inverted())
        assert (shaded.x0, shaded.x1) == pytest.approx(one.range)
    n_fit = sum(one.is_fit for one in found.scenarios)
    assert message_of(figure).startswith(f"{n_fit} of 3 scenarios have items that differ enough")


def test_two_extreme_items_squeeze_neither_histograms_nor_colours(found):
    one = found.scenarios[0]
    pattern = 0.4 + 0.2 * one.pattern
    pattern[0, :2] = 0.0, 1.0
    difficulty = np.append(one.difficulty, [-500.0, 900.0])
    changed = dataclasses.replace(one, pattern=pattern, difficulty=difficulty)
    figure = figure_homogeneity(dataclasses.replace(found, scenarios=(changed,)))
    colours, histogram = figure.axes[0].images[0], figure.axes[1]
    assert colours.get_clim()[0] >= 39.0
    assert colours.get_clim()[1] <= 61.0
    assert colours.colorbar.extend == "both"
    assert np.ptp(histogram.get_xlim()) < 50.0
    assert any(text.get_text().startswith("◂") for text in histogram.texts)
    assert any(text.get_text().endswith("▸") for text in histogram.texts)


def test_one_scenario_can_be_drawn_alone(found):
    axes = figure_homogeneity(found, scenarios=("s2",)).axes
    assert len(axes) == 4 + 1
    assert axes[0].get_ylabel().startswith("s2")


def test_no_such_scenario(found):
    with pytest.raises(ParameterError, match="got s9"):
        figure_homogeneity(found, scenarios=("s9",))
