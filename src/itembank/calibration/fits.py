"""What every fitting kernel takes and gives: arrays without ids, degenerate items left out.

And one scale and one set of axes for all of them: abilities N(0, I), principal axes.
"""

from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from itembank.irt.family_names import KINDS, Family
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class PreparedResponses:
    """Responses as the likelihood of their family takes them."""

    family: Family  # {'bernoulli', 'binomial', 'beta', 'beta-binomial'}
    values: FloatArray  # (n_models, n_items): NaN where missing
    n_trials: IntArray | None  # (n_models, n_items): Zero where missing; None for one behind each response
    thresholds: dict[str, float]  # By which responses were made binary
    is_degenerate: BoolArray  # (n_items,): Items that all models answered alike

    @property
    def is_left_out(self) -> BoolArray:
        """Items that take no part in the fit: the degenerate ones, but where over-dispersion may explain them."""
        return self.is_degenerate & (not KINDS[self.family].has_precision)


@dataclass(frozen=True, slots=True)
class FitData:
    """Responses of n_models to the n_items that are fitted."""

    # (n_models, n_items): 0 or 1; of counts the fraction of right answers; of family 'beta' a probability within (0,
    # 1). 0 where not observed.
    responses: FloatArray
    observed: BoolArray | None  # (n_models, n_items): None when complete
    lower_asymptote: FloatArray  # (n_items,): Known chance of guessing right; zero unless asked for
    # (n_items,): Task of each item, where items of one task share the centre of their prior.
    task_index: IntArray | None = None
    family: Family = "bernoulli"  # {'bernoulli', 'binomial', 'beta', 'beta-binomial'}
    # (n_models, n_items): Of families 'binomial' and 'beta-binomial': trials behind each response, 0 where not
    # observed; None where there is one behind each.
    n_trials: FloatArray | None = None
    # (n_items,): Which items share one precision, numbered from zero; for families that have one.
    precision_index: IntArray | None = None
    # (n_items,): Which columns of `responses` the items are, where right and wrong answers are too many for a copy;
    # missing ones are NaN then, and `observed` None. For kernels that take them so.
    columns: IntArray | None = None

    def copied(self) -> "FitData":
        """Return the data with the responses of the items alone."""
        if self.columns is None:
            return self
        responses = self.responses[:, self.columns]
        missing = np.isnan(responses)
        responses[missing] = 0.0
        return replace(self, responses=responses, observed=~missing if missing.any() else None, columns=None)

    @property
    def n_cells(self) -> int:
        """Number of cells, those without a response included."""
        return int(self.responses.shape[0]) * self.lower_asymptote.size

    @property
    def weights(self) -> FloatArray | BoolArray | None:
        """How often each response counts, (n_models, n_items), 0 where not observed; None for once each."""
        return self.observed if self.n_trials is None else self.n_trials

    def take_items(self, items: IntArray) -> "FitData":
        """Return the data on some items."""
        index = self.task_index
        return FitData(
            self.responses[:, items] if self.columns is None else self.responses,
            None if self.observed is None else self.observed[:, items],
            self.lower_asymptote[items],
            None if index is None else np.unique(index[items], return_inverse=True)[1].astype(np.int64),
            self.family,
            None if self.n_trials is None else self.n_trials[:, items],
            None if self.precision_index is None else self.precision_index[items],
            None if self.columns is None else self.columns[items],
        )


class Derivatives(NamedTuple):
    """Value of a log-density, with its derivatives in parameters of items, or of models, one a row."""

    value: float
    gradient: FloatArray  # (n_models, n_dims) or (n_items, n_dims + 1)
    # (n_models, n_dims, n_dims) or (n_items, n_dims + 1, n_dims + 1): Minus the second derivatives; of log-likelihoods
    # with guessing the Fisher information.
    precision: FloatArray


class Point(NamedTuple):
    """Items (n_items, n_dims + 1), loadings and intercepts, and abilities (n_models, n_dims)."""

    items: FloatArray
    abilities: FloatArray


Place = TypeVar("Place")


class Ascent(NamedTuple, Generic[Place]):
    """Where an ascent ended, the objective at the start and after each step, and whether it met the tolerance."""

    end: Place
    history: list[float]
    converged: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fitting kernel found, on the scale of its own prior of ability."""

    loadings: FloatArray  # (n_items, n_dims)
    intercept: FloatArray  # (n_items,)
    item_covariance: FloatArray  # (n_items, n_dims + 1, n_dims + 1): Covariance of (loadings, intercept)
    abilities: FloatArray  # (n_models, n_dims)
    ability_covariance: FloatArray  # (n_models, n_dims, n_dims)
    prior: AbilityPrior
    converged: bool  # As in `Calibration`
    n_iterations: int
    message: str
    history: FloatArray
    precision: FloatArray | None = None  # (n_items,): Of families that have one
    # (n_items,): Standard error of its logarithm; None where it was given.
    log_precision_error: FloatArray | None = None


START_PRECISION = 10.0
"""Middle of the prior of phi, where learning starts, and the value that IRSL's code fixes. Variational fits from 0.5 to
300 end at the same phi, joint MAP from 1 to 100 within 0.2 %."""

PRIOR_MEAN, PRIOR_SD = float(np.log(START_PRECISION)), 3.0
"""Of log phi, normal: so wide that a hundred cells outweigh it, but responses without any spread stay finite."""

LEAST, MOST = 1e-2, 1e7
"""Of phi: below, nearly all probabilities are 0 or 1; above, they are spread by less than 2e-4 around their mean."""

DIFFERENCE = 0.05
"""Step of log phi for slopes and curvatures. They err by its square over 6 and 12 times the next derivatives but one,
and by rounding, of which curvatures get 400 times."""


def standardise(fit: Fit) -> Fit:
    """Move abilities to mean 0 and covariance I, and items with them, so that no predicted logit changes.

    The covariance is that of the past models' abilities by the law of total variance: the
    covariance of the estimates plus the mean of their posterior covariances. New models can then be
    scored with the prior N(0, I); the covariance of the shrunken estimates alone is too small for that,
    and singular where a dimension is not used. What rotation is left is fixed by the loadings: their Gram
    matrix becomes diagonal with falling entries, and those of each dimension sum to a positive number.

    With ``theta = m + W theta'`` the logit ``a . theta + c`` is ``(W^T a) . theta' + (c + a . m)``.
    """
    loadings, mean = fit.loadings, fit.abilities.mean(axis=0)
    centred = fit.abilities - mean
    total = centred.T @ centred / len(centred) + fit.ability_covariance.mean(axis=0)
    # Symmetric square root; a direction without any variance keeps its scale.
    values, vectors = np.linalg.eigh(total)
    usable = np.where(values > 1e-12 * max(float(values[-1]), 1e-300), values, 1.0)
    root: FloatArray = (vectors * np.sqrt(usable)) @ vectors.T
    moved = loadings @ root
    _, vectors = np.linalg.eigh(moved.T @ moved)
    rotated: FloatArray = root @ vectors[:, ::-1]
    forward = rotated * np.where((loadings @ rotated).sum(axis=0) < 0.0, -1.0, 1.0)  # W, (n_dims, n_dims)
    back = np.linalg.inv(forward)
    item_map = _item_map(forward, mean)
    return replace(
        fit,
        loadings=loadings @ forward,
        intercept=fit.intercept + loadings @ mean,
        item_covariance=item_map @ fit.item_covariance @ item_map.T,
        abilities=centred @ back.T,
        ability_covariance=back @ fit.ability_covariance @ back.T,
    )


def standardise_each(fit: Fit) -> Fit:
    """Move each ability to mean 0 and variance 1 by itself, and items with it: zeros of the loadings stay zeros.

    Variances are total ones as in `standardise`; abilities stay correlated. Loadings of each dimension sum to a
    positive number.
    """
    loadings, mean = fit.loadings, fit.abilities.mean(axis=0)
    centred = fit.abilities - mean
    total = np.mean(centred**2, axis=0) + np.einsum("ldd->d", fit.ability_covariance) / len(centred)
    scale = np.sqrt(np.where(total > 0.0, total, 1.0)) * np.where(loadings.sum(axis=0) < 0.0, -1.0, 1.0)
    item_map = _item_map(np.diag(scale), mean)
    return with_empirical_prior(
        replace(
            fit,
            loadings=loadings * scale,
            intercept=fit.intercept + loadings @ mean,
            item_covariance=item_map @ fit.item_covariance @ item_map.T,
            abilities=centred / scale,
            ability_covariance=fit.ability_covariance / np.outer(scale, scale),
        )
    )


def reordered(fit: Fit, order: IntArray) -> Fit:
    """Put the abilities in another order, (n_dims,)."""
    with_intercept = np.append(order, order.shape[0])
    return with_empirical_prior(
        replace(
            fit,
            loadings=fit.loadings[:, order],
            item_covariance=fit.item_covariance[:, with_intercept[:, None], with_intercept],
            abilities=fit.abilities[:, order],
            ability_covariance=fit.ability_covariance[:, order[:, None], order],
        )
    )


def with_empirical_prior(fit: Fit) -> Fit:
    """Return the fit with its abilities' normal distribution (WILD eq. 9) as the prior, their covariances included."""
    mean = fit.abilities.mean(axis=0)
    centred = fit.abilities - mean
    return replace(
        fit, prior=AbilityPrior(mean, centred.T @ centred / len(centred) + fit.ability_covariance.mean(axis=0))
    )


def _item_map(forward: FloatArray, mean: FloatArray) -> FloatArray:
    """Matrix that takes (loadings, intercept) of an item to the new scale, (n_dims + 1, n_dims + 1)."""
    n_dims = len(mean)
    item_map = np.eye(n_dims + 1)
    item_map[:n_dims, :n_dims] = forward.T
    item_map[n_dims, :n_dims] = mean
    return item_map
