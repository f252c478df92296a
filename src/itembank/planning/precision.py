"""How precise estimates from drawn items will be, by formula: what a draw leaves to chance, on average over draws."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.bank.selections import Selection
from itembank.estimation.drawn_predictions import LEAST_CHANCE
from itembank.estimation.response_summary import score_basis
from itembank.irt.families import expected_curve
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import normal_quantile, normal_reach, t_quantile, t_reach
from itembank.selection.drawn import inclusion_probabilities, shares_of_draw
from itembank.selection.selector_specs import Drawn


def answer_variances(bank: Bank) -> FloatArray:
    """Return the expected square of how far answers of models like past ones are from predictions, (n_items,).

    ``r E[p (1 - p)]`` over the prior of ability, with r the `noise_ratio` of the scenario: what is left when a model's
    ability is known. No answer counts as surer than `estimate` takes it to be.
    """

    def find() -> FloatArray:
        ratio = np.minimum(score_basis(bank).noise_ratio, 1.0)[bank.targets.scenario_index]
        result: FloatArray = ratio * np.maximum(outcome_variances(bank), LEAST_CHANCE * (1.0 - LEAST_CHANCE))
        return result

    return bank.cache.remember("answer variances", find)


def outcome_variances(bank: Bank) -> FloatArray:
    """Return ``E[p (1 - p)]`` of each item over the prior of ability, (n_items,)."""
    parameters, prior = bank.parameters, bank.calibration.prior
    spread = np.linalg.norm(parameters.loadings @ np.linalg.cholesky(prior.covariance), axis=1)
    return expected_curve(parameters, parameters.loadings @ prior.mean + parameters.intercept, spread)[2]


def draw_freedom(counts: FloatArray, expected: FloatArray | float = 1.0) -> float:
    """Degrees of freedom of a draw, ``(sum c)^2 / sum c^2 - 1``, at least one, as `estimate` counts them.

    ``c_i = (1 - pi_i) (w_i / pi_i)^2``, (n_items,), each as often as its item is `expected` in the sample.
    """
    total, squares = float(np.sum(expected * counts)), float(np.sum(expected * counts**2))
    return max(total**2 / squares - 1.0, 1.0) if squares > 0.0 else 1.0


def expected_half_width(bank: Bank, selection: Selection, *, level: float) -> float:
    """Half of the interval of the overall score that these drawn items will typically give; NaN of items chosen else.

    ``t sqrt(sum_S (1 - pi) (w / pi)^2 s^2)``, s^2 by `answer_variances`: what the draw itself leaves to chance.
    """
    probabilities = selection.inclusion_probabilities
    if probabilities is None or selection.n_items < 2:
        return np.nan
    items = bank.responses.item_indices(selection.item_ids)
    counts = (1.0 - probabilities) * (bank.targets.overall_weights[items] / probabilities) ** 2
    variance = float(np.sum(counts * answer_variances(bank)[items]))
    return t_reach(level, draw_freedom(counts)) * math.sqrt(variance)


@dataclass(frozen=True, slots=True)
class Precision:
    """What to expect of scores from so many drawn items.

    Attributes
    ----------
    n_items : int
    half_width : float
        Of the interval of one model's score, for a model like past ones.
    detectable_difference : float
        Smallest true difference of two models on the same items that shows as significant with the power of the plan.
    costs : mapping of unit to cost
        Expected cost of running a model on the items, where the bank knows costs.
    """

    n_items: int
    half_width: float
    detectable_difference: float
    costs: dict[str, float]


@dataclass(frozen=True, slots=True)
class Prospect:
    """What precision follows from, for one score and any number of items that `Drawn` draws by default."""

    shares: FloatArray  # (n_items,): As `shares_of_draw` gives them
    scenario_index: IntArray  # (n_items,)
    overall_weights: FloatArray  # (n_items,)
    weights: FloatArray  # (n_items,): w: of each item in the score
    variances: FloatArray  # (n_items,): s^2: as `answer_variances` gives them
    costs: dict[str, FloatArray]  # (n_items,) by unit
    chance: float  # Variance of the score of one run about the one that is meant
    level: float
    power: float

    @classmethod
    def of(
        cls, bank: Bank, weights: FloatArray, *, chance: float = 0.0, level: float = 0.95, power: float = 0.8
    ) -> Self:
        """Take from a bank what a score with these weights of items, (n_items,), needs."""
        targets = bank.targets
        return cls(
            shares_of_draw(bank, Drawn()),
            targets.scenario_index,
            targets.overall_weights,
            weights,
            answer_variances(bank),
            costs_of_items(bank.responses),
            chance,
            level,
            power,
        )

    @property
    def n_most(self) -> int:
        """Number of items that can be drawn: those that count in the score."""
        return int(np.count_nonzero(self.shares))

    def at(self, n_items: int) -> Precision:
        """Say what to expect of so many items.

        The variance of `difference_values` is ``sum_S (1 - pi) (w / pi)^2 s^2`` over a sample, so ``V = sum (1 - pi)
        w^2 s^2 / pi`` over all items on average. A half-width is ``t sqrt(V)``. Of two models the residuals count as
        independent, so that the detectable difference is ``(t + t_power) sqrt(2 V)``: a little too large where both
        fail the same items by surprise.
        """
        certain = np.zeros(self.shares.size, dtype=bool)
        pi = inclusion_probabilities(self.shares, self.scenario_index, n_items, certain=certain)
        # what is certain, or weighs nothing as it does not count, leaves nothing to chance
        out, divisor = np.where(pi < 1.0 - 1e-9, 1.0 - pi, 0.0), np.where(pi > 0.0, pi, 1.0)
        variance = float(np.sum(out * self.weights**2 * self.variances / divisor))
        freedom = draw_freedom(out * (self.overall_weights / divisor) ** 2, pi)
        # the chance of a run is normal, and no number of items takes it away; two runs have it twice
        reaches = t_reach(self.level, freedom), t_quantile(self.power, freedom)
        normal = normal_reach(self.level), normal_quantile(self.power)
        half = math.hypot(reaches[0] * math.sqrt(variance), normal[0] * math.sqrt(self.chance))
        apart = math.hypot(sum(reaches) * math.sqrt(2.0 * variance), sum(normal) * math.sqrt(2.0 * self.chance))
        costs = {unit: float(np.sum(pi * cost)) for unit, cost in self.costs.items()}
        return Precision(n_items, min(half, 0.5), min(apart, 1.0), costs)  # scores are from 0 to 1
