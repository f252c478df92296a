import dataclasses

import numpy as np
import pytest

from itembank.reports.canvas import save_figure
from itembank.reports.pass_at_k_figures import LOOKS, MOST_PANELS, figure_pass_at_k, negative_log
from itembank.scaling.sampling.pass_at_k_law import pass_at_k_law
from itembank.scaling.sampling.pass_at_k_specs import METHODS, PassAtKSpec
from tests.scaling.samples import known_bank, simulated_samples


@pytest.fixture(scope="module")
def law():
    samples = simulated_samples(n_models=15, n_items=30, n_trials=200)
    spec = PassAtKSpec(k=(1, 10, 100), budget=20, n_draws=200)
    return pass_at_k_law(samples.responses, spec, bank=known_bank(samples))


def test_a_panel_shows_the_numbers(law, tmp_path):
    figure = figure_pass_at_k(law, curves=(4,), title="$data$")
    (axes,) = figure.axes
    truth, *lines = axes.get_lines()
    np.testing.assert_allclose(truth.get_ydata(), -np.log(law.all_items.truth[4]))
    drawn = {line.get_color() + line.get_linestyle(): line.get_ydata() for line in lines}
    for method in METHODS:
        color, style, _ = LOOKS[method]
        np.testing.assert_allclose(drawn[color + style], negative_log(law.values(method)[4]))
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(-np.log(law.all_items.high[4, -1]))
    assert band[:, 1].max() == pytest.approx(-np.log(law.all_items.low[4, 0]))
    assert axes.get_title(loc="left") == "$data$: model-5, math"
    assert axes.patches[0].get_extents().width > 0  # what lies beyond the samples is shaded
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "95 % interval"
    assert save_figure(figure, tmp_path / "pass.png").stat().st_size > 10_000


def test_many_curves_are_spread_over_twelve_panels(law):
    figure = figure_pass_at_k(law)
    assert len(figure.axes) == MOST_PANELS
    titles = [one.get_title(loc="left") for one in figure.axes]
    first = law.values("irsl")[:, 0]
    order = [f"{law.model_ids[i]}, math" for i in np.argsort(first)]
    assert (titles[0], titles[-1]) == (order[0], order[-1])
    assert [order.index(title) for title in titles] == sorted(order.index(title) for title in titles)


def test_what_was_not_estimated_is_not_drawn(law):
    bare = dataclasses.replace(
        law,
        methods=("plug-in",),
        all_items=dataclasses.replace(law.all_items, values=law.all_items.values[3:4], truth=None),
    )
    figure = figure_pass_at_k(bare, curves=(0, 1))
    assert [len(one.get_lines()) for one in figure.axes] == [1, 1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["plug-in"]


def test_a_pass_rate_of_nothing_or_one_has_a_place_or_none():
    np.testing.assert_array_equal(negative_log(np.array([0.0, np.nan])), [np.nan, np.nan])
    np.testing.assert_allclose(negative_log(np.array([1.0, 0.5])), [1e-4, np.log(2)])
