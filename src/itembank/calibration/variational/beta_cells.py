"""Expected log-likelihood of a probability: Beta(p phi, (1 - p) phi) (IRSL; Ferrari & Cribari-Neto 2004).

With the response's own logit ``L = log(y / (1 - y))`` and ``p = lower + (1 - lower) s``, ``s = sigmoid(x)``,

``log f = A(x) + phi p L + phi log(1 - y) - log(y (1 - y))``, ``A = lgamma(phi) - lgamma(p phi) - lgamma((1 - p) phi)``.

It is linear in L, and A is a function of the logit alone. So no cell needs a special function: A and its derivatives
are tabulated once for each precision phi, and every cell looks up the nearest node of a fine grid and goes the rest
of the way by Taylor's formula.

A probability that was clipped is only known to be that small, or that close to one: it enters by the chance of that,
not by the density at the place where it was clipped.

The expectation over a normal logit of mean m and variance v is by three nodes, ``m, m +- sqrt(3 v)``, or for large
data, where logits are known well, by ``f + v (d2 f) / 2`` at m; the nodes add ``v^2 (d4 f) / 8``. Either way with its
own derivatives.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, gammaln, log_expit, zeta

from itembank.calibration.variational.cells import SMALLEST_VARIANCE, Cells
from itembank.irt.beta_ends import CLIPPED_LOGIT
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.gamma import trigamma

LARGEST_LOGIT = 24.0
"""Beyond it the tables go on along straight lines, as A does where p phi is small."""
NODES_PER_UNIT = {np.dtype(np.float32): 128, np.dtype(np.float64): 256}
LEAST_CURVATURE = 0.5
"""Of the Fisher information: the log-likelihood of a response far from its expectation bends upward."""


class Normaliser(NamedTuple):
    """A and its derivatives the first, second and third, each of the shape of the logits."""

    value: FloatArray
    slope: FloatArray
    bend: FloatArray
    third: FloatArray


@dataclass(frozen=True, slots=True)
class Table:
    """A and its derivatives at the nodes of a grid of logits, for one precision and one lower asymptote.

    Attributes
    ----------
    precision, lower_asymptote : float
    nodes_per_unit : int
    nodes : Normaliser
        Each (n_nodes,).
    """

    precision: float
    lower_asymptote: float
    nodes_per_unit: int
    nodes: Normaliser

    def at(self, logits: FloatArray) -> Normaliser:
        """Give A and its derivatives, off by powers of half a step: the fourth for A, the first for the last."""
        dtype = logits.dtype.type
        place = logits + dtype(LARGEST_LOGIT)
        place *= dtype(self.nodes_per_unit)
        nearest = np.rint(place)
        np.clip(nearest, dtype(0), dtype(self.nodes.value.shape[0] - 1), out=nearest)
        index = nearest.astype(np.intp)
        place -= nearest
        place /= dtype(self.nodes_per_unit)  # what is left of the logit
        value, slope, bend, third = (node.take(index) for node in self.nodes)
        # from the last to the first, so that each takes in the better ones after it
        half = dtype(0.5) * place
        value += place * (slope + half * (bend + place * third / dtype(3.0)))
        slope += place * (bend + half * third)
        bend += place * third
        return Normaliser(value, slope, bend, third)


def make_table(precision: float, lower_asymptote: float, dtype: np.dtype[np.floating]) -> Table:
    """Tabulate A, by the special functions."""
    nodes_per_unit = NODES_PER_UNIT[dtype]
    half = round(LARGEST_LOGIT * nodes_per_unit)
    terms = normaliser(np.arange(-half, half + 1) / nodes_per_unit, precision, lower_asymptote)
    for term in (terms.bend, terms.third):
        term[[0, -1]] = 0.0
    nodes = Normaliser(*(term.astype(dtype) for term in terms))
    return Table(precision, lower_asymptote, nodes_per_unit, nodes)


def normaliser(logits: FloatArray, precision: float, lower_asymptote: float) -> Normaliser:
    """Give A and its derivatives by the special functions."""
    share, rest = expit(logits), expit(-logits)
    scale = precision * (1.0 - lower_asymptote)
    first, second = precision * lower_asymptote + scale * share, scale * rest
    slope = scale * share * rest  # of p phi, and its own derivatives
    bend = slope * (rest - share)
    turn = slope * (1.0 - 6.0 * share * rest)
    expected = digamma(first) - digamma(second)
    spread = trigamma(first) + trigamma(second)
    skew = 2.0 * (zeta(3.0, second) - zeta(3.0, first))
    return Normaliser(
        gammaln(precision) - gammaln(first) - gammaln(second),
        -slope * expected,
        -bend * expected - slope**2 * spread,
        -turn * expected - 3.0 * slope * bend * spread - slope**3 * skew,
    )


@dataclass(frozen=True, slots=True)
class BetaRule:
    """The expected log-likelihood and its own derivatives.

    Attributes
    ----------
    tables : tuple of Table
        One for each group of items with one precision and one lower asymptote.
    is_narrow : bool
        Whether to expand about the mean of the logit, rather than take three nodes.
    """

    tables: tuple[Table, ...]
    is_narrow: bool = False

    def evaluate(
        self, values: FloatArray, weights: FloatArray | None, table: int, mean: FloatArray, variance: FloatArray
    ) -> Cells:
        """Give pull, curvature and value of a block of cells of one table.

        Parameters
        ----------
        values : (n_block, n_models)
            L, anything where missing.
        weights : (n_block, n_models) or None
            One, and zero where missing.
        table : int
        mean, variance : (n_block, n_models)
            Of the logits.
        """
        found = (_expanded if self.is_narrow else _by_nodes)(self.tables[table], values, mean, variance)
        pull = found.pull + found.curvature * mean
        cells = Cells(pull, found.curvature, found.value)
        return cells if weights is None else Cells(*(term * weights for term in cells))

    def with_precision(self, precision: FloatArray) -> "BetaRule":
        """Return the rule with another precision of each table."""
        tables = (
            old if old.precision == new else make_table(float(new), old.lower_asymptote, old.nodes.value.dtype)
            for old, new in zip(self.tables, precision, strict=True)
        )
        return replace(self, tables=tuple(tables))

    @property
    def precision(self) -> FloatArray:
        """Precision of each table."""
        return np.array([table.precision for table in self.tables])


def _by_nodes(table: Table, values: FloatArray, mean: FloatArray, variance: FloatArray) -> Cells:
    """Slope, curvature and value by three nodes; curvature is minus twice the derivative by v of their sum."""
    dtype = mean.dtype.type
    half_step = np.sqrt(dtype(3.0) * np.maximum(variance, dtype(SMALLEST_VARIANCE)))
    value, slope, least = _at(table, values, mean)
    above, slope_above, _ = _at(table, values, mean + half_step)
    below, slope_below, _ = _at(table, values, mean - half_step)
    curvature = np.maximum((slope_below - slope_above) / (dtype(2.0) * half_step), least)
    value = (dtype(4.0) * value + above + below) / dtype(6.0)
    return Cells((dtype(4.0) * slope + slope_above + slope_below) / dtype(6.0), curvature, value)


def _expanded(table: Table, values: FloatArray, mean: FloatArray, variance: FloatArray) -> Cells:
    """Slope, curvature and value of ``f(m) + v f''(m) / 2``."""
    dtype = mean.dtype.type
    value, slope, bend, third = table.at(mean)
    share = _share(mean)
    known = share * (dtype(1.0) - share)
    tilt = dtype(1.0) - dtype(2.0) * share
    least = tilt * slope
    least -= bend
    least *= dtype(LEAST_CURVATURE)
    pushed = dtype(table.precision * (1.0 - table.lower_asymptote)) * values  # phi L p' = pushed s (1 - s)
    value += pushed * share
    if table.lower_asymptote > 0.0:
        value += dtype(table.precision * table.lower_asymptote) * values
    pushed *= known
    slope += pushed
    bend += pushed * tilt
    third += pushed * (dtype(1.0) - dtype(6.0) * known)
    half_variance = dtype(0.5) * variance
    value += half_variance * bend
    slope += half_variance * third
    clipped = _clipped(table, values, mean)
    if clipped is not None:
        value[clipped.where] += clipped.value + half_variance[clipped.where] * clipped.bend
        slope[clipped.where] += clipped.slope
        bend[clipped.where] += clipped.bend
    np.negative(bend, out=bend)
    return Cells(slope, np.maximum(bend, least, out=bend), value)


def _at(table: Table, values: FloatArray, logits: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-likelihood up to constants, its derivative in the logit, and the least curvature."""
    dtype = logits.dtype.type
    value, slope, bend, _ = table.at(logits)
    share = _share(logits)
    # -A'' - phi p'' (psi(p phi) - psi((1 - p) phi)), the Fisher information
    least = dtype(LEAST_CURVATURE) * ((dtype(1.0) - dtype(2.0) * share) * slope - bend)
    pushed = dtype(table.precision * (1.0 - table.lower_asymptote)) * values
    value += pushed * share
    if table.lower_asymptote > 0.0:
        value += dtype(table.precision * table.lower_asymptote) * values
    slope += pushed * share * (dtype(1.0) - share)
    clipped = _clipped(table, values, logits)
    if clipped is not None:
        value[clipped.where] += clipped.value
        slope[clipped.where] += clipped.slope
    return value, slope, least


class _Clipped(NamedTuple):
    """Where a block's probabilities were clipped, and what that adds to log-likelihood, slope and bend there."""

    where: tuple[IntArray, ...]
    value: FloatArray
    slope: FloatArray
    bend: FloatArray


def _clipped(table: Table, values: FloatArray, logits: FloatArray) -> _Clipped | None:
    """Make chances of a probability so small, or so close to one, of densities at a clipped one.

    ``P(Y < e) = e^a / (a B(a, b))`` for small e is the density there times ``e / a``, with a = p phi; near one b.
    """
    where = np.nonzero(np.abs(values) > CLIPPED_LOGIT)
    if not where[0].size:
        return None
    x, lower = logits[where].astype(np.float64), table.lower_asymptote
    share, rest = expit(x), expit(-x)
    is_low = values[where] < 0.0
    log_chance = log_expit(x) if lower == 0.0 else np.log(lower + (1.0 - lower) * share)
    ratio = np.exp(np.log1p(-lower) + log_expit(x) - log_chance) * rest  # p' / p
    value = np.log(table.precision) + np.where(is_low, log_chance, np.log1p(-lower) + log_expit(-x))
    slope = np.where(is_low, ratio, -share)
    bend = np.where(is_low, ratio * (rest - share - ratio), -share * rest)
    return _Clipped(where, -value, -slope, -bend)


def _share(logits: FloatArray) -> FloatArray:
    """``sigmoid(x)``; in single precision by the exponential, which is several times as fast."""
    if logits.dtype == np.float64:
        result: FloatArray = expit(logits)
        return result
    one = logits.dtype.type(1.0)
    small = np.exp(-np.clip(logits, -60.0, 60.0))
    small += one
    return np.divide(one, small, out=small)
