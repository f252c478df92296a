"""Models better than all past ones: weights and widths against simulation, the blend against direct minimisation."""

import dataclasses

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError
from itembank.estimation import folds as folds_module
from itembank.estimation.beyond import Place, StackWeights, learn_line, places
from itembank.estimation.calibrated_scores import OutOfFold
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import PIRT, Stacked
from itembank.estimation.folds import folds, folds_beyond
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.estimation.past_errors import stack_weights
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from itembank.selection.selector_specs import VOptimal
from tests.estimation.simulated import small_bank


def test_places_are_in_units_of_the_best_models_distance_from_the_middle():
    best, middle = np.array([0.8, 0.8, 0.8, 0.5]), np.array([0.4, 0.4, 0.4, 0.499])
    np.testing.assert_allclose(places(np.array([0.4, 0.8, 1.0, 0.51]), best, middle), [-1.0, 0.0, 0.5, 0.5])
    assert places(np.array([0.0]), np.array([0.9]), np.array([0.89]))[0] == -4.0


def test_the_line_is_that_of_logistic_regression_with_both_kinds_weighing_alike(rng):
    usual, beyond = rng.normal(-1.0, 0.7, 60), rng.normal(0.4, 0.6, 15)
    place = np.concatenate([usual, beyond])
    kind = np.repeat([0.0, 1.0], [60, 15])
    weights = np.where(kind > 0.0, 75 / 30, 75 / 120)
    x = (place - place.mean()) / place.std()

    def loss(line):
        eta = line[0] + line[1] * x
        return np.sum(weights * (np.logaddexp(0.0, eta) - kind * eta)) + 0.5 * line[1] ** 2

    expected = minimize(loss, np.zeros(2), tol=1e-12).x
    found = learn_line(np.append(usual, np.nan), beyond)
    np.testing.assert_allclose(found[1] * place.std(), expected[1], rtol=1e-4)
    np.testing.assert_allclose(found[0] + found[1] * place.mean(), expected[0], atol=1e-4)


def test_with_one_kind_alone_there_is_nothing_to_blend():
    place = Place(0.8, 0.4, learn_line(np.array([-1.0, 0.0]), np.zeros(0)))
    np.testing.assert_array_equal(place.beyond(np.array([0.2, 0.9])), 0.0)


def test_the_better_a_model_is_the_more_the_weights_of_better_ones_count():
    line = np.array([0.0, 4.0])  # half at the best past model
    weights = StackWeights(np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]]), line)
    values = np.array([[[0.2], [0.8], [0.95]], [[0.3], [0.9], [0.99]]])
    share = expit(4.0 * (values[0, :, 0] - 0.8) / 0.4)
    expected = (1.0 - share) * values[0, :, 0] + share * values[1, :, 0]
    np.testing.assert_allclose(weights.combine(values, np.array([[0.8], [0.4]]))[:, 0], expected)
    np.testing.assert_array_equal(StackWeights(weights.usual).combine(values, None)[:, 0], values[0, :, 0])


def test_weights_of_which_a_member_is_unknown_leave_the_usual_estimate():
    weights = StackWeights(np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))
    values = np.array([[[0.5]], [[np.nan]]])
    np.testing.assert_allclose(weights.combine(values, np.array([[0.6], [0.4]])), [[0.5]])


def test_without_a_known_error_of_a_better_model_intervals_are_a_tenth_wider(rng):
    errors, size = rng.normal(0.0, 0.03, (40, 2)), np.ones((40, 2))
    far = np.column_stack([np.full(25, np.nan), np.full(25, np.nan)])
    far[:3, 1] = [0.05, -0.04, 0.06]
    better = OutOfFold(np.zeros((25, 2)), far, np.ones((25, 2)), np.ones((25, 2)))
    past = OutOfFold(np.zeros((40, 2)), errors, size, size, beyond=better)
    plain = OutOfFold(np.zeros((40, 2)), errors, size, size)
    found, allowed = (one.half_widths(np.ones((1, 2)), np.ones(1), level=0.95) for one in (past, plain))
    np.testing.assert_allclose(found[0, 0], allowed[0, 0])
    assert np.isfinite(past.widening(np.ones((1, 2)), np.ones(1), level=0.95)).all()
    three = dataclasses.replace(past, beyond=better.take(np.arange(3)))  # rows without an error count for nothing
    np.testing.assert_allclose(found[0, 1], three.half_widths(np.ones((1, 2)), np.ones(1), level=0.95)[0, 1])


def test_folds_beyond_leave_the_better_models_out():
    bank = small_bank(n_models=40, n_items=36)
    score = bank.known_scores.value[:, -1]
    half, quarter = folds_beyond(bank)
    assert [half.held_out.size, quarter.held_out.size] == [20, 10]
    for fold in (half, quarter):
        assert score[fold.seen].max() <= score[fold.held_out].min()
        assert sorted([*fold.seen, *fold.held_out]) == list(range(40))
        assert fold.bank.responses.model_ids == [bank.responses.model_ids[row] for row in fold.seen]


def test_with_few_models_there_is_no_fold_beyond():
    bank = small_bank(n_models=12, n_items=36)
    assert len(folds(bank)) == 10
    assert folds_beyond(bank) == ()


def test_where_the_worse_models_tell_no_items_apart_the_others_are_left_out_at_random_alone(monkeypatch):
    bank = small_bank(n_models=20, n_items=36)
    fitted = folds_module._fitted

    def refused(responses, targets, spec, rows, progress):
        if rows.size == 10:
            raise DataError("nothing was solved.")
        return fitted(responses, targets, spec, rows, progress)

    monkeypatch.setattr(folds_module, "_fitted", refused)
    assert [fold.held_out.size for fold in folds_beyond(bank)] == [5]
    assert len(folds(bank)) == 10


def test_estimates_of_better_models_left_out_are_blended_as_those_of_new_ones():
    """Everything by hand: weights of both kinds of folds and the line, each without the fold it serves."""
    bank = small_bank(n_models=40, n_items=36)
    chosen = select(bank, 12, method=VOptimal(), rng=0)
    spec = Stacked()
    trials = try_methods(bank, sample_of(bank, chosen), chosen, spec.members)
    far = trials.beyond
    score, found = bank.known_scores.value[:, -1], trials.by(spec)
    judges = {fold.number: (score[fold.seen].max(), np.median(score[fold.seen])) for fold in folds_beyond(bank)}
    np.testing.assert_allclose(far.reference, np.transpose([judges[number] for number in far.fold]))
    inside = far.fold == far.fold[0]
    usual = stack_weights(trials.errors[:, :, -1].T, prior_models=spec.prior_models)
    better = stack_weights(far.errors[:, ~inside, -1].T, prior_models=spec.prior_models)
    line = learn_line(
        places(usual @ trials.values[:, :, -1], *trials.reference),
        places((usual @ far.values[:, :, -1])[~inside], *far.reference[:, ~inside]),
    )
    value = usual @ far.values[:, inside, -1]
    share = expit(line[0] + line[1] * places(value, *far.reference[:, inside]))
    by_hand = (1.0 - share) * value + share * (better @ far.values[:, inside, -1])
    np.testing.assert_allclose(found.beyond.value[inside, -1], by_hand, atol=1e-9)
    rows = np.concatenate([fold.held_out for fold in folds_beyond(bank)])
    np.testing.assert_array_equal(found.beyond.truth, bank.known_scores.value[rows])


def simulated(ability, difficulty, rng):
    return (1.3 * (ability[:, None] - difficulty) > rng.logistic(size=(ability.size, difficulty.size))) * 1.0


def test_models_better_than_all_past_ones_are_estimated_and_covered():
    """Known truth: 60 past models on the easy half of a benchmark's range, new ones beyond; three such worlds."""
    items, held, errors = [f"q{k:03d}" for k in range(200)], [], {True: [], False: []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        difficulty = rng.normal(1.0, 1.5, 200)
        past = simulated(rng.normal(0.0, 0.8, 60), difficulty, rng)
        new = ResponseMatrix.create(simulated(rng.normal(2.4, 0.25, 60), difficulty, rng), item_ids=items)
        bank, truth = build_bank(ResponseMatrix.create(past, item_ids=items)), new.responses.mean(axis=1)
        assert np.median(truth) > np.quantile(bank.known_scores.value[:, -1], 0.97)
        for ahead in (True, False):
            chosen = select(bank, 25, method=VOptimal(ahead=ahead), rng=0)
            found = estimate(bank, new, selection=chosen)
            errors[ahead].append(np.abs(found.value[:, -1] - truth).mean())
            if ahead:
                held.append(np.mean((found.low[:, -1] <= truth) & (truth <= found.high[:, -1])))
    assert np.mean(held) >= 0.93
    assert np.mean(errors[True]) < np.mean(errors[False])


def test_models_that_are_said_to_be_better_than_all_past_ones_are():
    """Known truth: models far below the best past one, about as good, and above it; three such worlds."""
    chances, truths = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        difficulty = rng.normal(1.0, 1.5, 200)
        items = [f"q{k:03d}" for k in range(200)]
        past = simulated(rng.normal(0.0, 0.8, 60), difficulty, rng)
        abilities = np.concatenate([rng.normal(0.0, 0.8, 40), rng.normal(1.5, 0.4, 80), rng.normal(2.4, 0.25, 40)])
        new = ResponseMatrix.create(simulated(abilities, difficulty, rng), item_ids=items)
        bank = build_bank(ResponseMatrix.create(past, item_ids=items), Variational(tolerance=1e-4))
        found = estimate(bank, new, selection=select(bank, 40))
        chances.append(found.typicality.beyond)
        truths.append(new.responses.mean(axis=1) > bank.known_scores.value[:, -1].max())
        said = {name for note in found.notes if note.text.startswith("probably better") for name in note.models}
        assert said == {new.model_ids[k] for k in np.flatnonzero((chances[-1] >= 0.5) & ~found.is_exact)}
    chance, is_better = np.concatenate(chances), np.concatenate(truths)
    assert np.mean(is_better[chance >= 0.5]) > 0.8
    assert np.mean(is_better[chance < 0.2]) < 0.2
    assert 0.2 < np.mean(is_better) < 0.6


def test_a_single_method_has_a_place_too():
    bank = small_bank(n_models=40, n_items=36)
    found = estimate(bank, bank.responses.take(items=np.arange(18)), method=PIRT())
    order = np.argsort(found.value[:, -1])
    assert np.all(np.diff(found.typicality.share[order]) >= 0.0)
