"""Right and wrong items beside graded ones, against R's mirt on its own 61 nodes.

mirt's case has two partial credit items besides, which a bank takes as graded.
"""

import numpy as np
import polars as pl
import pytest

from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import MarginalML
from itembank.irt.bernoulli import logit
from itembank.irt.families import information_weights
from itembank.irt.parameters import ItemParameters, Steps
from itembank.responses.responses import ResponseMatrix
from tests.golden.cases import read_data, read_results

NAME = "sim_mixed_format"


@pytest.fixture(scope="module")
def golden(shared_dir):
    return read_results(shared_dir, NAME)


@pytest.fixture(scope="module")
def levels(shared_dir):
    """Levels of the responses, from 0, (600, 15)."""
    return read_data(shared_dir, NAME).responses.astype(np.int64)


def test_information_of_right_and_wrong_items_and_of_graded_ones(golden):
    names = golden["par"]["item_par_names"]
    columns = ["a1"] + ["d"] * 4, ["a1", "d1", "d2", "d3", "d4"]
    # of right and wrong items the levels between are not there: their steps are where the whole step is
    rows = [
        [row[names.index(name)] for name in columns[number >= 10]]
        for number, row in enumerate(golden["par"]["items"][:13])
    ]
    slope, thresholds = np.split(np.array(rows, dtype=float), [1], axis=1)
    intercept = thresholds.mean(axis=1)
    steps = Steps(np.linspace(0.0, 1.0, 5), intercept[:, None] - thresholds)
    items = ItemParameters.create(slope, intercept, family="graded", steps=steps)
    theta = np.array(golden["info"]["theta"])[:, None]
    ours = information_weights(items, logit(items, theta)) * slope[:, 0] ** 2
    np.testing.assert_allclose(ours.T, golden["info"]["item_info"][:13], rtol=1e-9)


def test_a_bank_of_graded_items_alone_gives_nearly_the_same_abilities(golden, levels):
    """Partial credit items taken as graded. Standard errors of abilities are .4."""
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(15)], "scenario": ["right"] * 10 + ["marks"] * 5})
    responses = ResponseMatrix.create(levels / np.where(np.arange(15) < 10, 1.0, 4.0), items=items)
    found = calibrate(responses, MarginalML(family="graded"))
    difference = found.abilities[:, 0] - np.array(golden["scores"]["EAP"]["theta"])[:, 0]
    assert np.sqrt(np.mean(difference**2)) < 0.06
    assert np.isfinite(found.parameters.steps.places[10:]).all()
    assert found.parameters.steps.has[:10].sum(axis=1).tolist() == [2] * 10
