"""How precise estimates from drawn items will be, by formula: what a draw leaves to chance, on average over draws.

And what more past models would bring.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.bank.selections import Selection
from itembank.checks import check_fraction, check_whole
from itembank.estimation.predictions import LEAST_CHANCE
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
        return ratio * np.maximum(outcome_variances(bank), LEAST_CHANCE * (1.0 - LEAST_CHANCE))

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
    return min(t_reach(level, draw_freedom(counts)) * math.sqrt(variance), 0.5)  # scores are from 0 to 1


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


USUAL_AGREEMENT = 0.4
"""Correlation of two models' answers to the items of a scenario where past models cannot tell.

It is 0.28 on BFCL, 0.37 on MMLU-Pro, 0.48 on SWE-bench and 0.39 to 0.68 on the scenarios of Open LLM Leaderboard v1.
"""


def plan_models(
    bank: Bank,
    n_items: int,  # That a new model will answer, drawn at random
    *,
    more: tuple[int, ...] = (3, 10),  # Numbers of further models that run every item
    level: float = 0.95,  # Of the intervals
) -> pl.DataFrame:
    """Forecast intervals of the overall score with the past models there are, and with more of them.

    The mean answer of k past models to an item explains ``R_k = rho^2 k / (1 + (k - 1) rho)`` of the variance of a new
    model's answers within a scenario, where rho is the correlation of two models' answers (Spearman-Brown: the mean of
    k answers has reliability ``k rho / (1 + (k - 1) rho)``). Intervals with the models there are follow from the draw
    (`Prospect.at`); with more they narrow by ``sqrt((1 - R_more) / (1 - R_now))``. Without two past models that have
    common items rho is `USUAL_AGREEMENT`.
    Returns `n_models`, past models that answered every item, and `half_width` of the overall score, from 0 to 1.
    """
    check_whole("the number of items", n_items, least=1)
    check_fraction("level", level)
    # no two models answer all alike for sure
    rho = float(np.clip(np.nan_to_num(between_models(bank), nan=USUAL_AGREEMENT), 0.0, 0.99))
    n_models = bank.n_models + np.array([0, *more])
    counts = n_models.astype(np.float64)
    explained = rho**2 * counts / (1.0 + (counts - 1.0) * rho)
    now = Prospect.of(bank, bank.targets.overall_weights, level=level).at(min(n_items, bank.n_items)).half_width
    half = now * np.sqrt((1.0 - explained) / (1.0 - explained[0]))
    return pl.DataFrame({"n_models": n_models, "half_width": half})


def between_models(bank: Bank) -> float:
    """Mean correlation of two models' answers to the items of a scenario; NaN where no two models tell.

    Covariances and variances are pooled over pairs of models and scenarios before they are divided.
    """
    responses, index = bank.responses.responses, bank.targets.scenario_index
    centred = np.zeros(responses.shape)
    observed = ~np.isnan(responses)
    for scenario in range(bank.targets.n_scenarios):
        items = np.flatnonzero(index == scenario)
        values, is_there = responses[:, items], observed[:, items]
        n = np.maximum(is_there.sum(axis=1, keepdims=True), 1)
        mean = np.where(is_there, values, 0.0).sum(axis=1, keepdims=True) / n
        centred[:, items] = np.where(is_there, values - mean, 0.0)
    common = observed.astype(np.float64) @ observed.T.astype(np.float64)
    products = centred @ centred.T
    pairs = ~np.eye(len(common), dtype=bool) & (common > 0.0)
    variances = np.diag(products).sum() / max(np.diag(common).sum(), 1.0)
    if not pairs.any() or variances == 0.0:
        return np.nan
    return float(products[pairs].sum() / common[pairs].sum() / variances)
