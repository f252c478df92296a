"""The difference of two models by what a bank knows: an order of drawn items, and predictions that answers correct."""

from dataclasses import replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.comparison.difference_tests import raw_scores
from itembank.estimation.asked import Asked
from itembank.estimation.design_based import chance_of_draw
from itembank.estimation.difference_estimator import difference_values, difference_variances, drawn
from itembank.estimation.drawn_pairs import surely_alike
from itembank.estimation.drawn_predictions import factors_that_serve, predicted_answers
from itembank.estimation.observations import found_items
from itembank.estimation.point_methods import Known
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.paired import PairedLook, balanced_order
from itembank.numerics.ties import rounded
from itembank.responses.responses import ResponseMatrix
from itembank.selection.drawn import expected_answers, inclusion_probabilities, shares_of_draw
from itembank.selection.selector_specs import Drawn


def drawn_order(bank: Bank, rng: np.random.Generator) -> IntArray:
    """Order all items so that every beginning is a sample drawn with `chances_of_first`, (n_items,): positions.

    An item with the share p of a draw comes at its u / p, u uniform: the first n are a sequential Poisson sample
    (Ohlsson 1998). The u of neighbours in scenario and difficulty are spread out (`balanced_order`), so that every
    beginning is balanced over both.
    """
    by_content, shares = bank.content_order.items, shares_of_draw(bank, Drawn())
    mean = rounded(expected_answers(bank)[0])
    spread = by_content[balanced_order(bank.targets.place_by_name[by_content], mean[by_content], rng)]
    u = np.empty(spread.size)
    u[spread] = (np.arange(spread.size) + rng.random(spread.size)) / spread.size
    # what does not count in the score comes last
    late = np.divide(u, shares, out=np.full(u.shape, np.inf), where=shares > 0.0)
    return by_content[np.argsort(rounded(late)[by_content], kind="stable")]


def chances_of_first(bank: Bank, n_items: int) -> FloatArray:
    """Probability of each item to be among the first of `drawn_order`, (n_items,)."""
    shares, none = shares_of_draw(bank, Drawn()), np.zeros(bank.n_items, dtype=bool)
    together = np.zeros(bank.n_items, dtype=np.int64)
    return inclusion_probabilities(shares, together, min(n_items, int(np.sum(shares > 0.0))), certain=none)


def full_score(bank: Bank, responses: ResponseMatrix) -> float:
    """Score of a model that answered all items of the bank; NaN where one is missing."""
    observations = found_items(bank, responses, None)
    if np.isnan(observations.responses).any() or observations.positions.size < bank.n_items:
        return np.nan
    weights = bank.targets.weights[observations.positions]
    return float(raw_scores(bank, observations.responses, observations.positions, weights)[0, -1])


def bank_look(bank: Bank, pair: ResponseMatrix) -> PairedLook:
    """Estimate the difference of a baseline, known on all items, and a candidate, on the first of `drawn_order`.

    The candidate's score is the difference estimator's, with a prediction that leans on the baseline: with p what the
    bank predicts of each model's answers, q = p_c + k (y_b - p_b), k by regression from 0 to 1 on the answers there
    are: 1 for a copy, of which the bank says nothing that the baseline does not say better, 0 for another model. Of
    copies the variance is at least Tango's (`unit`), as of a paired look.
    """
    one, other = (pair.take(models=np.array([row])) for row in (0, 1))
    score, seen = full_score(bank, one), np.flatnonzero(~np.isnan(other.responses[0]))
    if seen.size >= bank.n_items:
        return PairedLook(full_score(bank, other) - score, 0.0, 0.0, np.inf, is_exact=True)
    baseline = Known.of(Asked(bank, found_items(bank, one, None)))
    known = Known.of(Asked(bank, found_items(bank, other.take(items=seen), None)))
    items, answers = known.observations.positions, known.observations.responses
    w, chances = bank.targets.overall_weights, chances_of_first(bank, items.size)[items]
    chances = np.where(w[items] > 0.0, chances, 1.0)
    attempts = known.observations.fewer_attempts(bank)
    n_factors, _ = factors_that_serve(bank, items, w[items] * (1.0 - chances) / chances, attempts=attempts)
    predicted = predicted_answers(known, n_factors)
    left = baseline.observations.responses - predicted_answers(baseline, n_factors).fitted  # (1, n_items)
    counts = (1.0 - chances) * (w[items] / chances) ** 2
    residual, beside = answers - predicted.left_out, left[:, items]
    product = float(np.sum(counts * residual * beside))
    sizes = [float(np.sum(counts * values**2) + counts.mean()) for values in (residual, beside)]
    k = float(np.clip(product / sizes[1], 0.0, 1.0))
    alike = float(surely_alike(np.array(product / np.sqrt(sizes[0] * sizes[1])), np.array(items.size)))
    predicted = predicted._replace(
        fitted=predicted.fitted + k * beside,
        left_out=predicted.left_out + k * beside,
        variance=predicted.variance * (1.0 - alike**2),
    )
    unseen = np.ones(bank.n_items)
    unseen[items] = 0.0
    of_unseen = predicted.unseen @ bank.targets.scenario_weights + k * (left @ (w * unseen))
    sample = drawn(answers, w[items], chances, np.zeros_like(items), 1)
    chance = chance_of_draw(sample, predicted)
    value = difference_values(sample, predicted.fitted, of_unseen[:, None])
    value = np.clip(value, sample.known, sample.known + sample.unseen_weight)
    before = baseline.observations.responses[:, items]
    changed, share, variance = answers - before, sample.expansion / sample.expansion.sum(), float(chance.variance[0, 0])
    plain = float(difference_variances(sample, before)[0][0, 0])  # of the answers that changed alone
    look = PairedLook(
        float(value[0, 0]) - score,
        variance,
        float(counts.sum()) * (min(variance / plain, 1.0) if plain > 0.0 else 1.0)
        if pair.is_binary or not changed.any()
        else 0.0,
        max(float(chance.freedom[0, 0]) - 1.0, 1.0),
        (float(np.sum(share * (changed < 0.0))), float(np.sum(share * (changed > 0.0)))),
    )

    def ahead(n: int) -> PairedLook:
        """Chance falls as with items drawn alike."""
        part = max(1.0 / n - 1.0 / bank.n_items, 0.0) / (1.0 / items.size - 1.0 / bank.n_items)
        return replace(look, variance=part * look.variance, unit=part * look.unit, is_exact=n >= bank.n_items)

    return replace(look, ahead=ahead)
