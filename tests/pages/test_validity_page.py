import dataclasses

import numpy as np
import pytest

from itembank.pages.blocks import Chart
from itembank.pages.validity_page import validity_page
from itembank.readers.compute import training_compute
from itembank.scaling.transfers.convergent import convergent_validity
from tests.pages.reading import check_charts, lead_text, of_kind
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def found():
    made = simulated(np.random.default_rng(1), n_models=40, n_items=24, n_scenarios=3)[0]
    return convergent_validity(made, compute=training_compute(made.models, made.model_ids), rng=0)


def test_each_matrix_holds_its_correlations(found):
    page = validity_page(found)
    check_charts(page)
    assert f"correlate by {np.median([row['correlation'] for row in found.rows()]):.2f}" in lead_text(page)
    drawn = of_kind(page, Chart)
    for chart, correlations in zip(drawn, (found.observed, found.disattenuated, found.beyond_compute), strict=True):
        data = chart.data[0].columns
        for row, column, value in zip(data["row"], data["column"], data["value"], strict=True):
            place = found.scenarios.index(row), found.scenarios.index(column)
            assert value == pytest.approx(correlations.value[place])


def test_without_compute_and_correlations_there_is_nothing_to_draw(found):
    nothing = dataclasses.replace(found.observed, value=np.where(np.eye(3) > 0.0, 1.0, np.nan))
    page = validity_page(dataclasses.replace(found, observed=nothing, disattenuated=nothing, beyond_compute=None))
    assert of_kind(page, Chart) == []
    assert "enough models in common" in lead_text(page)
