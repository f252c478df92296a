import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.figures.task_figures import MOST_BARS, figure_tasks
from itembank.studies.papers.task_overview import task_overview
from tests.pages.figures.drawn import message_of
from tests.studies.prediction.simulated import make_responses

RESPONSES = make_responses()


def test_costs_and_scores_stand_side_by_side():
    found = task_overview(RESPONSES, by="subscenario", cost="tokens")
    figure = figure_tasks(found, kind="costs")
    figure.draw_without_rendering()
    left, right = figure.axes
    order = np.argsort(found.cost)
    np.testing.assert_allclose([bar.get_width() for bar in left.patches], found.cost[order])
    assert [text.get_text() for text in left.get_yticklabels()] == [found.tasks[task] for task in order]
    np.testing.assert_allclose(right.get_lines()[0].get_xdata(), 100.0 * found.score[order])
    dearest = found.tasks[int(np.argmax(found.cost))]
    assert message_of(figure).startswith(f"A response to {dearest} costs {found.cost_ratio:.1f} times")


def test_correlations_stand_in_the_order_of_the_clusters():
    found = task_overview(RESPONSES, by="subscenario")
    figure = figure_tasks(found)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [found.tasks[task] for task in found.order]
    drawn = np.ma.filled(axes.images[0].get_array(), np.nan)
    expected = found.correlation[np.ix_(found.order, found.order)]
    off = ~np.eye(len(found.tasks), dtype=bool)
    np.testing.assert_allclose(drawn[off], expected[off])
    assert "correlate above" in message_of(figure)


def test_of_many_tasks_some_are_named_and_the_ends_drawn():
    many = make_responses(n_tasks=100, n_per_task=2, n_models=6)
    found = task_overview(many, by="subscenario", cost="tokens")
    assert len(figure_tasks(found, kind="costs").axes[0].patches) == MOST_BARS
    assert len(figure_tasks(found).axes[0].get_yticklabels()) == 50


def test_what_is_not_known_cannot_be_drawn():
    found = task_overview(RESPONSES, by="subscenario")
    with pytest.raises(ParameterError, match=r"a cost must be known .* \(task_overview\(..., cost='tokens'\)\)"):
        figure_tasks(found, kind="costs")
    with pytest.raises(ParameterError, match="kind must be one of"):
        figure_tasks(found, kind="pie")
