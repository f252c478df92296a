"""Expected log-likelihood of a probability: Beta(p phi, (1 - p) phi) (IRSL; Ferrari & Cribari-Neto 2004).

With the response's own logit ``L = log(y / (1 - y))`` and ``p = lower + (1 - lower) s``, ``s = sigmoid(x)``,

``log f = A(x) + phi p L + phi log(1 - y) - log(y (1 - y))``, ``A = lgamma(phi) - lgamma(p phi) - lgamma((1 - p) phi)``.

It is linear in L, and A is a function of the logit alone. So no cell needs a special function: A and its derivatives
are tabulated once for each precision phi, and every cell looks up the nearest node of a fine grid and goes on
from there by Taylor's formula.

A probability that was clipped is only known to be that small, or that close to one: it enters by the probability
of that, not by the density at the place where it was clipped.

The expectation over a normal logit of mean m and variance v is by three nodes, ``m, m +- sqrt(3 v)``, or for large
data, where logits are known well, by ``f + v (d2 f) / 2`` at m; the nodes add ``v^2 (d4 f) / 8``. Either way with its
own derivatives.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, expit, gammaln, log_expit, zeta

from itembank.calibration.variational.cells import SMALLEST_VARIANCE, Cells
from itembank.irt.beta import CLIPPED_LOGIT
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.gamma import trigamma

LARGEST_LOGIT = 24.0
"""Beyond it the tables go on along straight lines, as A does where p phi is small: p is 4e-11 there, so that p phi is
4e-4 for the largest phi that is learned."""
NODES_PER_UNIT = {np.dtype(np.float32): 128, np.dtype(np.float64): 256}
"""A is off by the fourth power of half a step: 2e-10 and 1e-11, times its fourth derivative over 24."""
LEAST_CURVATURE = 0.5
"""Fraction of the Fisher information that is the least curvature of a cell.

The log-likelihood of a response far from its expectation is convex there. Its own curvature, below zero, could make
a precision matrix indefinite.
"""


class Normaliser(NamedTuple):
    """A and its first, second and third derivatives, each of the shape of the logits."""

    value: FloatArray
    slope: FloatArray
    second: FloatArray
    third: FloatArray


@dataclass(frozen=True, slots=True)
class Table:
    """A and its derivatives at the nodes of a grid of logits, for one precision and one lower asymptote."""

    precision: float
    lower_asymptote: float
    nodes_per_unit: int
    nodes: Normaliser  # Each (n_nodes,)

    def at(self, logits: FloatArray) -> Normaliser:
        """Interpolate A and its derivatives.

        The error is of the fourth power of half a step for A, and of one power less for each further derivative.
        """
        dtype = logits.dtype.type
        offset = logits + dtype(LARGEST_LOGIT)
        offset *= dtype(self.nodes_per_unit)
        nearest = np.rint(offset)
        np.clip(nearest, dtype(0), dtype(self.nodes.value.shape[0] - 1), out=nearest)
        index = nearest.astype(np.intp)
        offset -= nearest
        offset /= dtype(self.nodes_per_unit)  # distance of the logit to its nearest node
        value, slope, second, third = (node.take(index) for node in self.nodes)
        # A + h A' + h^2 A'' / 2 + h^3 A''' / 6, and so on for the derivatives. In place, and each line reads only
        # derivatives that are still those of the node.
        half = dtype(0.5) * offset
        value += offset * (slope + half * (second + offset * third / dtype(3.0)))
        slope += offset * (second + half * third)
        second += offset * third
        return Normaliser(value, slope, second, third)


def make_table(precision: float, lower_asymptote: float, dtype: np.dtype[np.floating]) -> Table:
    """Tabulate A by the special functions."""
    nodes_per_unit = NODES_PER_UNIT[dtype]
    half = round(LARGEST_LOGIT * nodes_per_unit)
    terms = normaliser(np.arange(-half, half + 1) / nodes_per_unit, precision, lower_asymptote)
    # With these zero, Taylor's formula at the end nodes is the straight line that is wanted beyond the grid.
    for term in (terms.second, terms.third):
        term[[0, -1]] = 0.0
    nodes = Normaliser(*(term.astype(dtype) for term in terms))
    return Table(precision, lower_asymptote, nodes_per_unit, nodes)


class Few(NamedTuple):
    """Precision and lower asymptote of a group of so few cells that no table is made: numbers, or one for each cell."""

    precision: Any
    lower_asymptote: Any

    def at(self, logits: FloatArray, order: int = 2) -> Normaliser:
        """Give A and its first one or two derivatives by the special functions."""
        within = np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)
        terms = normaliser(within, self.precision, self.lower_asymptote, order=order)
        beyond = logits - within
        return terms._replace(
            value=terms.value + beyond * terms.slope, second=np.where(beyond == 0.0, terms.second, 0.0)
        )


def normaliser(
    logits: FloatArray, precision: FloatArray | float, lower_asymptote: FloatArray | float, *, order: int = 3
) -> Normaliser:
    """Give A and its derivatives by the special functions; those beyond an order, which cost most, stay zero."""
    sigmoid, complement = expit(logits), expit(-logits)
    scale = precision * (1.0 - lower_asymptote)
    a, b = precision * lower_asymptote + scale * sigmoid, scale * complement
    a_slope = scale * sigmoid * complement  # a' = phi p', and b' = -a'
    a_second = a_slope * (complement - sigmoid)
    a_third = a_slope * (1.0 - 6.0 * sigmoid * complement)
    # A' = -a' (psi(a) - psi(b)), and each further derivative by the product rule; psi2(z) = -2 zeta(3, z).
    expected = digamma(a) - digamma(b)
    zero = np.zeros(np.shape(logits))
    spread = trigamma(a) + trigamma(b) if order > 1 else zero
    skew = 2.0 * (zeta(3.0, b) - zeta(3.0, a)) if order > 2 else zero
    return Normaliser(
        gammaln(precision) - gammaln(a) - gammaln(b),
        -a_slope * expected,
        -a_second * expected - a_slope**2 * spread if order > 1 else zero,
        -a_third * expected - 3.0 * a_slope * a_second * spread - a_slope**3 * skew if order > 2 else zero,
    )


@dataclass(frozen=True, slots=True)
class BetaRule:
    """The expected log-likelihood and its own derivatives."""

    tables: tuple[Table | Few, ...]  # One for each group of items with one precision and one lower asymptote
    is_narrow: bool = False  # Whether to expand about the mean of the logit, rather than take three nodes

    def evaluate(
        self,
        values: FloatArray,  # (n_block, n_models): L, anything where missing
        weights: FloatArray | None,  # (n_block, n_models): One, and zero where missing
        table: int | IntArray,  # (n_block,), or one for the whole block: The group of each item
        mean: FloatArray,  # (n_block, n_models): Of the logits, as the variance
        variance: FloatArray,
    ) -> Cells:
        """Give linear term, curvature and value of a block of cells."""
        of_block = self.tables[table] if isinstance(table, int) else None
        if isinstance(of_block, Table):
            expected = (_expanded if self.is_narrow else _by_nodes)(of_block, values, mean, variance)
            linear = expected.linear + expected.curvature * mean
            cells = Cells(linear, expected.curvature, expected.value)
            return cells if weights is None else Cells(*(term * weights for term in cells))
        # small groups: from the observed cells alone
        group = np.broadcast_to(table, values.shape[:1])
        where = np.nonzero(np.ones(values.shape) if weights is None else weights)
        few = Few(self.precision[group[where[0]]], self.lower_asymptote[group[where[0]]])
        given, at, spread = (array[where].astype(np.float64) for array in (values, mean, variance))
        expected = _by_nodes(few, given, at, spread)
        found = []
        for term in (expected.linear + expected.curvature * at, expected.curvature, expected.value):
            whole = np.zeros(values.shape, dtype=values.dtype)
            whole[where] = term if weights is None else term * weights[where]
            found.append(whole)
        return Cells(*found)

    def with_precision(self, precision: FloatArray) -> "BetaRule":
        """Return the rule with another precision of each table."""
        tables: list[Table | Few] = []
        for old, new in zip(self.tables, precision.tolist(), strict=True):
            if isinstance(old, Few):
                tables.append(old._replace(precision=new))
            else:
                is_same = old.precision == new
                tables.append(old if is_same else make_table(new, old.lower_asymptote, old.nodes.value.dtype))
        return replace(self, tables=tuple(tables))

    @property
    def precision(self) -> FloatArray:
        """Precision of each table."""
        return np.array([table.precision for table in self.tables])

    @property
    def lower_asymptote(self) -> FloatArray:
        """Lower asymptote of each table."""
        return np.array([table.lower_asymptote for table in self.tables])


def _by_nodes(table: Table | Few, values: FloatArray, mean: FloatArray, variance: FloatArray) -> Cells:
    """Slope, curvature and value by three nodes; curvature is minus twice the derivative by v of their sum."""
    # Nodes m and m +- h with h = sqrt(3 v), weights 2/3, 1/6 and 1/6. As dh / dv = 3 / (2 h), minus twice the
    # derivative by v is (f'(m - h) - f'(m + h)) / (2 h).
    dtype = mean.dtype.type
    half_step = np.sqrt(dtype(3.0) * np.maximum(variance, dtype(SMALLEST_VARIANCE)))
    value, slope, least_curvature = _at(table, values, mean)
    above, slope_above, _ = _at(table, values, mean + half_step, order=1)
    below, slope_below, _ = _at(table, values, mean - half_step, order=1)
    curvature = np.maximum((slope_below - slope_above) / (dtype(2.0) * half_step), least_curvature)
    value = (dtype(4.0) * value + above + below) / dtype(6.0)
    return Cells((dtype(4.0) * slope + slope_above + slope_below) / dtype(6.0), curvature, value)


def _expanded(table: Table, values: FloatArray, mean: FloatArray, variance: FloatArray) -> Cells:
    """Slope, curvature and value of ``f(m) + v f''(m) / 2``."""
    dtype = mean.dtype.type
    value, slope, second, third = table.at(mean)
    sigmoid = _sigmoid(mean)
    sigmoid_slope = sigmoid * (dtype(1.0) - sigmoid)
    # p'' = p' (1 - 2 s). The Fisher information is -A'' + (1 - 2 s) A', since A' = -phi p' (psi(a) - psi(b)).
    slope_ratio = dtype(1.0) - dtype(2.0) * sigmoid
    least_curvature = slope_ratio * slope
    least_curvature -= second
    least_curvature *= dtype(LEAST_CURVATURE)
    # The part linear in L, phi p L = phi (g + (1 - g) s) L, and its derivatives by those of s:
    # s' = s (1 - s), s'' = s' (1 - 2 s), s''' = s' (1 - 6 s').
    linear = dtype(table.precision * (1.0 - table.lower_asymptote)) * values
    value += linear * sigmoid
    if table.lower_asymptote > 0.0:
        value += dtype(table.precision * table.lower_asymptote) * values
    linear *= sigmoid_slope
    slope += linear
    second += linear * slope_ratio
    third += linear * (dtype(1.0) - dtype(6.0) * sigmoid_slope)
    half_variance = dtype(0.5) * variance
    # E f = f + v f'' / 2, whose slope in m is f' + v f''' / 2; minus twice its derivative by v is -f''.
    value += half_variance * second
    slope += half_variance * third
    clipped = _clipped(table, values, mean)
    if clipped is not None:
        where, more, steeper, curved = clipped
        value[where] += more + half_variance[where] * curved
        slope[where] += steeper
        second[where] += curved
    np.negative(second, out=second)
    return Cells(slope, np.maximum(second, least_curvature, out=second), value)


def _at(
    table: Table | Few, values: FloatArray, logits: FloatArray, order: int = 2
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-likelihood up to constants, its derivative in the logit, and, of order 2, the least curvature."""
    dtype = logits.dtype.type
    value, slope, second, _ = table.at(logits) if isinstance(table, Table) else table.at(logits, order)
    sigmoid = _sigmoid(logits)
    # The Fisher information is -A'' - phi p'' (psi(p phi) - psi((1 - p) phi)) = -A'' + (1 - 2 s) A'.
    least_curvature = dtype(LEAST_CURVATURE) * ((dtype(1.0) - dtype(2.0) * sigmoid) * slope - second)
    linear = dtype(table.precision * (1.0 - table.lower_asymptote)) * values
    value += linear * sigmoid
    if np.any(table.lower_asymptote > 0.0):
        value += dtype(table.precision * table.lower_asymptote) * values
    slope += linear * sigmoid * (dtype(1.0) - sigmoid)
    clipped = _clipped(table, values, logits)
    if clipped is not None:
        where, more, steeper, _ = clipped
        value[where] += more
        slope[where] += steeper
    return value, slope, least_curvature


def _clipped(
    table: Table | Few, values: FloatArray, logits: FloatArray
) -> tuple[tuple[IntArray, ...], FloatArray, FloatArray, FloatArray] | None:
    """Replace the density of a clipped probability by the probability of lying beyond the clipping point.

    ``P(Y < e) = e^a / (a B(a, b))`` for small e is the density there times ``e / a``, with a = p phi; near one b.

    Returns where probabilities were clipped, and what that adds there to log-likelihood, slope and second derivative.
    """
    where = np.nonzero(np.abs(values) > CLIPPED_LOGIT)
    if not where[0].size:
        return None
    x = logits[where].astype(np.float64)
    precision, lower = (np.broadcast_to(one, values.shape)[where] for one in (table.precision, table.lower_asymptote))
    sigmoid, complement = expit(x), expit(-x)
    is_low = values[where] < 0.0
    # -log a = -log phi - log p is added at the low end, and -log b at the high one.
    log_p = np.where(lower == 0.0, log_expit(x), np.log(np.where(lower == 0.0, 1.0, lower + (1.0 - lower) * sigmoid)))
    ratio = np.exp(np.log1p(-lower) + log_expit(x) - log_p) * complement  # p' / p
    value = np.log(precision) + np.where(is_low, log_p, np.log1p(-lower) + log_expit(-x))
    slope = np.where(is_low, ratio, -sigmoid)
    # (log p)'' = p'' / p - (p' / p)^2 with p'' = p' (1 - 2 s), and (log q)'' = -s (1 - s).
    second = np.where(is_low, ratio * (complement - sigmoid - ratio), -sigmoid * complement)
    return where, -value, -slope, -second


def _sigmoid(logits: FloatArray) -> FloatArray:
    """``sigmoid(x)``; in single precision by the exponential, which is several times as fast."""
    if logits.dtype == np.float64:
        result: FloatArray = expit(logits)
        return result
    # Bounded at 60, where the sigmoid is 1 or 1e-26: exp overflows single precision beyond 88.
    one = logits.dtype.type(1.0)
    small = np.exp(-np.clip(logits, -60.0, 60.0))
    small += one
    return np.divide(one, small, out=small)
