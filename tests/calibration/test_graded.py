"""Graded responses: calibrated, and what banks of them do."""

import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.build import build_bank
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import JointMAP, MarginalML, RelativeItemPrior, Variational
from itembank.calibration.marginal_ml.graded import level_derivatives, level_probabilities, start_thresholds
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.folds import folds
from itembank.irt.bernoulli import probability
from itembank.living.link_items import link_items
from itembank.living.merging import merge
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix

SPEC = MarginalML(family="graded", tolerance=1e-3)
STEPS = np.array([-1.2, -0.2, 1.4])
LEVELS = np.array([0.0, 0.25, 0.75, 1.0])


def drawn(theta, slope, difficulty, seed=0):
    """Levels of models on items, whose second half has right and wrong alone, as another scenario."""
    rng = np.random.default_rng(seed)
    x = slope * (theta[:, None] - difficulty)
    level = (rng.random((*x.shape, 1)) < expit(x[..., None] - STEPS)).sum(axis=-1)
    values = LEVELS[level]
    half = slope.size // 2
    values[:, half:] = rng.random(x[:, half:].shape) < expit(x[:, half:])
    names = ["graded"] * half + ["binary"] * (slope.size - half)
    return ResponseMatrix.create(values, scenarios=names, model_ids=[f"m{seed}-{k}" for k in range(theta.size)])


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(1)
    return {"slope": np.exp(0.3 * rng.normal(size=60)), "difficulty": rng.normal(size=60)}


@pytest.fixture(scope="module")
def responses(truth):
    return drawn(np.random.default_rng(2).normal(size=200), **truth)


@pytest.fixture(scope="module")
def found(responses):
    return calibrate(responses, SPEC)


def test_items_are_recovered(found, truth):
    assert found.converged
    steps = found.parameters.steps
    np.testing.assert_array_equal(steps.levels, LEVELS)
    centred = STEPS - STEPS.mean()
    np.testing.assert_allclose(steps.places[:30].mean(axis=0), centred, atol=0.15)
    assert np.all(steps.places[30:] == 0.0)  # right and wrong alone: one step
    intercept = -truth["slope"] * truth["difficulty"]
    intercept[:30] -= STEPS.mean()
    z = (found.parameters.intercept - intercept) / np.sqrt(found.item_covariance[:, 1, 1])
    assert 0.7 < np.std(z) < 1.4
    z = (found.parameters.loadings[:, 0] - truth["slope"]) / np.sqrt(found.item_covariance[:, 0, 0])
    assert 0.7 < np.std(z) < 1.4


def test_few_models_on_steep_items_are_fitted():
    """Thresholds near each other, far from abilities: a level's probability is no difference of numbers near 1."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=45)
    x = np.exp(0.5 + 0.8 * rng.normal(size=37)) * (theta[:, None] - rng.normal(size=37)) + rng.logistic(size=(45, 37))
    found = calibrate(ResponseMatrix.create(0.5 * ((x > -0.025) * 1.0 + (x > 0.025))), SPEC)
    assert found.converged
    assert np.corrcoef(found.abilities[:, 0], theta)[0, 1] > 0.95


def test_level_probabilities_have_these_derivatives():
    items = np.array([[0.8, 1.0, 0.3, -0.7], [-1.3, 0.4, 0.1, -1.0]])
    theta = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(level_probabilities(items, theta).sum(axis=1), 1.0, rtol=1e-12)
    derivatives = level_derivatives(items, theta)
    for number in range(4):
        step = 1e-5 * (np.arange(4) == number)
        change = level_probabilities(items + step, theta) - level_probabilities(items - step, theta)
        np.testing.assert_allclose(derivatives[:, :, number], change / 2e-5, atol=1e-8)


def test_a_fit_starts_at_the_shares_of_the_levels():
    counts = np.array([[5.0, 1.0, 3.0, 8.0]])
    items = np.column_stack([np.zeros(1), start_thresholds(counts)])
    np.testing.assert_allclose(level_probabilities(items, np.zeros(1))[:, :, 0], counts / counts.sum())


def test_expected_scores_of_new_models_are_right(found, truth):
    theta = np.linspace(-1.5, 1.5, 5)
    many = np.mean([drawn(theta, **truth, seed=seed).responses for seed in range(3, 60)], axis=(0, 2))
    np.testing.assert_allclose(probability(found.parameters, theta[:, None]).mean(axis=1), many, atol=0.03)


def test_levels_that_an_item_has_not_shown_are_finite_by_the_prior_and_merged_without(responses):
    values = responses.responses.copy()
    values[values[:, 0] == 0.25, 0] = 0.0
    few = ResponseMatrix.create(values[:, :30])
    with_prior = calibrate(few, SPEC).parameters.steps.places[0]
    assert np.isfinite(with_prior).all()
    assert with_prior[1] > with_prior[0]
    without = calibrate(few, MarginalML(family="graded", prior=None, tolerance=1e-3)).parameters.steps.places[0]
    assert without[0] == without[1] < without[2]


def test_a_bank_estimates_scores_from_some_items(responses, truth):
    bank = build_bank(responses.take(models=np.arange(40)), SPEC)
    assert all(fold.bank.parameters.steps is not None for fold in folds(bank))
    theta = np.random.default_rng(9).normal(size=30)
    new = drawn(theta, **truth, seed=77)
    selection = select(bank, 20, method="v-optimal")
    asked = new.take(items=new.item_indices(selection.item_ids))
    actual = bank.targets.with_overall(bank.targets.scenario_means(new.responses))[:, -1]
    for method in ("p-irt", "gp-irt"):
        scores = estimate(bank, asked, selection=selection, method=method, interval="model-based")
        apart = scores.value[:, -1] - actual
        assert np.sqrt(np.mean(apart**2)) < 0.1
        inside = (scores.low[:, -1] <= actual) & (actual <= scores.high[:, -1])
        assert inside.mean() > 0.7  # they know nothing of the uncertainty of items
    # what cannot be done says so
    with pytest.raises(DataError, match="whose steps a few models cannot tell"):
        link_items(bank, drawn(theta, **truth, seed=78))
    with pytest.raises(DataError, match="levels and steps of two banks are not joined"):
        merge(bank, bank)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.tile([0.0, 1.0], (4, 3)), "3 to 12 levels, got 2"),
        (np.linspace(0.0, 1.0, 60).reshape(4, 15), "3 to 12 levels, got 60"),
    ],
)
def test_levels_must_be_a_few(values, message):
    with pytest.raises(DataError, match=message):
        calibrate(ResponseMatrix.create(values), SPEC)


def test_means_of_trials_are_no_levels():
    counts = np.tile([0, 1, 2], (4, 2))
    with pytest.raises(DataError, match="is for single responses, got means of up to 2 trials"):
        calibrate(ResponseMatrix.from_counts(counts, np.full((4, 6), 2)), SPEC)


def test_an_item_without_a_prior_needs_two_levels(responses):
    values = responses.responses.copy()
    values[:, 3] = 0.25
    with pytest.raises(DataError, match=r"two levels or more .* got one for 'item-4'"):
        calibrate(ResponseMatrix.create(values), MarginalML(family="graded", prior=None))


@pytest.mark.parametrize(
    ("spec", "choices", "message"),
    [
        (Variational, {}, r"this method has no family 'graded', marginal ML has it: use MarginalML\(family"),
        (JointMAP, {}, "this method has no family 'graded'"),
        (MarginalML, {"item_model": "1pl"}, "has item_model '2pl' without guessing, got '1pl'"),
        (MarginalML, {"known_guessing": True}, "with known_guessing"),
        (MarginalML, {"prior": RelativeItemPrior()}, "takes prior 'auto' or None"),
    ],
)
def test_choices_that_graded_items_have_not(spec, choices, message):
    with pytest.raises(ParameterError, match=message):
        spec(family="graded", **choices)
