import dataclasses

import numpy as np
import pytest

from itembank.errors import DataError
from itembank.estimation.folds import folds
from itembank.estimation.model_abilities import estimate_abilities
from itembank.irt.bernoulli import probability
from itembank_scaling.compute import training_compute
from itembank_studies.papers import item_predictions as kernel
from tests.auditing import panels
from tests.scaling.simulated_suite import simulated_suite


def cells(n_models=12, n_items=80, seed=0):
    """Right predictions: responses are drawn from them; some cells are missing."""
    rng = np.random.default_rng(seed)
    p = rng.random((n_models, n_items))
    y = (rng.random(p.shape) < p).astype(float)
    model = np.repeat(np.arange(n_models), n_items).reshape(p.shape)
    kept = rng.random(p.shape) < 0.8
    return p[kept], y[kept], model[kept]


def test_associations_are_numpys_and_the_jackknifes_and_bins_means_by_predicted_value():
    p, y, model = cells()
    correlation, standard_error, slope = kernel.association(p, y, model)
    assert correlation == pytest.approx(np.corrcoef(p, y)[0, 1], abs=1e-12)
    assert slope == pytest.approx(np.polyfit(p, y, 1)[0], abs=1e-10)
    left_out = np.array([np.corrcoef(p[model != m], y[model != m])[0, 1] for m in range(12)])
    by_hand = np.sqrt(11 / 12 * np.sum((left_out - left_out.mean()) ** 2))
    assert standard_error == pytest.approx(by_hand, rel=1e-9)
    assert np.isnan(kernel.association(np.full(p.size, 0.3), y, model)[0])
    assert np.isnan(kernel.association(p[model == 0], y[model == 0], model[model == 0])[1])
    found = kernel.binned(np.array([0.05, 0.05, 0.55]), np.array([0.0, 1.0, 1.0]), np.array([0, 1, 1]))
    np.testing.assert_array_equal(found["n_cells"], [2, 1])
    assert np.isfinite(found["standard_error"][0])
    assert np.isnan(found["standard_error"][1])
    p, y, model = cells()
    p[0], p[1] = 0.0, 1.0  # the ends belong to the first and the last bin
    found = kernel.binned(p, y, model)
    for place, (low, high) in enumerate(zip(np.arange(10) / 10, [*np.arange(1, 10) / 10, 1.1], strict=True)):
        inside = (p >= low) & (p < high)
        assert found["n_cells"][place] == inside.sum()
        assert found["predicted"][place] == pytest.approx(p[inside].mean())
        assert found["observed"][place] == pytest.approx(y[inside].mean())
    gaps = (found["observed"] - found["predicted"]).abs()
    assert kernel.calibration_error(found) == pytest.approx((found["n_cells"] * gaps).sum() / p.size)
    # each model is off by a constant of its own: the error of the mean is that of the constants' mean
    shift = np.random.default_rng(1).normal(0.0, 0.05, 30)
    p, model = np.full(30 * 20, 0.5), np.repeat(np.arange(30), 20)
    found = kernel.binned(p, 0.5 + shift[model], model)
    assert found["standard_error"][0] == pytest.approx(np.std(shift, ddof=1) / np.sqrt(30), rel=1e-9)


def test_few_models_cannot_be_left_out_and_right_predictions_are_off_by_chance_alone():
    bank = panels.bank()
    few = dataclasses.replace(bank, responses=bank.responses.take(models=np.arange(8)))
    with pytest.raises(DataError, match=r"takes at least 10, and bank .* has 8"):
        kernel.item_predictions(few)
    found = [kernel.binned(*cells(seed=seed)) for seed in range(40)]
    ratio = np.mean(list(map(kernel.calibration_error, found))) / np.mean(list(map(kernel.by_chance, found)))
    assert ratio == pytest.approx(1.0, abs=0.2)


@pytest.fixture(scope="module")
def found():
    return kernel.item_predictions(panels.bank(), rng=5)


def test_predictions_know_nothing_of_the_response_and_are_right_in_every_row(found):
    bank = panels.bank()
    half = np.random.default_rng(5).permutation(bank.n_items) % 2
    asked = np.flatnonzero(half == 0)
    expected, seen = [], []
    for fold in folds(bank):
        answers = bank.responses.take(models=fold.held_out)
        theta = estimate_abilities(fold.bank, answers.take(items=np.flatnonzero(half == 1))).theta
        expected.append(probability(fold.bank.parameters.take(asked), theta))
        seen.append(answers.responses[:, asked])
    every = found.cells["all items"]
    assert every.height == bank.responses.observed.sum()
    for ours, parts in ((every["predicted"], expected), (every["observed"], seen)):
        by_hand = np.sort(np.concatenate([part.ravel() for part in parts]))
        known = np.sort(ours)
        nearest = known[np.clip(np.searchsorted(known, by_hand), 0, known.size - 1)]
        np.testing.assert_allclose(nearest, by_hand, rtol=1e-9)
    every = found.rows()[-1]
    assert every["slope"] == pytest.approx(1.0, abs=0.1)
    assert every["correlation"] > every["by_item_means"] + 0.02
    assert abs(every["bias"]) < 0.02
    assert every["calibration_error"] < 0.03
    assert [row["scenario"] for row in found.rows()] == [*panels.bank().targets.scenarios, "all items"]
    assert found.bins["n_cells"].sum() == 2 * every["n_cells"]
    assert sum(row["n_items"] for row in found.rows()[:-1]) == found.rows()[-1]["n_items"]


def test_laws_predict_responses_of_larger_models_alone():
    suite = simulated_suite(np.random.default_rng(3), n_items=40, n_sizes=4, n_checkpoints=1, residual_sd=0.02)
    compute = training_compute(suite.models)
    sizes = np.unique(np.round(np.log(compute.flops[compute.is_final]), 6))
    found = kernel.law_predictions(suite.probability, compute, largest_flops=float(np.exp(sizes[-2] + 0.01)))
    every = found.rows()[-1]
    assert found.family == "beta"
    assert every["slope"] == pytest.approx(1.0, abs=0.2)
    assert every["correlation"] > 0.7
    truth = suite.probability.responses[compute.flops > np.exp(sizes[-2] + 0.01)]
    assert found.cells[every["scenario"]]["observed"].mean() == pytest.approx(truth.mean())
    with pytest.raises(DataError, match="must be left to predict, got none"):
        kernel.law_predictions(suite.probability, compute, largest_flops=1e30)
