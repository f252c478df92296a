import dataclasses
import itertools

import numpy as np
import pytest

from itembank.pages.figures.canvas import save_figure
from itembank.pages.figures.pass_at_k_figures import LOOKS, MOST_PANELS, figure_pass_at_k
from itembank.scaling.sampling.pass_at_k_law import pass_at_k_law
from itembank.scaling.sampling.pass_at_k_specs import METHODS, PassAtKSpec
from tests.pages.figures.drawn import message_of, names_of, note_of
from tests.scaling.samples import known_bank, simulated_samples


@pytest.fixture(scope="module")
def law():
    samples = simulated_samples(n_models=15, n_items=30, n_trials=200)
    spec = PassAtKSpec(k=(1, 10, 100), budget=20, n_draws=200)
    return pass_at_k_law(samples.responses, spec, bank=known_bank(samples))


def test_a_panel_shows_the_numbers(law, tmp_path):
    figure = figure_pass_at_k(law, curves=(4,), title="$data$")
    (axes,) = figure.axes
    looks = {(line.get_color(), str(line.get_linestyle())) for line in axes.get_lines()[: len(METHODS)]}
    for line, method in zip(axes.get_lines(), METHODS, strict=False):
        assert line.get_color() == LOOKS[method][0]
        np.testing.assert_allclose(line.get_ydata(), 100.0 * law.values(method)[4])
    assert len(looks) == len(METHODS)
    assert len({(color, str(line)) for color, line, _ in LOOKS.values()}) == len(LOOKS) == len(METHODS)
    (truth,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(truth.get_ydata(), 100.0 * law.all_items.truth[4])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(100.0 * law.all_items.low[4, 0])
    assert band[:, 1].max() == pytest.approx(100.0 * law.all_items.high[4, -1])
    assert axes.get_ylim()[0] == 0.0
    assert axes.get_ylim()[1] >= 100.0
    assert axes.get_title(loc="left") == "$data$: model-5, math"
    assert axes.patches[0].get_extents().width > 0  # what lies beyond the samples is shaded
    assert {"item response", "all samples", "unbiased (to 10)"} <= set(names_of(axes))
    assert "Band: 95 % interval" in note_of(figure)
    error = 100.0 * abs(law.values("irsl")[4, -1] - law.all_items.truth[4, -1])
    assert (
        message_of(figure) == f"From 20 samples the item response law tells pass@100 to {error:.1f} points on average"
    )
    assert save_figure(figure, tmp_path / "pass.png").stat().st_size > 5_000


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
    assert "Band" not in note_of(figure)
    assert message_of(figure).startswith("From 20 samples the plug-in law expects a pass@100 of ")


def test_numbers_below_narrow_panels_do_not_touch(law):
    figure = figure_pass_at_k(dataclasses.replace(law, k=np.array([1.0, 100.0, 10_000.0])))
    for axes in figure.axes:
        places = [one.get_window_extent() for one in axes.get_xticklabels() if one.get_text()]
        assert len(places) == 3
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(places))
    assert [one.get_text() for one in figure.axes[0].get_xticklabels()] == ["1", "100", "10,000"]
