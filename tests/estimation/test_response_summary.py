import numpy as np

from itembank.estimation.observations import observe
from itembank.estimation.response_summary import ResponseSummary, ScoreBasis, summarise_responses, summary_at
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior
from tests.estimation.simulated import new_models, small_bank, with_gaps


def test_evidence_at_the_ability_that_is_found_is_the_evidence():
    bank = small_bank()
    observations = observe(bank, with_gaps(new_models(bank), "scattered"), None)
    found = summarise_responses(bank, observations)
    parameters = bank.parameters.take(observations.positions)
    abilities = map_abilities(parameters, observations.responses, bank.calibration.prior)
    again = summary_at(ScoreBasis.of_bank(bank), observations, abilities)
    for name in ResponseSummary.__slots__:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


def test_one_model_alone_has_the_evidence_it_has_among_others():
    bank = small_bank()
    observations = observe(bank, new_models(bank).take(items=np.arange(12)), None)
    together = summarise_responses(bank, observations)
    alone = summarise_responses(bank, observations.take(models=np.array([2]), columns=np.arange(12)))
    for name in ResponseSummary.__slots__:
        np.testing.assert_allclose(getattr(alone, name)[0], getattr(together, name)[2], atol=1e-9)


def test_another_ability_changes_what_is_predicted_and_not_what_is_known():
    bank = small_bank()
    observations = observe(bank, new_models(bank).take(items=np.arange(12)), None)
    prior = AbilityPrior(bank.calibration.prior.mean + 1.0, 0.5 * bank.calibration.prior.covariance)
    other = map_abilities(bank.parameters.take(observations.positions), observations.responses, prior)
    moved = summary_at(ScoreBasis.of_bank(bank), observations, other)
    found = summarise_responses(bank, observations)
    np.testing.assert_array_equal(moved.known, found.known)
    assert np.all(moved.posterior_mean > found.posterior_mean)
    assert np.all(
        np.trace(moved.ability_covariance, axis1=1, axis2=2) < np.trace(found.ability_covariance, axis1=1, axis2=2)
    )
