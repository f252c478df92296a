"""Counts in joint MAP: a cell of n trials is n single answers to items with tied parameters."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Point
from itembank.calibration.joint_map.fit import Plain, fit_joint_map
from itembank.calibration.joint_map.nested import make_problem
from itembank.calibration.joint_map.steps import ability_derivatives, ascend, item_derivatives
from tests.calibration.counts import counted, one_by_one, repeated, summed
from tests.calibration.joint_map.starting import leading_point
from tests.calibration.joint_map.test_optimum import optimum_nearby, penalised


@pytest.mark.parametrize(("missing", "lower"), [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_derivatives_are_those_of_the_single_answers(missing, lower):
    data, rng = counted(12, 9, n_dims=2, lower=lower, missing=missing), np.random.default_rng(1)
    items, abilities = rng.normal(size=(9, 3)), rng.normal(size=(12, 2))
    single = one_by_one(data)
    ours, theirs = item_derivatives(data, items, abilities), item_derivatives(single, repeated(items), abilities)
    assert ours.value == pytest.approx(theirs.value, rel=1e-12)
    np.testing.assert_allclose(ours.gradient, summed(theirs.gradient), atol=1e-12)
    np.testing.assert_allclose(ours.precision, summed(theirs.precision), atol=1e-12)
    ours, theirs = ability_derivatives(data, items, abilities), ability_derivatives(single, repeated(items), abilities)
    np.testing.assert_allclose(ours.gradient, theirs.gradient, atol=1e-12)
    np.testing.assert_allclose(ours.precision, theirs.precision, atol=1e-12)


@pytest.mark.parametrize(("missing", "lower"), [(False, 0.0), (True, 0.2)])
def test_nested_derivatives_are_those_of_the_single_answers(missing, lower):
    data, rng = counted(12, 9, n_dims=2, lower=lower, missing=missing), np.random.default_rng(1)
    spec = JointMAP("nested", n_dims=3, general_weight=0.6)
    items, abilities = rng.normal(size=(9, 4)), rng.normal(size=(12, 3))
    ours, theirs = (make_problem(one, spec) for one in (data, one_by_one(data)))
    mine, other = (
        one.item_derivatives(Point(values, abilities)) for one, values in ((ours, items), (theirs, repeated(items)))
    )
    assert mine.value == pytest.approx(other.value, rel=1e-12)
    np.testing.assert_allclose(mine.gradient, summed(other.gradient), atol=1e-11)
    np.testing.assert_allclose(mine.precision, summed(other.precision), atol=1e-11)
    mine, other = (
        one.ability_derivatives(Point(values, abilities)) for one, values in ((ours, items), (theirs, repeated(items)))
    )
    np.testing.assert_allclose(mine.gradient, other.gradient, atol=1e-11)
    np.testing.assert_allclose(mine.precision, other.precision, atol=1e-11)


def test_no_general_optimiser_finds_a_better_point_nearby():
    data = counted(10, 6, missing=True, seed=3)
    spec = JointMAP(l1=0.1, tolerance=1e-12, max_iterations=5000)
    point = ascend(Plain(data, spec), leading_point(data, spec)).end

    objective = tied(data)
    ours = objective(data, spec, point.items[:, :-1], point.items[:, -1], point.abilities)
    best = optimum_nearby(data, spec, point, np.random.default_rng(1), objective)
    assert ours == pytest.approx(best, abs=1e-4)


def tied(data):
    """The objective on single answers, one set of parameters for all trials of an item."""
    single = one_by_one(data)

    def objective(_, spec, loadings, intercept, abilities):
        whole = penalised(single, spec, repeated(loadings), repeated(intercept), abilities)
        prior = 0.5 * np.sum((intercept / spec.intercept_sd) ** 2) + spec.l1 * np.abs(loadings).sum()
        repeats = 0.5 * np.sum((repeated(intercept) / spec.intercept_sd) ** 2)
        return whole - repeats - spec.l1 * np.abs(repeated(loadings)).sum() + prior

    return objective


def test_covariances_count_every_trial():
    data = counted(60, 40, seed=4)
    data = replace(data, n_trials=data.n_trials * 50.0)
    fit = fit_joint_map(data, JointMAP())
    design, share = np.column_stack([fit.abilities, np.ones(60)]), expit(fit.abilities @ fit.loadings.T + fit.intercept)
    for item in (0, 7):
        weights = data.n_trials[:, item] * share[:, item] * (1.0 - share[:, item])
        np.testing.assert_allclose(
            fit.item_covariance[item], np.linalg.inv((design * weights[:, None]).T @ design), rtol=0.02
        )
