import dataclasses

import numpy as np
import pytest

from itembank.pages.shown import show
from itembank_scaling.compute import training_compute
from itembank_scaling.pages.transfer_charts import agreement_chart
from itembank_scaling.transfers.convergent import convergent_validity
from itembank_scaling.transfers.transfer_specs import TransferSpec
from itembank_scaling.transfers.transfers import transfer
from tests.pages.reading import check_charts
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def made():
    return simulated(np.random.default_rng(1), n_models=40, n_items=24, n_scenarios=3)[0]


@pytest.fixture(scope="module")
def validity(made):
    return convergent_validity(made, compute=training_compute(made.models, made.model_ids), rng=0)


def test_predicted_stands_over_actual_with_its_interval(made):
    found = transfer(made, "s0", "s1", compute=training_compute(made.models, made.model_ids))
    page = show(found)
    check_charts(page)
    data = page.charts[0].data[0].columns
    np.testing.assert_allclose(data["actual"], found.actual[:, 0])
    np.testing.assert_allclose(data["value"], found.prediction.value[:, 0])
    np.testing.assert_allclose(data["high"], found.prediction.upper[:, 0])
    assert data["group"] == list(found.groups)
    assert f"The two abilities have a correlation of {found.correlation:.2f}." in page.charts[0].note
    several = agreement_chart([dataclasses.replace(found, source="s2"), found])
    assert "r is the correlation of the two abilities." in several.note
    assert len(set(several.data[0].columns["place"])) == 2


def test_pass_at_k_has_curves_from_0_to_1():
    samples = simulated(np.random.default_rng(2), n_models=40, n_items=30, n_trials=30)[0]
    one = transfer(samples, "s0", spec=TransferSpec(k=(1, 5, 30)), calibration=samples.model_ids[:30])
    page = show(one)
    chart = page.charts[1]
    np.testing.assert_allclose(chart.data[0].columns["actual"], one.actual.ravel())
    assert [part["encoding"]["y"]["scale"]["domain"] for part in chart.spec["layer"]] == [[0.0, 1.0]] * 3
    assert chart.spec["params"][0]["bind"]["options"] == list(one.model_ids)
    check_charts(page)


def test_each_matrix_holds_its_correlations(validity):
    page = show(validity)
    check_charts(page)
    tables = (validity.observed, validity.disattenuated, validity.beyond_compute)
    for chart, correlations in zip(page.charts, tables, strict=True):
        data = chart.data[0].columns
        for row, column, value in zip(data["row"], data["column"], data["value"], strict=True):
            place = validity.scenarios.index(row), validity.scenarios.index(column)
            assert value == pytest.approx(correlations.value[place])


def test_without_correlations_the_chart_says_so(validity):
    nothing = dataclasses.replace(validity.observed, value=np.where(np.eye(3) > 0.0, 1.0, np.nan))
    page = show(dataclasses.replace(validity, observed=nothing, disattenuated=nothing, beyond_compute=None))
    assert [chart.title for chart in page.charts] == ["No two scenarios have models in common"] * 2
