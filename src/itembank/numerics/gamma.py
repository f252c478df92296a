"""Remainders of log-gamma, digamma and trigamma after subtraction of their growth, and their differences.

    log Gamma(a) = (a - 1/2) log a - a + log(2 pi) / 2 + R(a),     R ~ 1 / (12 a)
    psi(a)       = log a + S(a),                                    S ~ -1 / (2 a)
    psi1(a)      = 1 / a + T(a),                                    T ~ 1 / (2 a^2)

Sums and differences of gamma functions at large arguments nearly cancel; written with R, S and T they keep their
digits. Above `SERIES_FROM` these are Stirling's series (Abramowitz and Stegun 6.1.41, 6.3.18, 6.4.12), below it the
library's functions less the growth.
"""

from collections.abc import Callable

import numpy as np
import scipy

from itembank.numerics.arrays import FloatArray, Numbers

SERIES_FROM = 10.0
"""At 10 the first term that the series below leave out is under 1e-16."""
HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)

LOG_GAMMA_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""Of 1/a, 1/a^3, ...: ``B_2k / (2k (2k - 1))`` with Bernoulli's numbers."""

DIGAMMA_SERIES = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
"""Of 1/a^2, 1/a^4, ...: ``-B_2k / (2k)``."""

TRIGAMMA_SERIES = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""Of 1/a^3, 1/a^5, ...: ``B_2k``."""


def log_beta(a: Numbers, b: Numbers) -> FloatArray:
    """``log B(a, b)``, elementwise, finite for all finite a > 0 and b > 0.

    The library divides by Gamma(a + b), whose inverse is subnormal for a + b from 171.4 to 171.6. A process that
    flushes such numbers to zero, as some libraries make it when they are loaded, gets minus infinity there; log-gammas
    are taken instead.
    """
    found: FloatArray = scipy.special.betaln(a, b)
    if np.isfinite(found).all():
        return found
    return np.where(
        np.isfinite(found),
        found,
        scipy.special.gammaln(a) + scipy.special.gammaln(b) - scipy.special.gammaln(np.add(a, b)),
    )


def trigamma(a: FloatArray) -> FloatArray:
    """``psi1(a)``, elementwise, a > 0."""
    return 1.0 / a + trigamma_rest(a)


def log_gamma_rest(a: FloatArray) -> FloatArray:
    """``R(a)``, elementwise, a > 0."""
    return _piecewise(
        a,
        lambda small: scipy.special.gammaln(small) - ((small - 0.5) * np.log(small) - small + HALF_LOG_TWO_PI),
        lambda large: _odd_series(LOG_GAMMA_SERIES, 1.0 / large),
    )


def digamma_rest(a: FloatArray) -> FloatArray:
    """``S(a) = psi(a) - log a``, elementwise, a > 0."""
    return _piecewise(
        a,
        lambda small: scipy.special.digamma(small) - np.log(small),
        lambda large: -0.5 / large + _odd_series(DIGAMMA_SERIES, 1.0 / large) / large,
    )


def trigamma_rest(a: FloatArray) -> FloatArray:
    """``T(a) = psi1(a) - 1 / a``, elementwise, a > 0."""
    return _piecewise(a, lambda small: _shifted_trigamma(small) - 1.0 / small, _trigamma_series)


def log_gamma_difference(a: FloatArray, k: FloatArray) -> FloatArray:
    """``log Gamma(a + k) - log Gamma(a) - k log a``, elementwise, a > 0 and k >= 0; zero as a grows."""
    # Stirling's growth at a + k less that at a, with k log a taken out by hand: what is left is small where a is large.
    return (a + k - 0.5) * np.log1p(k / a) - k + log_gamma_rest(a + k) - log_gamma_rest(a)


def log_gamma_second_difference(x: Numbers, s: Numbers, t: Numbers) -> FloatArray:
    """``log G(x + s) + log G(x + t) - log G(x + s + t) - log G(x)`` with G the gamma function; x > 0, s, t >= 0.

    The four terms cancel to about ``-s t / x``: computed one by one, with x in the millions, they leave no digit. By
    Stirling's formula, in which ``x log x`` and the logarithms are put together before they are computed, with
    A = x + s + t, B = x + s, C = x + t and w = s t / (B C), for which 1 - w = A x / (B C), this is

    ``t log(1 - s / A) + s log(1 - t / A) - (x - 1/2) log(1 - w) + r(B) + r(C) - r(A) - r(x)``

    with r = `log_gamma_rest`.

    The result has the shape to which all three are broadcast.
    """
    x, s, t = (np.asarray(values, dtype=np.float64) for values in (x, s, t))
    B, C = x + s, x + t
    A = B + t
    w = (s / B) * (t / C)  # the ratios first: s t overflows where s and t are huge
    # log1p(-w) is exact for small w; for w near one the product A x / (B C) keeps the digits that 1 - w loses
    with np.errstate(divide="ignore"):
        log_complement = np.where(w < 0.5, np.log1p(-np.minimum(w, 0.5)), np.log((A / B) * (x / C)))
    remainders = (log_gamma_rest(B) - log_gamma_rest(A)) + (log_gamma_rest(C) - log_gamma_rest(x))
    return t * np.log1p(-s / A) + s * np.log1p(-t / A) - (x - 0.5) * log_complement + remainders


def digamma_difference(a: FloatArray, k: FloatArray) -> FloatArray:
    """``psi(a + k) - psi(a)``, elementwise, a > 0 and k >= 0: the sum of ``1 / (a + j)`` for j < k."""
    return np.log1p(k / a) + digamma_rest(a + k) - digamma_rest(a)


def trigamma_difference(a: FloatArray, k: FloatArray) -> FloatArray:
    """``psi1(a) - psi1(a + k)``, elementwise, a > 0 and k >= 0: the sum of ``1 / (a + j)^2`` for j < k."""
    return k / a / (a + k) + trigamma_rest(a) - trigamma_rest(a + k)


def _trigamma_series(a: FloatArray) -> FloatArray:
    """``T(a)`` for large a."""
    inverse = 1.0 / a
    return inverse * (0.5 * inverse + _odd_series(TRIGAMMA_SERIES, inverse) * inverse)


def _shifted_trigamma(a: FloatArray) -> FloatArray:
    """``psi1(a) = sum_j 1 / (a + j)^2 + psi1(a + 10)``, ten terms: six times faster than Hurwitz' zeta function."""
    # a + 10 is in the range of the series for every a > 0.
    far = a + SERIES_FROM
    total = 1.0 / far + _trigamma_series(far)
    for shift in range(int(SERIES_FROM)):
        term = 1.0 / (a + shift)
        total = total + term * term
    return total


def _piecewise(
    a: FloatArray, below: Callable[[FloatArray], FloatArray], above: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Apply one function to small arguments and another to large ones."""
    a = np.asarray(a, dtype=np.float64)
    is_small = a < SERIES_FROM
    if is_small.all():
        return below(a)
    if not is_small.any():
        return above(a)
    result = np.empty(a.shape)
    result[is_small] = below(a[is_small])
    result[~is_small] = above(a[~is_small])
    return result


def _odd_series(coefficients: tuple[float, ...], z: FloatArray) -> FloatArray:
    """``c_0 z + c_1 z^3 + ...``, by Horner's rule."""
    square = z * z
    total = np.full(np.shape(z), coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * square + coefficient
    return total * z
