"""Ability and scores of a session's model: item and factor models weighed by past sessions, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from itembank.bank.known_scores import Headline
from itembank.estimation.basis import ScoreBasis
from itembank.estimation.calibrated_scores import calibrated, model_based
from itembank.estimation.estimands import UNLIKE, attempt_ratio, run_noise, widened
from itembank.estimation.estimates import ScoreEstimates, checked
from itembank.estimation.expectations import Expectations
from itembank.estimation.linking_variance import linking_variance
from itembank.estimation.members_out_of_fold import Past
from itembank.estimation.observations import Observations, usual_attempts
from itembank.estimation.point import stacked_scores, with_exact
from itembank.estimation.response_summary import ResponseSummary, posterior_moments, summary_at
from itembank.estimation.scores import Scores
from itembank.estimation.typicality import Typicality
from itembank.irt.abilities import Abilities
from itembank.irt.binarise import apply_thresholds
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior
from itembank.irt.side_by_side import can_stand_side_by_side, map_side_by_side
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.targets import ScoreTargets
from itembank.sessions.past_session_results import mean_weights
from itembank.sessions.pool import SessionPool
from itembank.sessions.session_spec import CALIBRATED, MODEL_BASED
from itembank.sessions.state import SessionState

BY_ITEM_MODEL, STACKED = "p-irt", "stacked"

Mixed = TypeVar("Mixed", Scores, Typicality)


@dataclass(frozen=True, slots=True)
class SessionEstimate:
    """Estimate of a session's model.

    Attributes
    ----------
    model_id : str
    theta : (n_dims,)
        MAP ability from all answers.
    covariance : (n_dims, n_dims)
        Inverse observed information, prior included.
    scores : ScoreEstimates
        Of one model: every scenario, 'overall', and 'custom' where the target was given as weights.
    expected : Expectations or None
        What the item model and the factor models expect of these scores, (1, n_targets) each; None where the item model
        alone reads the answers.
    """

    model_id: str
    theta: FloatArray
    covariance: FloatArray
    scores: ScoreEstimates
    expected: Expectations | None

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of each ability, (n_dims,)."""
        result: FloatArray = np.sqrt(np.diagonal(self.covariance))
        return result


def session_ability(pool: SessionPool, state: SessionState, prior: AbilityPrior) -> Abilities:
    """Find the MAP ability (one row) from all answers, whatever order they came in.

    Responses are made binary where the calibration's were; the mean of repeated trials that is not counts once a
    trial, or as the counts that a beta-binomial model takes. A Beta model takes the mean as a probability, whatever it
    rests on.
    """
    positions = state.answered
    answers = [state.answers[position] for position in positions.tolist()]
    raw = np.array([[answer.response for answer in answers]])
    thresholds = pool.thresholds[positions]
    trials = np.array([[answer.n_trials or 1 for answer in answers]], dtype=np.float64)
    parameters, responses = pool.basis.parameters.take(positions), apply_thresholds(raw, thresholds)
    if not np.any(trials != 1.0):
        return map_abilities(parameters, responses, prior)
    if parameters.family != "bernoulli":
        return map_abilities(parameters, responses, prior, n_trials=trials)
    return map_abilities(parameters, responses, prior, weights=np.where(np.isnan(thresholds), trials, 1.0))


def session_abilities(
    pool: SessionPool, states: Sequence[SessionState], priors: Sequence[AbilityPrior]
) -> list[Abilities]:
    """Find `session_ability` of several sessions over the same items, to the same bits.

    Sessions with as many answers are computed side by side where their likelihood allows it.
    """
    found: dict[int, Abilities] = {}
    by_size: dict[int, list[int]] = {}
    for number, state in enumerate(states):
        by_size.setdefault(_size_if_plain(pool, state), []).append(number)
    by_size.pop(0, None)
    for numbers in by_size.values():
        if len(numbers) > 1:
            together = _abilities_side_by_side(
                pool, [states[number] for number in numbers], [priors[number] for number in numbers]
            )
            found.update((number, together.row(row)) for row, number in enumerate(numbers))
    return [
        found[number] if number in found else session_ability(pool, state, prior)
        for number, (state, prior) in enumerate(zip(states, priors, strict=True))
    ]


def _size_if_plain(pool: SessionPool, state: SessionState) -> int:
    """Return the number of answers; 0 where one of them is not simply right or wrong, or says nothing of ability."""
    if not can_stand_side_by_side(pool.items.model):
        return 0
    if not {answer.n_trials for answer in state.answers.values()} <= {None, 1}:
        return 0
    return len(state.answers) if pool.basis.parameters.loadings[state.answered].any(axis=1).all() else 0


def _abilities_side_by_side(
    pool: SessionPool, states: Sequence[SessionState], priors: Sequence[AbilityPrior]
) -> Abilities:
    """Find the abilities of sessions with as many answers each."""
    positions = np.stack([state.answered for state in states])
    raw = np.array(
        [[state.answers[item].response for item in own] for state, own in zip(states, positions.tolist(), strict=True)]
    )
    parameters = pool.basis.parameters
    return map_side_by_side(
        parameters.loadings[positions],
        parameters.intercept[positions],
        apply_thresholds(raw, pool.thresholds[positions]),
        pool.items.model,
        priors,
    )


def session_estimate(
    pool: SessionPool, state: SessionState, abilities: Abilities, *, model_id: str, level: float
) -> SessionEstimate:
    """Estimate all scores from the answers, with the weights and widths of past sessions where these are known.

    Else by p-IRT at the session's ability, with intervals by the item model. Without any answer the scores are those
    expected of any new model.
    """
    positions, summaries, expected = _read(pool, state, abilities)
    columns = _columns(pool)
    headlines = (pool.headline, None)  # a custom score, the other basis, is a mean of items
    near = [
        [] if pool.past is None else pool.past.around(positions.size, own, headline)
        for own, headline in zip(columns, headlines, strict=False)
    ]
    parts = [
        _scores(
            basis.targets,
            summary,
            None if expected is None else expected.targets(own),
            known,
            level=level,
            headline=headline,
        )
        for basis, summary, own, known, headline in zip(pool.bases, summaries, columns, near, headlines, strict=False)
    ]
    observed = _observed(pool, state)
    answered = observed.answered(len(pool.item_ids))
    of_links = [linking_variance(pool.item_table, basis.targets, answered) for basis in pool.bases]
    parts = [
        part if variance is None else widened(part, variance, level=level)
        for part, variance in zip(parts, of_links, strict=True)
    ]
    if pool.past_ratio is not None:
        chances = [_run_noise(basis, observed, abilities.theta, pool.past_ratio) for basis in pool.bases]
        parts = [widened(part, variance, level=level) for part, variance in zip(parts, chances, strict=True)]
    # a custom score is the overall one of its own targets
    scores = parts[0] if pool.custom is None else parts[0].with_targets(parts[1].targets(slice(-1, None)))
    n_items, n_total = _counts(pool, summaries[0], positions)
    estimates = ScoreEstimates(
        model_ids=(model_id,),
        targets=pool.score_names,
        scores=scores,
        n_items=n_items,
        n_total=n_total,
        n_missing=np.zeros(1, dtype=np.int64),
        level=level,
        method=STACKED if near[0] and mean_weights(near[0])[1:].any() else BY_ITEM_MODEL,
        explanation="",
        bank_id=pool.bank_id,
        target_id=pool.target_id,
        interval_kind=MODEL_BASED if pool.past is None else CALIBRATED,
        sample_share=None,
        abilities=abilities.theta,
        ability_covariance=abilities.covariance,
        typicality=_typicality(expected, near[0] if positions.size else []),
        estimand=pool.spec.estimand,
    )
    is_owed = np.ones(estimates.value.shape, dtype=bool)
    return SessionEstimate(model_id, abilities.theta[0], abilities.covariance[0], checked(estimates, is_owed), expected)


def session_expectations(pool: SessionPool, state: SessionState, abilities: Abilities) -> Expectations | None:
    """Return what `SessionEstimate.expected` holds, without the rest of the estimate."""
    return _read(pool, state, abilities)[-1]


def _read(
    pool: SessionPool, state: SessionState, abilities: Abilities
) -> tuple[IntArray, list[ResponseSummary], Expectations | None]:
    """Return the positions of what is answered, and what all models make of the answers."""
    positions = state.answered
    responses = np.array([[state.answers[position].response for position in positions.tolist()]])
    summaries = [_summary(basis, responses, abilities, positions) for basis in pool.bases]
    return positions, summaries, _expected(pool, responses, positions, summaries)


def _columns(pool: SessionPool) -> list[IntArray]:
    """Columns of the targets of each basis among all scores; every target of a custom basis is the last of all."""
    n_targets = len(pool.basis.targets.names)
    return [np.arange(n_targets), np.full(n_targets, n_targets)][: len(pool.bases)]


def _counts(pool: SessionPool, summary: ResponseSummary, positions: IntArray) -> tuple[IntArray, IntArray]:
    """Items answered of each score, (1, n_scores), and all its items, (n_scores,)."""
    n_items, n_total = [*summary.n_observed[0].tolist(), positions.size], [*pool.scenario_sizes, len(pool.item_ids)]
    if pool.custom is not None:
        counts = pool.target_weights > 0.0
        n_items, n_total = [*n_items, counts[positions].sum()], [*n_total, counts.sum()]
    return np.array([n_items], dtype=np.int64), np.array(n_total, dtype=np.int64)


def _summary(basis: ScoreBasis, responses: FloatArray, abilities: Abilities, positions: IntArray) -> ResponseSummary:
    """Summarise one model's responses by the item model."""
    weights = basis.targets.weights[positions]
    return summary_at(basis, Observations.of_items(responses, positions, weights, is_random=True), abilities)


def _expected(
    pool: SessionPool, responses: FloatArray, positions: IntArray, summaries: Sequence[ResponseSummary]
) -> Expectations | None:
    """Gather what item and factor models expect of all scores; None where the pool has no factor models."""
    if pool.factors is None:
        return None
    moments = [posterior_moments(basis.targets, one) for basis, one in zip(pool.bases, summaries, strict=True)]
    mean, variance = (
        np.column_stack([whole, *(custom[:, -1:] for custom in others)])
        for whole, *others in zip(*moments, strict=True)
    )
    expected = Expectations.by(pool.factors, positions, responses, (mean, variance))
    # of a model that has not answered yet, no answer is unlike what is expected: 1 is the mean for typical models
    return expected if positions.size else expected._replace(misfit=np.ones(mean.shape))


def _scores(
    targets: ScoreTargets,
    summary: ResponseSummary,
    expected: Expectations | None,
    near: Sequence[tuple[Past, float]],
    *,
    level: float,
    headline: Headline | None,
) -> Scores:
    """Estimate one model's scores on these targets, with their intervals, by what is known of past sessions."""
    if expected is None or not near:
        value = with_exact(targets, summary, targets.with_overall(summary.posterior_mean))
        return model_based(targets, summary, value, level=level)
    value = stacked_scores(targets, summary, expected.means, mean_weights(near))
    parts = []
    for past, share in near:
        read, scale = past.read(expected, value)
        found = calibrated(targets, summary, read, past.estimates, scale=scale, level=level, headline=headline)
        parts.append((found, share))
    return _mixed(parts)


def _observed(pool: SessionPool, state: SessionState) -> Observations:
    """Return the answers of the session's model with the attempts behind them."""
    positions = state.answered
    answers = [state.answers[position] for position in positions.tolist()]
    return Observations.of_items(
        np.array([[answer.response for answer in answers]]),
        positions,
        pool.basis.targets.weights[positions],
        is_random=True,
        n_trials=np.array([[answer.n_trials or 1 for answer in answers]], dtype=np.float64),
    )


def _run_noise(basis: ScoreBasis, answered: Observations, theta: FloatArray, past_ratio: float) -> FloatArray:
    """Find the variance of the score of one run around the expected score for the targets of a basis, (1, n_targets).

    As `run_variance` does, which has a bank; `past_ratio` is that of the calibration models.
    """
    trials = np.asarray(answered.n_trials)
    items = basis.parameters.take(answered.positions)
    own, expected = attempt_ratio(items, answered.responses, trials, theta, unlike=UNLIKE)
    ratio = np.where(expected > 0.0, own, past_ratio)
    return run_noise(basis, theta, ratio / usual_attempts(trials, answered.responses))


def _typicality(expected: Expectations | None, near: Sequence[tuple[Past, float]]) -> Typicality:
    """Say how typical the answers are of those of past sessions."""
    if expected is None or not near:
        return Typicality.unknown(1)
    return _mixed([(past.misfit.typicality_of(expected.misfit[:, 0]), share) for past, share in near])


def _mixed(parts: Sequence[tuple[Mixed, float]]) -> Mixed:
    """Return the means of arrays by the shares of the checkpoints that they come from."""
    kind = type(parts[0][0])
    fields = zip(*(found for found, _ in parts), strict=True)
    return kind(*(sum(share * array for array, (_, share) in zip(arrays, parts, strict=True)) for arrays in fields))
