"""The Beta item model by table: what its likelihood needs of the logit, without a special function per cell.

For one precision phi and ``p = sigmoid(x)`` everything but p itself is a bounded, smooth function of x. With
``a = p phi``, ``b = (1 - p) phi``, ``L = log(y / (1 - y))``, the rests R, S, T of `itembank.numerics.gamma` and
``q = 1 - p``:

    log f(y)    =  -phi D(x, L) + r(x) + c(y),      r   = log(phi p q / 2 pi) / 2 + R(phi) - R(a) - R(b)
    (log f)'    =  phi p q (L - x) + r'(x),         r'  = p b S(b) - q a S(a),                in [-1, 1]
    I           =  phi p q + e(x),                  e   = q^2 a^2 T(a) + p^2 b^2 T(b),        in [0.25, 1]
    -(log f)''  =  I - (q - p) (log f)'

    D     =  softplus(L) - softplus(x) - p (L - x)  >= 0, the divergence KL(p || y)
    c(y)  =  -log y - log(1 - y), free of x and phi

so that a large phi multiplies only what is computed directly, and r, r' and e are good in float32. D is small where
y is near p, and is computed as ``log(1 + s (exp(d) - 1)) - s d`` with s the smaller of p and q and d the difference
of L and x away from it: no two nearly equal numbers are subtracted.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from itembank.errors import ParameterError
from itembank.irt.means import mean_terms
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.gamma import HALF_LOG_TWO_PI, digamma_rest, log_gamma_rest, trigamma_rest
from itembank.numerics.stable import softplus

REACH = 40
"""Logits between minus and plus this stand in the table; beyond, the functions have reached their asymptotes."""

STEPS = 1024
"""Grid points to a unit of the logit: linear interpolation is then off by 1.2e-7 of the second derivative, below 1."""


class BetaTerms(NamedTuple):
    """What the formulas of this module need at logits x, each of the shape and number type of x."""

    smaller: FloatArray  # s = min(p, q)
    variance: FloatArray  # p q
    rest: FloatArray  # r
    rest_slope: FloatArray  # r'
    information: FloatArray  # I


@dataclass(frozen=True, slots=True)
class BetaWork:
    """Room for up to n cells, so that looking them up block by block asks for no memory: that takes most of the time.

    Attributes
    ----------
    cells : (7, n)
        Float32 or float64: five for the terms, two for what comes in between.
    narrow, index : (n,)
        Places in the table, in int32 (to which float32 converts fast) and in the type that indexes arrays.
    """

    cells: FloatArray
    narrow: IntArray
    index: IntArray

    @classmethod
    def of(cls, n_cells: int, kind: DTypeLike = np.float64) -> Self:
        """Make room for blocks of up to this many cells of this number type."""
        return cls(np.empty((7, n_cells), kind), np.empty(n_cells, np.int32), np.empty(n_cells, np.intp))

    def rooms(self, x: FloatArray) -> list[FloatArray]:
        """Return the seven rooms in the shape of x."""
        return [room[: x.size].reshape(x.shape) for room in self.cells]

    def places(self, x: FloatArray, offset: FloatArray) -> IntArray:
        """Find the grid point at or below each x, and fill in how far x lies above it, in steps."""
        narrow, index = self.narrow[: x.size].reshape(x.shape), self.index[: x.size].reshape(x.shape)
        whole = self.cells[6, : x.size].reshape(x.shape)
        np.multiply(x, STEPS, out=offset)
        np.clip(offset, -REACH * STEPS, REACH * STEPS, out=offset)
        np.floor(offset, out=whole)
        offset -= whole
        np.copyto(narrow, whole, casting="unsafe")
        np.add(narrow, REACH * STEPS, out=index)
        return index


@dataclass(frozen=True, slots=True)
class _Table:
    """A function on the grid and its changes from one grid point to the next, each (n_grid,)."""

    values: FloatArray
    changes: FloatArray

    @classmethod
    def of(cls, values: FloatArray, kind: type) -> "_Table":
        """Keep float64 values as numbers of this type; the last change is zero, so that the end value goes on."""
        return cls(values.astype(kind), np.diff(values, append=values[-1]).astype(kind))


@dataclass(frozen=True, slots=True)
class BetaTable:
    """Tables of r, r' and e for one precision phi; make one with `BetaTable.of`, look up with `evaluate`.

    Attributes
    ----------
    precision : float
        phi.
    single, double : tuple of tables of r, r' and e
        In float32 and float64.
    """

    precision: float
    single: tuple[_Table, _Table, _Table]
    double: tuple[_Table, _Table, _Table]

    @classmethod
    def of(cls, precision: float) -> Self:
        """Tabulate for one phi.

        Raises
        ------
        ParameterError
            When phi is not positive and finite.
        """
        if not (np.isfinite(precision) and precision > 0.0):
            raise ParameterError(f"precision must be positive and finite, got {precision}.")
        functions = _functions(float(precision))
        single, double = (tuple(_Table.of(one, kind) for one in functions) for kind in (np.float32, np.float64))
        return cls(float(precision), single, double)  # type: ignore[arg-type]

    def evaluate(self, x: FloatArray, work: BetaWork | None = None, *, with_rest: bool = True) -> BetaTerms:
        """Look up everything at logits x, float32 or float64 of any shape, none of them NaN.

        The terms lie in `work`, where one is given, until it is used again. Without the rest, which derivatives do not
        need, `rest` is not filled.
        """
        work = BetaWork.of(x.size, x.dtype) if work is None else work
        smaller, variance, rest, rest_slope, information, offset, spare = work.rooms(x)
        index = work.places(x, offset)
        tables = self.single if x.dtype == np.float32 else self.double
        _smaller(x, smaller, variance)
        np.multiply(variance, self.precision, out=information)
        information += _look_up(tables[2], index, offset, rest_slope, spare)
        _look_up(tables[1], index, offset, rest_slope, spare)
        if with_rest:
            _look_up(tables[0], index, offset, rest, spare)
            rest += _beyond(x)
        return BetaTerms(smaller, variance, rest, rest_slope, information)

    def log_likelihood(
        self, terms: BetaTerms, x: FloatArray, log_odds: FloatArray, work: BetaWork | None = None
    ) -> FloatArray:
        """``-phi D + r``: the log-density of each response less its c(y), from the terms at x."""
        work = BetaWork.of(x.size, x.dtype) if work is None else work
        *_, distance, result = work.rooms(x)
        np.subtract(log_odds, x, out=distance)
        np.copysign(1.0, x, out=result)
        distance *= result
        np.negative(distance, out=distance)
        np.expm1(distance, out=result)
        result *= terms.smaller
        np.log1p(result, out=result)
        distance *= terms.smaller
        result -= distance
        result *= -self.precision
        result += terms.rest
        return result

    def score(self, terms: BetaTerms, x: FloatArray, log_odds: FloatArray, work: BetaWork | None = None) -> FloatArray:
        """``phi p q (L - x) + r'``: the derivative of the log-density in the logit, from the terms at x."""
        work = BetaWork.of(x.size, x.dtype) if work is None else work
        *_, result, _ = work.rooms(x)
        np.subtract(log_odds, x, out=result)
        result *= terms.variance
        result *= self.precision
        result += terms.rest_slope
        return result


def response_constants(log_odds: FloatArray) -> FloatArray:
    """``c(y) = -log y - log(1 - y)`` of responses given by ``L = log(y / (1 - y))``."""
    result: FloatArray = softplus(log_odds) + softplus(-log_odds)
    return result


def _functions(precision: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``r``, ``r'`` and ``e`` on the grid; even, odd and even in x, so that half of it is computed."""
    x = np.arange(REACH * STEPS + 1) / STEPS
    mean = mean_terms(x, None)
    a, b = precision * mean.p, precision * mean.q
    phi = np.array([precision])
    rest = 0.5 * (np.log(precision) + mean.log_p + mean.log_q) - HALF_LOG_TWO_PI
    rest += log_gamma_rest(phi) - log_gamma_rest(a) - log_gamma_rest(b)
    slope = mean.p * (b * digamma_rest(b)) - mean.q * (a * digamma_rest(a))
    excess = mean.q**2 * (a * a * trigamma_rest(a)) + mean.p**2 * (b * b * trigamma_rest(b))
    return _mirrored(rest, 1.0), _mirrored(slope, -1.0), _mirrored(excess, 1.0)


def _mirrored(right: FloatArray, sign: float) -> FloatArray:
    """Complete an even (sign 1) or odd (-1) function from its half with x >= 0."""
    return np.concatenate([sign * right[:0:-1], right])


def _smaller(x: FloatArray, smaller: FloatArray, variance: FloatArray) -> None:
    """Fill in ``s = min(p, q)`` and ``p q``."""
    np.abs(x, out=smaller)
    np.negative(smaller, out=smaller)
    np.exp(smaller, out=smaller)
    np.add(smaller, 1.0, out=variance)
    np.divide(smaller, variance, out=smaller)
    np.divide(smaller, variance, out=variance)


def _look_up(table: _Table, index: IntArray, offset: FloatArray, result: FloatArray, spare: FloatArray) -> FloatArray:
    """Fill in the result by linear interpolation."""
    np.take(table.changes, index, out=result, mode="clip")  # other modes buffer the output
    result *= offset
    np.take(table.values, index, out=spare, mode="clip")
    result += spare
    return result


def _beyond(x: FloatArray) -> FloatArray | float:
    """Beyond the grid, where r falls by one with every unit of the logit."""
    largest = max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))
    return 0.0 if largest <= REACH else np.minimum(REACH - np.abs(x), 0)
