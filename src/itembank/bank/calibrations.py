"""`Calibration`: item parameters with all that is known of how they were found."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from itembank.errors import ParameterError
from itembank.irt.abilities import Difficulties, expected_difficulties
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.tabular import Compact

FEW_MODELS = "few-models"
"""The method where fewer than ten past models say too little of items for an item model (`calibration_of_few`)."""


@dataclass(frozen=True, slots=True, repr=False)
class Calibration(Compact):
    """Result of `calibrate`, for all n_items items of the responses, in their order.

    Attributes
    ----------
    parameters : ItemParameters
        Those of degenerate items rest on the other items, and on all models' having answered alike.
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
        Covariance of each item's (loadings, intercept).
    abilities : (n_models, n_dims)
    ability_covariance : (n_models, n_dims, n_dims)
    prior : AbilityPrior
        The distribution of ability new models are scored with.
    is_degenerate : (n_items,)
        Items that every model answered the same way: kept and flagged.
    thresholds : mapping of scenario to threshold, or empty
        Where responses were made binary by ``Y >= threshold`` (tinyBenchmarks 4.3).
    method, item_model : str
        'variational', 'map', 'mml' or 'few-models'; '1pl', '2pl', 'mirt', 'nested' or 'bifactor'.
    converged : bool
    n_iterations : int
    message : str
        How the fit ended, with advice where it did not converge.
    history : (n_iterations,) or shorter
        The objective after each iteration, rising.
    tolerance : float or None
        Where the fit was to stop, as its spec says; None in banks of earlier releases.
    options : mapping of name to number or text
        Further choices of the spec, where they differ from its defaults.
    log_precision_error : (n_items,) or None
        Standard error of the logarithm of each item's precision, where it was learned; the same for the items that
        share one.
    """

    parameters: ItemParameters
    item_covariance: FloatArray
    abilities: FloatArray
    ability_covariance: FloatArray
    prior: AbilityPrior
    is_degenerate: BoolArray
    thresholds: Mapping[str, float]
    method: str
    item_model: str
    converged: bool
    n_iterations: int
    message: str
    history: FloatArray
    tolerance: float | None = None
    options: Mapping[str, float | str | bool] = field(default_factory=dict)
    log_precision_error: FloatArray | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether an item model was fitted: banks that were begun with fewer than ten past models have none."""
        return self.method != FEW_MODELS

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of each item's (loadings, intercept), (n_items, n_dims + 1)."""
        result: FloatArray = np.sqrt(np.einsum("ijj->ij", self.item_covariance))
        return result

    @property
    def difficulties(self) -> Difficulties:
        """Difficulties of items in one dimension, stable where slopes are poorly known, with standard errors.

        Raises
        ------
        ParameterError
            With more dimensions.
        """
        if self.n_dims != 1:
            raise ParameterError(f"difficulties are for items of one dimension, got {self.n_dims}.")
        parameters = self.parameters
        return expected_difficulties(parameters.loadings[:, 0], parameters.intercept, self.item_covariance)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.parameters.n_items

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return self.parameters.n_dims
