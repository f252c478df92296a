import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.figures.transfer_figures import figure_transfer, figure_transfer_errors
from itembank.pages.figures.validity_figures import figure_ability_pair, figure_validity
from itembank.readers.compute import training_compute
from itembank.scaling.transfers.convergent import convergent_validity
from itembank.scaling.transfers.transfer_specs import TransferSpec
from itembank.scaling.transfers.transfers import transfer
from tests.pages.figures.drawn import message_of, note_of
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def made():
    return simulated(np.random.default_rng(1), n_models=40, n_items=24, n_scenarios=3)[0]


def offsets(axes):
    return axes.lines[0].get_xydata()


def test_predicted_stands_over_actual_and_curves_over_compute(made):
    found = transfer(made, "s0", "s1", compute=training_compute(made.models, made.model_ids))
    axes = figure_transfer(found).axes
    assert len(axes) == 6  # five recipes beside the first panel
    np.testing.assert_allclose(offsets(axes[0])[:, 0], 100.0 * found.actual[:, 0])
    np.testing.assert_allclose(offsets(axes[0])[:, 1], 100.0 * found.prediction.value[:, 0])
    inside = np.array(found.groups) == axes[1].get_title(loc="left")
    order = np.argsort(found.flops[inside])
    np.testing.assert_allclose(axes[1].lines[1].get_xdata(), found.flops[inside][order])
    np.testing.assert_allclose(axes[1].lines[1].get_ydata(), 100.0 * found.actual[inside, 0][order])
    assert axes[1].get_xscale() == "log"


def test_without_compute_there_is_one_panel(made):
    assert len(figure_transfer(transfer(made, "s0", "s1")).axes) == 1


def test_pass_at_k_is_drawn_in_percent_against_k():
    samples = simulated(np.random.default_rng(2), n_models=40, n_items=30, n_trials=30)[0]
    found = transfer(samples, "s0", spec=TransferSpec(k=(1, 5, 30)), calibration=samples.model_ids[:30])
    figure = figure_transfer(found)
    axes = figure.axes
    row = found.model_ids.index(axes[1].get_title(loc="left"))
    assert found.actual[row, -1] == np.nanmax(found.actual[:, -1])  # the best model first
    np.testing.assert_allclose(axes[1].lines[0].get_ydata(), 100.0 * found.prediction.value[row])
    np.testing.assert_allclose(axes[1].lines[1].get_ydata(), 100.0 * found.actual[row])
    assert axes[0].get_xlabel() == "actual pass@30 (%)"
    assert {one.get_ylim()[0] for one in axes[1:]} == {0.0}
    error = 100.0 * np.nanmean(found.errors)
    assert message_of(figure) == f"s0 (easy) predicts pass@1 to pass@30 on s0 (hard) to {error:.1f} points on average"
    assert "95 % intervals" in note_of(figure)


def test_errors_have_a_box_each(made):
    found = [transfer(made, name, spec=TransferSpec(warn_below=0.0)) for name in ("s0", "s1")]
    axes = figure_transfer_errors(found).axes[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert [name.split(" to ")[0] for name in names] == ["s1 (easy)", "s0 (easy)"]
    with pytest.raises(ParameterError, match="at least one"):
        figure_transfer_errors([])


def test_heatmap_holds_the_correlations_in_their_order(made):
    found = convergent_validity(made)
    figure = figure_validity(found)
    axes = figure.axes[0]
    drawn = np.ma.filled(axes.images[0].get_array(), 1.0)  # a scenario with itself is left blank
    np.testing.assert_allclose(drawn, found.observed.value[np.ix_(found.order, found.order)])
    pairs = found.observed.value[np.triu_indices(3, 1)]
    assert f"most alike ({pairs.max():.2f})" in message_of(figure)
    assert f"least ({pairs.min():.2f})" in message_of(figure)
    assert [text.get_text() for text in axes.get_xticklabels()] == [found.scenarios[k] for k in found.order]
    assert len(axes.texts) == 6
    with pytest.raises(ParameterError, match="that was made"):
        figure_validity(found, table="beyond_compute")


def test_a_pair_of_abilities(made):
    found = convergent_validity(made)
    axes = figure_ability_pair(found, "s0", "s2").axes[0]
    np.testing.assert_allclose(offsets(axes), found.theta[:, [0, 2]])
    with pytest.raises(ParameterError, match="got s9"):
        figure_ability_pair(found, "s0", "s9")
