"""Right and wrong items beside graded and partial credit ones, against R's mirt on its own 61 nodes.

A bank has one link: mirt's 10 binary and 3 graded items make one, its 2 partial credit items another. The fit and the
scores of both kinds together are those of the parts that a bank calls.
"""

import numpy as np
import polars as pl
import pytest

from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import MarginalML
from itembank.calibration.marginal_ml.graded import Group, _rounds, _start
from itembank.calibration.marginal_ml.grid import normal_grid
from itembank.irt.bernoulli import logit
from itembank.irt.families import information_weights
from itembank.irt.parameters import ItemParameters
from itembank.irt.steps import Steps
from itembank.responses.responses import ResponseMatrix
from tests.golden.cases import read_data, read_results

NAME = "sim_mixed_format"
BINARY, GRADED, PARTIAL = np.arange(10), np.arange(10, 13), np.arange(13, 15)
LINKS = ("cumulative", "cumulative", "adjacent")


@pytest.fixture(scope="module")
def golden(shared_dir):
    return read_results(shared_dir, NAME)


@pytest.fixture(scope="module")
def levels(shared_dir):
    """Levels of the responses, from 0, (600, 15)."""
    return read_data(shared_dir, NAME).responses.astype(np.int64)


@pytest.fixture(scope="module")
def theirs(golden):
    """Slopes and thresholds of the items of each kind; those of partial credit are differences of mirt's d_k."""
    names = golden["par"]["item_par_names"]

    def columns(items, *wanted):
        rows = [golden["par"]["items"][item] for item in items.tolist()]
        return np.array([[row[names.index(name)] for name in wanted] for row in rows], dtype=float)

    partial = columns(PARTIAL, "d0", "d1", "d2", "d3", "d4")
    return (
        columns(BINARY, "a1", "d"),
        columns(GRADED, "a1", "d1", "d2", "d3", "d4"),
        np.column_stack([columns(PARTIAL, "a1"), np.diff(partial, axis=1)]),
    )


def groups(levels):
    has = np.array([True, False, False, False, True]), np.ones(5, dtype=bool), np.ones(5, dtype=bool)
    kinds = zip((BINARY, GRADED, PARTIAL), has, LINKS, strict=True)
    return tuple(Group(items, own, levels[:, items], link) for items, own, link in kinds)


def test_rounds_of_em_end_where_mirt_does(golden, levels, theirs):
    parts, nodes = groups(levels), normal_grid(61, bounds=(-6.0, 6.0), n_dims=1)
    spec = MarginalML(family="graded", prior=None, n_quadrature=61, tolerance=1e-4)
    found, history = _rounds(parts, tuple(_start(part) for part in parts), nodes, spec, 300)
    assert len(history) < 300
    for ours, golden_items in zip(found.items, theirs, strict=True):
        np.testing.assert_allclose(ours, golden_items, atol=1e-4)
    assert found.log_likelihood == pytest.approx(golden["fit"]["logLik"], abs=1e-5)
    np.testing.assert_allclose(found.mean, np.array(golden["scores"]["EAP"]["theta"])[:, 0], atol=1e-4)


def test_information_of_each_kind(golden, theirs):
    binary, graded, partial = theirs
    theta = np.array(golden["info"]["theta"])[:, None]
    # of right and wrong items the levels between are not there: their steps are where the whole step is
    thresholds = np.vstack([np.repeat(binary[:, 1:], 4, axis=1), graded[:, 1:]])
    sets = (np.append(binary[:, 0], graded[:, 0]), thresholds), (partial[:, 0], partial[:, 1:])
    ours = []
    for (slope, own), link in zip(sets, ("cumulative", "adjacent"), strict=True):
        intercept = own.mean(axis=1)
        steps = Steps(np.linspace(0.0, 1.0, 5), intercept[:, None] - own, link)
        items = ItemParameters.create(slope[:, None], intercept, family="graded", steps=steps)
        ours.append(information_weights(items, logit(items, theta)) * slope**2)
    np.testing.assert_allclose(np.column_stack(ours).T, golden["info"]["item_info"], rtol=1e-9)


@pytest.mark.parametrize(("link", "largest"), [("cumulative", 0.06), ("adjacent", 0.04)])
def test_a_bank_of_one_link_for_all_gives_nearly_the_same_abilities(golden, levels, link, largest):
    """What a user does whose items mix both links: take one of them for all. Standard errors of abilities are .4."""
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(15)], "scenario": ["right"] * 10 + ["marks"] * 5})
    responses = ResponseMatrix.create(levels / np.where(np.arange(15) < 10, 1.0, 4.0), items=items)
    found = calibrate(responses, MarginalML(family="graded", link=link))
    difference = found.abilities[:, 0] - np.array(golden["scores"]["EAP"]["theta"])[:, 0]
    assert np.sqrt(np.mean(difference**2)) < largest
    assert np.isfinite(found.parameters.steps.places[10:]).all()
    assert found.parameters.steps.has[:10].sum(axis=1).tolist() == [2] * 10
