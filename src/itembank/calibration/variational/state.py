"""The posterior family of the variational calibration.

Model (tinyBenchmarks 4.4, identified by a standard normal ability): ``theta_l ~ N(0, I)``, ``beta_i = (a_i, c_i)`` with
``beta_id ~ N(mu_d, 1 / u_d)``, ``mu_d ~ N(0, 10)``, ``u_d ~ Gamma(1, 1)``. Family: independent ``q(theta_l)`` and
``q(beta_i)`` with full covariances, ``q(mu_d)`` normal and ``q(u_d)`` gamma. With one common slope (1PL) the slope
has the fixed prior N(0, 10) and a joint normal posterior with all intercepts. Nested: the first ability is general,
and ``mu_d = 0`` for the loadings on all others, so that only it makes items easier or harder on the whole.
"""

from dataclasses import dataclass, replace

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

# The hyperpriors of tinyBenchmarks 4.4.
HYPER_MEAN_VARIANCE = 10.0
HYPER_SHAPE = 1.0
HYPER_RATE = 1.0
LEAST_PRECISION = 0.01
"""Of the items' prior: loadings and intercepts spread by 10 at most (see `bounded_rate`)."""


@dataclass(frozen=True, slots=True)
class TaskPrior:
    """Posterior of the centres gamma that items of one task share, and of their precision tau."""

    index: IntArray  # (n_items,): Task of each item
    mean: FloatArray  # (n_tasks, n_dims + 1): Of gamma
    variance: FloatArray  # (n_tasks, n_dims + 1)
    shape: FloatArray  # (n_dims + 1,): Of tau
    rate: FloatArray  # (n_dims + 1,)


@dataclass(frozen=True, slots=True)
class ItemPrior:
    """Posterior of the parameters of the items' prior, for each of the n_dims loadings and the intercept."""

    mean: FloatArray  # (n_dims + 1,): Of mu; both zero where mu is known to be zero
    mean_variance: FloatArray  # (n_dims + 1,)
    shape: FloatArray  # (n_dims + 1,): Of u
    rate: FloatArray  # (n_dims + 1,)
    # Where items of one task share the centre of their prior; mu is then the centre of the tasks'.
    tasks: TaskPrior | None = None

    @property
    def centre(self) -> FloatArray:
        """Where each item's prior is centred, (n_items, n_dims + 1), or the same for all, (n_dims + 1,)."""
        return self.mean if self.tasks is None else self.tasks.mean[self.tasks.index]

    @property
    def centre_variance(self) -> FloatArray:
        """How uncertain that is, in the same shape."""
        return self.mean_variance if self.tasks is None else self.tasks.variance[self.tasks.index]

    def take_items(self, items: IntArray | BoolArray) -> "ItemPrior":
        """Return the prior of some of the items."""
        return self if self.tasks is None else replace(self, tasks=replace(self.tasks, index=self.tasks.index[items]))

    @property
    def precision(self) -> FloatArray:
        """Expected precision E[u], (n_dims + 1,)."""
        return self.shape / self.rate


@dataclass(frozen=True, slots=True)
class Covariances:
    """Covariance matrices with what the bound asks of them time and again."""

    matrices: FloatArray  # (n, size, size)
    log_determinant: FloatArray  # (n,)

    @classmethod
    def of(cls, matrices: FloatArray) -> "Covariances":
        """Find the determinants."""
        return cls(matrices, np.linalg.slogdet(matrices)[1])

    def take(self, rows: IntArray | BoolArray) -> "Covariances":
        """Return some of them."""
        return Covariances(self.matrices[rows], self.log_determinant[rows])

    def onto(self, matrix: FloatArray) -> "Covariances":
        """Return the covariances of ``matrix @ x``, (size, size)."""
        log_scale = 2.0 * np.linalg.slogdet(matrix)[1]
        return Covariances(matrix @ self.matrices @ matrix.T, self.log_determinant + log_scale)


@dataclass(frozen=True, slots=True)
class Posterior:
    """The whole posterior at one moment of the ascent."""

    item_mean: FloatArray  # (n_items, n_dims + 1): Of (loadings, intercept)
    items_spread: Covariances  # (n_items, n_dims + 1, n_dims + 1)
    ability_mean: FloatArray  # (n_models, n_dims)
    abilities_spread: Covariances  # (n_models, n_dims, n_dims)
    item_prior: ItemPrior
    has_common_slope: bool  # One slope for all items (1PL): the first column of `item_mean` is constant
    is_nested: bool = False  # The prior means of all loadings but the first are zero
    is_positive: bool = False  # Slopes are kept above zero

    @property
    def item_covariance(self) -> FloatArray:
        """Of (loadings, intercept), (n_items, n_dims + 1, n_dims + 1)."""
        return self.items_spread.matrices

    @property
    def ability_covariance(self) -> FloatArray:
        """Of the abilities, (n_models, n_dims, n_dims)."""
        return self.abilities_spread.matrices

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.item_mean.shape[0])

    @property
    def n_dims(self) -> int:
        """Number of ability dimensions."""
        return int(self.ability_mean.shape[1])

    def take_items(self, items: IntArray | BoolArray) -> "Posterior":
        """Return the posterior of some of the items, with all abilities."""
        return replace(
            self,
            item_mean=self.item_mean[items],
            items_spread=self.items_spread.take(items),
            item_prior=self.item_prior.take_items(items),
        )

    def with_items_of(self, other: "Posterior", where: BoolArray) -> "Posterior":
        """Replace the items marked in `where` (n_items,) by those of another posterior."""
        return replace(
            self,
            item_mean=np.where(where[:, None], other.item_mean, self.item_mean),
            items_spread=Covariances(
                np.where(where[:, None, None], other.items_spread.matrices, self.items_spread.matrices),
                np.where(where, other.items_spread.log_determinant, self.items_spread.log_determinant),
            ),
        )


def start_posterior(
    ability_mean: FloatArray,
    ability_covariance: FloatArray,
    n_items: int,
    *,
    has_common_slope: bool,
    is_nested: bool = False,
    is_positive: bool = False,
    tasks: TaskPrior | None = None,
) -> Posterior:
    """Items at zero, so that the first update of the items is a ridge regression on the abilities given."""
    size = ability_mean.shape[1] + 1
    half = np.full(size, HYPER_SHAPE + 0.5 * n_items)
    mean_variance = np.full(size, 1.0 / n_items)
    if is_nested:
        mean_variance[1:-1] = 0.0
    return Posterior(
        item_mean=np.zeros((n_items, size)),
        # nearly certain: the first logits are close to zero, where the bound of Jaakkola and Jordan is tight
        items_spread=Covariances.of(np.broadcast_to(0.01 * np.eye(size), (n_items, size, size)).copy()),
        ability_mean=ability_mean,
        abilities_spread=Covariances.of(ability_covariance),
        item_prior=ItemPrior(np.zeros(size), mean_variance, half, half, tasks),
        has_common_slope=has_common_slope,
        is_nested=is_nested,
        is_positive=is_positive,
    )


def bounded_rate(rate: FloatArray, shape: FloatArray) -> FloatArray:
    """Keep the expected precision of a prior, ``shape / rate``, from falling below `LEAST_PRECISION`.

    Under Gamma(1, 1) alone, wider and wider slopes cost only the logarithm of the precision. One ability known to many
    digits can give every item other information by other digits, with slopes of other orders of magnitude. With counts
    of attempts that agree more than chance, the likelihood gains from that without end. The best rate within the bound
    is the nearest, so that the updates never lower the objective.
    """
    bounded: FloatArray = np.minimum(rate, shape / LEAST_PRECISION)
    return bounded
