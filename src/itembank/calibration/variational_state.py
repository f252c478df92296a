"""The posterior family of the variational calibration, and the moments its updates need.

Model (P1 4.4, identified by a standard normal ability): ``theta_l ~ N(0, I)``, ``beta_i = (a_i, c_i)`` with
``beta_id ~ N(mu_d, 1 / u_d)``, ``mu_d ~ N(0, 10)``, ``u_d ~ Gamma(1, 1)``. Family: independent
``q(theta_l)``, ``q(beta_i)`` (full covariances), ``q(mu_d)`` normal and ``q(u_d)`` gamma. With one common slope
(1PL) the slope has the fixed prior N(0, 10) and a joint normal posterior with all intercepts.
"""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import FloatArray

HYPER_MEAN_VARIANCE = 10.0
HYPER_SHAPE = 1.0
HYPER_RATE = 1.0


@dataclass(frozen=True, slots=True)
class ItemPriorPosterior:
    """Posterior of the prior's parameters, one entry for each of the n_dims loadings and the intercept.

    Attributes
    ----------
    mean, mean_variance : (n_dims + 1,)
        Of mu.
    shape, rate : (n_dims + 1,)
        Of u.
    """

    mean: FloatArray
    mean_variance: FloatArray
    shape: FloatArray
    rate: FloatArray

    @property
    def precision(self) -> FloatArray:
        """Expected precision E[u], (n_dims + 1,)."""
        return self.shape / self.rate


@dataclass(frozen=True, slots=True)
class Posterior:
    """The whole posterior at one moment of the ascent.

    Attributes
    ----------
    item_mean : (n_items, n_dims + 1)
        Of (loadings, intercept).
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
    ability_mean : (n_models, n_dims)
    ability_covariance : (n_models, n_dims, n_dims)
    item_prior : ItemPriorPosterior
    has_common_slope : bool
        One slope for all items (1PL): the first column of `item_mean` is constant.
    """

    item_mean: FloatArray
    item_covariance: FloatArray
    ability_mean: FloatArray
    ability_covariance: FloatArray
    item_prior: ItemPriorPosterior
    has_common_slope: bool

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return int(self.ability_mean.shape[1])


def start_posterior(abilities: FloatArray, n_items: int, *, has_common_slope: bool) -> Posterior:
    """Abilities at their start values, items at zero: the first sweep is then a ridge regression an item."""
    n_models, n_dims = abilities.shape
    size = n_dims + 1
    prior = ItemPriorPosterior(
        np.zeros(size), np.full(size, 1.0 / n_items), np.full(size, 1.0 + n_items / 2), np.full(size, 1.0 + n_items / 2)
    )
    return Posterior(
        item_mean=np.zeros((n_items, size)),
        item_covariance=np.broadcast_to(0.01 * np.eye(size), (n_items, size, size)).copy(),
        ability_mean=abilities,
        ability_covariance=np.broadcast_to(0.1 * np.eye(n_dims), (n_models, n_dims, n_dims)).copy(),
        item_prior=prior,
        has_common_slope=has_common_slope,
    )


def second_moment(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """E[v v'] of each row's normal vector, (n, size, size)."""
    return covariance + mean[:, :, None] * mean[:, None, :]


def extended_ability_moment(posterior: Posterior) -> FloatArray:
    """E[x x'] of ``x = (theta, 1)``, (n_models, n_dims + 1, n_dims + 1)."""
    n_models, n_dims = posterior.ability_mean.shape
    moment = np.ones((n_models, n_dims + 1, n_dims + 1))
    moment[:, :n_dims, :n_dims] = second_moment(posterior.ability_mean, posterior.ability_covariance)
    moment[:, :n_dims, n_dims] = posterior.ability_mean
    moment[:, n_dims, :n_dims] = posterior.ability_mean
    return moment


def pack(symmetric: FloatArray) -> FloatArray:
    """Take the unique entries of symmetric matrices, (n, size, size) to (n, size * (size + 1) / 2)."""
    rows, columns = np.triu_indices(symmetric.shape[1])
    return symmetric[:, rows, columns]


def pack_doubled(symmetric: FloatArray) -> FloatArray:
    """Take the unique entries, off-diagonals doubled: ``pack(A) . pack_doubled(B)`` sums ``A * B``."""
    rows, columns = np.triu_indices(symmetric.shape[1])
    result: FloatArray = symmetric[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)
    return result


def unpack(packed: FloatArray, size: int) -> FloatArray:
    """Undo `pack`."""
    rows, columns = np.triu_indices(size)
    symmetric = np.empty((packed.shape[0], size, size), dtype=packed.dtype)
    symmetric[:, rows, columns] = packed
    symmetric[:, columns, rows] = packed
    return symmetric
