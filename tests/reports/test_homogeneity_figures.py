import numpy as np
import pytest

from itembank.diagnostics.scenario_homogeneity import homogeneity
from itembank.errors import ParameterError
from itembank.reports.homogeneity_figures import figure_homogeneity
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def found():
    return homogeneity(simulated(np.random.default_rng(1), n_models=60, n_items=40, n_scenarios=3)[0])


def test_four_rows_for_each_scenario(found):
    axes = figure_homogeneity(found).axes
    assert len(axes) == 12
    for column, one in enumerate(sorted(found.scenarios, key=lambda each: each.is_fit)):
        np.testing.assert_array_equal(axes[column].images[0].get_array(), one.pattern)
        heights = [bar.get_height() for bar in axes[6 + column].patches]
        assert sum(heights) in (38, 39, 40)  # the outermost hundredths are cut
        np.testing.assert_allclose(axes[9 + column].lines[0].get_ydata(), one.information / 40)
        shaded = axes[9 + column].patches[0].get_extents().transformed(axes[9 + column].transData.inverted())
        assert (shaded.x0, shaded.x1) == pytest.approx(one.range)


def test_one_scenario_can_be_drawn_alone(found):
    axes = figure_homogeneity(found, scenarios=("s2",)).axes
    assert len(axes) == 4
    assert axes[0].get_title(loc="left").startswith("s2")


def test_no_such_scenario(found):
    with pytest.raises(ParameterError, match="got s9"):
        figure_homogeneity(found, scenarios=("s9",))
