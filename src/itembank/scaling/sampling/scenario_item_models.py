"""Item model of each scenario for IRSL: item parameters, and the variation of new models' pass rates around them."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank, Calibration
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.errors import DataError, ParameterError
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.sampling.cell_posterior import PrecisionPrior, precision_prior
from itembank.scaling.sampling.sample_counts import SampleCounts, sample_counts, with_counts
from itembank.scaling.scenario_fits import fit_items

ALIKE_LOGIT_SD = 3.0
ALIKE_LOG_PRECISION_SD = 2.0
"""Priors of the mean and precision of one Beta for all items: wider than any benchmark is known to need."""


@dataclass(frozen=True, slots=True)
class ScenarioItemModel:
    """Item model of some items, with the priors that a model's samples are read with."""

    columns: IntArray  # (n_known,): The items it knows, rising
    parameters: ItemParameters  # Of these items
    prior: AbilityPrior
    precision: PrecisionPrior  # Of a model's phi: how far its pass rates lie from the item model's

    def parameters_of(self, columns: IntArray) -> ItemParameters:
        """Return the parameters of some of its items."""
        return self.parameters.take(np.searchsorted(self.columns, columns))


def item_model_of_bank(bank: Bank, columns: IntArray) -> ScenarioItemModel:
    """Take the items at `columns` of a bank; precisions as its calibration models show them.

    Raises
    ------
    ParameterError
        When the bank was calibrated on responses that were made binary.
    DataError
        When its responses have no counts.
    """
    if bank.calibration.thresholds:
        raise ParameterError(
            "the bank must be calibrated on counts or pass rates, got one whose responses were made binary by a "
            "threshold: its probabilities are not pass rates. Calibrate it anew with family 'beta-binomial' "
            "(itembank calibrate --family beta-binomial)."
        )
    try:
        counts = sample_counts(bank.responses)
    except DataError as error:
        raise DataError(
            f"the bank must be calibrated on counts, got bank {bank.bank_id} of family "
            f"'{bank.parameters.family}': {error}"
        ) from error
    return _item_model(bank.calibration, bank.calibration.parameters.take(columns), counts.take(items=columns), columns)


def fitted_item_model(
    name: str, responses: ResponseMatrix, counts: SampleCounts, columns: IntArray, spec: CalibrationSpec
) -> ScenarioItemModel:
    """Calibrate the items at `columns` on the counts of all models, leaving out items and models without any.

    Raises
    ------
    DataError
        As `calibrate`.
    """
    fit = fit_items(name, with_counts(responses, counts), columns, spec)
    known = counts.take(models=fit.rows, items=fit.columns)
    return _item_model(fit.calibration, fit.calibration.parameters, known, fit.columns)


def alike_items(n_items: int) -> ScenarioItemModel:
    """Return the item model without any knowledge of the items: their pass rates are a sample of one Beta.

    Its mean takes the place of the ability, with a wide prior; so has its precision.
    """
    parameters = ItemParameters.create(np.ones((n_items, 1)), np.zeros(n_items))
    prior = AbilityPrior(np.zeros(1), np.array([[ALIKE_LOGIT_SD**2]]))
    return ScenarioItemModel(np.arange(n_items), parameters, prior, PrecisionPrior(0.0, ALIKE_LOG_PRECISION_SD))


def plug_in_rates(parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Pass rates of all items at one ability (n_dims,), as IRSL eq. 4 plugs them in, (n_items,)."""
    logit = parameters.loadings @ theta + parameters.intercept
    lower, upper = parameters.lower_asymptote, parameters.upper_asymptote
    # exp overflows beyond 709
    result: FloatArray = lower + (upper - lower) / (1.0 + np.exp(-np.clip(logit, -700.0, 700.0)))
    return result


def _item_model(
    calibration: Calibration, parameters: ItemParameters, counts: SampleCounts, columns: IntArray
) -> ScenarioItemModel:
    """Add how precisions vary over the calibration models that have samples of these items."""
    rows = np.flatnonzero(counts.n_trials.any(axis=1))
    abilities = calibration.abilities[rows]
    precision = precision_prior(parameters, abilities, counts.n_trials[rows], counts.n_correct[rows])
    return ScenarioItemModel(columns, parameters, calibration.prior, precision)
