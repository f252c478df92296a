"""What every fitting kernel takes and gives: arrays without ids, degenerate items left out."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.irt.family_names import Family
from itembank.irt.parameters import AbilityPrior
from itembank.irt.steps import Steps
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.item_codes import ItemCodes


@dataclass(frozen=True, slots=True)
class FitData:
    """Responses of n_models to the n_items that are fitted.

    Attributes
    ----------
    responses : (n_models, n_items)
        0 or 1; of counts the fraction of right answers; of family 'beta' a probability within (0, 1). 0 where not
        observed.
    observed : (n_models, n_items) or None
        None when complete.
    lower_asymptote : (n_items,)
        Known chance of guessing right; zero unless asked for.
    scenario_index : (n_items,) or None
        Scenario of each item, for the bifactor item model.
    task_index : (n_items,) or None
        Task of each item, where items of one task share the centre of their prior.
    family : {'bernoulli', 'binomial', 'beta', 'beta-binomial', 'graded'}
    n_trials : (n_models, n_items) or None
        Of families 'binomial' and 'beta-binomial': trials behind each response, 0 where not observed; None where there
        is one behind each.
    precision_index : (n_items,) or None
        Which items share one precision, numbered from zero; for families that have one.
    levels : (n_levels,) or None
        Of family 'graded': the values that responses have, rising.
    has_level : (n_items, n_levels) or None
        Which of these an item may have.
    codes : ItemCodes or None
        Many right and wrong answers in a byte each. They stand in place of `responses` and `observed`, which have no
        items then, for kernels that take them so.
    """

    responses: FloatArray
    observed: BoolArray | None
    lower_asymptote: FloatArray
    scenario_index: IntArray | None = None
    task_index: IntArray | None = None
    family: Family = "bernoulli"
    n_trials: FloatArray | None = None
    precision_index: IntArray | None = None
    levels: FloatArray | None = None
    has_level: BoolArray | None = None
    codes: ItemCodes | None = None

    @classmethod
    def of_codes(cls, codes: ItemCodes, lower_asymptote: FloatArray) -> "FitData":
        """Hold right and wrong answers as they are."""
        return cls(np.zeros((codes.n_models, 0)), None, lower_asymptote, codes=codes)

    def decoded(self) -> "FitData":
        """Return the data with numbers in place of codes."""
        if self.codes is None:
            return self
        responses = self.codes.responses()
        missing = np.isnan(responses)
        responses[missing] = 0.0
        return replace(self, responses=responses, observed=~missing if missing.any() else None, codes=None)

    @property
    def n_cells(self) -> int:
        """Number of cells, those without a response included."""
        return self.responses.size if self.codes is None else self.codes.n_cells

    @property
    def weights(self) -> FloatArray | BoolArray | None:
        """How often each response counts, (n_models, n_items), 0 where not observed; None for once each."""
        return self.observed if self.n_trials is None else self.n_trials

    def take_items(self, items: IntArray) -> "FitData":
        """Return the data on some items."""

        def numbered(index: IntArray | None) -> IntArray | None:
            return None if index is None else np.unique(index[items], return_inverse=True)[1].astype(np.int64)

        return FitData(
            self.responses[:, items] if self.codes is None else self.responses,
            None if self.observed is None else self.observed[:, items],
            self.lower_asymptote[items],
            None if self.scenario_index is None else self.scenario_index[items],
            numbered(self.task_index),
            self.family,
            None if self.n_trials is None else self.n_trials[:, items],
            None if self.precision_index is None else self.precision_index[items],
            self.levels,
            None if self.has_level is None else self.has_level[items],
            None if self.codes is None else self.codes.take(items),
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fitting kernel found, on the scale of its own prior of ability.

    Attributes
    ----------
    loadings : (n_items, n_dims)
    intercept : (n_items,)
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
        Covariance of (loadings, intercept).
    abilities : (n_models, n_dims)
    ability_covariance : (n_models, n_dims, n_dims)
    prior : AbilityPrior
    converged, n_iterations, message, history
        As in `Calibration`.
    precision : (n_items,) or None
        Of families that have one.
    log_precision_error : (n_items,) or None
        Standard error of its logarithm; None where it was given.
    steps : Steps or None
        Of family 'graded'.
    """

    loadings: FloatArray
    intercept: FloatArray
    item_covariance: FloatArray
    abilities: FloatArray
    ability_covariance: FloatArray
    prior: AbilityPrior
    converged: bool
    n_iterations: int
    message: str
    history: FloatArray
    precision: FloatArray | None = None
    log_precision_error: FloatArray | None = None
    steps: Steps | None = None
