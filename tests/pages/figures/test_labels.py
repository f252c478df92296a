from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from itembank.pages.figures.canvas import new_figure, panels
from itembank.pages.figures.labels import LineLabel, label_lines, spread
from tests.pages.figures.drawn import names_of

PLACES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


@given(PLACES, st.floats(0.0, 0.3))
def test_places_keep_their_gap_their_order_and_the_panel(places, gap):
    given_places = np.array(places)
    found = spread(given_places, gap)
    order = np.argsort(given_places, kind="stable")
    kept = min(gap, 1.0 / max(len(places) - 1, 1))
    assert (np.diff(found[order]) >= kept - 1e-12).all()
    assert found.min() >= -1e-12
    assert found.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("places", [[0.5, 0.5, 0.5], [0.2, 0.25, 0.7, 0.72, 0.9], [0.4, 0.1, 0.45, 0.43]])
def test_places_move_as_little_as_can_be(places):
    ordered, gap = np.sort(places), 0.08
    differences = np.eye(len(places))[1:] - np.eye(len(places))[:-1]
    best = minimize(
        lambda x: np.sum((x - ordered) ** 2), np.linspace(0.0, 1.0, len(places)),
        constraints=LinearConstraint(differences, gap, np.inf), method="SLSQP", options={"ftol": 1e-14},
    )  # fmt: skip
    np.testing.assert_allclose(spread(ordered, gap), best.x, atol=1e-5)


def test_names_stand_in_the_order_of_the_lines_and_never_over_each_other():
    figure = new_figure(5.0, 3.0)
    axes = panels(figure, 1, 1)[0]
    axes.set_ylim(0.0, 10.0)
    heights = [5.0, 5.1, 4.9, 9.0, float("nan")]
    label_lines(axes, [LineLabel(f"${k}$", height, "#0072B2") for k, height in enumerate(heights)])
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert all(above.y0 >= below.y1 - 1.0 for below, above in pairwise(boxes))
    assert names_of(axes) == ["$3$", "$1$", "$0$", "$2$"]
