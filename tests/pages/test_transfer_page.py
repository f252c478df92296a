import dataclasses

import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.blocks import Chart
from itembank.pages.transfer_page import transfer_page
from itembank.readers.compute import training_compute
from itembank.scaling.transfers.transfer_specs import TransferSpec
from itembank.scaling.transfers.transfers import transfer
from tests.pages.reading import cautions, check_charts, lead_text, of_kind
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def made():
    return simulated(np.random.default_rng(1), n_models=40, n_items=24, n_scenarios=3)[0]


@pytest.fixture(scope="module")
def found(made):
    return transfer(made, "s0", "s1", compute=training_compute(made.models, made.model_ids))


def test_the_error_stands_beside_that_of_no_answer_at_all(found):
    page = transfer_page([found])
    own, *_, nothing = found.method_rows()
    assert f"predicted within {100.0 * own['error']:.1f} points" in lead_text(page)
    assert f"without any answer it would be {100.0 * nothing['error']:.1f} points" in lead_text(page)
    check_charts(page)


def test_predicted_stands_over_actual_with_its_interval(found):
    (chart,) = of_kind(transfer_page([found]), Chart)
    data = chart.data[0].columns
    np.testing.assert_allclose(data["actual"], found.actual[:, 0])
    np.testing.assert_allclose(data["value"], found.prediction.value[:, 0])
    np.testing.assert_allclose(data["high"], found.prediction.upper[:, 0])
    assert data["group"] == list(found.groups)


def test_several_transfers_have_a_panel_each(found):
    prediction = found.prediction
    worse = {found.method: dataclasses.replace(prediction, value=1.0 - prediction.value)}
    page = transfer_page([dataclasses.replace(found, source="s2", predictions=worse), found])
    assert len(set(of_kind(page, Chart)[0].data[0].columns["place"])) == 2
    assert "no better than the mean of other models: s2 to s1" in cautions(page)
    check_charts(page)


def test_pass_at_k_has_curves_from_0_to_1():
    samples = simulated(np.random.default_rng(2), n_models=40, n_items=30, n_trials=30)[0]
    one = transfer(samples, "s0", spec=TransferSpec(k=(1, 5, 30)), calibration=samples.model_ids[:30])
    page = transfer_page([one])
    chart = of_kind(page, Chart)[1]
    np.testing.assert_allclose(chart.data[0].columns["actual"], one.actual.ravel())
    assert [part["encoding"]["y"]["scale"]["domain"] for part in chart.spec["layer"]] == [[0.0, 1.0]] * 3
    assert chart.spec["params"][0]["bind"]["options"] == list(one.model_ids)
    check_charts(page)


def test_nothing_is_refused():
    with pytest.raises(ParameterError, match="at least one, got none"):
        transfer_page([])
