"""Differences of full scores and the size of their errors, for all pairs and targets."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.comparison.pairs import NO_ERROR, PairedDifferences, PairErrorModel, fit_pair_errors, model_pairs
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates, error_inflation
from itembank.estimation.estimator_specs import PointSpec, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS
from itembank.estimation.method_trials import past_of
from itembank.estimation.response_summary import weighted_mean
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

MAXIMUM_MODELS = 500
"""At most this many past models are taken, spread evenly over the list. More of them give many more pairs but
hardly a better fit."""


def past_errors(
    asked: Asked,  # Of the models to compare
    columns: BoolArray,  # (n_columns,): Which of their items the past models are to answer
    spec: PointSpec | Stacked,  # Estimator, fitted without the model
) -> tuple[PastEstimates, FloatArray | None] | None:
    """Find the errors of up to 500 past models, had they answered the items in `columns`, and their answers to these.

    Standard errors are what is expected of a model's answers, times what past errors were to it, as `estimate` gives
    them. Answers are (n_models, n_columns), NaN where missing; None of a bank that was published without them. All is
    None with fewer than ten past models whose scores are known, or an estimator that cannot be fitted without some.
    """
    past = past_of(asked.take(models=np.arange(0), columns=np.flatnonzero(columns)), spec)
    if past is None:
        return None
    errors, scales, answers = past.error, past.scale, None
    if asked.kept_of(spec) is None:
        # evenly, not the first: models are often in order of date or score
        known = asked.bank.distinct_models
        places = np.linspace(0, known.size - 1, min(known.size, MAXIMUM_MODELS)).round().astype(np.int64)
        rows = known[np.unique(places)]
        errors, scales = errors[rows], scales[rows]
        answers = asked.bank.responses.of_items(asked.observations.positions[columns], models=rows)
    sizes = scales * error_inflation(errors, scales)
    return PastEstimates(np.zeros(errors.shape), errors, sizes, scales), answers


def raw_scores(bank: Bank, responses: FloatArray, positions: IntArray, weights: FloatArray) -> FloatArray:
    """Weighted means and the overall score made of them, (n_models, n_targets); NaN where a scenario has no item."""
    targets = bank.targets
    means = weighted_mean(responses, weights, targets.scenario_index[positions], targets.n_scenarios)
    return targets.with_overall(means)


def learn_errors(
    past: PastEstimates,
    # (n_pairs, n_targets): Classical variance of the paired difference of the past models' responses
    disagreement: FloatArray,
    targets: IntArray,  # (n_targets,): Places of the targets among those of the errors
    *,
    level: float,
) -> list[PairErrorModel | None]:
    """Return the error model of every target; None where too few past models have errors."""
    learnt: list[PairErrorModel | None] = []
    first, second = model_pairs(past.error.shape[0])
    for t, k in enumerate(targets.tolist()):
        errors, standard_errors = past.error[:, k], past.standard_error[:, k]
        known = ~(np.isnan(errors) | np.isnan(standard_errors))
        if known.sum() < MINIMUM_FOR_FOLDS:
            learnt.append(None)
            continue
        usable = known[first] & known[second] & ~np.isnan(disagreement[:, t])
        a, b = first[usable], second[usable]
        number = np.cumsum(known) - 1
        found = fit_pair_errors(
            errors[known],
            disagreement[usable, t],
            number[a],
            number[b],
            independent=standard_errors[a] ** 2 + standard_errors[b] ** 2,
            level=level,
        )
        learnt.append(found)
    return learnt


def error_variance(
    pairs: PairedDifferences,
    observed: IntArray,  # (n_models, n_targets): Items of the target that each model answered
    n_total: IntArray,  # (n_targets,): Items of the whole benchmark
    standard_errors: FloatArray,  # (n_models, n_targets)
    errors: PairErrorModel | None,
    *,
    target: int,
) -> FloatArray:
    """Return the expected squared error of each pair's difference on one target, (n_pairs,).

    On the same items it is ``a (s_a^2 + s_b^2) + b V`` (`fit_pair_errors`) with the standard errors of both models'
    scores, on different items ``s_a^2 + s_b^2``. With some items in common it is interpolated by
    their fraction. V is never below `least_variance`: models that answered all shared items alike, or all of them
    differently, may differ on the unseen items.
    """
    shared = pairs.n_shared[:, target]
    classical = np.maximum(pairs.variance[:, target], least_variance(shared, int(n_total[target])))
    if errors is None or errors.size < NO_ERROR:
        return np.where(shared > 0, classical, np.nan)
    first, second = model_pairs(observed.shape[0])
    square = standard_errors[:, target] ** 2
    apart = square[first] + square[second]
    together = errors.constant * apart + errors.slope * classical
    # Jaccard index: shared items over the items that at least one of the two answered
    answered = observed[:, target]
    in_common = shared / np.maximum(answered[first] + answered[second] - shared, 1)
    # without shared items V is infinite or unknown; its weight is zero, but 0 * inf would be NaN
    result: FloatArray = in_common * np.where(shared > 0, together, 0.0) + (1.0 - in_common) * apart
    return result


def least_variance(n_shared: IntArray, n_total: int) -> FloatArray:
    """Squared standard error of a difference that no shared item shows, (n_pairs,).

    ``(1 - n / N) 2 / (n + 2)^2``: that of n items answered alike with one more on which each model is better, as in
    the adjusted interval of Bonett and Price (2012, J. Educ. Behav. Stat. 37), for a finite population.
    """
    return np.maximum(1.0 - n_shared / n_total, 0.0) * 2.0 / (n_shared + 2.0) ** 2
