"""What a reader of estimates must know, in words, from one place: tables, JSON, pages and consoles say the same."""

from collections.abc import Sequence

import numpy as np

from itembank.bank.banks import KNOWN_PARAMETERS, Bank
from itembank.bank.known_scores import ENOUGH
from itembank.bank.marks import is_adaptive
from itembank.bank.past_models import PastModels
from itembank.errors import remedy, shown
from itembank.estimation.estimates import FLAGGED, PREDICTED, ScoreEstimates
from itembank.estimation.estimator_specs import IntervalKind
from itembank.estimation.observations import Observations, counted_trials, has_unknown_chance, usual_attempts
from itembank.estimation.own_means import OwnMeans
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.readers.agreement import only_items
from itembank.responses.prompts import prompt_differences
from itembank.responses.responses import ResponseMatrix
from itembank.tables import all_of
from itembank.tabular import Note, joined_notes

WARNING, MISSING = "warning", "missing"
"""Kinds of notes that a warning has told already."""
ALIKE = 1e-9
"""Sums of responses that differ by less are equal but for rounding."""
LOOK = "Look at the run's prompts and settings first: itembank check with the bank and this run says what differs."


def notes_on_estimates(
    bank: Bank,
    responses: ResponseMatrix,
    estimates: ScoreEstimates,
    own: OwnMeans | None,
    *,
    wanted: IntervalKind,  # What intervals were to rest on
    answers: Observations,  # That count
    chosen: Sequence[str] | None,  # Items of the selection, if one was given
) -> tuple[Note, ...]:
    """Gather all notes, the most important first."""
    ids = estimates.model_ids
    has_lost = np.asarray((responses.asked & ~responses.observed).any(axis=1))
    follows_answers = is_adaptive(responses.models)
    found = [] if own is None else notes_on_own_means(estimates, own, has_lost | follows_answers, answers)
    found += notes_on_sessions(estimates, follows_answers)
    can_draw = bank.rest is None and bank.headline is None  # no draw gives an interval of a score of other kind
    about, beyond = (estimates, bank.past_models, bank.n_compared_models), None
    if estimates.interval_kind != "design" and not estimates.is_exact.all():
        beyond = beyond_past(bank, answers)
    found += notes_on_unlike(*about, beyond, can_draw=can_draw, are_named=chosen is not None)
    found += note_on_past_models(bank.past_models, ids)
    if wanted == "calibrated" and estimates.interval_kind != wanted and not estimates.is_exact.all():
        found.append(Note("few-models", why_not_calibrated(bank)))
    found += note_on_unmeasured(estimates)
    found += note_on_attempts(bank, responses, estimates)
    prompts = prompt_differences(responses.items, bank.responses.items)
    if prompts:
        found.append(Note("prompts", f"{prompts}. Scores under other prompts are not comparable."))
    if estimates.is_predicted.any():
        found.append(Note(PREDICTED, estimates.said_of_predicted()))
    found += _notes_on_missing(estimates, responses if chosen is None else only_items(responses, chosen)[0])
    lacking = np.flatnonzero((estimates.n_missing > 0) & ~np.isnan(estimates.value).all(axis=1)).tolist()
    if lacking and bank.published is not None and estimates.interval_kind == "calibrated":
        text = "the interval rests on errors of estimates from all chosen items: the bank keeps no others."
        found.append(Note(MISSING, text, models=tuple(ids[row] for row in lacking)))
    return joined_notes(found)


def note_on_unmeasured(estimates: ScoreEstimates) -> list[Note]:
    """Say of which scores too few past models tell how far estimates are off, where others are calibrated."""
    exact = dict(zip(estimates.targets, (estimates.low == estimates.high).all(axis=0).tolist(), strict=True))
    about = [name for name in estimates.by_item_model if not exact[name]]
    text = (
        f"{shown(about)}: fewer than two past models have a known score, so the interval rests on the item model "
        "alone. It is too narrow if that is wrong."
    )
    return [Note("few-models", text)] if about and not estimates.is_exact.all() else []


def notes_on_sessions(estimates: ScoreEstimates, follows_answers: BoolArray) -> list[Note]:
    """Say of models whose items a session chose by their own answers, (n_models,), which estimate allows for that."""
    about = tuple(estimates.model_ids[row] for row in np.flatnonzero(follows_answers & ~estimates.is_exact))
    how = remedy("session.estimate()", "itembank session status JOURNAL")
    text = f"a session chose the items by the answers before them. Its own estimate allows for that: {how}."
    return [Note("session", text, models=about)] if about else []


def _notes_on_missing(estimates: ScoreEstimates, responses: ResponseMatrix) -> list[Note]:
    """Say of models what they did not answer of the chosen items; of lost answers there is a note of its own."""
    found, is_unknown = [], np.isnan(estimates.value)
    n_lost = (responses.asked & ~responses.observed).sum(axis=1)
    for row, name in enumerate(estimates.model_ids):
        n_missing = int(estimates.n_missing[row] - n_lost[row])
        if is_unknown[row].all():
            some = "too few answers" if responses.observed[row].any() else "no answer"
            found.append(Note(MISSING, f"{some} to the items to be used, and so no estimate.", models=(name,)))
        elif n_missing > 0:
            text = f"no answer to {n_missing} of the chosen items. They count as missing at random: if the model fails "
            found.append(Note(MISSING, f"{text}these, the estimate is too high.", models=(name,)))
        if is_unknown[row].any() and not is_unknown[row].all():
            found.append(Note(MISSING, "no estimate of some scores: run items of these scenarios.", models=(name,)))
    return found


def notes_on_own_means(
    estimates: ScoreEstimates, own: OwnMeans, has_lost: BoolArray, answers: Observations
) -> list[Note]:
    """Say of models that answered everything what they scored, and of others what all their answers give.

    Answers that are left of those asked for are no random draw: of models that lost some (`has_lost`, (n_models,))
    the mean is not said.
    """
    at = estimates.targets.index(estimates.main_target)
    value, low, high = (100.0 * one[:, -1] for one in (own.scores.value, own.scores.low, own.scores.high))
    half, n_used = 50.0 * (estimates.high - estimates.low)[:, at], estimates.n_items[:, at]
    n_total, found = int(estimates.n_total[at]), []
    for row, name in enumerate(estimates.model_ids):
        if np.isnan(value[row]):
            continue
        about, n = (name,), int(own.n_answers[row])
        kind = "plain mean over items" if own.is_pooled[row] else "mean"
        if own.is_complete[row] and own.is_pooled[row]:
            text = f"answered {all_of(n, 'item')}. Their plain mean is {value[row]:.1f} points, but the score is a "
            text += "mean of scenario scores: give the items' scenarios, for that is the score itself."
            found.append(Note("own-mean", text, models=about))
        elif own.is_complete[row]:
            rest = "" if estimates.is_exact[row] else f", and the estimate rests on {n_used[row]:,} of them"
            text = f"answered {all_of(n, 'item')}: its score is {value[row]:.1f} points{rest}."
            found.append(Note("own-score", text, models=about))
        elif not has_lost[row] and (n > n_used[row] or (answers.is_random and high[row] - low[row] < 2.0 * half[row])):
            is_narrower = high[row] - low[row] < 2.0 * half[row]
            counted = f", {n_used[row]:,} of which count here" if n > n_used[row] else ""
            text = (
                f"answered {n:,} of {n_total:,} items{counted}. "
                f"If its items are a random draw, their {kind} says {value[row]:.1f} points ({low[row]:.1f} to "
                f"{high[row]:.1f}), which is {'narrower' if is_narrower else 'wider'} than the estimate's interval."
            )
            found.append(Note("own-mean", text, models=about))
    return found


def beyond_past(bank: Bank, answers: Observations) -> IntArray:
    """1 where no past model that answered the same items did better, -1 where none did worse, else 0, (n_models,).

    0 where fewer than `ENOUGH` past models answered them all, or a twentieth did as well: of models like n past ones
    about one in n + 1 is flagged at either end.
    """
    if bank.published is not None:
        return np.zeros(answers.responses.shape[0], dtype=np.int64)
    seen, total = ~np.isnan(answers.responses), np.nansum(answers.responses, axis=1)
    parts = (one.of_items(answers.positions) for one in bank.responses.parts())  # of many, whole copies fill the memory
    sums = [(np.nan_to_num(past) @ seen.T, (~np.isnan(past)).astype(np.float64) @ seen.T) for past in parts]
    of_past, n_known = (np.concatenate(one) for one in zip(*sums, strict=True))
    is_whole = n_known == seen.sum(axis=1)
    few = FLAGGED / 2.0 * is_whole.sum(axis=0)
    is_best, is_worst = (
        ~np.any(is_whole & (sign * (of_past - total) > ALIKE), axis=0)
        & (np.sum(is_whole & (np.abs(of_past - total) <= ALIKE), axis=0) < few)
        for sign in (1.0, -1.0)
    )
    result: IntArray = (is_whole.sum(axis=0) >= ENOUGH) * (is_best.astype(np.int64) - is_worst)
    return result


def notes_on_unlike(
    estimates: ScoreEstimates,
    past: PastModels,
    n_past: int,
    beyond: IntArray | None = None,  # (n_models,): As `beyond_past` gives it; None where not known
    *,
    can_draw: bool = True,
    are_named: bool = True,
) -> list[Note]:
    """Say of models that look better or worse than all past ones, or answered unlike them, what intervals hold for.

    Estimates lean to past models: of a model that answers better than all they may still be below the best. Nothing
    where the items were drawn by chance and the interval is by design, which holds for any model. Past models
    themselves have a note of their own. What settles it is drawn items, where the bank can draw some (`can_draw`);
    those that were answered may be such, if no selection names them (`are_named`).
    """
    if estimates.interval_kind == "design":
        return []
    value, n_items = estimates.column(estimates.main_target), estimates.n_items[:, -1]
    worst, best = past.ends
    is_new = ~np.isin(estimates.model_ids, past.known(estimates.model_ids))
    looks = [
        ("better", is_new & (value > best), f"better than all {n_past} past models"),
        ("worse", is_new & (value < worst), f"worse than all {n_past} past models"),
        ("unlike", estimates.typicality.is_flagged, said_of_unlike(n_past)),
    ]
    if beyond is not None:
        here = "on such items no past model did"
        looks.insert(1, ("better", is_new & (value <= best) & (beyond > 0), f"{here} better"))
        looks.insert(3, ("worse", is_new & (value >= worst) & (beyond < 0), f"{here} worse"))
    found, is_exact = [], estimates.is_exact
    for kind, is_so, words in looks:
        for row in np.flatnonzero(is_so).tolist():
            text, more, n = f"{words}.", LOOK if kind == "unlike" else "", max(n_items[row], 2)
            if not is_exact[row]:
                text = f"{words}, and the interval holds for models like these."
            if not is_exact[row] and can_draw:
                text += "" if are_named else " If these items were drawn, give their selection; if not:"
                text += f" {n} items drawn by `select` would settle it."
                how = remedy(f"select(bank, {n}, method='drawn')", f"itembank select BANK -n {n} --method drawn")
                give = "" if are_named else f"{remedy('selection=...', '--selection FILE')}, or "
                more = f"{give}{how}.{f' {more}' if more else ''}"
            found.append(Note(kind, text, more, (estimates.model_ids[row],)))
    return list(joined_notes(found))


def said_of_unlike(n_past: int) -> str:
    """Say what flagged models did."""
    return f"answered unlike nearly all of the {n_past} past models (typicality below {FLAGGED:g})"


def note_on_past_models(past: PastModels, model_ids: Sequence[str]) -> list[Note]:
    """Say which models a bank was calibrated on: its estimates of them are better than of a new model."""
    known = past.known(model_ids)
    if not known:
        return []
    how = "take a bank that was made without" if past.salt else "calibrate without"
    more = "Estimates of past models are better than those of new ones, and their intervals too narrow."
    return [Note("past-model", f"among the past models of this bank. For a fair test, {how}.", more, known)]


def note_on_attempts(bank: Bank, responses: ResponseMatrix, estimates: ScoreEstimates) -> list[Note]:
    """Say so where new models made fewer attempts than past ones, and the bank cannot tell what that does to errors.

    That is where they are graded and nothing tells how much they vary, or past models' responses are not in the bank.
    Nothing where no interval rests on past errors. Where the items were drawn, how far answers are from what is
    predicted is seen there.
    """
    if estimates.interval_kind != "calibrated" or estimates.is_exact.all():
        return []
    if bank.published is None and not has_unknown_chance(bank):
        return []
    past, new = counted_trials(bank, bank.responses), responses.n_trials
    n_new = 1.0 if new is None else usual_attempts(new, responses.responses)
    if bank.published is not None:
        n_past = bank.published.attempts
        text = (
            f"past models tried an item {n_past:.0f} times, these models {n_new:.0f}, and the bank keeps errors of the "
            "former alone: intervals are widened by the item model, and may be too narrow, or of graded attempts too "
            "wide. The bank with its responses measures them."
        )
        return [Note("attempts", text)] if n_new < n_past else []
    n_past = 1.0 if past is None else usual_attempts(past, bank.responses.responses)
    if n_new >= n_past:
        return []
    how = remedy("repeats='mean'", "--repeats mean")
    text = (
        f"past models' responses are means of {n_past:.0f} graded attempts, these of {n_new:.0f}, and nothing tells "
        "how much attempts vary: the intervals are too narrow. Import past results anew from their single attempts "
        f"({how}), or run items drawn by `select`."
    )
    return [Note("attempts", text)]


def why_not_calibrated(bank: Bank) -> str:
    """Say why intervals could not be calibrated."""
    if bank.calibration.method == KNOWN_PARAMETERS:
        return "The bank was made of known item parameters: no past models, whose errors could calibrate intervals."
    if bank.published is None:
        n_models = f"{bank.n_models} past model{'' if bank.n_models == 1 else 's'}"
        return f"The bank has {n_models}, too few to calibrate intervals by cross-validation."
    return (
        "The bank was published without past models' responses: only intervals of the method 'auto' from the published "
        "items are calibrated."
    )
