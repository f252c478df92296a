"""What a reader of estimates must know, in words, from one place: tables, JSON, pages and consoles say the same."""

from collections.abc import Sequence

import numpy as np

from itembank.bank.banks import KNOWN_PARAMETERS, Bank
from itembank.bank.past_models import PastModels
from itembank.estimation.estimates import PREDICTED, ScoreEstimates
from itembank.estimation.estimator_specs import IntervalKind
from itembank.estimation.own_means import OwnMeans
from itembank.numerics.arrays import BoolArray
from itembank.responses.prompts import prompt_differences
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Note, joined_notes

WARNING, MISSING = "warning", "missing"
"""Kinds of notes that a warning has told already."""


def notes_on_estimates(
    bank: Bank,
    responses: ResponseMatrix,
    estimates: ScoreEstimates,
    own: OwnMeans | None,
    *,
    wanted: IntervalKind,  # What intervals were to rest on
    is_random: bool,  # Whether the items count as drawn at random
) -> tuple[Note, ...]:
    """Gather all notes, the most important first."""
    ids = estimates.model_ids
    has_lost = np.asarray((responses.asked & ~responses.observed).any(axis=1))
    found = [] if own is None else notes_on_own_means(estimates, own, has_lost, is_random=is_random)
    found += estimates.typicality.notes(
        ids, bank.n_compared_models, estimates.is_exact, can_grow=bank.published is None and bank.n_models > 0
    )
    found += note_on_past_models(bank.past_models, ids)
    if wanted == "calibrated" and estimates.interval_kind != wanted and not estimates.is_exact.all():
        found.append(Note("few-models", why_not_calibrated(bank)))
    prompts = prompt_differences(responses.items, bank.responses.items)
    if prompts:
        found.append(Note("prompts", f"{prompts}. Scores under other prompts are not comparable."))
    if estimates.is_predicted.any():
        found.append(Note(PREDICTED, estimates.said_of_predicted()))
    found += _notes_on_missing(estimates, responses)
    return joined_notes(found)


def _notes_on_missing(estimates: ScoreEstimates, responses: ResponseMatrix) -> list[Note]:
    """Say of models what they did not answer; of lost answers there is a note of its own."""
    found, is_unknown = [], np.isnan(estimates.value)
    n_lost = (responses.asked & ~responses.observed).sum(axis=1)
    for row, name in enumerate(estimates.model_ids):
        n_missing = int(estimates.n_missing[row] - n_lost[row])
        if is_unknown[row].all():
            found.append(Note(MISSING, "no answer to the items to be used, and so no estimate.", models=(name,)))
        elif n_missing > 0:
            text = f"no answer to {n_missing} of the chosen items. They count as missing at random: if the model fails "
            found.append(Note(MISSING, f"{text}these, the estimate is too high.", models=(name,)))
        if is_unknown[row].any() and not is_unknown[row].all():
            found.append(Note(MISSING, "no estimate of some scores: run items of these scenarios.", models=(name,)))
    return found


def notes_on_own_means(estimates: ScoreEstimates, own: OwnMeans, has_lost: BoolArray, *, is_random: bool) -> list[Note]:
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
            text = f"answered all {n:,} items. Their plain mean is {value[row]:.1f} points, but the score is a mean of "
            text += "scenario scores: give the items' scenarios, for that is the score itself."
            found.append(Note("own-mean", text, models=about))
        elif own.is_complete[row]:
            rest = "" if estimates.is_exact[row] else f", and the estimate rests on {n_used[row]:,} of them"
            text = f"answered all {n:,} items: the mean of these, {value[row]:.1f} points, is its score{rest}."
            found.append(Note("own-score", text, models=about))
        elif not has_lost[row] and (n > n_used[row] or (is_random and high[row] - low[row] < 2.0 * half[row])):
            is_narrower = high[row] - low[row] < 2.0 * half[row]
            counted = f", {n_used[row]:,} of which count here" if n > n_used[row] else ""
            text = (
                f"answered {n:,} of {n_total:,} items{counted}. "
                f"If its items are a random draw, their {kind} says {value[row]:.1f} points ({low[row]:.1f} to "
                f"{high[row]:.1f}), which is {'narrower' if is_narrower else 'wider'} than the estimate's interval."
            )
            found.append(Note("own-mean", text, models=about))
    return found


def note_on_past_models(past: PastModels, model_ids: Sequence[str]) -> list[Note]:
    """Say which models a bank was calibrated on: its estimates of them are better than of a new model."""
    known = past.known(model_ids)
    if not known:
        return []
    how = "take a bank that was made without" if past.salt else "calibrate without"
    more = "Estimates of past models are better than those of new ones, and their intervals too narrow."
    return [Note("past-model", f"among the past models of this bank. For a fair test, {how}.", more, known)]


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
