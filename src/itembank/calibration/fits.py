"""What every fitting kernel takes and gives: arrays without ids, degenerate items left out."""

from dataclasses import dataclass

from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class FitData:
    """Binary responses of n_models to the n_items that are not degenerate.

    Attributes
    ----------
    responses : (n_models, n_items)
        0 or 1; 0 where not observed.
    observed : (n_models, n_items) or None
        None when complete.
    lower_asymptote : (n_items,)
        Known chance of guessing right; zero unless asked for.
    scenario_index : (n_items,) or None
        Scenario of each item, for the bifactor item model.
    task_index : (n_items,) or None
        Task of each item, where items of one task share the centre of their prior.
    """

    responses: FloatArray
    observed: BoolArray | None
    lower_asymptote: FloatArray
    scenario_index: IntArray | None = None
    task_index: IntArray | None = None


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
