from dataclasses import replace

import numpy as np
import pytest

from itembank.errors import DataError, DataWarning
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.observations import chance_shares
from itembank.estimation.predictions import predicted_sums, score_posterior, standard_error
from itembank.estimation.response_summary import ResponseSummary, ScoreBasis, summarise_responses, summary_at
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select
from tests.bank.banks import make_bank
from tests.estimation.simulated import new_models, small_bank, with_gaps

pytestmark = pytest.mark.usefixtures("few_folds")


def test_weights_that_do_not_go_with_the_scenarios_or_the_method_are_told():
    bank = make_bank()
    selection = select(bank, 6, rng=0)
    weights = np.where(np.array(selection.scenarios) == "code", 0.0, selection.weights)
    with pytest.raises(DataError, match="zero in a scenario, but are in 'code'"):
        estimate(bank, bank.responses, selection=replace(selection, weights=weights))
    with pytest.raises(DataError, match="scenarios of the selection must be those of bank"):
        estimate(bank, bank.responses, selection=replace(selection, scenarios=("math",) * 6))
    targets = ScoreTargets.create(bank.responses.items.with_columns(weight=np.arange(1.0, 31.0)), within="custom")
    with pytest.warns(DataWarning, match="method 'weighted'"):
        estimate(replace(bank, targets=targets), bank.responses, method="mean")


def test_unequal_weights_of_a_random_sample_count_as_fewer_items():
    bank = make_bank()
    selection = select(bank, 12, method="random", rng=0)
    new = bank.responses.take(items=bank.responses.item_indices(selection.item_ids))
    weights = selection.weights.copy()
    math = np.flatnonzero(np.array(selection.scenarios) == "math")
    weights[math] = np.array([0.7, 0.1, 0.1, 0.1])
    share = estimate(bank, new, selection=replace(selection, weights=weights), method="gp-irt").sample_share[0]
    b, v = bank.item_model_bias[0] ** 2, bank.response_variance[0] * np.sum(weights[math] ** 2)
    assert share[0] == pytest.approx(b / (b + v))
    equal = bank.item_model_bias[1] ** 2, bank.response_variance[1] / 4
    assert share[1] == pytest.approx(equal[0] / sum(equal))


def test_items_come_in_the_bank_s_order_whatever_the_file_s():
    bank = make_bank()
    order = np.random.default_rng(0).permutation(30)
    found = Asked.of(bank, bank.responses.take(items=order), None).observations
    np.testing.assert_array_equal(found.positions, np.arange(30))
    np.testing.assert_array_equal(found.responses, bank.responses.responses)


def test_answers_of_other_calibration_models_are_not_made_numbers(monkeypatch):
    """Of 2,000 models and 20,000 items those of a fifth are 64 MB, all are 320 MB."""
    bank, asked, plain = make_bank(), [], ResponseMatrix.of_items
    observations = Asked.of(bank, bank.responses.take(items=np.arange(3, 9)), None).observations

    def of_items(self, items, *, models=None):
        asked.append(models.tolist())
        return plain(self, items, models=models)

    monkeypatch.setattr(ResponseMatrix, "of_items", of_items)
    found = observations.answered_by_calibration_models(bank, np.array([7, 2])).responses
    assert asked == [[7, 2]]
    np.testing.assert_array_equal(found, bank.responses.responses[[7, 2], 3:9])


@pytest.mark.parametrize(
    ("responses", "n_trials", "weights", "shares"),
    [
        ([1.0, 0.5, 0.0, 1.0], [4, 2, 1, 1], [0.5, 0.5, 0.5, 0.5], [0.375, 1.0]),
        ([1.0, 0.5, np.nan, np.nan], [4, 2, 0, 0], [0.25, 0.75, 0.5, 0.5], [0.475, 0.375]),  # the mean of 1/4 and 1/2
        ([1.0, 0.5, np.nan, np.nan], [4, 4, 0, 0], [0.0, 0.0, 0.5, 0.5], [0.25, 0.25]),  # as if tried once, it said
        ([np.nan] * 4, [0] * 4, [0.5] * 4, [1.0, 1.0]),
        ([1.0, 0.5, 0.0, 1.0], None, [0.5] * 4, [1.0, 1.0]),
    ],
)
def test_attempts_leave_a_share_of_chance_that_is_known_where_no_answer_counts(responses, n_trials, weights, shares):
    trials = None if n_trials is None else np.array([n_trials])
    found = chance_shares(np.array([responses]), trials, np.array(weights), np.array([0, 0, 1, 1]), 2)
    np.testing.assert_allclose(found, [shares])


def test_evidence_at_the_ability_that_is_found_is_the_evidence():
    bank = small_bank()
    observations = Asked.of(bank, with_gaps(new_models(bank), "scattered"), None).observations
    found = summarise_responses(bank, observations)
    parameters = bank.parameters.take(observations.positions)
    abilities = map_abilities(parameters, observations.responses, bank.calibration.prior)
    again = summary_at(ScoreBasis.of_bank(bank), observations, abilities)
    for name in ResponseSummary.__slots__:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


def test_one_model_alone_has_the_evidence_it_has_among_others():
    bank = small_bank()
    observations = Asked.of(bank, new_models(bank).take(items=np.arange(12)), None).observations
    together = summarise_responses(bank, observations)
    alone = summarise_responses(bank, observations.take(models=np.array([2]), columns=np.arange(12)))
    for name in ResponseSummary.__slots__:
        np.testing.assert_allclose(getattr(alone, name)[0], getattr(together, name)[2], atol=1e-9)


def test_another_ability_changes_what_is_predicted_and_not_what_is_known():
    bank = small_bank()
    observations = Asked.of(bank, new_models(bank).take(items=np.arange(12)), None).observations
    prior = AbilityPrior(bank.calibration.prior.mean + 1.0, 0.5 * bank.calibration.prior.covariance)
    other = map_abilities(bank.parameters.take(observations.positions), observations.responses, prior)
    moved = summary_at(ScoreBasis.of_bank(bank), observations, other)
    found = summarise_responses(bank, observations)
    np.testing.assert_array_equal(moved.known, found.known)
    assert np.all(moved.posterior_mean > found.posterior_mean)
    assert np.all(
        np.trace(moved.ability_covariance, axis1=1, axis2=2) < np.trace(found.ability_covariance, axis1=1, axis2=2)
    )


def test_moments_equal_those_of_drawn_scores(rng):
    """Draw ability from its posterior and unseen responses given it: mean and covariance are the closed ones."""
    n_items, n_draws = 30, 100_000
    parameters = ItemParameters.create(rng.normal(size=(n_items, 2)), rng.normal(size=n_items))
    scenario = np.arange(n_items) % 3
    weights = rng.random(n_items)
    weights /= np.bincount(scenario, weights=weights)[scenario]
    mask = np.arange(n_items)[None] >= 6
    theta = np.array([[0.4, -0.7]])
    root = np.array([[0.12, 0.0], [-0.05, 0.1]])  # narrow, as in the setting the first-order formula is for
    covariance = (root @ root.T)[None]
    known = np.array([[0.11, 0.05, 0.17]])
    mean, found = score_posterior(
        known, predicted_sums(parameters, weights, scenario, 3, theta, mask=mask), covariance, np.ones(3)
    )
    drawn = theta + rng.standard_normal((n_draws, 2)) @ root.T
    responses = rng.random((n_draws, n_items)) < probability(parameters, drawn)
    onto = np.zeros((n_items, 3))
    onto[np.arange(n_items), scenario] = weights
    scores = known + (responses * mask) @ onto
    np.testing.assert_allclose(mean[0], scores.mean(axis=0), atol=2e-3)
    # entries of a covariance from 100,000 draws have a relative error of about 0.5 %; the rest is second order
    scale = np.sqrt(np.diag(found[0]))
    np.testing.assert_allclose(found[0] / np.outer(scale, scale), np.cov(scores.T) / np.outer(scale, scale), atol=0.02)


def test_noise_and_distance_from_the_posterior_mean_count_in_the_error(rng):
    parameters = ItemParameters.create(np.zeros((4, 1)), np.zeros(4))  # p = 1/2, no slope
    sums = predicted_sums(parameters, np.full(4, 0.25), np.zeros(4, int), 1, np.zeros((1, 1)))
    _, found = score_posterior(np.zeros((1, 1)), sums, np.ones((1, 1, 1)), np.array([0.3]))
    assert found[0, 0, 0] == pytest.approx(0.3 * 4 * 0.25**2 * 0.25)
    scores = 0.6 + 0.05 * rng.standard_normal(400_000)
    expected = np.sqrt(np.mean((scores - 0.67) ** 2))
    assert standard_error(np.array(0.67), np.array(0.6), np.array(0.0025)) == pytest.approx(expected, rel=0.01)
