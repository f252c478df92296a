"""What a bank predicts of the answers that a draw of items corrects: the item model and a few factors, half each.

Few factors, for from few answers many would be fitted to their noise: past models say how many (`factors_that_serve`).
"""

from typing import NamedTuple

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.bank.norms import columns_of, fitted_factor_model
from itembank.estimation.asked import Asked
from itembank.estimation.observations import attempt_variances, counted_trials, past_runs, scores_of_past
from itembank.estimation.point_methods import Known
from itembank.estimation.predictions import LEAST_CHANCE, scenario_sums
from itembank.estimation.response_summary import score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import FactorModel, factor_posterior, fit_factor_model, item_residuals
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.numerics.splits import dealt_out, splits_of
from itembank.numerics.ties import average_ranks, rounded

N_FOLDS = 10
"""Parts of the sample, each predicted from the others: an ability from nine tenths of it is nearly that from all."""
N_PARTS = 5
"""Parts of the past models, each predicted by factors of the others."""
FACTORS = (0, 1, 2, 3, 5, 8)
"""Numbers of factors that are tried."""
MODELS_A_FACTOR = 4
"""Past models that one factor takes at least."""
FEWEST_TRIED, MOST_TRIED = 10, 1000
"""Past models that say how many factors serve; of more, every so many-th."""


class Predicted(NamedTuple):
    """Predictions for n_models models."""

    fitted: FloatArray  # (n_models, n_columns): Of the drawn items, from all answers
    left_out: FloatArray  # (n_models, n_columns): Of each drawn item, from the answers to the others
    unseen: FloatArray  # (n_models, n_scenarios): ``sum_U omega_i p_i`` over the items that were not answered
    # (n_models, n_columns): How far answers are expected to lie from predictions, squared
    variance: FloatArray


def predicted_answers(known: Known, n_factors: int) -> Predicted:
    """Predict the answers of new models, to the drawn items and to all others; -1 factors: by the item model alone."""
    bank, observations, summary = known.bank, known.observations, known.summary
    positions = observations.positions
    fitted = probability(bank.parameters.take(positions), summary.abilities)
    left_out, unseen = _without_their_fold(known), summary.posterior_mean - summary.known
    # above one, a variance would be larger than a response in [0, 1] can have
    noise = np.minimum(score_basis(bank).noise_ratio, 1.0)[bank.targets.scenario_index[positions]]
    beyond = _chance_of_fewer(bank, positions, observations.fewer_attempts(bank))
    variance = noise * _of_outcomes(left_out) + beyond
    if n_factors < 0:
        return Predicted(fitted, left_out, unseen, variance)
    model = truncated(fitted_factor_model(bank), n_factors)
    by_factors = _by_factors(model, bank, positions, observations.responses)
    fitted, left_out, unseen = (
        (one + other) / 2.0 for one, other in zip((fitted, left_out, unseen), by_factors, strict=True)
    )
    # half by what past models' answers showed beside the factors, half by outcomes of the chance that is predicted:
    # the one knows the items, the other the model
    variance = (model.noise[positions] + noise * _of_outcomes(left_out)) / 2.0 + beyond
    return Predicted(fitted, left_out, unseen, variance)


def _chance_of_fewer(bank: Bank, positions: IntArray, attempts: float | None) -> FloatArray:
    """How much more answers vary from run to run in so few attempts than in past models' many, (n_columns,).

    ``s^2 (1 / k - 1 / n)``, s^2 the mean over past models of the variance of one attempt (`attempt_variances`).
    """
    n_trials = counted_trials(bank, bank.responses)
    if attempts is None or n_trials is None:
        return np.zeros(positions.size)
    n, answers = n_trials[:, positions], bank.responses.of_items(positions)
    is_known = ~np.isnan(answers) & (n >= 2.0)
    single = np.where(is_known, attempt_variances(bank)[:, positions], np.nan)
    usual = mean_where_known(np.where(is_known, 1.0 / np.maximum(n, 1.0), np.nan))
    more: FloatArray = np.nan_to_num(mean_where_known(single) * np.maximum(1.0 / attempts - usual, 0.0))
    return more


def _of_outcomes(chance: FloatArray) -> FloatArray:
    """Variance of right and wrong answers of these chances, none of them certain."""
    chance = np.clip(chance, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    return chance * (1.0 - chance)


def _without_their_fold(known: Known) -> FloatArray:
    """Predict each drawn item from the ability that the other drawn items give, (n_models, n_columns).

    Folds take every tenth of the drawn items of each scenario, in the order of what past models answered.
    """
    observations, basis = known.observations, score_basis(known.bank)
    positions, drawn_items = observations.positions, observations.selected
    parameters, answers = basis.parameters.take(positions), basis.answers(observations.responses, positions)
    place = np.argsort(known.bank.content_order.items)[drawn_items]
    in_order = np.lexsort((place, basis.targets.place_by_name[drawn_items]))
    fold = dealt_out(in_order, N_FOLDS)[np.searchsorted(drawn_items, positions)]
    predicted = np.empty(answers.shape)
    for split in splits_of(fold):
        others = answers.copy()
        others[:, split.test] = np.nan
        start, trials = known.summary.abilities, observations.n_trials
        theta = map_abilities(parameters, others, basis.prior, start=start, n_trials=trials).theta
        predicted[:, split.test] = probability(parameters.take(split.test), theta)
    return predicted


def means_elsewhere(
    residuals: FloatArray,  # (n_models, n_columns): NaN where missing
    correction: FloatArray,  # (n_columns,): Weight of each
    scenario_index: IntArray,  # (n_columns,)
    n_scenarios: int,
) -> FloatArray:
    """Mean residual over the drawn items of all other scenarios, (n_models, n_scenarios); 0 where there are none."""
    weights = ~np.isnan(residuals) * correction
    total = scenario_sums(np.nan_to_num(residuals) * weights, scenario_index, n_scenarios)
    mass = scenario_sums(weights, scenario_index, n_scenarios)
    others = [one.sum(axis=1, keepdims=True) - one for one in (total, mass)]
    result: FloatArray = np.divide(others[0], others[1], out=np.zeros(total.shape), where=others[1] > 1e-12)
    return result


def truncated(model: FactorModel, n_factors: int) -> FactorModel:
    """Keep the strongest factors; what the others explained becomes noise of the items."""
    rest = model.loadings[:, n_factors:]
    return FactorModel(model.mean, model.loadings[:, :n_factors], model.noise + np.einsum("iq,iq->i", rest, rest))


def _by_factors(
    model: FactorModel,
    bank: Bank,
    positions: IntArray,  # (n_columns,)
    responses: FloatArray,  # (n_models, n_columns): NaN where missing
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predict by the factor model, models that answered the same items together; as the first three of `Predicted`."""
    targets, n_items = bank.targets, bank.n_items
    fitted, left_out = np.zeros(responses.shape), np.zeros(responses.shape)
    unseen = np.zeros((responses.shape[0], targets.n_scenarios))
    observed = ~np.isnan(responses)
    patterns, which = np.unique(observed, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows, columns = np.flatnonzero(which.ravel() == number), np.flatnonzero(pattern)
        items, answers = positions[columns], responses[np.ix_(rows, columns)]
        everything = _predicted(model, items, answers)
        weights = targets.weights.copy()
        weights[items] = 0.0
        unseen[rows] = scenario_sums(everything[:, :n_items] * weights, targets.scenario_index, targets.n_scenarios)
        if bank.rest is not None:
            unseen[rows] += everything[:, n_items:]
        fitted[np.ix_(rows, columns)] = everything[:, items]
        residual, _ = item_residuals(model, items, answers)
        left_out[np.ix_(rows, columns)] = answers - residual
    return fitted, left_out, unseen


def _predicted(model: FactorModel, items: IntArray, answers: FloatArray) -> FloatArray:
    """Predict the answers to all items, (n_models, n_items), from those to some."""
    return model.mean + factor_posterior(model, items, answers)[0] @ model.loadings.T


def factors_of(asked: Asked) -> tuple[int, FloatArray]:
    """Return `factors_that_serve` for drawn items; of a published bank what it was published with."""
    if asked.kept is not None and asked.kept.apart.size:
        return asked.kept.n_factors, asked.kept.apart
    positions, chances = asked.observations.selected, np.asarray(asked.chances)
    shares = asked.bank.targets.overall_weights[positions]
    attempts = asked.observations.fewer_attempts(asked.bank)
    return factors_that_serve(asked.bank, positions, shares * (1.0 - chances) / chances, attempts=attempts)


def factors_that_serve(
    bank: Bank, positions: IntArray, correction: FloatArray, *, attempts: float | None = None
) -> tuple[int, FloatArray]:
    """Say how many factors predict past models best from their answers to these items, each model left out in turn.

    Of past models that attempted items more often than new ones do, so many `attempts` count, drawn by chance. One
    where the bank has fewer than ten past models to leave out, or was published without them; none without an item
    model or with fewer than four.
    """
    index, n_scenarios = bank.targets.scenario_index, bank.targets.n_scenarios
    if bank.rest is not None or not bank.calibration.is_fitted or bank.n_calibration_models < MODELS_A_FACTOR:
        return -1, np.full(n_scenarios, np.nan)

    def judge() -> dict[str, FloatArray]:
        targets = bank.targets
        tried = [n for n in FACTORS if n * MODELS_A_FACTOR <= bank.n_models]
        unseen = targets.weights.copy()
        unseen[positions] = 0.0
        left = np.bincount(index, weights=unseen, minlength=n_scenarios)
        squares, errors = np.zeros(len(tried)), [[np.empty((0, n_scenarios))] for _ in tried]
        scores = scores_of_past(bank, attempts)
        for held_out, model in _models_of_folds(bank):
            if attempts is None:
                answers = bank.responses.take(models=held_out).responses
            else:
                answers = past_runs(bank, attempts)[0][held_out]
            drawn = np.where(np.isnan(answers), model.mean, answers)[:, positions]
            seen = scenario_sums(drawn * targets.weights[positions], index[positions], n_scenarios)
            truth = scores[held_out, :-1]
            for number, n_factors in enumerate(tried):
                expected = _predicted(truncated(model, n_factors), positions, drawn)
                squares[number] += np.nansum((answers - expected) ** 2 * (unseen * targets.scenario_weights[index]))
                off = means_elsewhere(drawn - expected[:, positions], correction, index[positions], n_scenarios)
                found = seen + scenario_sums(expected * unseen, index, n_scenarios) + left * off
                errors[number].append(found - truth)
        if not squares.any():
            return {"number": np.ones(1), "apart": np.full(n_scenarios, np.nan)}
        best = int(np.argmin(rounded(squares)))
        found = np.concatenate(errors[best])
        n_known = np.sum(~np.isnan(found), axis=0)
        total = np.nansum(found**2, axis=0)
        apart = np.where(n_known >= FEWEST_TRIED, total / np.maximum(n_known, 1), np.nan)
        return {"number": np.array([tried[best]], dtype=np.float64), "apart": apart}

    def fits(kept: dict[str, FloatArray]) -> bool:
        shapes = {name: array.shape for name, array in kept.items()}
        return shapes == {"number": (1,), "apart": (n_scenarios,)} and kept["number"][0] in FACTORS

    about = (positions, correction) if attempts is None else (positions, correction, attempts)
    kept = bank.cache.arrays(cache_name("factors-that-serve", *about), judge, fits=fits)
    return int(kept["number"][0]), kept["apart"]


def _models_of_folds(bank: Bank) -> list[tuple[IntArray, FactorModel]]:
    """Fit factors without each fifth of the past models; none where these are unknown, or too few to be divided."""

    def fit() -> list[tuple[IntArray, FactorModel]]:
        if bank.distinct_models.size < FEWEST_TRIED:
            return []
        rows = bank.distinct_models
        if rows.size > MOST_TRIED:
            rows = rows[np.linspace(0, rows.size - 1, MOST_TRIED).astype(np.int64)]
        # from the middle outwards, the weakest with the strongest: the same parts if wrong were right, and for equals
        ranks = average_ranks(rounded(mean_where_known(bank.known_scores.value[rows].T)))
        part_of = np.abs(ranks - (rows.size + 1) / 2.0).astype(np.int64) % N_PARTS
        columns = columns_of(bank.responses)
        return [
            (rows[part.test], fit_factor_model(columns.of_models(np.sort(rows[part.train])), n_factors=max(FACTORS)))
            for part in splits_of(part_of)
        ]

    return bank.cache.remember("factor models of fifths", fit)
