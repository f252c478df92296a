"""Models that descend from past ones, or answer as they do: the parent's full score, and what the answers differ by.

A quantised, fine-tuned or merged model answers nearly all items as its parent does, whose full score is known. What is
not known is the score of one relative to the other's, which is small where they are alike. How small, past models say:
each is scored as if it were new, and the past models that answered most like it on the items that it would be asked
are its parents. So both what a parent is worth and the luck in finding one are learnt.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.errors import N_SHOWN, DataError, DataWarning, ParameterError, did_you_mean, remedy, shown, visible, warn
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates, with_intervals
from itembank.estimation.estimates import Scores
from itembank.estimation.estimator_specs import PIRT
from itembank.estimation.folds import Fold, run_trial
from itembank.estimation.method_trials import items_of_fold
from itembank.estimation.observations import Observations, scores_of_past
from itembank.estimation.point_methods import Known, point_scores, with_exact
from itembank.estimation.regressions import reconciled
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import ROUNDING
from itembank.numerics.newton import LEAST_VARIANCE_SHARE, fit_variance
from itembank.progress import ProgressCallback
from itembank.tables import points_of

FIND = "auto"
"""In place of a parent's id: find it by the answers."""
ODDS = 5.0
"""How many times less a past model counts for each item more that it answered otherwise than the new one.

This and what follows was chosen on four splits of the Open LLM Leaderboard; odds of 3 to 20 do as well."""
NAMED = 2.0
"""So many items that a named parent answered otherwise do not count: the user knows what answers only suggest."""
FEWEST = 20
"""Parents are worth asking for with more past models than this."""
NEAREST_SHARE, FEWEST_NEAREST = 3, 40
"""A third of the past models, and forty where there are as many, say what parents are worth to a model as like its own.

With 66 past models forty are better than twenty, and with 120 as good."""
PRIOR = 3.0
"""So many of these nearest count as if parents had been worth nothing to them."""
MOST_COMPARED = 1000
"""At most so many past models say it, spread evenly over how much they are like theirs."""
UNRELATED = 0.25
"""A named parent with which this part of the others agree as well, or more, is no more alike than unrelated models."""
SAY = 0.05
"""A past model of this weight is named."""


class PastModels(NamedTuple):
    """Past models that answered every item, and may be parents."""

    rows: IntArray  # (n_past,): Of the bank
    answers: FloatArray  # (n_past, n_columns): To the items that new models answered
    scores: FloatArray  # (n_past, n_targets): Full ones
    by_item_model: FloatArray  # (n_past, n_targets): Estimated from these answers (`PIRT`)


class Kin(NamedTuple):
    """What past models that answer like each of n_models say of its scores."""

    score: FloatArray  # (n_models, n_targets): Z: theirs, and the difference from them by the item model
    spread: FloatArray  # (n_models, n_targets): u: variance of this among them
    disagreement: FloatArray  # (n_models,): x: mean squared difference of the answers, half an item added
    weights: FloatArray  # (n_models, n_past): Of the past models
    differing: FloatArray  # (n_models, n_past): Squared differences of the answers, added up


def kin_weights(differing: FloatArray, eligible: BoolArray, named: int | None = None) -> FloatArray:
    """Weigh past models by how many of the answers of each of n_models they share, (n_models, n_past).

    ``w ~ ODDS ** -d`` with d the squared differences of the answers, added up (`differing`, (n_models, n_past)), less
    `NAMED` for the past model that was named; rows sum to one. So descendants of one model are together, and the
    luck of the one that agrees best has less of a say.
    """
    power = np.where(eligible, -differing, -np.inf)
    if named is not None:
        power[:, named] += NAMED
    weights = ODDS ** (power - power.max(axis=1, keepdims=True))
    result: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return result


def squared_differences(answers: FloatArray, past: FloatArray) -> FloatArray:
    """Squared differences of answers, added up over the items that both gave, (n_models, n_past)."""
    seen, of_past = (np.asarray(~np.isnan(each), dtype=np.float64) for each in (answers, past))
    y, a = np.nan_to_num(answers), np.nan_to_num(past)
    return np.maximum(y**2 @ of_past.T - 2.0 * y @ a.T + seen @ (a**2).T, 0.0)


def kin_of(
    answers: FloatArray,  # (n_models, n_columns)
    by_item_model: FloatArray,  # (n_models, n_targets): Estimated from them (`PIRT`)
    past: PastModels,
    eligible: BoolArray,  # (n_models, n_past): Who may be whose parent; somebody each time
    named: int | None = None,  # Which of the past models was named as the parent
) -> Kin:
    """Compare models with past ones that answered the same items."""
    differing = squared_differences(answers, past.answers)
    weights = kin_weights(differing, eligible, named)
    n_answered = np.maximum(np.sum(~np.isnan(answers), axis=1), 1)
    beside = past.scores - past.by_item_model
    mean = weights @ beside
    spread = np.maximum(weights @ beside**2 - mean**2, 0.0)
    return Kin(
        mean + by_item_model, spread, (np.sum(weights * differing, axis=1) + 0.5) / n_answered, weights, differing
    )


def nearness(new: FloatArray, past: FloatArray, n_nearest: int) -> FloatArray:
    """Tricube weights of the nearest past models by the root of their disagreement, (n_new, n_past).

    Where both are the same array nobody is near itself.
    """
    distance = np.abs(np.sqrt(new)[:, None] - np.sqrt(past))
    if new is past:
        np.fill_diagonal(distance, np.inf)
    reach = np.partition(distance, n_nearest - 1, axis=1)[:, [n_nearest - 1]]
    reach = np.maximum(reach * (1.0 + 1e-6), 1e-9)  # of models that are all as like theirs
    result: FloatArray = (1.0 - np.minimum(distance / reach, 1.0) ** 3) ** 3
    return result


def shares(near: FloatArray, step: FloatArray, wanted: FloatArray, n_nearest: int) -> FloatArray:
    """Share of the step from the usual estimate to kin's score that models are to take, (n_models, n_targets).

    By least squares among past models (`step` and `wanted`, (n_past, n_targets)), the nearest alone (weights `near`,
    (n_models, n_past)), of whom `PRIOR` count with no use of the step.
    """
    squares = near @ step**2 * (1.0 + PRIOR / n_nearest)
    return np.divide(near @ (step * wanted), squares, out=np.zeros(squares.shape), where=squares > 0.0)


def error_sizes(
    errors: FloatArray,  # (n_past, n_targets): Of past models; NaN where unknown
    past: FloatArray,  # (2, n_past, n_targets): Two parts that squared errors are made of, up to factors
    new: FloatArray,  # (2, n_new, n_targets)
) -> tuple[FloatArray, FloatArray]:
    """Return the expected sizes of errors, (n_past, n_targets) and (n_new, n_targets), by the likeliest factors."""
    sizes = np.full(past.shape[1:], np.nan), np.full(new.shape[1:], np.nan)
    for target in range(errors.shape[1]):
        known = np.flatnonzero(~np.isnan(errors[:, target] + past[:, :, target].sum(axis=0)))
        if known.size:
            squared = errors[known, target] ** 2
            factors, floor = fit_variance(squared, past[:, known, target].T), LEAST_VARIANCE_SHARE * squared.mean()
            for size, parts in zip(sizes, (past, new), strict=True):
                size[:, target] = np.sqrt(np.maximum(factors @ parts[:, :, target], floor))
    return sizes


def check_parent(asked: Asked, parent: str, model_ids: Sequence[str]) -> None:
    """Refuse what a parent does not go with, and one that the bank does not know in full; '' is none."""
    if not parent:
        return
    bank = asked.bank
    bank.check_responses("A parent needs")
    if bank.headline is not None:
        raise ParameterError(
            f"a parent predicts the scores of the bank's items, not {bank.targets.last!r}: leave the parent or the "
            "target out."
        )
    if asked.recipe is not None and asked.recipe.stages:
        raise ParameterError(
            "a parent needs items that are the same for all models, got a selection in stages. Leave the parent out."
        )
    if parent == FIND:
        return
    ids, of_bank = bank.responses.model_ids, f"bank {bank.bank_id}"
    find = f"find it by the answers ({remedy(f'parent={FIND!r}', f'--parent {FIND}')})"
    if parent not in ids:
        raise DataError(
            f"the parent must be one of the {bank.n_models} models of {of_bank}, got {visible(parent)!r}."
            f"{did_you_mean(parent, ids)} Add its full results (itembank bank add-models), or {find}."
        )
    if parent in model_ids:
        raise DataError(
            f"the parent must be a model other than those estimated, got {visible(parent)!r}. Name another."
        )
    answers = bank.responses.of_items(np.arange(bank.n_items), models=bank.responses.model_indices([parent]))
    n_answered = int(np.sum(~np.isnan(answers)))
    if n_answered < bank.n_items:
        raise DataError(
            f"the parent must have answered all {bank.n_items} items of {of_bank}, and {visible(parent)!r} answered "
            f"{n_answered}. Add its missing results, or {find}."
        )


def by_parents(
    known: Known,  # Of models that answered the same items
    model_ids: Sequence[str],
    parent: str,  # An id of a past model, or `FIND`
    usual: tuple[FloatArray, FloatArray],  # Estimates without parents and the sizes of their errors, as of `past`
    scores: Scores,  # What these come to
    *,
    past: PastEstimates,  # How such estimates did on past models
    level: float,
    progress: ProgressCallback,
) -> tuple[Scores, tuple[str, ...], list[str]]:
    """Estimate models by past ones that answer like them, as far as that served past models.

    ``T = v + b (Z - v)`` with v the usual estimate, Z what kin say, and b learnt from past models as like theirs.
    Squared errors are ``k x s^2 + l u`` with x the disagreement, s the size of the usual estimate's error and u the
    spread of Z among the kin: models that solve nothing answer alike, and are no kin. Past models' errors give k and l,
    and the width. Models keep their usual scores where past models did not gain, or the interval is no narrower.

    Returns scores, the parent of each model ('' where it keeps its scores), and who it is and what that is worth, in
    words; with too few past models the usual scores, and no words.
    """
    bank, weights = known.bank, known.bank.targets.scenario_weights
    value, scale = usual
    found = _past_kin(known.asked, progress)
    rows = np.flatnonzero(~np.isnan(past.error[:, -1] + found[-1, :, -1]))
    candidates = _past_models(bank, bank, known.observations)
    ids = [bank.responses.model_ids[row] for row in candidates.rows.tolist()]
    eligible = np.array([[name != own for name in ids] for own in model_ids])
    if rows.size <= FEWEST or not eligible.any(axis=1).all():
        return scores, ("",) * len(model_ids), []
    rows = rows[np.argsort(found[-1, rows, -1], kind="stable")]
    rows = rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, MOST_COMPARED)).round().astype(np.int64))]
    of_past, (score, spread, disagreement) = past.take(rows), found[:, rows]
    x, n_nearest = disagreement[:, -1], min(max(FEWEST_NEAREST, rows.size // NEAREST_SHARE), rows.size - 1)
    step, wanted = score - of_past.value, of_past.truth - of_past.value
    is_known = ~np.isnan(step + wanted)
    step, wanted = np.where(is_known, step, 0.0), np.where(is_known, wanted, 0.0)
    taught = of_past.value + shares(nearness(x, x, n_nearest), step, wanted, n_nearest) * step
    of_kin = replace(of_past, value=reconciled(taught, of_past.scale**2, weights))

    named = ids.index(parent) if parent != FIND else None
    kin = kin_of(known.observations.responses, point_scores(known, PIRT()), candidates, eligible, named)
    near = nearness(kin.disagreement, x, n_nearest)
    near /= near.sum(axis=1, keepdims=True)
    taken = value + shares(near, step, wanted, n_nearest) * np.nan_to_num(kin.score - value)
    size, new_size = error_sizes(
        of_kin.error,
        np.stack([disagreement * of_past.scale**2, spread]),
        np.stack([kin.disagreement[:, None] * scale**2, kin.spread]),
    )
    mixed = with_exact(bank.targets, known.summary, reconciled(taken, scale**2, weights))
    of_parents = with_intervals(
        *(bank.targets, known.summary, mixed), past=replace(of_kin, scale=size), scale=new_size, level=level
    )
    # (n_models, 2): Root mean square error of past models as like theirs, with kin and without
    errors = np.sqrt(near @ np.column_stack([of_kin.error[:, -1] ** 2, of_past.error[:, -1] ** 2]))
    is_used = (errors[:, 0] < errors[:, 1]) & ((of_parents.high - of_parents.low) < (scores.high - scores.low))[:, -1]
    closest = zip(kin.weights.argmax(axis=1).tolist(), is_used.tolist(), strict=True)
    parents = tuple(ids[place] if counts else "" for place, counts in closest)
    words = _in_words(known, model_ids, ids, candidates, kin, is_used, errors, named)
    return scores.where(is_used, of_parents), parents, words


def _in_words(  # noqa: PLR0917 (what is said rests on all of it)
    known: Known,
    model_ids: Sequence[str],
    ids: Sequence[str],  # Of the candidates
    candidates: PastModels,
    kin: Kin,
    is_used: BoolArray,
    errors: FloatArray,  # (n_models, 2): Error of past models as like theirs, with kin and without
    named: int | None,
) -> list[str]:
    """Say of each model whom it answers like, and what that is worth; warn of a named parent that it does not."""
    words, strangers = [], []
    for row, name in enumerate(model_ids):
        answers = known.observations.responses[row]
        best = int(kin.weights[row].argmax())
        same = np.sum(np.abs(candidates.answers - answers) < ROUNDING, axis=1)
        n_more = int(np.sum(kin.weights[row] >= SAY)) - 1
        like = f"{ids[best]!r}, which gave the same answer on {same[best]} of {answers.size} items"
        like += f" ({n_more} more nearly so)" if n_more else ""
        like += "" if named in {None, best} else f"; {ids[named]!r}, which was named, on {same[named]}"
        with_kin, without = errors[row]
        worth = f"past models as close to their parents erred by {points_of(with_kin)} points with them, "
        worth += f"{points_of(without)} without"
        why = "" if is_used[row] else ", and intervals would be no narrower" if with_kin < without else ""
        words.append(visible(f"{name}: {like}; {worth}{why}{'.' if is_used[row] else ', so it does not count.'}"))
        if named is not None:
            n_as_well = int(np.sum(kin.differing[row] <= kin.differing[row, named])) - 1
            if n_as_well >= max(UNRELATED * (len(ids) - 1), 1):
                strangers.append(name)
    if named is not None and strangers:
        warn(
            f"a model must answer more like its parent {visible(ids[named])!r} than like unrelated models, but "
            f"{visible(shown(strangers))} did not: {100 * UNRELATED:g} % of the past models or more agree as well. "
            "Check that it is the parent, and that both ran with the same prompts.",
            DataWarning,
        )
    return words


def said_of_parents(words: Sequence[str]) -> str:
    """Join what is said of some models' parents, of five at most."""
    if not words:
        return (
            f" No parent counts: to say what one is worth takes more than {FEWEST} past models for cross-validation, "
            "and others that answered every item."
        )
    more = f" And so on for {len(words) - N_SHOWN} more." if len(words) > N_SHOWN else ""
    return f" Parents: {' '.join(words[:N_SHOWN])}{more}"


def _past_models(bank: Bank, judge: Bank, items: Observations, attempts: float | None = None) -> PastModels:
    """Gather the bank's models that answered every item, as another bank of these items judges them."""
    rows = np.flatnonzero(np.concatenate([part.observed.all(axis=1) for part in bank.responses.parts()]))
    answered = items.answered_by_calibration_models(bank, rows, attempts=attempts)
    judged = point_scores(Known.of(Asked(judge, answered)), PIRT())
    return PastModels(rows, answered.responses, scores_of_past(bank, attempts)[rows], judged)


def _past_kin(asked: Asked, progress: ProgressCallback) -> FloatArray:
    """Find the kin of each past model as if it were new, among all others; kept in the bank's cache.

    Returns (3, n_models, n_targets): `Kin`'s score, spread and disagreement; NaN where it is not tried.
    """
    bank, items, recipe = asked.bank, asked.observations, asked.recipe
    attempts, n_targets = items.fewer_attempts(bank), len(bank.targets.names)

    def try_fold(fold: Fold, _: ProgressCallback) -> FloatArray:
        chosen = items_of_fold(asked, fold)
        past = _past_models(bank, fold.bank, chosen, attempts)
        eligible = past.rows != fold.held_out[:, None]
        if not eligible.any(axis=1).all():
            return np.full((3, fold.held_out.size, n_targets), np.nan)
        own = chosen.answered_by_calibration_models(bank, fold.held_out, attempts=attempts)
        kin = kin_of(own.responses, point_scores(Known.of(Asked(fold.bank, own)), PIRT()), past, eligible)
        return np.stack([kin.score, kin.spread, np.broadcast_to(kin.disagreement[:, None], kin.score.shape)])

    about = (items.positions, items.weights, items.selected, items.selected_weights)
    name = cache_name("kin", None if recipe is None else recipe.name, attempts, *about)
    return run_trial(bank, name, try_fold, (3, bank.n_models, n_targets), progress=progress)
