"""Standard errors of marginal ML from the observed information, with ability uncertainty in them.

The information matrix is never formed at scale. It is a block-diagonal matrix, plus at most one rank-one term (a
common slope), minus the information lost to unknown abilities, U U' (`missing`). Each item's block of the inverse then
needs one factorisation of the size of the number of models, by the Woodbury identity.

The information about items that is lost because abilities are not known, in factored form.

Louis (1982): observed information = complete-data information B - sum_l Cov_l(S_l), with S_l the score of
all items by model l and Cov_l over the posterior of its ability. B has one block an item, but an unknown
ability ties all items together. Each covariance is expanded in functions phi_r that are orthonormal under
the posterior, ``Cov_l(S_l) = sum_r E_l[S_l phi_r] E_l[S_l phi_r]'``: linear functions of ability (the
delta method) nearly suffice when the posterior is narrow, as scores are smooth in ability.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml.em import Problem, Step, item_derivatives, prior_terms
from itembank.calibration.marginal_ml.posterior import AbilityGrid, posterior_weights, trials
from itembank.irt.logistic import asymptotes_of, score_terms
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import sigmoid_pair


class Core(NamedTuple):
    """Inverse of the information without loss: block diagonal plus ``weight v v'``."""

    blocks: FloatArray  # (n_items, 2, 2)
    vector: FloatArray  # (n_items, 2)
    weight: float


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
            result -= self._means(sigmoid_pair(x)[0])
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


def item_covariances(problem: Problem, step: Step, *, degree: int | None = None) -> tuple[FloatArray, str]:
    """Covariance of each item's parameters, abilities and all other items being uncertain as well.

    Parameters
    ----------
    problem, step
        The solution of marginal ML.
    degree : int or None
        Degree of the polynomials in the lost information; 0 leaves the loss out. None: what can be afforded.

    Returns
    -------
    covariance : (n_items, 2, 2)
        Of each item's (loading, intercept).
    how : str
        How it was found.
    """
    items = step.items
    core = _core(problem, step)
    if degree is None:
        degree = affordable_degree(len(problem.data.responses), items.size)
    covariance = core.blocks + core.weight * _outer(core.vector, core.vector)
    how = "item by item, with abilities taken as known: too small"
    if degree > 0:
        lost = lost_information(problem.data, items, problem.grid, degree=degree)
        solver = _by_parameters if items.size <= lost.n_factors else _by_models
        corrected = solver(core, lost)
        if corrected is not None:
            covariance, how = corrected, f"observed information, polynomials of degree {degree}"
    return covariance, how


def affordable_degree(n_models: int, n_parameters: int) -> int:
    """Highest degree of polynomials whose cost is in bounds."""
    # Multiplications to spend on degrees above 1, and on 1: at 2e10 a second half a minute for the latter.
    ample_work, largest_work = 6e9, 6e11
    for degree in (12, 6, 3, 2, 1):
        n_factors = n_models * degree
        work = n_parameters * n_factors * min(n_parameters, n_factors)
        if work <= (ample_work if degree > 1 else largest_work):
            return degree
    return 0


def _core(problem: Problem, step: Step) -> Core:
    """Invert the complete-data information of each item plus that of its prior, positive definite."""
    items = step.items
    derivatives = item_derivatives(problem.data, items, step.posterior, problem.grid, observed=True)
    information = derivatives.precision
    if problem.prior is not None:
        common = problem.has_common_slope
        information = information + prior_terms(items, problem.prior, has_common_slope=common).precision
    if problem.has_common_slope:
        intercept_information, cross = information[:, 1, 1], information[:, 0, 1]
        schur = float(np.sum(information[:, 0, 0]) - np.sum(cross**2 / intercept_information))
        blocks = np.zeros_like(information)
        blocks[:, 1, 1] = 1.0 / intercept_information
        vector = np.column_stack([np.ones(len(intercept_information)), -cross / intercept_information])
        return Core(blocks, vector, 1.0 / schur)
    # A floor of an item's information, so that an item without any has a huge standard error, not none.
    values, vectors = np.linalg.eigh(information)
    floored = (vectors * np.maximum(values, 1e-8)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return Core(np.linalg.inv(floored), np.zeros(information.shape[:2]), 0.0)


def _by_parameters(core: Core, lost: LostInformation) -> FloatArray | None:
    """Blocks of ``(I - C W)^-1 C`` with C the core and ``W = U U'``, both of the size of all parameters."""
    n_items, size, _ = core.blocks.shape
    dense = core.weight * np.outer(core.vector, core.vector)
    four = dense.reshape(n_items, size, n_items, size)
    index = np.arange(n_items)
    four[index, :, index, :] += core.blocks
    factors = np.concatenate([lost.factors(block) for block in _blocks(core, lost)])
    flat = factors.reshape(n_items * size, -1)
    inverse = np.linalg.solve(np.eye(n_items * size) - dense @ (flat @ flat.T), dense)
    result: FloatArray = inverse.reshape(n_items, size, n_items, size)[index, :, index, :]
    return result if np.all(np.einsum("ijj->ij", result) >= 0.0) else None


def _by_models(core: Core, lost: LostInformation) -> FloatArray | None:
    """Blocks of ``C + C U (I - U' C U)^-1 U' C``; the middle matrix has the size of the models."""
    gram, along = np.zeros((lost.n_factors, lost.n_factors)), np.zeros(lost.n_factors)
    for block in _blocks(core, lost):
        factors = lost.factors(block)
        weighted = core.blocks[block] @ factors
        flat = factors.reshape(-1, lost.n_factors)
        gram += flat.T @ weighted.reshape(-1, lost.n_factors)
        along += core.vector[block].ravel() @ flat
    # Not positive definite where the polynomials find more information lost than there is: then the caller keeps
    # the covariance without the loss.
    middle = np.eye(lost.n_factors) - gram - core.weight * np.outer(along, along)
    try:
        lower = np.linalg.cholesky(0.5 * (middle + middle.T))
    except np.linalg.LinAlgError:
        return None
    result = core.blocks + core.weight * _outer(core.vector, core.vector)
    for block in _blocks(core, lost):
        weighted = core.blocks[block] @ lost.factors(block)
        weighted += core.weight * core.vector[block][:, :, None] * along
        shape = weighted.shape
        solved = solve_triangular(lower, weighted.reshape(-1, lost.n_factors).T, lower=True, check_finite=False)
        solved = solved.T.reshape(shape)
        result[block] += solved @ solved.transpose(0, 2, 1)
    return result


def _blocks(core: Core, lost: LostInformation) -> list[slice]:
    """Slices of items whose factors take about 32 MiB."""
    n_items, size, _ = core.blocks.shape
    step = int(np.clip((1 << 22) // (lost.n_factors * size), 1, 512))
    return [slice(first, min(first + step, n_items)) for first in range(0, n_items, step)]


def _outer(left: FloatArray, right: FloatArray) -> FloatArray:
    """Outer product of each item's vectors, (n_items, 2, 2)."""
    return left[:, :, None] * right[:, None, :]


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
