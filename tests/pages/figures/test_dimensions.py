import dataclasses

import numpy as np
import pytest

from itembank.pages.figures.canvas import save_figure
from itembank.pages.figures.dimensions import figure_dimensionality
from itembank.studies.papers.dimensions import dimensionality
from tests.calibration.test_dimensions import simulated
from tests.pages.figures.drawn import message_of, names_of
from tests.studies.papers.test_dimensions import QUICK


@pytest.fixture(scope="module")
def found():
    return dimensionality(simulated(40, 100, 2), QUICK, candidates=(1, 2, 4), n_shown=(10,))


def test_the_three_panels_show_the_numbers(found, tmp_path):
    figure = figure_dimensionality(found, title="$name$")
    scree, parallel, errors = figure.axes
    (line,) = scree.get_lines()
    np.testing.assert_allclose(line.get_ydata(), 100 * found.shares[:20])
    data, limit = parallel.get_lines()
    np.testing.assert_array_equal(data.get_xdata(), np.arange(2, 9))
    np.testing.assert_array_equal(data.get_ydata(), found.eigenvalues[1:8])
    np.testing.assert_array_equal(limit.get_ydata(), found.thresholds[1:8])
    drawn = [container.lines[0].get_ydata() for container in errors.containers]
    np.testing.assert_allclose(drawn, 100 * found.relative_errors)
    assert [text.get_text() for text in errors.get_xticklabels()] == ["1", "2", "4"]
    assert sorted(names_of(errors)) == ["10 items", "50 items"]
    assert message_of(figure) == (
        f"{found.n_dims_parallel} dimensions tell more than chance; held-out answers are predicted with {found.n_dims}"
    )
    assert save_figure(figure, tmp_path / "dimensions.png").stat().st_size > 5_000


def test_without_errors_there_are_two_panels(found):
    empty = np.empty((0, 0))
    bare = dataclasses.replace(found, candidates=(), n_shown=(), n_dims=None, errors=empty, relative_errors=empty)
    assert len(figure_dimensionality(bare).axes) == 2
