import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize

from itembank.bank.banks import CONTENT_ORDER
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates, error_inflation, without_sampling_error
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import METHODS, PIRT, Auto, SampleMean, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import try_methods
from itembank.estimation.observations import Observations
from itembank.estimation.regressions import combined, reconciled, stack_weights
from itembank.estimation.trials import Expectations, Trial
from itembank.numerics.intervals import calibrated_half_widths
from tests.estimation.simulated import shared_bank

pytestmark = pytest.mark.usefixtures("few_folds")

SEEN = np.arange(12)
"""Items that are answered: four of each scenario."""
SINGLES = {name: kind() for name, kind in METHODS.kinds.items() if kind not in {Stacked, Auto}}
MODEL = 8


@pytest.fixture(scope="module")
def bank():
    return dataclasses.replace(shared_bank())  # with folds of its own, as few as those of `changed`


@pytest.fixture(scope="module")
def changed(bank):
    """The same bank, but what one model did on items that are not seen is put in another order.

    Its mean, which decides the folds, stays, and so does the order of content, by which chance decides.
    """
    responses = bank.responses.responses.copy()
    hidden = responses[MODEL, 12:].copy()
    responses[MODEL, 12:] = np.roll(hidden, 1)
    assert np.sum(responses[MODEL, 12:] != hidden) >= 6
    other = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=responses))
    other.cache.remember(CONTENT_ORDER, lambda: bank.content_order)
    return other


def answered(bank):
    weights = bank.targets.weights[SEEN]
    return Observations.of_items(bank.responses.responses[:, SEEN], SEEN, weights / weights.sum(), is_random=True)


def tried(bank, spec):
    return try_methods(Asked(bank, answered(bank)), spec.members).by(spec)


@pytest.mark.parametrize("spec", SINGLES.values(), ids=SINGLES)
def test_what_a_model_did_on_items_not_seen_does_not_change_its_own_estimate(bank, changed, spec):
    assert [fold.held_out.tolist() for fold in folds(changed)] == [fold.held_out.tolist() for fold in folds(bank)]
    before, after = tried(bank, spec), tried(changed, spec)
    np.testing.assert_allclose(after.value[MODEL], before.value[MODEL], atol=1e-12)
    np.testing.assert_allclose(after.standard_error[MODEL], before.standard_error[MODEL], atol=1e-12)
    assert np.any(np.abs(after.truth[MODEL] - before.truth[MODEL]) > 0.01)


@pytest.mark.parametrize("name", ["p-irt", "factor", "ridge", "task-mean"])
def test_the_check_above_catches_a_leak(bank, changed, name):
    """With fits that saw every model, what one did on the other items does change its estimate."""
    values = []
    for each in (bank, changed):
        leaky = dataclasses.replace(each)
        whole = dataclasses.replace(each)
        if name == "p-irt":  # the made-up bank's parameters do not come from its responses: take those of a fit
            whole = fitted_to(each)
        leaky.cache.memory["folds"] = tuple(
            dataclasses.replace(fold, make_bank=lambda whole=whole: whole) for fold in folds(each)
        )
        values.append(tried(leaky, SINGLES[name]).value[MODEL])
    assert np.max(np.abs(values[1] - values[0])) > 1e-6


def fitted_to(bank):
    """The bank with parameters of a fit that MODEL took part in."""
    other = next(fold for fold in folds(bank) if MODEL not in fold.held_out)
    return dataclasses.replace(bank, calibration=other.bank.calibration)


def test_estimates_are_those_of_banks_that_have_not_seen_the_model(bank):
    found = tried(bank, PIRT())
    for fold in folds(bank):
        new = bank.responses.take(models=fold.held_out, items=SEEN)
        by_hand = estimate(fold.bank, new, method=PIRT(), interval="model-based")
        np.testing.assert_allclose(found.value[fold.held_out], by_hand.value, atol=1e-12)
        np.testing.assert_allclose(found.standard_error[fold.held_out], by_hand.standard_error, atol=1e-12)
    np.testing.assert_allclose(found.truth, bank.targets.with_overall(bank.scenario_scores))
    np.testing.assert_array_equal(found.error, found.value - found.truth)


def test_members_together_are_what_each_is_alone(bank):
    specs = (PIRT(), SampleMean(), Weighted())
    together = try_methods(Asked(bank, answered(bank)), specs)
    for number, spec in enumerate(specs):
        alone = tried(bank, spec)
        np.testing.assert_array_equal(together.single(number).value, alone.value)
        np.testing.assert_array_equal(together.single(number).standard_error, alone.standard_error)
    for number, fold in enumerate(folds(bank)):
        np.testing.assert_array_equal(together.fold[fold.held_out], number)


def made_up(rng, n_models=24):
    """Two methods' errors in four folds."""
    truth = rng.random((n_models, 2))
    values = truth + np.array([0.02, 0.05])[:, None, None] * rng.standard_normal((2, n_models, 2))
    fold = np.arange(n_models) % 4
    certain = np.zeros(truth.shape)  # nothing is moved to agree with the overall score
    expected = Expectations(truth, certain, truth, certain, truth, np.ones(truth.shape))
    return Trial(truth, values, expected, fold, np.ones(1))


def test_stack_weights_of_a_fold_come_from_the_others(rng):
    spec = Stacked((PIRT(), Weighted()))
    found = made_up(rng)
    inside = found.fold == 2
    truth = found.truth.copy()
    truth[inside] += rng.standard_normal(truth[inside].shape)
    other = dataclasses.replace(found, truth=truth)
    np.testing.assert_array_equal(other.by(spec).value[inside], found.by(spec).value[inside])
    assert np.all(other.by(spec).value[~inside] != found.by(spec).value[~inside])
    assert not np.allclose(other.weights(spec), found.weights(spec))


def test_stacked_is_between_its_members_and_better_than_the_worse(rng):
    spec = Stacked((PIRT(), Weighted()))
    found = made_up(rng, 400)
    stacked = found.by(spec)
    assert np.all(stacked.value >= found.values.min(axis=0) - 1e-12)
    assert np.all(stacked.value <= found.values.max(axis=0) + 1e-12)
    errors = np.mean((found.values - found.truth) ** 2, axis=1)
    assert np.all(np.mean(stacked.error**2, axis=0) < errors[0])  # independent errors: the mean is better than the best
    np.testing.assert_allclose(found.weights(spec)[0], 1.0 / (1.0 + (0.02 / 0.05) ** 2), atol=0.04)


def objective(weights, errors, prior_models):
    """What the weights minimise: ``w' (E'E + k D) w``, D the diagonal of ``E'E / n_models``."""
    gram = errors.T @ errors
    return weights @ (gram + prior_models * np.diag(np.diag(gram)) / errors.shape[0]) @ weights


def correlated_errors(rng, n_models=40, n_members=5):
    common = rng.normal(size=(n_models, 1))
    return 0.03 * (common + rng.uniform(0.3, 2.0, n_members) * rng.normal(size=(n_models, n_members)))


@pytest.mark.parametrize("prior_models", [0.01, 10.0, 1000.0])
@pytest.mark.parametrize("n_models", [3, 12, 200])
def test_weights_are_those_of_a_general_solver(rng, n_models, prior_models):
    errors = correlated_errors(rng, n_models)
    found = stack_weights(errors, prior_models=prior_models)
    scale = objective(np.full(5, 0.2), errors, prior_models)
    solved = minimize(
        lambda weights: objective(weights, errors, prior_models) / scale,
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 5,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1.0},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.sum() == pytest.approx(1.0)
    assert np.all(found >= 0.0)
    assert objective(found, errors, prior_models) / scale <= solved.fun + 1e-7
    np.testing.assert_allclose(found, solved.x, atol=2e-3)


def test_weights_by_closed_forms(rng):
    errors = correlated_errors(rng)
    inverse = 1.0 / np.mean(errors**2, axis=0)
    np.testing.assert_allclose(stack_weights(errors, prior_models=1e8), inverse / inverse.sum(), rtol=1e-4)
    # with two methods, w_1 = (c_22 - c_12) / (c_11 + c_22 - 2 c_12), c of ``E'E + k D``
    errors = np.array([[0.01, -0.04]])
    c = errors.T @ errors + 3.0 * np.diag(errors[0] ** 2)
    first = (c[1, 1] - c[0, 1]) / (c[0, 0] + c[1, 1] - 2.0 * c[0, 1])
    np.testing.assert_allclose(stack_weights(errors, prior_models=3.0), [first, 1.0 - first], rtol=1e-12)


def test_exact_methods_share_the_weight_and_useless_ones_get_next_to_nothing(rng):
    errors = np.column_stack([0.02 * rng.normal(size=(30, 2)), np.zeros(30)])
    np.testing.assert_allclose(stack_weights(errors, prior_models=10.0), [0.0, 0.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(stack_weights(np.zeros((30, 4)), prior_models=10.0), 0.25)
    # only the penalty tells exact methods apart from none: rounding must not outweigh it
    errors = np.column_stack([0.02 * rng.normal(size=30), np.zeros((30, 2))])
    np.testing.assert_allclose(stack_weights(errors, prior_models=10.0), [0.0, 0.5, 0.5], atol=1e-5)
    errors = np.column_stack([0.02 * rng.normal(size=(100, 2)), 0.4 * rng.normal(size=100)])
    weights = stack_weights(errors, prior_models=20.0)
    assert weights[2] < 0.01
    np.testing.assert_allclose(weights[:2], 0.5, atol=0.15)
    error = 0.05 * rng.normal(size=200)
    errors = np.column_stack([error, -error, 0.03 * rng.normal(size=200)])
    np.testing.assert_allclose(stack_weights(errors, prior_models=1e-3), [0.5, 0.5, 0.0], atol=0.01)


def test_what_has_unknown_errors_is_left_out_and_scale_and_order_do_not_matter(rng):
    errors = correlated_errors(rng)
    partial = np.column_stack([errors, np.where(np.arange(40) < 25, np.nan, 0.0)])
    expected = np.append(stack_weights(errors, prior_models=10.0), 0.0)
    np.testing.assert_allclose(stack_weights(partial, prior_models=10.0), expected)
    partial = errors.copy()
    partial[[3, 7], [0, 4]] = np.nan
    expected = stack_weights(np.delete(errors, [3, 7], axis=0), prior_models=10.0)
    np.testing.assert_allclose(stack_weights(partial, prior_models=10.0), expected)
    errors = np.full((6, 4), np.nan)
    np.testing.assert_allclose(stack_weights(errors, prior_models=10.0), 0.25)
    errors = correlated_errors(rng)
    weights = stack_weights(errors, prior_models=10.0)
    np.testing.assert_allclose(stack_weights(1e-6 * errors, prior_models=10.0), weights, atol=1e-6)
    np.testing.assert_allclose(stack_weights(errors[:, ::-1], prior_models=10.0), weights[::-1], atol=1e-6)


def test_combined_by_hand_with_scenarios_that_are_certain_or_unknown():
    values = np.array([[[0.2], [0.4], [np.nan]], [[0.6], [np.nan], [np.nan]], [[0.9], [0.8], [0.5]]])
    weights = np.array([[0.5], [0.25], [0.25]])
    found = combined(values, weights)
    np.testing.assert_allclose(found[:, 0], [0.1 + 0.15 + 0.225, (0.2 + 0.2) / 0.75, 0.5])
    values = np.array([[[np.nan]], [[0.5]]])
    assert np.isnan(combined(values, np.array([[1.0], [0.0]])))
    values, weights = np.array([[0.2, 0.4, 0.5]]), np.array([0.5, 0.5])
    np.testing.assert_allclose(reconciled(values, np.array([[0.0, 1.0, 1.0]]), weights), [[0.2, 0.8, 0.5]])
    np.testing.assert_array_equal(reconciled(values, np.zeros((1, 3)), weights), values)
    values = np.array([[np.nan, 0.4, 0.5]])
    np.testing.assert_array_equal(reconciled(values, np.ones((1, 3)), np.array([0.5, 0.5])), values)


def test_reconciled_scenarios_are_the_nearest_that_make_the_overall_score(rng):
    values, variances = rng.random((5, 4)), rng.uniform(0.5, 2.0, size=(5, 4))
    weights = np.array([0.5, 0.3, 0.2])
    found = reconciled(values, variances, weights)
    np.testing.assert_array_equal(found[:, -1], values[:, -1])
    np.testing.assert_allclose(found[:, :-1] @ weights, values[:, -1])
    for row in range(5):
        constraint = {"type": "eq", "fun": lambda x, row=row: x @ weights - values[row, -1]}
        wanted = minimize(
            lambda x, row=row: np.sum((x - values[row, :-1]) ** 2 / variances[row, :-1]),
            values[row, :-1],
            constraints=[constraint],
            tol=1e-14,
        )
        np.testing.assert_allclose(found[row, :-1], wanted.x, atol=1e-6)


def made_up_estimates(rng, sampling=0.03, n_models=600):
    """Estimates whose errors have the sizes `scale`; a third of the truths are exact, the others hardly known."""
    scale = rng.uniform(0.01, 0.03, (n_models, 1))
    truth, variance = rng.random((n_models, 1)), np.full((n_models, 1), sampling**2)
    variance[: n_models // 3] = 0.0
    observed = truth + np.sqrt(variance) * rng.standard_normal(truth.shape)
    value = truth + 1.5 * scale * rng.standard_normal(truth.shape)
    return PastEstimates(observed, value, scale, scale, variance), value - truth


def test_errors_and_intervals_get_the_size_that_they_have_against_the_truth(rng):
    found, true = made_up_estimates(rng)
    raw = found.value - found.truth
    size, raw_size, true_size = (np.sqrt(np.mean(error**2)) for error in (found.error, raw, true))
    assert raw_size > 1.2 * true_size
    assert size == pytest.approx(true_size, rel=0.1)
    np.testing.assert_array_equal(found.error[:200], raw[:200])
    ones = np.ones((1, 1))
    half, of_truth = (calibrated_half_widths(e, found.scale, ones, level=0.95)[0, 0] for e in (found.error, true))
    raw = calibrated_half_widths(found.value - found.truth, found.scale, ones, level=0.95)[0, 0]
    assert half == pytest.approx(of_truth, rel=0.12)
    ratios = true[3:] / found.scale[3:]  # of the first nothing is known
    true[0], found.scale[1:3] = np.nan, 0.0
    np.testing.assert_allclose(error_inflation(true, found.scale), np.sqrt(np.mean(ratios**2)))
    assert raw > 1.25 * of_truth


def test_exact_truths_leave_errors_as_they_are_and_no_more_than_three_quarters_are_taken_out(rng):
    found, _ = made_up_estimates(rng, sampling=0.0)
    np.testing.assert_array_equal(found.error, found.value - found.truth)
    np.testing.assert_array_equal(dataclasses.replace(found, truth_variance=None).error, found.error)
    error = rng.standard_normal((50, 1))
    ones = np.ones(error.shape)
    found = without_sampling_error(error, 100.0 * ones, ones)
    own = 0.25 * np.mean(error**2)  # of the errors, at the least
    np.testing.assert_allclose(found, error * np.sqrt(own / (own + 100.0)))
    assert np.isnan(without_sampling_error(np.array([[np.nan], [1.0]]), np.array([[np.nan], [1.0]]), ones[:2])[0, 0])
