"""What a session estimates: ability and scores, against scoring and estimation of the same answers."""

import numpy as np
import pytest
from scipy.special import ndtri

from itembank.bank.norms import bank_factor_model
from itembank.estimation.asked import Asked as AskedItems
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import Scores
from itembank.estimation.estimator_specs import PIRT, Factor
from itembank.estimation.point_methods import Known, point_scores
from itembank.estimation.regressions import combined, predict_factor, reconciled
from itembank.estimation.response_summary import posterior_moments
from itembank.estimation.trials import Expectations
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.intervals import calibrated_half_widths, cut_to_possible
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.estimates import _beyond_past
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.preparation import past_sessions
from itembank.sessions.session import expectations_of
from tests.estimation.test_estimands import with_links
from tests.sessions.simulated import begin, model_based, run, session_bank, true_answers

BANK = session_bank(n_items=40)
ANSWERS = true_answers(BANK)
CUSTOM = {BANK.item_ids[k]: float(k % 3) for k in range(10)}


def as_responses(bank, answers):
    """Answers of one model by id, as responses."""
    items = list(answers)
    return ResponseMatrix.create(
        np.array([[answers[item] for item in items]]),
        model_ids=["model"],
        items=bank.responses.items[bank.responses.item_indices(items)],
    )


@pytest.mark.parametrize("thresholds", [False, True])
@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_estimates_are_those_of_p_irt_on_the_same_responses(thresholds, lower):
    bank = session_bank(thresholds=thresholds, lower=lower)
    answers = {item: 0.25 * (k % 5) for k, item in enumerate(bank.item_ids)} if thresholds else true_answers(bank)
    session = model_based(bank, budget=Budget(25), stopping=Stopping(level=0.8))
    told = {item: answers[item] for item in run(session, answers)}
    found = session.estimate()
    other = estimate(bank, as_responses(bank, told), method="p-irt", interval="model-based", level=0.8)
    assert len(told) == 25
    for name in ("value", "standard_error", "low", "high", "abilities", "ability_covariance"):
        np.testing.assert_allclose(getattr(found.scores, name), getattr(other, name), rtol=1e-12, atol=1e-14)
    for name in ("targets", "n_items", "n_total", "n_missing", "level", "method", "interval_kind", "bank_id"):
        np.testing.assert_array_equal(getattr(found.scores, name), getattr(other, name))
    np.testing.assert_array_equal(found.theta, found.scores.abilities[0])
    np.testing.assert_allclose(found.standard_errors**2, np.diagonal(found.covariance))


def test_linked_items_that_were_not_asked_widen_all_scores_as_in_estimate():
    linked = with_links(BANK, 6, 9)
    plain, found = (model_based(one, budget=Budget(20), target=CUSTOM) for one in (BANK, linked))
    told = {item: ANSWERS[item] for item in run(found, ANSWERS)}
    assert list(told) == list(run(plain, ANSWERS))
    scores = found.estimate().scores
    other = estimate(linked, as_responses(linked, told), method="p-irt", interval="model-based")
    np.testing.assert_allclose(scores.standard_error[:, :-1], other.standard_error, rtol=1e-12)
    unseen = [(item not in told) * CUSTOM.get(item, 0.0) / sum(CUSTOM.values()) for item in BANK.item_ids]
    added = (0.02 * sum(unseen[:6])) ** 2 + (0.03 * sum(unseen[6:15])) ** 2
    alone = plain.estimate().scores.standard_error[0, -1]
    assert added > 0.0
    assert scores.standard_error[0, -1] == pytest.approx(np.sqrt(alone**2 + added))


@pytest.mark.usefixtures("stacked")
@pytest.mark.parametrize("n_answers", [8, 12])
def test_stacked_estimates_are_those_of_the_same_members_on_the_same_answers(n_answers):
    """8 answers are a checkpoint of past sessions; 12 lie between two."""
    session = begin(BANK, budget=Budget(16), stopping=Stopping(level=0.3))  # narrow, so that nothing cuts them
    told = {item: ANSWERS[item] for item in run(session, ANSWERS, most=n_answers)}
    found, targets = session.estimate().scores, BANK.targets
    known = Known.of(AskedItems.of(BANK, as_responses(BANK, told), None))
    members = np.stack([point_scores(known, spec) for spec in (PIRT(), Factor(), Factor(discrepancy=0.1))])
    past = past_sessions(BANK, session.pool.spec)
    share = np.log(n_answers / 8) / np.log(16 / 8)
    shares = {past.n_answered.tolist().index(n): each for n, each in ((8, 1.0 - share), (16, share))}
    weights = sum(share * past.weights[checkpoint] for checkpoint, share in shares.items())
    _, variances = posterior_moments(targets, known.summary)
    value = reconciled(combined(members, weights), variances, targets.scenario_weights)
    assert found.method == "stacked"
    np.testing.assert_allclose(found.value, value, rtol=1e-9)
    expected, half, noise = Expectations.of(known), 0.0, known.summary.noise
    least = ndtri(0.65) * np.sqrt(np.column_stack([noise, noise @ targets.scenario_weights**2]))  # of unseen answers
    for checkpoint, share in shares.items():
        if past.follows_item_model[checkpoint, -1]:
            scale = np.sqrt(variances + (value - members[0]) ** 2)
        else:
            scale = expected.error_scale(value)
        error = past.value[checkpoint] - past.truth
        measured = calibrated_half_widths(error, past.scale[checkpoint], scale, level=0.3)
        half += share * np.maximum(measured, least)
    possible = targets.with_overall(known.summary.known), targets.with_overall(known.summary.open_weight)
    low, high = cut_to_possible(value - half, value + half, *possible)
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-9)
    typicality = [share * np.mean(past.misfit[place] >= expected.misfit[0, -1]) for place, share in shares.items()]
    np.testing.assert_allclose(found.typicality.typicality, [sum(typicality)])
    np.testing.assert_allclose(found.typicality.misfit, expected.misfit[:, -1])


@pytest.mark.usefixtures("stacked")
def test_a_stacked_custom_score_is_the_weighted_mean_by_the_same_members():
    session = begin(BANK, target=CUSTOM, budget=Budget(8))
    run(session, ANSWERS)
    found, expected = session.estimate().scores, expectations_of(session)
    past = past_sessions(BANK, session.pool.spec)
    weights = np.array([CUSTOM.get(item, 0.0) for item in BANK.item_ids])
    weights /= weights.sum()
    positions = BANK.responses.item_indices(list(session.told))
    answers = np.array([[told.response for told in session.told.values()]])
    usual, loose = (
        predict_factor(bank_factor_model(BANK, discrepancy=discrepancy), positions, weights[:, None], answers)
        for discrepancy in ("auto", 0.1)
    )
    p_irt = model_based(BANK, target=CUSTOM, events=session.history).estimate().scores.value[0, -1]
    members = np.array([p_irt, usual.value[0, 0], loose.value[0, 0]])
    np.testing.assert_allclose(expected.means[:, 0, -1], members)
    np.testing.assert_allclose(found.value[0, -1], past.weights[-1, :, -1] @ members)
    assert found.low[0, -1] <= found.value[0, -1] <= found.high[0, -1]


def test_a_model_that_answers_against_all_expectation_is_flagged():
    """It fails what all models solve, and solves what none does."""
    means = dict(zip(BANK.item_ids, np.nanmean(BANK.responses.responses, axis=0), strict=True))
    session = begin(BANK, "random", budget=Budget(30))
    run(session, {item: float(mean < 0.5) for item, mean in means.items()})
    found = session.estimate().scores
    assert found.typicality.is_flagged.all()
    assert found.rows()[-1]["typicality"] == found.typicality.typicality[0]


def test_trials_count_one_by_one_for_ability_and_by_their_mean_in_scores():
    session, repeated = model_based(BANK), []
    for k, item in enumerate(BANK.item_ids[:8]):
        session.tell(item, n_correct=k % 4, n_trials=3)
        repeated += [(k, 1.0)] * (k % 4) + [(k, 0.0)] * (3 - k % 4)
    columns, values = np.array([pair[0] for pair in repeated]), np.array([pair[1] for pair in repeated])
    one_by_one = map_abilities(BANK.parameters.take(columns), values[None], BANK.calibration.prior)
    found = session.estimate()
    np.testing.assert_allclose(found.theta, one_by_one.theta[0], atol=1e-9)
    np.testing.assert_allclose(found.covariance, one_by_one.covariance[0], rtol=1e-7)
    p = probability(BANK.parameters, found.theta[None])[0]
    p[:8] = [(k % 4) / 3 for k in range(8)]
    np.testing.assert_allclose(found.scores.value[0, :-1], BANK.targets.scenario_means(p[None])[0], rtol=1e-12)


def test_a_custom_target_is_its_weighted_mean():
    session = model_based(BANK, target=CUSTOM)
    run(session, ANSWERS, most=6)
    found = session.estimate().scores
    p = probability(BANK.parameters, session.estimate().theta[None])[0]
    for item, told in session.told.items():
        p[BANK.item_ids.index(item)] = told.response
    weights = np.array([CUSTOM.get(item, 0.0) for item in BANK.item_ids])
    assert found.targets == (*BANK.targets.names, "custom")
    np.testing.assert_allclose(found.value[0, -1], p @ weights / weights.sum(), rtol=1e-12)
    assert found.n_total[-1] == np.sum(weights > 0.0)
    assert found.n_items[0, -1] == sum(CUSTOM.get(item, 0.0) > 0.0 for item in session.told)


def test_the_overall_target_as_weights_gives_the_overall_score():
    weights = dict(zip(BANK.item_ids, (7.0 * BANK.targets.overall_weights).tolist(), strict=True))
    session = model_based(BANK, target=weights)
    asked = run(session, ANSWERS, most=10)
    found = session.estimate().scores
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_allclose(getattr(found, name)[0, -1], getattr(found, name)[0, -2], rtol=1e-12)
    assert run(model_based(BANK, n_start=0), ANSWERS, most=10) == asked


def test_without_answers_estimates_are_the_priors_and_every_score_has_its_interval_and_no_typicality():
    found = model_based(BANK).estimate()
    np.testing.assert_array_equal(found.theta, BANK.calibration.prior.mean)
    np.testing.assert_allclose(found.covariance, BANK.calibration.prior.covariance)
    p = probability(BANK.parameters, found.theta[None])
    np.testing.assert_allclose(found.scores.value[0, :-1], BANK.targets.scenario_means(p)[0])
    assert found.scores.n_items.sum() == 0
    calibrated = begin(BANK, budget=Budget(8)).estimate().scores
    assert np.all((calibrated.low < calibrated.value) & (calibrated.value < calibrated.high))
    assert np.isnan(calibrated.typicality.typicality).all()


@pytest.mark.parametrize("make", [begin, model_based])
def test_when_everything_is_told_scores_are_exact(make):
    session = make(BANK)
    for item, response in ANSWERS.items():
        session.tell(item, response)
    found = session.estimate().scores
    truth = BANK.targets.with_overall(BANK.targets.scenario_means(np.array([list(ANSWERS.values())])))
    np.testing.assert_allclose(found.value, truth, rtol=1e-12)
    np.testing.assert_array_equal(found.standard_error, 0.0)
    np.testing.assert_array_equal(found.low, found.high)


def test_a_session_says_so_if_no_past_one_came_to_a_higher_or_lower_score():
    """Always right, to a half-width of 8 points: 90 points, and in a third of the banks not a word."""
    values = np.full((12, 3), np.nan)
    values[:11, 2] = np.linspace(0.3, 0.9, 11)
    before, after = (PastEstimates(values, values + step, values, values) for step in (0.0, 0.04))
    near = [(before, 0.5), (after, 0.5)]

    def scores(last, error=0.0):
        return Scores(*(np.array([[0.0, 0.0, one]]) for one in (last, error, 0.0, 1.0)))

    found = [int(_beyond_past(near, scores(last))[0]) for last in (0.93, 0.91, 0.33, 0.31)]
    assert found == [1, 0, 0, -1]
    # one of eleven as good, or nearly: 6 of 40 models with three wrong answers were below all with the same
    assert _beyond_past(near, scores(0.92)) is None
    assert _beyond_past(near, scores(0.93, 0.06)) is None
    assert _beyond_past(near, scores(0.93, 0.04)) == [1]
    assert _beyond_past([(before.take(np.arange(9)), 1.0)], scores(1.0)) is None
    assert _beyond_past([], scores(1.0)) is None
