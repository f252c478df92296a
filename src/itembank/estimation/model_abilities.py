"""Ability of new models on a bank's scale."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.banks import Bank
from itembank.irt.abilities import Abilities
from itembank.irt.ability_specs import METHODS, AbilitySpec, ExpectedAPosteriori, MaximumAPosteriori, MaximumLikelihood
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.expected_abilities import eap_abilities
from itembank.irt.family_names import COUNTS
from itembank.irt.likelihood_abilities import ml_abilities, wle_abilities
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class ModelAbilities:
    """Abilities of n_models models on the scale of one bank."""

    model_ids: tuple[str, ...]
    abilities: Abilities
    n_answered: IntArray  # (n_models,): Items of the bank each model answered
    bank_id: str

    @property
    def theta(self) -> FloatArray:
        """Abilities, (n_models, n_dims)."""
        return self.abilities.theta

    @property
    def covariance(self) -> FloatArray:
        """Covariance of each ability, (n_models, n_dims, n_dims)."""
        return self.abilities.covariance

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors, (n_models, n_dims)."""
        return self.abilities.standard_errors

    @property
    def at_bound(self) -> BoolArray:
        """Models whose responses put no finite maximum on ability, (n_models,)."""
        return self.abilities.at_bound

    @property
    def converged(self) -> BoolArray:
        """Models whose ability was found to full precision, (n_models,)."""
        return self.abilities.converged

    @property
    def method(self) -> str:
        """Short name of the method."""
        return self.abilities.method


@one_blas_thread()
def estimate_abilities(bank: GivenBank, responses: GivenResponses, method: AbilitySpec | str = "map") -> ModelAbilities:
    """Find the ability of every model from its responses to some of a bank's items.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Any of the bank's items in any order; NaN where a model was not asked. Responses between 0 and 1
        are made binary where the calibration's were. A bank of counts (family 'binomial' or 'beta-binomial')
        counts each response's `n_trials`, one where there are none.
    method : AbilitySpec or {'map', 'eap', 'wle', 'ml'}

    Returns
    -------
    ModelAbilities

    Raises
    ------
    DataError
        When an item is not in the bank.
    ParameterError
        When there is no such method, and for 'eap' with a bank of three abilities or more.

    Examples
    --------
    >>> abilities = estimate_abilities(bank, new_responses)  # doctest: +SKIP
    >>> abilities.theta, abilities.standard_errors  # doctest: +SKIP
    """
    spec = METHODS.resolve(method)
    bank = as_bank(bank)
    responses = as_new_responses(bank, responses)
    columns, values = answered_responses(bank, responses)
    parameters, prior = bank.calibration.parameters.take(columns), bank.calibration.prior
    trials = None
    if responses.n_trials is not None and bank.parameters.family in COUNTS:
        is_used = ~np.isnan(responses.responses).all(axis=0)
        trials = responses.n_trials[:, is_used].astype(np.float64)
    n_answered = np.sum(~np.isnan(values), axis=1)
    abilities = abilities_of(parameters, values, prior, spec, n_trials=trials)
    return ModelAbilities(tuple(responses.model_ids), abilities, n_answered, bank.bank_id)


def abilities_of(
    parameters: ItemParameters,
    responses: FloatArray,  # (n_models, n_items): NaN where missing
    prior: AbilityPrior,
    spec: AbilitySpec,
    *,
    # (n_models, n_items): Trials behind each response of a family of counts; one by default
    n_trials: FloatArray | None = None,
) -> Abilities:
    """Find abilities by the method of the spec."""
    if isinstance(spec, MaximumAPosteriori):
        return map_abilities(parameters, responses, prior, n_trials=n_trials)
    if isinstance(spec, ExpectedAPosteriori):
        return eap_abilities(
            parameters, responses, prior, n_quadrature=spec.n_quadrature, bounds=spec.bounds, n_trials=n_trials
        )
    if isinstance(spec, MaximumLikelihood):
        return ml_abilities(parameters, responses, n_trials=n_trials)
    return wle_abilities(parameters, responses, n_trials=n_trials)


def answered_responses(bank: Bank, responses: ResponseMatrix) -> tuple[IntArray, FloatArray]:
    """Align responses to the bank's items and make them what its item model was fitted to.

    Returns columns (n_used,): Index in the bank of each item that someone answered; values (n_models, n_used):
    Responses to them, binary where the calibration's were; NaN where missing.
    """
    columns = bank.responses.item_indices(responses.item_ids)
    used = np.flatnonzero(~np.isnan(responses.responses).all(axis=0))
    columns, values = columns[used], responses.responses[:, used]
    thresholds = bank.calibration.thresholds
    if thresholds:
        scenarios = bank.responses.items["scenario"].gather(columns).to_list()
        values = apply_thresholds(values, item_thresholds(thresholds, scenarios))
    return columns, values
