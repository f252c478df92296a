"""Items drawn one after the other, each by what the answers so far say, and scores that are right at every stop.

Before draw m some items are closed (asked, or answered without being asked) and the others, O, are open. With mu what
the bank predicts of each answer from those so far, and p the probability by which the item i comes out of O,

``e_m = sum_closed w y + sum_O w mu + w_i (y_i - mu_i) / p_i``

is right on average over the draw, whatever the model is and however wrong mu: Des Raj's (1956) ordered estimator of
what predictions are off (for tests of models: Farquhar, Gal and Rainforth 2021; Kossen et al. 2021). The estimate is
the mean of all e_m with weights ``1 / v_m``, v_m the variance that is expected of e_m before it is drawn. Deviations
from the score, so weighed, are a martingale: choices of later items by earlier answers do no harm.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.norms import fitted_factor_model, implied_factor_model
from itembank.estimation.difference_estimator import Drawn, composite
from itembank.estimation.drawn_predictions import MODELS_A_FACTOR, factors_that_serve, truncated
from itembank.estimation.estimates import Scores
from itembank.estimation.observations import fewer_than_past
from itembank.estimation.regressions import reconciled_within
from itembank.irt.linear_gaussian import FactorModel, factor_posterior
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import binary_variance, normal_probability, t_reach, wilson_ends
from itembank.selection import selector_specs

FEWEST = 20
"""Draws before a rule of precision may end a session: earlier, the variance that happens to be small is by chance."""
PRIOR_DRAWS = 5.0
"""Draws for which the expected variance counts beside the observed one where that is smaller."""
USUAL_ITEMS = 60
"""Answers for which factors are counted."""
FLAT = selector_specs.Drawn().flat
"""Share of the probabilities that follows the weights alone."""
INITIAL_DRAWS = 10.0
"""First draws to which what they tell is compared, where intervals must cover at all stops: best from 20 to 200."""
MANY_RARER = 5.0
"""Outcomes of the rarer kind from which on intervals are symmetric."""
LEAST = 0.005
"""Predictions are at least so far from wrong and from right."""


class Draw(NamedTuple):
    """One draw, as things stood before it."""

    item: int  # Position
    probability: float  # p_i
    expected: float  # mu_i
    rest: FloatArray  # (n_targets,): ``sum_O w mu``
    open_weight: float  # ``sum_O w`` of the wanted score
    variances: FloatArray  # (n_targets,): ``sum_O w^2 s^2 (1 / p - 1)``, v_m
    squares: FloatArray  # (n_targets,): ``sum_O w^2 (1 / p - 1)``
    closed: IntArray  # (n_closed,): Positions of the items that were not open
    closed_expected: FloatArray  # (n_closed,): What was predicted of these


@dataclass(frozen=True, slots=True)
class DrawnDesign:
    """What draws rest on, made once for all models."""

    factors: FactorModel  # Few factors of n_items items
    weights: FloatArray  # (n_items, n_targets): Of scenarios, the overall score and perhaps a score of one's own
    wanted: int  # Column of the score that is wanted
    scenario_index: IntArray  # (n_items,)
    order: IntArray  # (n_items,): Positions by content, along which chance counts
    # (n_scenarios,): Mean square of past models' scenario scores about what is predicted from `n_tried` answers, put
    # right by what was off in other scenarios; NaN where too few past models say it
    apart: FloatArray
    left: FloatArray  # (n_scenarios,): Weight of the items that were predicted there
    n_tried: int
    squared: FloatArray = field(init=False)  # (n_items, n_targets): Squares of the weights
    first: FloatArray = field(init=False)  # (n_targets,): Variance that is expected of the first draw

    def __post_init__(self) -> None:
        """Find once what all sessions take."""
        object.__setattr__(self, "squared", self.weights**2)
        may_come, nothing = self.wanted_weights > 0.0, np.zeros(0)
        known = self.predicted(nothing.astype(np.int64), nothing)
        first = self.drawn(int(np.argmax(may_come)), may_come, np.zeros_like(may_come), *known)
        object.__setattr__(self, "first", first.variances)

    @classmethod
    def of_bank(cls, bank: Bank, weights: FloatArray, wanted: int) -> Self:
        """Count the factors that serve; whatever the budget, which may be raised when items were drawn already."""
        targets, order = bank.targets, bank.content_order.items
        counts = np.flatnonzero(weights[:, wanted] > 0.0)
        n_tried = max(1, min(USUAL_ITEMS, counts.size // 2))
        apart: FloatArray = np.full(targets.n_scenarios, np.nan)
        left: FloatArray = np.zeros(targets.n_scenarios)
        if not bank.calibration.is_fitted or bank.n_calibration_models < MODELS_A_FACTOR:
            factors = implied_factor_model(bank.calibration)
        else:
            factors = fitted_factor_model(bank)
            design = cls(truncated(factors, 1), weights, wanted, targets.scenario_index, order, apart, left, n_tried)
            # tried on what would be drawn if nothing were ever known of the model
            is_open = weights[:, wanted] > 0.0
            chances = design.chances(is_open, design.predicted(np.zeros(0, dtype=np.int64), np.zeros(0))[1])
            rng = np.random.default_rng(0)
            for _ in range(n_tried):
                is_open[draw(np.where(is_open, chances, 0.0), order, rng)] = False
            tried = np.setdiff1d(counts, np.flatnonzero(is_open))
            correction = weights[tried, wanted] / np.minimum(n_tried * chances[tried], 1.0)
            # a session asks for one attempt at an item, however often past models tried it
            n_factors, apart = factors_that_serve(bank, tried, correction, attempts=fewer_than_past(bank, 1.0))
            left = 1.0 - np.bincount(targets.scenario_index[tried], targets.weights[tried], left.size)
            factors = truncated(factors, max(n_factors, 1))
        return cls(factors, weights, wanted, targets.scenario_index, order, apart, left, n_tried)

    @property
    def wanted_weights(self) -> FloatArray:
        """Weights of the items in the score that is wanted, (n_items,)."""
        return self.weights[:, self.wanted]

    def predicted(self, items: IntArray, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict all answers from those to some items, and say how far each may be off, squared; both (n_items,).

        The latter is the mean of two variances, what the factors leave of past models' answers and that of a right or
        wrong answer, and what is not known of the factors.
        """
        model = self.factors
        factors, covariance = factor_posterior(model, items, answers[None, :])
        expected = np.clip(model.mean + model.loadings @ factors[0], LEAST, 1.0 - LEAST)
        unknown = np.einsum("iq,qr,ir->i", model.loadings, covariance, model.loadings)
        return expected, (model.noise + expected * (1.0 - expected)) / 2.0 + unknown

    def chances(self, is_open: BoolArray, variances: FloatArray) -> FloatArray:
        """Probability of each item to be drawn next, (n_items,): 0 where it is not open."""
        weights = np.zeros(variances.shape)
        weights[is_open] = self.wanted_weights[is_open]
        aimed = weights * np.sqrt(variances)
        result: FloatArray = (1.0 - FLAT) * aimed / aimed.sum() + FLAT * weights / weights.sum()
        return result

    def drawn(
        self, item: int, is_open: BoolArray, is_closed: BoolArray, expected: FloatArray, variances: FloatArray
    ) -> Draw:
        """Keep what an estimate needs of a draw."""
        chances, closed = self.chances(is_open, variances), np.flatnonzero(is_closed)
        odds = np.divide(1.0 - chances, chances, out=np.zeros(chances.shape), where=chances > 0.0)
        variance, square = np.stack([odds * variances, odds]) @ self.squared  # of closed items the odds are 0
        rest, open_weight = (
            np.where(is_closed, 0.0, expected) @ self.weights,
            float(self.wanted_weights[~is_closed].sum()),
        )
        of_draw = (float(chances[item]), float(expected[item]), rest, open_weight)
        return Draw(item, *of_draw, variance, square, closed, expected[closed])


def draw(chances: FloatArray, order: IntArray, rng: np.random.Generator) -> int:
    """Draw one item with these probabilities, (n_items,), along an order of content."""
    order = order[chances[order] > 0.0]
    along = np.cumsum(chances[order])
    return int(order[min(int(np.searchsorted(along, rng.random() * along[-1], side="right")), order.size - 1)])


def scores_of_draws(
    design: DrawnDesign,
    draws: Sequence[Draw],  # In their order
    answers: FloatArray,  # (n_items,): NaN where there is none
    *,
    level: float,
    at_any_stop: bool = False,  # Whether intervals must cover at all stops together
) -> Scores:
    """Estimate the scores of one model on all targets, (1, n_targets) each, cut to what its answers leave possible.

    The wanted score is the weighted mean of the ``e_m``. Its variance is that of the ``e_m`` so weighed, or if it is
    larger a mean of it and the expected one: a session that stops when its interval is narrow stops where the observed
    variance is small by chance. It never vanishes where nearly all answers are alike, and near 0 and 1 the
    interval has Wilson's form. Scenario scores are composites (`difference_estimator.composite`). A draw without answer
    counts as missing at random.
    """
    weights, wanted, has_answer = design.weights, design.wanted, ~np.isnan(answers)
    answered, unseen = np.flatnonzero(has_answer), np.flatnonzero(~has_answer)
    known = answers[answered] @ weights[answered]
    left = np.where(weights[unseen].any(axis=0), np.maximum(1.0 - weights[answered].sum(axis=0), 0.0), 0.0)
    predicted, off = design.predicted(answered, answers[answered])
    plain = known + predicted[unseen] @ weights[unseen]
    asked = np.unique(np.concatenate([[one.item for one in draws], *(one.closed for one in draws)]).astype(np.int64))
    lost = asked[~has_answer[asked]]
    draws = [one for one in draws if has_answer[one.item]]
    if not draws:
        return Scores(*(one[None, :] for one in (plain, left / 2.0, known, known + left)))
    single, variances, squares = _single_estimates(design, draws, answers)
    shares = 1.0 / np.maximum(variances[:, wanted], 1e-9 * variances[0, wanted] + 1e-30)
    shares /= shares.sum()
    direct, expected, reference = shares @ single, shares**2 @ variances, shares**2 @ squares
    n_effective = 1.0 / float(shares @ shares)
    freedom = max(n_effective - 1.0, 1.0)
    observed = float(shares**2 @ (single[:, wanted] - direct[wanted]) ** 2) * n_effective / max(n_effective - 1.0, 0.5)
    mixed = (freedom * observed + PRIOR_DRAWS * float(expected[wanted])) / (freedom + PRIOR_DRAWS)

    items = np.array([one.item for one in draws])
    belongs = weights[items] > 0.0
    n_right, n_drawn = answers[items] @ belongs, belongs.sum(axis=0).astype(np.float64)
    rarer = float(np.minimum(n_right, n_drawn - n_right)[wanted])
    # few outcomes of the rarer kind do not show that predictions are right: beside them counts, like one more, the
    # variance if predictions explained nothing
    informative, unit = min(rarer, freedom), float(binary_variance(direct[wanted], len(draws)))
    variance = (informative * max(observed, mixed) + unit * float(reference[wanted])) / (informative + 1.0)

    values, squared = _all_targets(
        design, (direct, plain, known, left), expected, variance=variance, answers=answers, n_draws=len(draws)
    )
    # answers that were lost are predicted
    squared = np.where(left > 0.0, squared + off[lost] @ design.squared[lost], 0.0)
    if at_any_stop:
        beyond = reach_at_any_stop(level, float(design.first[wanted]) / max(variance, 1e-30))
        level = min(2.0 * normal_probability(beyond) - 1.0, 1.0 - 1e-12)  # of Student's t as of a normal
    reach = float(t_reach(level, freedom))
    half, near = reach * np.sqrt(squared), _near_ends(values, reach**2 * squared, n_right, n_drawn)
    share = min(max(1.0 - rarer / MANY_RARER, 0.0), 1.0)
    ends = zip(near, (values - half, values + half), strict=True)
    low, high = (np.clip(share * one + (1.0 - share) * two, known, known + left) for one, two in ends)
    values = np.clip(values, known, known + left)
    return Scores(values, np.sqrt(squared), np.fmin(low, values), np.fmax(high, values))


def reach_at_any_stop(level: float, n_first: float) -> float:
    """Return how many standard errors an interval reaches to either side that covers at all stops together.

    ``z^2 = (1 + 1 / r) log((1 + r) / (1 - level)^2)``, r the information in draws as the first (`n_first`), over ten:
    the boundary that a sum of independent normal numbers ever crosses with probability ``1 - level`` (Robbins 1970).
    """
    r = max(n_first / INITIAL_DRAWS, 1e-9)
    return float(np.sqrt((1.0 + 1.0 / r) * np.log((1.0 + r) / (1.0 - level) ** 2)))


def certainty_at_any_stop(distance: float, n_first: float) -> float:
    """Return how certain it is, at all stops together, on which side of a value so many standard errors away it is."""
    r = max(n_first / INITIAL_DRAWS, 1e-9)
    return float(1.0 - 0.5 * min(1.0, np.sqrt(1.0 + r) * np.exp(-0.5 * distance**2 / (1.0 + 1.0 / r))))


def _single_estimates(
    design: DrawnDesign, draws: Sequence[Draw], answers: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate all targets from each draw by itself, and how far each may be off: three times (n_draws, n_targets).

    Of closed items that nobody answered the prediction counts, and as they are no part of what was drawn from, what
    predictions are off on the open ones counts for them as well.
    """
    items, chances, expected = (np.array([one[part] for one in draws]) for part in range(3))
    rest, variances, squares = (np.stack([one[part] for one in draws]) for part in (3, 5, 6))
    rows = np.repeat(np.arange(items.size), [one.closed.size for one in draws])
    closed, filled = (np.concatenate([one[part] for one in draws]) for part in (7, 8))
    is_lost = np.isnan(answers[closed])
    distinct, column = np.unique(closed, return_inverse=True)
    table = np.zeros((items.size, distinct.size))
    table[rows, column] = np.where(is_lost, filled, answers[closed])
    lost = np.bincount(rows, weights=is_lost * design.weights[closed, design.wanted], minlength=items.size)
    scale = 1.0 + lost / np.array([one.open_weight for one in draws])
    off = scale * (answers[items] - expected) / chances
    single = table @ design.weights[distinct] + rest + off[:, None] * design.weights[items]
    return single, variances * scale[:, None] ** 2, squares * scale[:, None] ** 2


def _all_targets(
    design: DrawnDesign,
    about: tuple[FloatArray, ...],  # Direct, predicted, known, weight left: (n_targets,) each
    expected: FloatArray,  # (n_targets,): Variance of the direct estimates, as far as predictions can say
    *,
    variance: float,  # Of the direct estimate of the wanted score
    answers: FloatArray,  # (n_items,): NaN where there is none
    n_draws: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the estimates of all targets and their variances, (1, n_targets) each."""
    direct, plain, known, left = about
    weights, wanted, of_wanted, n = design.weights, design.wanted, design.wanted_weights, design.apart.size
    of_scenarios = np.bincount(design.scenario_index, weights=of_wanted, minlength=n)
    # a scenario of which items cannot come has no estimate of its own
    may_come = np.array([not np.any((weights[:, one] > 0.0) & (of_wanted == 0.0)) for one in range(n)])
    of_scenarios *= may_come
    of_draw = np.where(may_come & (left[:n] > 0.0), expected[:n] * variance / max(float(expected[wanted]), 1e-30), 0.0)
    # what predictions are off in the other scenarios says nothing of the chance in a scenario's own draws
    moved, open_weight = of_scenarios * (direct - plain)[:n], of_scenarios * left[:n]
    others = open_weight.sum() - open_weight
    off = np.divide(moved.sum() - moved, others, out=np.zeros(n), where=others > 1e-12)
    apart = design.apart * max(design.n_tried / n_draws, 1.0)
    synthetic = plain[:n] + left[:n] * off
    by_draw = variance * (left[None, :n] / max(float(left[wanted]), 1e-12)) ** 2
    given, beside = _answered(design, answers), {"left": design.left, "by_draw": by_draw}
    scenarios, squares = composite(synthetic[None], direct[None, :n], of_draw[None], apart, given, **beside)
    values, variances = direct.copy(), np.full(direct.shape, variance)
    is_wanted = np.array([np.allclose(weights[:, one], of_wanted) for one in range(n)])
    values[:n], variances[:n] = np.where(is_wanted, direct[:n], scenarios[0]), np.where(is_wanted, variance, squares[0])
    shares = np.bincount(design.scenario_index, weights=weights[:, n], minlength=n).astype(np.float64)
    least, most = known[: n + 1], (known + left)[: n + 1]
    if wanted == n:
        if not is_wanted.all():
            values[:n] = reconciled_within(values[None, : n + 1], variances[None, : n + 1], shares, least, most)[0, :n]
    else:  # nothing is known of how errors of scenarios go together: as if they were one
        values[n] = shares @ np.clip(values[:n], least[:n], most[:n])
        variances[n] = float(shares @ np.sqrt(variances[:n])) ** 2
    return values[None], variances[None]


def _answered(design: DrawnDesign, answers: FloatArray) -> Drawn:
    """Return what was answered, whether drawn or not, with the weights that items have in their scenarios."""
    items = np.flatnonzero(~np.isnan(answers))
    given, index = answers[None, items], design.scenario_index[items]
    certain = np.ones(given.shape)
    return Drawn(given, certain > 0.0, design.weights[items, index], certain, index, design.apart.size)


def _near_ends(
    values: FloatArray,  # (1, n_targets)
    reached: FloatArray,  # (1, n_targets): Variances times the squared quantile
    n_right: FloatArray,  # (n_targets,): Of the answers to drawn items
    n_drawn: FloatArray,  # (n_targets,)
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals in Wilson's form, which lean inwards near 0 and 1, (1, n_targets) each.

    At the size of a simple random sample of the same variance (Kott and Carr 1997; Korn and Graubard 1998). If every
    answer was right an interval reaches one; likewise zero.
    """
    mean, rarer = np.clip(values, 0.0, 1.0), np.minimum(n_right, n_drawn - n_right)
    unit = (rarer * mean * (1.0 - mean) + binary_variance(mean, n_drawn)) / (rarer + 1.0)
    low, high = wilson_ends(values, reached / unit)
    return np.where(n_right > 0.0, low, 0.0), np.where(n_right < n_drawn, high, 1.0)
