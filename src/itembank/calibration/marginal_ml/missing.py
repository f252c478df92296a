"""The information about items that is lost because abilities are not known, in factored form.

Louis (1982): observed information = complete-data information B - sum_l Cov_l(S_l), with S_l the score of
all items by model l and Cov_l over the posterior of its ability. B has one block an item, but an unknown
ability ties all items together. Each covariance is expanded in functions phi_r that are orthonormal under
the posterior, ``Cov_l(S_l) = sum_r E_l[S_l phi_r] E_l[S_l phi_r]'``: linear functions of ability (the
delta method) nearly suffice when the posterior is narrow, as scores are smooth in ability.
"""

from dataclasses import dataclass

import numpy as np

from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml.grid import AbilityGrid
from itembank.calibration.marginal_ml.posterior import posterior_weights, trials
from itembank.irt.logistic import asymptotes_of, score_terms
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_terms


@dataclass(frozen=True, slots=True)
class LostInformation:
    """Factors of the lost information."""

    data: FitData
    items: FloatArray  # (n_items, 2)
    design: FloatArray  # (n_curve_nodes, 2): Ability and a one, at the curve nodes
    # (n_models, n_functions, n_curve_nodes): Posterior weights times each function, moved to the curve nodes.
    weights: FloatArray
    moments: FloatArray  # (n_models, n_functions, 2): Posterior mean of each function times (ability, 1)

    @property
    def n_factors(self) -> int:
        """Columns of the factor matrix."""
        return int(self.weights.shape[0] * self.weights.shape[1])

    def factors(self, block: slice) -> FloatArray:
        """``E_l[S_li phi_r]`` of a block of items, (n_items, 2, n_models * n_functions)."""
        x = self.items[block] @ self.design.T  # (n_items, n_curve_nodes)
        right = self.data.responses[:, block].astype(np.float64)  # (n_models, n_items), the fraction of right answers
        lower = self.data.lower_asymptote[block, None]
        if np.any(self.data.lower_asymptote):
            asymptotes = asymptotes_of(lower, np.ones_like(lower))
            if_right = self._means(score_terms(x, np.ones(()), asymptotes))
            if_wrong = self._means(score_terms(x, np.zeros(()), asymptotes))
            is_right = right[..., None, None]
            result = is_right * if_right + (1.0 - is_right) * if_wrong
        else:
            result = right[..., None, None] * self.moments.transpose(0, 2, 1)[:, None]
            result -= self._means(sigmoid_terms(x).sigmoid)
        if self.data.weights is not None:
            result *= trials(self.data, block)[..., None, None]
        n_models, n_items, size, n_functions = result.shape
        return result.transpose(1, 2, 0, 3).reshape(n_items, size, n_models * n_functions)

    def _means(self, curves: FloatArray) -> FloatArray:
        """Posterior means of curve times (ability, 1) times function.

        From (n_items, n_curve_nodes) to (n_models, n_items, 2, n_functions).
        """
        n_models, n_functions, n_nodes = self.weights.shape
        integrand = curves[:, None, :] * self.design.T  # (n_items, 2, n_curve_nodes)
        flat = self.weights.reshape(-1, n_nodes) @ integrand.reshape(-1, n_nodes).T
        shaped = flat.reshape(n_models, n_functions, *integrand.shape[:2])
        return shaped.transpose(0, 2, 3, 1)


def lost_information(data: FitData, items: FloatArray, grid: AbilityGrid, *, degree: int) -> LostInformation:
    """Prepare the factors, with polynomials of ability up to `degree`."""
    design = np.column_stack([grid.curve_nodes, np.ones(len(grid.curve_nodes))])
    fine = np.column_stack([grid.nodes, np.ones(len(grid.nodes))])
    weights, moments = [], []
    for _, _, posterior in posterior_weights(data, items, grid):
        weighted = _orthonormal_polynomials(grid.nodes, posterior, degree) * posterior[:, None, :]
        n_rows, n_functions, n_nodes = weighted.shape
        weights.append(grid.gather(weighted.reshape(-1, n_nodes)).reshape(n_rows, n_functions, -1))
        moments.append(weighted @ fine)
    return LostInformation(data, items, design, np.concatenate(weights), np.concatenate(moments))


def _orthonormal_polynomials(nodes: FloatArray, posterior: FloatArray, degree: int) -> FloatArray:
    """Polynomials with mean 0 and covariance I under each posterior, (n_rows, n_functions, n_quadrature).

    Gram-Schmidt, each function starting as standardised ability times one of the degree below. A
    function that a posterior on few nodes cannot tell from those before it becomes zero.
    """
    mean = posterior @ nodes
    spread = np.sqrt(np.maximum(posterior @ nodes**2 - mean**2, 1e-300))
    scaled = (nodes[:, 0] - mean) / spread  # (n_rows, n_quadrature)
    basis = [np.ones(posterior.shape)]
    for _ in range(degree):
        function = scaled * basis[-1]
        size = np.sum(posterior * function**2, axis=1)
        for earlier in [*basis, *basis]:  # twice, against rounding
            function = function - np.sum(posterior * function * earlier, axis=1)[:, None] * earlier
        # What is left below the tenth digit of the function is rounding.
        remaining = np.sum(posterior * function**2, axis=1)
        scale = np.where(remaining > 1e-10 * size, 1.0 / np.sqrt(np.maximum(remaining, 1e-300)), 0.0)
        basis.append(function * scale[:, None])
    return np.stack(basis[1:], axis=1)
