"""What the answers say of each item: its curve and key, classical statistics, the probability of a fault; kernels.

Every item has a logistic curve in ability, ``P = 1 / (1 + exp(-(a theta + b)))``, whose slope may be negative. The
curves of all items are drawn from one bivariate normal distribution of (a, b), which is fitted to them (empirical
Bayes), and integrals over it are sums over a grid. Three explanations of an item's answers are then compared by their
marginal likelihoods: the key is right (P); some other answer is (``c (1 - P)``: a model that knows the true answer is
called wrong, and one that errs hits the key with probability c); answers have nothing to do with ability (a = 0).
Responses between 0 and 1 enter as that many right answers of one. A logistic regression on this evidence gives the
probability of a fault.
"""

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.errors import DataError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import rounded
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class Panel:
    """Answers, and the models' abilities."""

    values: FloatArray  # (n_models, n_items): Responses in [0, 1], and where there is one
    observed: BoolArray  # (n_models, n_items)
    scenario: IntArray  # (n_items,): Number, from 0, of each item's scenario
    # (n_items,): Number, from 0, of each item's group: its subscenario, or where that is small its scenario.
    group: IntArray
    scores: FloatArray  # (n_models,): Mean response over all items, as far as a model's own items tell
    overall: FloatArray  # (n_models,): Ability in all items, with mean 0 and standard deviation 1
    # (n_models, n_groups): Ability in each group: by its own items, drawn to the ability in the scenario, which is
    # drawn to the overall one.
    theta: FloatArray


SLOPES = np.arange(-1.5, 4.01, 0.25)
INTERCEPTS = np.arange(-7.0, 7.01, 0.5)
NEAREST = 1e-4
"""Probabilities lie so far from 0 and 1 at least: nobody is so good that he never slips."""
HIT_SHARES = (1.0, 1.0 / 3.0)
"""Chance that a model which errs hits the wrong key: of two options, and of one wrong option that attracts many."""
BLOCK = 4096
"""Items whose grids are in memory at once: 22 MB each."""


Curves: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""Log-probabilities of right, wrong and not hit for the abilities in one group, (n_models, n_grid) each."""


def curves_at(theta: FloatArray) -> Curves:
    """Compute curves at abilities (n_models,)."""
    slope, intercept = _grid()
    p = np.clip(expit(theta[:, None] * slope + intercept), NEAREST, 1.0 - NEAREST)
    return np.log(p), np.log1p(-p), np.log1p(-HIT_SHARES[1] * (1.0 - p))


def item_evidence(panel: Panel) -> pl.DataFrame:
    """Weigh the key of each item against the abilities of the models.

    Returns a table of one row an item: `suspicion`, how much lower the log-odds of a model half a standard deviation
    above the 95th percentile of ability are than on average in the item's group, large where the best fail on an item
    among easy ones; `key_ratio`, log-likelihood ratio: another answer is the right one, against the key; `noise_ratio`,
    the same: answers have nothing to do with ability; `slope` and `slope_error`, posterior mean and standard deviation,
    in log-odds a standard deviation of ability, of any sign; `top_logit`, log-odds that a model at that percentile is
    right; `intercept`, posterior mean of the log-odds at mean ability.
    """
    curves = [curves_at(theta) for theta in panel.theta.T]
    # the distribution of curves is learnt from two thousand items, evenly spread
    sample = np.unique(np.linspace(0, panel.group.size - 1, 2000).astype(np.int64))
    likelihood = np.empty((sample.size, _grid()[0].size))
    for number, curve in enumerate(curves):
        mine = panel.group[sample] == number
        items = sample[mine]
        likelihood[mine] = _log_likelihoods(curve, panel.values[:, items], panel.observed[:, items])[0]
    log_weights = _log_weights(likelihood)
    found = np.empty((7, panel.group.size))
    top = np.quantile(panel.theta, 0.95, axis=0)  # ability of a top model in each group
    for number, curve in enumerate(curves):
        items = np.flatnonzero(panel.group == number)
        for start in range(0, items.size, BLOCK):
            block = items[start : start + BLOCK]
            found[:, block] = _weighed(
                curve, panel.values[:, block], panel.observed[:, block], log_weights, float(top[number])
            )
    slope, error, intercept, top_logit, beyond, key_ratio, noise_ratio = found
    # the mean of each item's group, drawn to that of all items where the group is small: of ten items both count alike
    means = (np.bincount(panel.group, beyond) + 10.0 * beyond.mean()) / (np.bincount(panel.group) + 10.0)
    return pl.DataFrame(
        {
            "suspicion": means[panel.group] - beyond,
            "key_ratio": key_ratio,
            "noise_ratio": noise_ratio,
            "slope": slope,
            "slope_error": error,
            "top_logit": top_logit,
            "intercept": intercept,
        }
    )


def _grid() -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of each point of the grid, each (n_grid,)."""
    slope, intercept = np.meshgrid(SLOPES, INTERCEPTS, indexing="ij")
    return slope.ravel(), intercept.ravel()


def _log_likelihoods(curve: Curves, values: FloatArray, observed: BoolArray) -> tuple[FloatArray, list[FloatArray]]:
    """Log-likelihoods (n_items, n_grid) if the key is right, and for each of `HIT_SHARES` if it is not."""
    is_right, is_wrong, not_hit = curve
    right = np.where(observed, values, 0.0).T
    as_keyed, swapped = right @ (is_right - is_wrong), right @ (is_wrong - is_right)
    hit = right @ (is_wrong - not_hit) + np.log(HIT_SHARES[1]) * right.sum(axis=1, keepdims=True)
    known = None if observed.all() else observed.T.astype(np.float64)
    all_wrong = [log_p.sum(axis=0) if known is None else known @ log_p for log_p in (is_wrong, is_right, not_hit)]
    return as_keyed + all_wrong[0], [swapped + all_wrong[1], hit + all_wrong[2]]


def _log_weights(likelihood: FloatArray) -> FloatArray:
    """Fit a bivariate normal distribution of (slope, intercept) by EM; log-weights of the grid (n_grid,)."""
    points = np.stack(_grid(), axis=1)
    start_mean, start_covariance = np.array([1.0, 0.0]), np.diag([0.5, 4.0])  # of slope and intercept
    start_weight = 10.0  # items that these count as
    mean, covariance = start_mean, start_covariance
    relative = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    n_items = relative.shape[0]
    for _ in range(30):
        weights = np.exp(_normal(points, mean, covariance))
        # the posterior of every item, summed over items, takes two products and no matrix of its own
        counts = weights * ((1.0 / (relative @ weights)) @ relative)
        mean = (counts @ points + start_weight * start_mean) / (n_items + start_weight)
        centred = points - mean
        scatter = (centred * counts[:, None]).T @ centred + start_weight * start_covariance
        covariance = scatter / (n_items + start_weight)
    return _normal(points, mean, covariance)


def _normal(points: FloatArray, mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """Log of a normal density at points (n_grid, 2), normed to a sum of 1 over them."""
    centred = points - mean
    log_density = -0.5 * np.sum(centred @ np.linalg.inv(covariance) * centred, axis=1)
    return np.asarray(log_density - log_density.max() - np.log(np.exp(log_density - log_density.max()).sum()))


def _weighed(
    curve: Curves, values: FloatArray, observed: BoolArray, log_weights: FloatArray, top: float
) -> tuple[FloatArray, ...]:
    """Return the seven rows of evidence on a block of items of one group, each (n_items,)."""
    slope, intercept = _grid()
    as_keyed, others = _log_likelihoods(curve, values, observed)
    is_flat = slope == 0.0
    flat = _log_mean(as_keyed[:, is_flat], log_weights[is_flat]) - np.log(np.exp(log_weights[is_flat]).sum())
    other = np.logaddexp(*(_log_mean(one, log_weights) for one in others)) - np.log(len(HIT_SHARES))
    as_keyed += log_weights
    most = as_keyed.max(axis=1, keepdims=True)
    posterior = np.exp(as_keyed - most, out=as_keyed)
    sums = posterior @ np.stack([np.ones_like(slope), slope, slope**2, intercept], axis=1)
    keyed = most[:, 0] + np.log(sums[:, 0])
    mean_slope, square, mean_intercept = (sums[:, 1:] / sums[:, :1]).T
    error = np.sqrt(np.maximum(square - mean_slope**2, 0.0))
    at_top = mean_slope * top + mean_intercept
    beyond = at_top + 0.5 * mean_slope  # half a standard deviation further: models that come next
    return mean_slope, error, mean_intercept, at_top, beyond, other - keyed, flat - keyed


def _log_mean(log_likelihood: FloatArray, log_weights: FloatArray) -> FloatArray:
    """Logarithm of the likelihood averaged over the grid, (n_items,)."""
    most = log_likelihood.max(axis=1, keepdims=True)
    result: FloatArray = most[:, 0] + np.log(np.exp(log_likelihood - most) @ np.exp(log_weights))
    return result


def item_statistics(panel: Panel) -> pl.DataFrame:
    """Compute what items look like.

    Returns a table of one row an item: `n_models` that answered; the `mean` response, null where no model did;
    `item_rest`, its correlation with the mean response to the other items of the group, 0 where all answered alike; of
    the best models that answered, three at most: how many (`n_best`), and the sum of their responses (`n_best_right`);
    `worth`, what the ranking of models would lose without the item, in average items: 1 as much as without an average
    item, 0 nothing, below 0 the ranking would gain; null where models differ no more than chance explains, or fewer
    than half of the answers are there.
    """
    answers = np.where(panel.observed, panel.values, 0.0)
    n_models = panel.observed.sum(axis=0)
    mean = np.divide(answers.sum(axis=0), n_models, out=np.full(n_models.size, np.nan), where=n_models > 0)
    item_rest = np.zeros(n_models.size)
    n_best, n_best_right = np.zeros(n_models.size, dtype=np.int64), np.zeros(n_models.size)
    for number in range(panel.theta.shape[1]):
        items = np.flatnonzero(panel.group == number)
        item_rest[items] = item_rest_correlations(answers[:, items], panel.observed[:, items])
        best = best_models(panel.theta[:, number], panel.observed[:, items])
        n_best[items], n_best_right[items] = best.sum(axis=0), np.sum(best * answers[:, items], axis=0)
    columns = {
        "n_models": n_models,
        "mean": mean,
        "item_rest": item_rest,
        "n_best": n_best,
        "n_best_right": n_best_right,
        "worth": item_worth(answers, panel.observed),
    }
    return pl.DataFrame(columns, nan_to_null=True)


def item_rest_correlations(
    answers: FloatArray,  # (n_models, n_items): Responses, 0 where there is none; and where there is one
    observed: BoolArray,  # (n_models, n_items)
) -> FloatArray:
    """Correlate each item with the mean of a model's other answers, over the models that answered it, (n_items,)."""
    known = observed.astype(np.float64)
    total, n_other = answers.sum(axis=1), np.maximum(known.sum(axis=1) - 1.0, 1.0)
    square = answers**2
    # The rest of model i at item j is (total_i - y_ij) / n_other_i; its sums over models take no matrix of its own.
    n = np.maximum(known.sum(axis=0), 1.0)
    sum_y, sum_yy = answers.sum(axis=0), square.sum(axis=0)
    sum_r = (total / n_other) @ known - (1.0 / n_other) @ answers
    sum_rr = (total**2 / n_other**2) @ known + (1.0 / n_other**2) @ square - (2.0 * total / n_other**2) @ answers
    sum_yr = (total / n_other) @ answers - (1.0 / n_other) @ square
    covariance = sum_yr - sum_y * sum_r / n
    spread = np.maximum(sum_yy - sum_y**2 / n, 0.0) * np.maximum(sum_rr - sum_r**2 / n, 0.0)
    return np.asarray(np.divide(covariance, np.sqrt(spread), out=np.zeros(n.size), where=spread > 1e-12))


def best_models(theta: FloatArray, observed: BoolArray) -> BoolArray:
    """Mark the three best models among those that answered each item, (n_models, n_items); of equals the first."""
    order = np.argsort(-rounded(theta), kind="stable")
    place = np.cumsum(observed[order], axis=0, dtype=np.int32)
    result = np.empty_like(observed)
    result[order] = observed[order] & (place <= 3)
    return result


def item_worth(answers: FloatArray, observed: BoolArray) -> FloatArray:
    """Compute what the signal-to-noise ratio of the total score loses without each item, in average items.

    With Cronbach's alpha, ``alpha / (1 - alpha)`` grows in proportion to the number of like items (Spearman-Brown), so
    its loss counts items. Alpha without an item follows from the item's variance and its covariance with the total.
    """
    n_answers = np.maximum(observed.sum(axis=1), 1)
    n_items = answers.shape[1]
    total = answers.sum(axis=1) / n_answers * n_items
    n = np.maximum(observed.sum(axis=0), 1)
    mean = answers.sum(axis=0) / n
    variance = (answers**2).sum(axis=0) / n - mean**2
    known = observed.astype(np.float64)
    covariance = (total @ answers) / n - mean * (total @ known) / n
    whole = _signal_to_noise(np.array([total.var()]), np.array([variance.sum()]), n_items)
    without = _signal_to_noise(total.var() - 2.0 * covariance + variance, variance.sum() - variance, n_items - 1)
    # 1 / (1 - alpha) is a ratio of variances: by chance alone its standard deviation is about sqrt(2 / (n_models - 1))
    by_chance = 2.0 * np.sqrt(2.0 / max(answers.shape[0] - 1, 1))
    # totals of models can be compared where half of the answers are there
    if n_items < 3 or not whole[0] > by_chance or observed.mean() < 0.5:
        return np.full(n_items, np.nan)
    return np.asarray((whole - without) / (whole / n_items))


def _signal_to_noise(total: FloatArray, own: FloatArray, n_items: int) -> FloatArray:
    """Alpha / (1 - alpha), from the variance of the total and the sum of the items' variances; NaN without noise."""
    if n_items < 2:
        return np.full(total.shape, np.nan)
    signal = (total - own) * n_items / (n_items - 1)
    noise = total - signal
    return np.asarray(np.divide(signal, noise, out=np.full(total.shape, np.nan), where=noise > 1e-12))


SIMULATED: Final = np.array([-2.229, 0.647, 2.316, 0.653, 0.516])
"""Weights for `defect_probability` of suspicion, slope, key ratio and the best models' failure: learnt from planted
faults in simulated answers, with no real label."""


def defect_probability(
    features: FloatArray,  # (n_items, n_features)
    weights: FloatArray,  # (1 + n_features,): The intercept first
) -> FloatArray:
    """Probability of a fault of each item, (n_items,): a logistic regression."""
    result: FloatArray = expit(weights[0] + features @ weights[1:])
    return result


def fit_defect_weights(
    features: FloatArray,  # (n_items, n_features)
    is_bad: BoolArray,  # (n_items,): Labels; both kinds must occur
) -> FloatArray:
    """Weights for `defect_probability`, (1 + n_features,), by penalised maximum likelihood (Newton's method)."""
    centre, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-12)
    design = np.column_stack([np.ones(is_bad.size), (features - centre) / scale])
    penalty = np.diag([0.0, *[1.0] * features.shape[1]])  # precision of the prior, of features with deviation 1
    share = (is_bad.sum() + 0.5) / (is_bad.size + 1.0)
    weights = np.zeros(design.shape[1])
    weights[0] = np.log(share / (1.0 - share))
    for _ in range(30):  # ten reach the last digit
        p = expit(design @ weights)
        gradient = design.T @ (is_bad - p) - penalty @ weights
        curvature = (design * (p * (1.0 - p))[:, None]).T @ design + penalty + 1e-9 * np.eye(weights.size)
        weights = weights + np.linalg.solve(curvature, gradient)
    slopes = weights[1:] / scale
    return np.append(weights[0] - centre @ slopes, slopes)


def out_of_fold(
    features: FloatArray,  # (n_items, n_features)
    is_bad: BoolArray,  # (n_items,)
    fold: IntArray,  # (n_items,): Numbers from 0, at least two
) -> FloatArray:
    """Probability of each item by a model that has not seen its fold, (n_items,)."""
    result = np.empty(is_bad.size)
    for number in range(int(fold.max()) + 1):
        mine = fold == number
        result[mine] = defect_probability(features[mine], fit_defect_weights(features[~mine], is_bad[~mine]))
    return result


def rank_quality(score: FloatArray, is_bad: BoolArray) -> float:
    """Area under the ROC curve: the probability that a bad item has a higher score than a good one, ties halved."""
    ordered = np.sort(score[~is_bad])
    below = np.searchsorted(ordered, score[is_bad]) + np.searchsorted(ordered, score[is_bad], side="right")
    return float(below.mean() / (2.0 * ordered.size))


def share_right(score: FloatArray, is_bad: BoolArray, n_first: int) -> float:
    """Share of bad items among the first, expected over the order of equals, so that no order of a file helps."""
    cut = np.sort(score)[::-1][min(n_first, score.size) - 1]
    above, equal = score > cut, score == cut
    n_left = min(n_first, score.size) - above.sum()
    return float((is_bad[above].sum() + n_left * is_bad[equal].mean()) / (above.sum() + n_left))


def panel_of(responses: ResponseMatrix) -> Panel:
    """Compute abilities from responses."""
    observed = responses.observed
    n_models, least = int(observed.any(axis=1).sum()), 5
    if n_models < least:
        raise DataError(
            f"an audit compares what models answered: there must be at least {least} models with answers, got "
            f"{n_models}. Add results of further models."
        )
    both = ["scenario", "subscenario"]
    is_large = pl.col("subscenario").is_not_null() & (pl.len().over(both) >= 20)  # items to be a group of its own
    named = responses.items.with_columns(own=pl.when(is_large).then("subscenario"))
    ranks = named.select(pl.struct("scenario", "own").rank("dense") - 1).to_series()
    scenario = np.unique(responses.items["scenario"].to_numpy(), return_inverse=True)[1].astype(np.int64)
    return _with_abilities(responses.responses, observed, scenario, ranks.to_numpy().astype(np.int64))


def without_items(panel: Panel, is_left_out: BoolArray) -> Panel:
    """Return the panel with abilities that rest on the other items; a group keeps its items where few would be left."""
    n_items = np.bincount(panel.group)
    n_left = np.bincount(panel.group, ~is_left_out)
    is_used = ~is_left_out | (n_left < 0.5 * n_items)[panel.group]
    used = _with_abilities(panel.values, panel.observed & is_used, panel.scenario, panel.group)
    return replace(panel, scores=used.scores, overall=used.overall, theta=used.theta)


def _with_abilities(values: FloatArray, observed: BoolArray, scenario: IntArray, group: IntArray) -> Panel:
    scores = adjusted_scores(values, observed)
    overall = _standard(scores, observed.sum(axis=1))
    by_scenario = _own_abilities(values, observed, scenario, np.tile(overall[:, None], (1, scenario.max() + 1)))
    scenario_of = np.zeros(group.max() + 1, dtype=np.int64)
    scenario_of[group] = scenario
    theta = _own_abilities(values, observed, group, by_scenario[:, scenario_of])
    return Panel(values, observed, scenario, group, scores, overall, theta)


def adjusted_scores(
    values: FloatArray,  # (n_models, n_items): Responses in [0, 1], and where there is one
    observed: BoolArray,  # (n_models, n_items)
) -> FloatArray:
    """Mean response of each model over all items, as far as its own items tell, (n_models,); 0 without answers.

    The additive fit ``response = score of the model + ease of the item`` by alternating least squares; with complete
    data the plain mean.
    """
    filled = np.where(observed, values, 0.0)
    n_answers = np.maximum(observed.sum(axis=1), 1)
    total = filled.sum(axis=1)
    scores = total / n_answers
    if observed.all():
        return np.asarray(scores)
    known = observed.astype(np.float64)
    item_total, n_models = filled.sum(axis=0), np.maximum(known.sum(axis=0), 1.0)
    ease = np.zeros(item_total.size)
    for _ in range(20):  # with half of the cells missing at random, ten reach the sixth digit
        ease = (item_total - scores @ known) / n_models
        scores = (total - known @ ease) / n_answers
    return np.where(observed.any(axis=1), np.clip(scores + ease.mean(), 0.0, 1.0), 0.0)


def _standard(scores: FloatArray, n_answers: IntArray) -> FloatArray:
    """Log-odds of scores with mean 0 and standard deviation 1 over models, (n_models,); 0 where there is no answer."""
    right = scores * n_answers
    logit = np.log((right + 0.5) / (n_answers - right + 0.5))
    has_any = n_answers > 0
    return _scaled(np.where(has_any, logit - logit[has_any].mean(), 0.0)) if has_any.any() else np.zeros(scores.size)


def _scaled(values: FloatArray) -> FloatArray:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0.0 else np.zeros(values.size)


def _own_abilities(values: FloatArray, observed: BoolArray, group: IntArray, parent: FloatArray) -> FloatArray:
    """Ability in each group, drawn to that in the whole it belongs to (parent), both (n_models, n_groups)."""
    result = parent.copy()
    if parent.shape[1] == 1:
        return result
    for number in range(parent.shape[1]):
        items = np.flatnonzero(group == number)
        mine = observed[:, items]
        n_answers = mine.sum(axis=1)
        share = n_answers / (n_answers + 30.0)  # at thirty items, its own score and the whole's count alike
        own = _standard(adjusted_scores(values[:, items], mine), n_answers)
        result[:, number] = _scaled(share * own + (1.0 - share) * parent[:, number])
    return result
