"""Expected log-likelihood of a probability: Beta(p phi, (1 - p) phi) (P3; Ferrari & Cribari-Neto 2004).

With the response's own logit ``L = log(y / (1 - y))`` and ``p = lower + (1 - lower) sigmoid(x)``,

``log f = A(x) + phi p L + phi log(1 - y) - log(y (1 - y))``, ``A = lgamma(phi) - lgamma(p phi) - lgamma((1 - p) phi)``.

It is linear in L, and A is a function of the logit alone. So no cell needs a special function: A, A' and A'' are
tabulated once for each precision phi, and every cell looks up the nearest node of a fine grid and goes the rest of
the way by Taylor's formula.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma, expit, gammaln, polygamma

from itembank.calibration.variational.cells import SMALLEST_VARIANCE, Cells
from itembank.numerics.arrays import FloatArray

LARGEST_LOGIT = 24.0
"""Beyond it the tables go on along straight lines, as A does where p phi is small."""
NODES_PER_UNIT = {np.dtype(np.float32): 128, np.dtype(np.float64): 512}
LEAST_CURVATURE = 0.2
"""Of what the mean alone would say, (phi + 1) p'^2 / (p (1 - p)): a response far from its expectation bends upward."""


@dataclass(frozen=True, slots=True)
class Table:
    """A and its derivatives at the nodes of a grid of logits, for one precision and one lower asymptote.

    Attributes
    ----------
    precision, lower_asymptote : float
    nodes_per_unit : int
    value, slope, curvature : (n_nodes,)
        A, A' and A''.
    """

    precision: float
    lower_asymptote: float
    nodes_per_unit: int
    value: FloatArray
    slope: FloatArray
    curvature: FloatArray

    def at(self, logits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give A and A', off by the third (second) power of half a step times A''' / 6 (A''' / 2)."""
        place = logits + logits.dtype.type(LARGEST_LOGIT)
        place *= self.nodes_per_unit
        index = np.rint(np.clip(place, 0, self.value.shape[0] - 1)).astype(np.int32)
        place -= index
        place /= self.nodes_per_unit  # what is left of the logit
        slope, curvature = self.slope.take(index), self.curvature.take(index)
        curvature *= place
        value = self.value.take(index)
        value += place * (slope + logits.dtype.type(0.5) * curvature)
        slope += curvature
        return value, slope


def make_table(precision: float, lower_asymptote: float, dtype: np.dtype[np.floating]) -> Table:
    """Tabulate A, by the special functions."""
    nodes_per_unit = NODES_PER_UNIT[dtype]
    half = round(LARGEST_LOGIT * nodes_per_unit)
    terms = normaliser_terms(np.arange(-half, half + 1) / nodes_per_unit, precision, lower_asymptote)
    terms[2][[0, -1]] = 0.0
    return Table(precision, lower_asymptote, nodes_per_unit, *(term.astype(dtype) for term in terms))


def normaliser_terms(
    logits: FloatArray, precision: float, lower_asymptote: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give A, A' and A'' by the special functions."""
    above = (1.0 - lower_asymptote) * expit(logits)
    first, second = precision * (lower_asymptote + above), precision * (1.0 - lower_asymptote) * expit(-logits)
    slope = precision * above * expit(-logits)  # of p phi
    bend = slope * (expit(-logits) - expit(logits))
    expected = digamma(first) - digamma(second)
    spread = polygamma(1, first) + polygamma(1, second)
    value = gammaln(precision) - gammaln(first) - gammaln(second)
    return value, -slope * expected, -bend * expected - slope**2 * spread


@dataclass(frozen=True, slots=True)
class BetaRule:
    """The expectation by three nodes ``m, m +- sqrt(3 v)``, with its own derivatives.

    Attributes
    ----------
    tables : tuple of Table
        One for each group of items with one precision and one lower asymptote.
    """

    tables: tuple[Table, ...]

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
        found, dtype = self.tables[table], mean.dtype.type
        half_step = np.sqrt(dtype(3.0) * np.maximum(variance, dtype(SMALLEST_VARIANCE)))
        value, slope, least = _at(found, values, mean)
        above, slope_above, _ = _at(found, values, mean + half_step)
        below, slope_below, _ = _at(found, values, mean - half_step)
        curvature = (slope_below - slope_above) / (dtype(2.0) * half_step)
        np.maximum(curvature, least, out=curvature)
        value = (dtype(4.0) * value + above + below) / dtype(6.0)
        pull = (dtype(4.0) * slope + slope_above + slope_below) / dtype(6.0)
        pull += curvature * mean
        if weights is not None:
            pull, curvature, value = pull * weights, curvature * weights, value * weights
        return Cells(pull, curvature, value)

    def with_precision(self, precision: FloatArray) -> "BetaRule":
        """Return the rule with another precision of each table."""
        tables = (
            old if old.precision == new else make_table(float(new), old.lower_asymptote, old.value.dtype)
            for old, new in zip(self.tables, precision, strict=True)
        )
        return replace(self, tables=tuple(tables))

    @property
    def precision(self) -> FloatArray:
        """Precision of each table."""
        return np.array([table.precision for table in self.tables])


def _at(table: Table, values: FloatArray, logits: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-likelihood and its derivative in the logit up to constants, and the least curvature."""
    dtype = logits.dtype.type
    value, slope = table.at(logits)
    share = expit(logits) if dtype is np.float64 else dtype(1.0) / (dtype(1.0) + np.exp(-np.clip(logits, -60.0, 60.0)))
    known = share * (dtype(1.0) - share)
    scale = dtype(table.precision * (1.0 - table.lower_asymptote))
    value += scale * share * values
    slope += scale * known * values
    least = dtype(LEAST_CURVATURE * (table.precision + 1.0)) * known
    if table.lower_asymptote > 0.0:
        value += dtype(table.precision * table.lower_asymptote) * values
        # p' / p of the whole probability is what is left of that of the share
        least *= (1.0 - table.lower_asymptote) * share / (table.lower_asymptote + (1.0 - table.lower_asymptote) * share)
    return value, slope, least
