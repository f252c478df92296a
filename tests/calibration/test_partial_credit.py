"""Graded responses by adjacent steps, the generalised partial credit model: calibrated, and what banks of them do."""

import numpy as np
import pytest

from itembank.calibration.build import build_bank
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import MarginalML
from itembank.calibration.marginal_ml.graded_levels import level_derivatives, level_probabilities, start_thresholds
from itembank.errors import ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.folds import folds, spec_of
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix

SPEC = MarginalML(family="graded", link="adjacent", tolerance=1e-3)
STEPS = np.array([0.6, -0.8, 0.2])
"""They fall and rise: fewer responses have the second level than its neighbours."""
LEVELS = np.array([0.0, 0.25, 0.75, 1.0])
LINKS = ["cumulative", "adjacent"]


def drawn(theta, slope, difficulty, seed=0):
    """Levels of models on items, whose second half has right and wrong alone, as another scenario."""
    rng = np.random.default_rng(seed)
    x = slope * (theta[:, None] - difficulty)
    logits = np.concatenate([0.0 * x[..., None], np.cumsum(x[..., None] - STEPS, axis=-1)], axis=-1)
    values = LEVELS[np.argmax(logits + rng.gumbel(size=logits.shape), axis=-1)]
    half = slope.size // 2
    values[:, half:] = x[:, half:] + rng.logistic(size=x[:, half:].shape) > 0.0
    names = ["graded"] * half + ["binary"] * (slope.size - half)
    return ResponseMatrix.create(values, scenarios=names, model_ids=[f"m{seed}-{k}" for k in range(theta.size)])


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(1)
    return {"slope": np.exp(0.3 * rng.normal(size=40)), "difficulty": rng.normal(size=40)}


@pytest.fixture(scope="module")
def responses(truth):
    return drawn(np.random.default_rng(2).normal(size=200), **truth)


def test_items_are_recovered(responses, truth):
    found = calibrate(responses, SPEC)
    assert found.converged
    steps = found.parameters.steps
    assert steps.link == "adjacent"
    np.testing.assert_allclose(steps.places[:20].mean(axis=0), STEPS - STEPS.mean(), atol=0.15)
    # right and wrong alone: one step from the lowest to the highest level
    np.testing.assert_array_equal(steps.places[20:], np.tile([np.inf, np.inf, 0.0], (20, 1)))
    intercept = -truth["slope"] * truth["difficulty"]
    z = (found.parameters.intercept - intercept) / np.sqrt(found.item_covariance[:, 1, 1])
    assert 0.6 < np.std(z) < 1.5
    z = (found.parameters.loadings[:, 0] - truth["slope"]) / np.sqrt(found.item_covariance[:, 0, 0])
    assert 0.6 < np.std(z) < 1.5


@pytest.mark.parametrize("link", LINKS)
def test_level_probabilities_have_these_derivatives(link):
    items = np.array([[0.8, 1.0, 0.3, -0.7], [-1.3, 0.4, 0.1, -1.0]])
    theta = np.linspace(-3.0, 3.0, 7)
    p = level_probabilities(items, theta, link)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    found = level_derivatives(items, theta, link)
    for number in range(4):
        step = 1e-5 * (np.arange(4) == number)
        change = level_probabilities(items + step, theta, link) - level_probabilities(items - step, theta, link)
        np.testing.assert_allclose(found[:, :, number], change / 2e-5, atol=1e-8)


@pytest.mark.parametrize("link", LINKS)
def test_a_fit_starts_at_the_shares_of_the_levels(link):
    counts = np.array([[5.0, 1.0, 3.0, 8.0]])
    items = np.column_stack([np.zeros(1), start_thresholds(counts, link)])
    np.testing.assert_allclose(level_probabilities(items, np.zeros(1), link)[:, :, 0], counts / counts.sum())


def test_of_two_levels_both_links_are_the_2pl(responses):
    """One response of one item has a third level, as graded responses must have three."""
    values = responses.responses[:, 20:].copy()
    values[0, 0] = 0.5
    names = ["own"] + ["binary"] * 19
    matrix = ResponseMatrix.create(values, scenarios=names)
    one, other = (
        calibrate(matrix, MarginalML(family="graded", link=link, tolerance=1e-4)).parameters for link in LINKS
    )
    np.testing.assert_allclose(one.loadings[1:], other.loadings[1:], atol=2e-3)
    np.testing.assert_allclose(one.intercept[1:], other.intercept[1:], atol=2e-3)
    plain = calibrate(ResponseMatrix.create(values[:, 1:]), MarginalML(prior=None)).parameters
    free = calibrate(
        ResponseMatrix.create(values), MarginalML(family="graded", link="adjacent", prior=None, tolerance=1e-4)
    ).parameters
    # the item of three levels has a say in abilities, a twentieth of it
    np.testing.assert_allclose(free.intercept[1:], plain.intercept, atol=0.1)


def test_a_bank_estimates_scores_from_some_items(responses, truth):
    bank = build_bank(responses.take(models=np.arange(40)), SPEC)
    assert spec_of(bank.calibration).link == "adjacent"
    assert {fold.bank.parameters.steps.link for fold in folds(bank)} == {"adjacent"}
    theta = np.random.default_rng(9).normal(size=30)
    new = drawn(theta, **truth, seed=77)
    selection = select(bank, 15, method="v-optimal")
    asked = new.take(items=new.item_indices(selection.item_ids))
    actual = bank.targets.with_overall(bank.targets.scenario_means(new.responses))[:, -1]
    scores = estimate(bank, asked, selection=selection, method="p-irt", interval="model-based")
    apart = scores.value[:, -1] - actual
    assert np.sqrt(np.mean(apart**2)) < 0.1
    assert np.mean((scores.low[:, -1] <= actual) & (actual <= scores.high[:, -1])) > 0.7


def test_the_link_is_one_of_graded_items():
    with pytest.raises(ParameterError, match="link must be one of 'cumulative', 'adjacent'"):
        MarginalML(family="graded", link="probit")
    with pytest.raises(ParameterError, match="'adjacent' is of family 'graded', got family 'auto'"):
        MarginalML(link="adjacent")
