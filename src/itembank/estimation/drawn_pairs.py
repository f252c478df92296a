"""How far differences of two models on the same drawn items are off: their errors have much in common."""

import numpy as np

from itembank.estimation.design_based import ByDesign, Chance
from itembank.estimation.difference_estimator import leaning
from itembank.numerics.arrays import FloatArray, IntArray

FEWEST = 5
"""Answers of both from which on it is asked how alike their errors are."""
DOUBT = 1.0
"""Standard errors by which a correlation is taken for less than it looks. With two, intervals of near copies on 30 to
60 items are a tenth wider, and cover as much."""


def pair_shares(
    found: ByDesign,  # Of n_models models
    answers: FloatArray,  # (n_models, n_columns): NaN where missing
    scenario_index: IntArray,  # (n_columns,)
    first: IntArray,  # (n_pairs,): Rows of the models of each pair
    second: IntArray,  # (n_pairs,)
) -> FloatArray:
    """Return what the variance of each pair's difference is of the sum of both models' variances, (n_pairs, n_targets).

    1 if what predictions are off of the one says nothing of the other, near 0 if the two are nearly alike. Over the
    drawn items the variance is that of the residual differences (`error_terms`), moderated by what is expected:
    ``V_a + V_b - 2 r sqrt(V_a V_b)``, r as surely as it is known (`likeness`). In scenarios the same share of their
    variances is expected as in all drawn items together.
    """
    together = np.zeros_like(scenario_index)
    expected, alike = found.whole.expected[:, 0], likeness(found.whole, answers)[first, second]
    apart, total = 2.0 * np.sqrt(expected[first] * expected[second]), expected[first] + expected[second]
    share = 1.0 - alike * np.divide(apart, total, out=np.zeros(total.shape), where=total > 0.0)
    of_all = _shares(found.whole, answers, together, (first, second), share)
    # nothing is shared of what the draw says nothing about
    by_draw, of_both = (one[first, -1:] + one[second, -1:] for one in (found.whole.variance, found.variances))
    of_all = 1.0 - (1.0 - of_all) * np.divide(by_draw, of_both, out=np.ones(of_all.shape), where=of_both > 0.0)
    if found.parts.variance.shape[1] == 1:
        return np.column_stack([of_all, of_all])
    return np.column_stack([_shares(found.parts, answers, scenario_index, (first, second), of_all[:, 0]), of_all])


def likeness(chance: Chance, answers: FloatArray) -> FloatArray:
    """Say how far two models' estimates surely err alike, (n_models, n_models), from 0 to 1.

    The correlation of what is left of their answers when predicted from the others, as if of one answer more each of
    the two were wholly off, by itself; as surely as so many answers tell it.
    """
    seen = (~np.isnan(answers)).astype(np.float64)
    sizes = np.sqrt(np.sum(chance.left_out**2, axis=1) + chance.of_one[:, 0])
    norms = np.outer(sizes, sizes)
    r = np.divide(chance.left_out @ chance.left_out.T, norms, out=np.zeros(norms.shape), where=norms > 0.0)
    return surely_alike(r, seen @ seen.T)


def surely_alike(r: FloatArray, n_items: FloatArray) -> FloatArray:
    """Return what a correlation surely is, from 0 to 1: a standard error less, ``tanh(artanh r - 1 / sqrt(n - 3))``."""
    lowered = np.arctanh(np.clip(r, 0.0, 1.0 - 1e-12)) - DOUBT / np.sqrt(np.maximum(n_items, FEWEST) - 3.0)
    return np.tanh(np.maximum(lowered, 0.0))


def _shares(
    chance: Chance,
    answers: FloatArray,  # (n_models, n_columns)
    scenario_index: IntArray,  # (n_columns,)
    pairs: tuple[IntArray, IntArray],  # Each (n_pairs,)
    expected_share: FloatArray,  # (n_pairs,)
) -> FloatArray:
    """Return the shares in each scenario, (n_pairs, n_scenarios)."""
    first, second = pairs
    result = np.ones((first.size, chance.variance.shape[1]))
    for scenario in range(result.shape[1]):
        columns = np.flatnonzero(scenario_index == scenario)
        # answers of both to the same items, and the mean square of their differences
        seen, y = ~np.isnan(answers[:, columns]), np.nan_to_num(answers[:, columns])
        n = np.maximum((seen.astype(np.float64) @ seen.T)[first, second], 1.0)
        changed = (
            (y**2 @ seen.T)[first, second] + (seen @ (y**2).T)[first, second] - 2.0 * (y @ y.T)[first, second]
        ) / n
        shown = np.sqrt(np.prod([_of_pairs(one[:, columns], first, second) for one in chance[:2]], axis=0))
        # of differences -1, 0 and 1 the kurtosis is 1 / m, m the part that is not 0: see `moderated`
        rare = 2.0 * n * changed / np.maximum(1.0 - changed, 1e-9)
        freedom, expected, variance = (one[:, scenario] for one in (chance.freedom, chance.expected, chance.variance))
        worth = np.minimum(np.minimum(freedom[first], freedom[second]), rare)
        found = leaning(shown, worth, expected_share * (expected[first] + expected[second]))
        total = variance[first] + variance[second]
        result[:, scenario] = np.divide(found, total, out=np.ones(total.shape), where=total > 0.0)
    return result


def _of_pairs(terms: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Sum squared differences of the terms of two models, (n_pairs,)."""
    products = terms @ terms.T
    squares = np.diag(products)
    return np.maximum(squares[first] + squares[second] - 2.0 * products[first, second], 0.0)
