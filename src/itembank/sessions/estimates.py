"""Ability and scores of a session's model: item and factor models weighed by past sessions, with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from itembank.bank.known_scores import ENOUGH, Headline
from itembank.estimation.calibrated_scores import PastEstimates, with_intervals
from itembank.estimation.drawn_one_by_one import scores_of_draws
from itembank.estimation.estimands import linking_variance, run_noise, widened
from itembank.estimation.estimates import FLAGGED, ScoreEstimates, Scores, Typicality, checked
from itembank.estimation.notes import ALIKE, note_on_past_models, note_on_unmeasured, notes_on_unlike
from itembank.estimation.observations import Observations
from itembank.estimation.point_methods import stacked_scores, with_exact
from itembank.estimation.response_summary import ResponseSummary, posterior_moments, summary_at
from itembank.estimation.trials import Expectations
from itembank.irt.abilities import Abilities
from itembank.irt.binarise import apply_thresholds
from itembank.irt.newton import can_stand_side_by_side, map_abilities, map_side_by_side
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.targets import ScoreTargets
from itembank.sessions.asking import SessionState
from itembank.sessions.pool import SessionPool
from itembank.sessions.session_spec import BY_DRAW, CALIBRATED, MODEL_BASED
from itembank.tables import plural
from itembank.tabular import Note

BY_ITEM_MODEL, STACKED, BY_DESIGN = "p-irt", "stacked", "design-based"

Mixed = TypeVar("Mixed", Scores, Typicality)


@dataclass(frozen=True, slots=True, repr=False)
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
    """

    model_id: str
    theta: FloatArray
    covariance: FloatArray
    scores: ScoreEstimates

    def __repr__(self) -> str:
        return repr(self.scores)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of each ability, (n_dims,)."""
        return np.sqrt(np.diagonal(self.covariance))


def session_ability(pool: SessionPool, state: SessionState) -> Abilities:
    """Find the MAP ability (one row) from all answers, whatever order they came in.

    Responses are made binary where the calibration's were; the mean of repeated trials that is not counts once a
    trial, or as the counts that a beta-binomial model takes. A Beta model takes the mean as a probability, whatever it
    rests on.
    """
    positions, trials = state.answered, state.n_trials
    thresholds = pool.thresholds(positions)
    parameters, responses = pool.basis.parameters.take(positions), apply_thresholds(state.responses, thresholds)
    prior = pool.basis.prior
    if not np.any(trials != 1.0):
        return map_abilities(parameters, responses, prior)
    if parameters.family != "bernoulli":
        return map_abilities(parameters, responses, prior, n_trials=trials)
    return map_abilities(parameters, responses, prior, weights=np.where(np.isnan(thresholds), trials, 1.0))


def session_abilities(pool: SessionPool, states: Sequence[SessionState]) -> list[Abilities]:
    """Find `session_ability` of several sessions over the same items, to the same bits.

    Sessions with as many answers are computed side by side where their likelihood allows it.
    """
    found: dict[int, Abilities] = {}
    by_size: dict[int, list[int]] = {}
    parameters = pool.basis.parameters
    if can_stand_side_by_side(pool.items.model):
        tells = (parameters.loadings != 0.0).any(axis=1)
        for number, state in enumerate(states):
            by_size.setdefault(_size_if_plain(state, tells), []).append(number)
    by_size.pop(0, None)
    for numbers in by_size.values():
        if len(numbers) > 1:
            positions = np.stack([states[number].answered for number in numbers])
            raw = np.concatenate([states[number].responses for number in numbers])
            together = map_side_by_side(
                parameters.loadings[positions],
                parameters.intercept[positions],
                apply_thresholds(raw, pool.thresholds(positions)),
                pool.items.model,
                pool.basis.prior,
            )
            found.update((number, together.row(row)) for row, number in enumerate(numbers))
    return [found[number] if number in found else session_ability(pool, state) for number, state in enumerate(states)]


def _size_if_plain(state: SessionState, tells: BoolArray) -> int:
    """Return the number of answers; 0 where one of them is not simply right or wrong, or says nothing of ability."""
    if not {answer.n_trials for answer in state.answers.values()} <= {None, 1}:
        return 0
    return len(state.answers) if tells[state.answered].all() else 0


def session_estimate(
    pool: SessionPool, state: SessionState, abilities: Abilities, *, model_id: str, level: float
) -> SessionEstimate:
    """Estimate all scores from the answers, with the weights and widths of past sessions where these are known.

    Else by p-IRT at the session's ability, with intervals by the item model. Without any answer the scores are those
    expected of any new model.
    """
    positions, summaries, expected = read_answers(pool, state, abilities)
    n_targets = len(pool.basis.targets.names)
    # among all scores; every target of a custom basis is the last of all
    columns = [np.arange(n_targets), np.full(n_targets, n_targets)]
    own_rows = [] if pool.headline is None else pool.past_models.rows(model_id)  # a past model has no win over itself
    # a custom score, the other basis, is a mean of items
    headlines = (None if pool.headline is None else pool.headline.without(own_rows), None)
    weights = pool.basis.targets.weights[positions]
    observed = Observations.of_items(state.responses, positions, weights, is_random=True, n_trials=state.n_trials)
    answered = observed.answered(len(pool.positions))
    parts, near, of_draws, ratio = [], [], None, pool.past_ratio
    if pool.drawn is not None:
        answers = np.full(len(pool.positions), np.nan)
        answers[positions] = state.responses[0]
        is_question = pool.spec.stopping.decision is not None  # then it is looked at until it is settled
        of_draws = scores_of_draws(pool.drawn, state.counted_draws, answers, level=level, at_any_stop=is_question)
    for basis, summary, own, headline in zip(pool.bases, summaries, columns, headlines, strict=False):
        known = [] if pool.past is None else pool.past.around(positions.size, own, headline)
        of_targets = None if expected is None else expected.targets(own)
        part = _scores(basis.targets, summary, of_targets, known, level=level, headline=headline)
        of_links = linking_variance(pool.item_table, basis.targets, answered)
        if of_draws is not None:
            part = of_draws.targets(own)
        elif of_links is not None:
            part = widened(part, of_links, level=level)
        if ratio is not None:
            about = observed.responses, observed.n_trials, abilities.theta
            part = widened(part, run_noise(basis, positions, *about, past=lambda: ratio), level=level)
        parts.append(part)
        near.append(known)
    # a custom score is the overall one of its own targets
    scores = parts[0].with_targets(parts[1].targets(slice(-1, None))) if pool.has_custom else parts[0]
    sizes = pool.basis.targets.scenario_sizes
    n_items, n_total = [*summaries[0].n_observed[0].tolist(), positions.size], [*sizes, sizes.sum()]
    if pool.has_custom:
        counts = pool.target_weights > 0.0
        n_items, n_total = [*n_items, counts[positions].sum()], [*n_total, counts.sum()]
    typicality = Typicality.unknown(1)
    if expected is not None and near[0] and positions.size:
        typicality = _mixed([(past.typicality_of(expected.misfit[:, 0]), share) for past, share in near[0]])
    estimates = ScoreEstimates(
        model_ids=(model_id,),
        targets=pool.score_names,
        scores=scores,
        n_items=np.array([n_items], dtype=np.int64),
        n_total=np.array(n_total, dtype=np.int64),
        n_missing=np.zeros(1, dtype=np.int64),
        level=level,
        method=BY_DESIGN if of_draws else STACKED if any(past.is_stacked for past, _ in near[0]) else BY_ITEM_MODEL,
        explanation="",
        bank_id=pool.bank_id,
        target_id=pool.target_id,
        interval_kind=BY_DRAW if of_draws else MODEL_BASED if pool.past is None else CALIBRATED,
        sample_share=None,
        abilities=abilities.theta,
        ability_covariance=abilities.covariance,
        typicality=typicality,
        estimand=pool.spec.estimand,
        overall_is=pool.basis.targets.overall_is,
        is_graded=bool(np.any((state.responses > 0.0) & (state.responses < 1.0))),
        degrees=min((past.degrees for past, _ in near[0]), default=np.inf),
        by_item_model=() if of_draws or not near[0] else _unmeasured(pool.score_names, near),
    )
    notes = [
        *_notes_on_draws(state, model_id),
        *notes_on_unlike(estimates, pool.past_models, pool.n_past, _beyond_past(near[0], scores)),
        *note_on_past_models(pool.past_models, estimates.model_ids),
        *note_on_unmeasured(estimates),
    ]
    if pool.why_not_calibrated:
        notes.append(Note("few-models", pool.why_not_calibrated))
    estimates = replace(estimates, notes=tuple(notes))
    is_owed = np.ones(estimates.value.shape, dtype=bool)
    return SessionEstimate(model_id, abilities.theta[0], abilities.covariance[0], checked(estimates, is_owed))


def _beyond_past(near: Sequence[tuple[PastEstimates, float]], scores: Scores) -> IntArray | None:
    """1 if no past session estimates the last score of all higher, -1 if none does lower, (1,), as `beyond_past`."""
    if not near:
        return None
    last = near[0][0].value.shape[1] - 1
    past = np.sum([share * one.value[:, last] for one, share in near], axis=0)
    above = past[~np.isnan(past)] - scores.value[0, last]
    alike = np.abs(above) <= ALIKE + 0.2 * scores.standard_error[0, last]  # folds' banks make others of the same
    if above.size < ENOUGH or np.mean(alike) >= FLAGGED / 2.0:
        return None
    return np.array([np.all(above < ALIKE) * 1 - np.all(above > -ALIKE) * 1])


def _unmeasured(names: Sequence[str], near: Sequence[Sequence[tuple[PastEstimates, float]]]) -> tuple[str, ...]:
    """Name the scores of which too few past models tell an error, at some checkpoint nearby."""
    whole, *custom = (np.all([past.is_measured for past, _ in known], axis=0) for known in near)
    is_measured = np.concatenate([whole, *(one[-1:] for one in custom)])
    return tuple(name for name, is_known in zip(names, is_measured.tolist(), strict=True) if not is_known)


def _notes_on_draws(state: SessionState, model_id: str) -> Iterator[Note]:
    """Say which draws have no answer and may get one, and which answers wait for those of earlier draws."""
    n_open = sum(one.item not in state.answers and one.item not in state.lost for one in state.counted_draws)
    if n_open:
        text = (
            f"no answer to {plural(n_open, 'item')} drawn. They count as missing at random: if the model fails them, "
        )
        yield Note("unanswered", f"{text}the estimate is too high.", models=(model_id,))
    n_early = sum(one.item in state.answers for one in state.draws[len(state.counted_draws) :])
    if n_early:
        text = (
            f"{plural(n_early, 'answer', 'correct')} no prediction yet, since items that were drawn before have none."
        )
        yield Note("waiting", text, models=(model_id,))


def read_answers(
    pool: SessionPool, state: SessionState, abilities: Abilities
) -> tuple[IntArray, list[ResponseSummary], Expectations | None]:
    """Return the positions of what is answered, and what all models make of the answers.

    What item and factor models expect of all scores is None where the pool has no factor models.
    """
    positions, responses = state.answered, state.responses
    summaries = []
    for basis in pool.bases:
        weights = basis.targets.weights[positions]
        observed = Observations.of_items(responses, positions, weights, is_random=True)
        summaries.append(summary_at(basis, observed, abilities))
    if pool.factors is None:
        return positions, summaries, None
    moments = [posterior_moments(basis.targets, one) for basis, one in zip(pool.bases, summaries, strict=True)]
    mean, variance = (
        np.column_stack([whole, *(custom[:, -1:] for custom in others)])
        for whole, *others in zip(*moments, strict=True)
    )
    expected = Expectations.by(pool.factors, positions, responses, (mean, variance))
    if not positions.size:  # of a model that has not answered yet, no answer is unlike what is expected: 1 is the mean
        expected = expected._replace(misfit=np.ones(mean.shape))
    return positions, summaries, expected


def _scores(
    targets: ScoreTargets,
    summary: ResponseSummary,
    expected: Expectations | None,
    near: Sequence[tuple[PastEstimates, float]],
    *,
    level: float,
    headline: Headline | None,
) -> Scores:
    """Estimate one model's scores on these targets, with their intervals, by what is known of past sessions."""
    if expected is None or not near:
        plain = with_exact(targets, summary, targets.with_overall(summary.posterior_mean))
        return with_intervals(targets, summary, plain, level=level)
    stacked = [
        share * stacked_scores(targets, summary, expected.means, past.weights)
        for past, share in near
        if past.weights is not None
    ]
    value: FloatArray = np.sum(stacked, axis=0)
    parts = []
    for past, share in near:
        read, scale = past.read(value, expected.sizes(value))
        found = with_intervals(targets, summary, read, past=past, scale=scale, level=level, headline=headline)
        parts.append((found, share))
    return _mixed(parts)


def _mixed(parts: Sequence[tuple[Mixed, float]]) -> Mixed:
    """Return the means of arrays by the shares of the checkpoints that they come from."""
    kind = type(parts[0][0])
    fields = zip(*(found for found, _ in parts), strict=True)
    return kind(*(sum(share * array for array, (_, share) in zip(arrays, parts, strict=True)) for arrays in fields))
