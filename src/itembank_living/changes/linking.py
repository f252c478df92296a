"""What links new items to a bank: the answers, put together and checked, and kernels that judge the link."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.calibration.fit_item_model import known_lower_asymptote
from itembank.errors import DataError, DataWarning, did_you_mean, shown, warn
from itembank.irt import families
from itembank.irt.bernoulli import logit
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.family_names import COUNTS, WITH_PRECISION, Family
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest, rounded
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import DEFAULT_SCENARIO, ResponseMatrix
from itembank.tables import plural
from itembank_living.changes.descendants import is_retired


@dataclass(frozen=True, slots=True)
class LinkingData:
    """Answers of n_models linking models to n_old items of a bank and to n_new others."""

    old: ItemParameters  # Of the n_old items, on the bank's scale
    old_responses: FloatArray  # (n_models, n_old): NaN where missing
    new_responses: FloatArray  # (n_models, n_new): NaN where missing
    new_lower: FloatArray  # (n_new,): Known chance of guessing a new item right
    prior: AbilityPrior  # Of ability, as the bank has it
    # (n_models, n_old), (n_models, n_new),: Trials behind each response of a bank of counts.
    old_trials: FloatArray | None = None
    new_trials: FloatArray | None = None  # (n_models, n_old), (n_models, n_new),

    @property
    def family(self) -> Family:
        """Distribution of a response."""
        return self.old.family

    @property
    def n_models(self) -> int:
        """Number of linking models."""
        return int(self.new_responses.shape[0])

    @property
    def n_new(self) -> int:
        """Number of new items."""
        return int(self.new_responses.shape[1])

    @property
    def responses(self) -> FloatArray:
        """Responses to the old items, then to the new ones, (n_models, n_old + n_new)."""
        return np.concatenate([self.old_responses, self.new_responses], axis=1)

    @property
    def trials(self) -> FloatArray | None:
        """Trials behind `responses`."""
        if self.old_trials is None or self.new_trials is None:
            return None
        return np.concatenate([self.old_trials, self.new_trials], axis=1)

    def take_models(self, models: IntArray | BoolArray) -> "LinkingData":
        """Return the answers of some models."""
        return replace(
            self,
            old_responses=self.old_responses[models],
            new_responses=self.new_responses[models],
            old_trials=None if self.old_trials is None else self.old_trials[models],
            new_trials=None if self.new_trials is None else self.new_trials[models],
        )

    def without_old(self, dropped: BoolArray) -> "LinkingData":
        """Return the data without the old items marked in `dropped` (n_old,)."""
        kept = np.flatnonzero(~dropped)
        return replace(
            self,
            old=self.old.take(kept),
            old_responses=self.old_responses[:, kept],
            old_trials=None if self.old_trials is None else self.old_trials[:, kept],
        )


def linking_answers(of_score: Bank, responses: ResponseMatrix) -> tuple[LinkingData, ResponseMatrix, IntArray]:
    """Gather the answers of all models that answered old and new items.

    Returns what links, the responses of the linking models to the new items alone, and the positions in the whole bank
    of the old items, (n_old,).

    A model that the bank has already need not answer the old items again: its answers are the bank's. Old items that
    nobody answered, that told no models apart or that are retired do not link.
    """
    bank = whole_bank(of_score)
    bank.check_responses("New items need")
    if bank.parameters.family in WITH_PRECISION:
        raise DataError(
            f"items are added to banks of right and wrong answers or of counts, got family {bank.parameters.family!r}, "
            "whose precision a few models cannot tell. Calibrate a bank of all items anew."
        )
    known = {name: place for place, name in enumerate(bank.item_ids)}
    is_new = np.array([name not in known for name in responses.item_ids], dtype=bool)
    if not is_new.any():
        raise DataError(
            f"some items must be new to the bank, and all {responses.n_items} are in it already. "
            "To add models to it, use add_models (itembank bank add-models)."
        )
    new = responses.take(items=np.flatnonzero(is_new))
    _check_names(bank, responses.items, is_new)
    old_values, old_trials = _old_answers(bank, responses)
    old_values[:, is_retired(of_score)] = np.nan
    links = _linking_models(new, old_values, responses.model_ids)
    new = new.take(models=links)
    unanswered = np.flatnonzero(~new.observed.any(axis=0))
    if unanswered.size:
        raise DataError(
            f"every new item must have answers of linking models, got none for {unanswered.size} of {new.n_items}: "
            f"{shown([new.item_ids[k] for k in unanswered])}. Run them, or leave these items out."
        )
    old = np.flatnonzero(~np.isnan(old_values[links]).all(axis=0) & ~bank.calibration.is_degenerate)
    data = LinkingData(
        bank.parameters.take(old),
        binary(bank, old_values[links][:, old], [bank.responses.items["scenario"][int(k)] for k in old]),
        binary(bank, new.responses, new.items["scenario"].to_list()),
        # The chance of guessing each new item, where the bank was calibrated with known guessing
        known_lower_asymptote(new.items) if np.any(bank.parameters.lower_asymptote > 0.0) else np.zeros(new.n_items),
        bank.calibration.prior,
        None if old_trials is None else old_trials[links][:, old],
        trials_of(bank, new),
    )
    return data, new, old


def _check_names(bank: Bank, items: pl.DataFrame, is_new: BoolArray) -> None:
    """Refuse new items (n_items,) that are old ones in other letters, or in no scenario; and old ones in another."""
    new, scenarios = items.filter(pl.Series(is_new)), bank.responses.items["scenario"]
    known = {name.casefold() for name in bank.item_ids}
    again = [name for name in new["item_id"] if name.casefold() in known]
    if again:
        raise DataError(
            f"new items must have ids of their own, and {len(again)} of {new.height} are the bank's but for case: "
            f"{shown(again)}.{did_you_mean(again, bank.item_ids)} Give old items the ids that the bank has."
        )
    if (new["scenario"] == DEFAULT_SCENARIO).any() and DEFAULT_SCENARIO not in set(scenarios):
        raise DataError(
            f"new items must name their scenario: one of the bank's ({shown(bank.targets.scenarios)}) or a new one. "
            "Give the results a column 'scenario'."
        )
    both = items.join(bank.responses.items, on="item_id", suffix="_known").filter(
        pl.col("scenario") != pl.col("scenario_known")
    )
    if both.height:
        raise DataError(
            f"an item must belong to one scenario, and {both.height} belong to another in bank {bank.bank_id}: "
            f"{shown(both['item_id'].to_list())}. Rename the items, or the scenarios."
        )


def binary(bank: Bank, values: FloatArray, scenarios: list[str]) -> FloatArray:
    """Make responses binary where those of the bank's calibration were."""
    thresholds = bank.calibration.thresholds
    if thresholds:
        values = apply_thresholds(values, item_thresholds(thresholds, scenarios))
    if bank.parameters.family == "bernoulli" and not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        raise DataError(
            "new responses must be 0 or 1, as those of the bank's calibration, got others, and the bank has "
            f"no threshold for {shown(sorted(set(scenarios) - set(thresholds)) or sorted(set(scenarios)))}. "
            "Make them binary, or calibrate a bank of all responses anew."
        )
    return values


def trials_of(bank: Bank, responses: ResponseMatrix) -> FloatArray | None:
    """Trials behind each response for a bank of counts, 0 where missing; None for others."""
    if bank.parameters.family not in COUNTS:
        return None
    if responses.n_trials is None:
        return responses.observed.astype(np.float64)
    return np.where(responses.observed, responses.n_trials, 0).astype(np.float64)


def _old_answers(bank: Bank, responses: ResponseMatrix) -> tuple[FloatArray, FloatArray | None]:
    """Answers (n_models, n_bank_items) to the bank's items: the bank's own of its models, and those given here."""
    known, row_of = set(bank.item_ids), {name: row for row, name in enumerate(bank.responses.model_ids)}
    given = responses.take(items=np.flatnonzero([name in known for name in responses.item_ids]))
    columns = bank.responses.item_indices(given.item_ids)
    values = np.full((responses.n_models, bank.n_items), np.nan)
    values[:, columns] = given.responses
    trials, counts, own_counts = None, trials_of(bank, given), trials_of(bank, bank.responses)
    if counts is not None:
        trials = np.zeros(values.shape)
        trials[:, columns] = counts
    for row, name in enumerate(responses.model_ids):
        if name in row_of:  # an answer that the bank has stays
            own = bank.responses.responses[row_of[name]]
            answered = ~np.isnan(own)
            values[row, answered] = own[answered]
            if trials is not None and own_counts is not None:
                trials[row, answered] = own_counts[row_of[name], answered]
    return values, trials


def _linking_models(new: ResponseMatrix, old_values: FloatArray, model_ids: list[str]) -> IntArray:
    """Rows of the models that link; says which others do not."""
    least = 3  # two models cannot show that they differ in how they do on the new items
    least_old, few = 10, 10  # fewer answers to old items do not say how able a model is
    enough_old = (~np.isnan(old_values)).sum(axis=1) >= least_old
    answers_new = new.observed.any(axis=1)
    left_out = [model_ids[k] for k in np.flatnonzero(answers_new & ~enough_old)]
    links = np.flatnonzero(answers_new & enough_old)
    if links.size < least:
        raise DataError(
            f"a link needs at least {least} models that answered new items and {least_old} or more of "
            f"the bank's, got {links.size}"
            + (f"; too few answers to the bank's items: {shown(left_out)}" if left_out else "")
            + ". Run models of the bank on the new items: their old answers are known."
        )
    if left_out:
        warn(
            f"models with fewer than {least_old} answers to the bank's items do not link: {shown(left_out)}.",
            DataWarning,
        )
    if links.size < few:
        warn(
            f"{plural(links.size, 'model', 'link')}; {few} to 20 that span the bank's abilities are enough, and with "
            "fewer scores on the new items may be off by more than a point: mind the linking error.",
            DataWarning,
        )
    return links


def displacements(
    data: LinkingData, linked: LinkingData, intercept_variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Find each old item's displacement and its standard error, (n_old,) each.

    One Newton step of the intercept, ``d = sum_l s_l / sum_l w_l`` with s the slope and w the information of each
    answer in its logit, at the abilities found from the old items that are linked; its variance is ``1 / sum_l w_l``
    plus the variance of the intercept in the bank. Displacements of the linked items sum to about zero, since ability
    takes up what they share: where some items moved one way, the others seem to move a little the other way.
    """
    abilities = map_abilities(linked.old, linked.old_responses, data.prior, n_trials=linked.old_trials).theta
    x = logit(data.old, abilities)
    answered = ~np.isnan(data.old_responses)
    responses = np.where(answered, data.old_responses, 0.0)
    slope = families.likelihood_terms(data.old, x, responses, data.old_trials).slope
    weights = families.information_weights(data.old, x, data.old_trials)
    information = np.where(answered, weights, 0.0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(information > 0.0, np.where(answered, slope, 0.0).sum(axis=0) / information, np.nan)
        error = np.sqrt(1.0 / information + intercept_variance)
    return value, error


def drifted_anchors(
    data: LinkingData, intercept_variance: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:  # Displacements, their errors and what is unlinked, each (n_old,)
    """Unlink the item that moved most, find abilities anew, and go on while any moved too far.

    An item moved too far when its displacement is more than 0.5 logits (Wright and Douglas 1976) and more than 2.5
    standard errors, with an error below one logit: where it is known less well, a few answers that are hard to believe
    look like a moved item. At most a fifth of the items are unlinked; beyond that it is not the items that moved.
    """
    n_old = data.old.n_items
    is_unlinked = np.zeros(n_old, dtype=bool)
    while True:
        value, error = displacements(data, data.without_old(is_unlinked), intercept_variance)
        z = np.abs(value / error)
        too_far = (np.abs(value) > 0.5) & (z > 2.5) & (error < 1.0) & ~is_unlinked
        if not too_far.any() or is_unlinked.sum() + 1 > 0.2 * n_old:
            return value, error, is_unlinked
        is_unlinked[np.argmax(np.where(too_far, z, -1.0))] = True


MOST_GROUPS = 10
"""Links that are made again: with more linking models, groups of them are left out."""


def jackknife_error(
    data: LinkingData,
    scores: Callable[[LinkingData], FloatArray],
    strength: FloatArray,
    *,
    progress: ProgressCallback = silent,
) -> FloatArray:
    """Find the standard error of what a link says, ``sqrt((G - 1) / G sum_g (s_g - mean s)^2)``.

    Leaving models out takes in what no information matrix does: that models differ in how they do on the new items
    compared with the old ones. Groups are alike in strength, so that what is left still spans the abilities.
    `scores` gives (n_points,) of linking data, such as the expected score on the new items at some abilities;
    `strength` (n_models,) is that of the linking models.
    """
    n_groups = min(MOST_GROUPS, data.n_models)
    group = np.empty(data.n_models, dtype=np.int64)
    group[np.argsort(rounded(strength), kind="stable")] = np.arange(data.n_models) % n_groups
    found = []
    for one in range(n_groups):
        progress("linking error", one / n_groups)
        found.append(scores(data.take_models(group != one)))
    result: FloatArray = np.sqrt((n_groups - 1) * np.var(np.stack(found), axis=0))
    return result


OUTER = (0.025, 0.975)
"""Quantiles between which a bank's scores range: one odd model should not set it."""


def covered_range(strength: FloatArray, known: FloatArray) -> float:
    """Part of the range of known scores (n_known,) that those of linking models (n_models,) span, 0 to 1."""
    low, high = np.quantile(known, OUTER)
    if high <= low:
        return 1.0
    span = np.clip([strength.min(), strength.max()], low, high)
    return float((span[1] - span[0]) / (high - low))


def spread_over(
    known: FloatArray, strength: FloatArray, known_ids: Sequence[str], taken: Sequence[str], n_models: int
) -> tuple[str, ...]:
    """Choose models of the bank that fill the widest gaps, one after the other, by their scores.

    `known` (n_known,) are scores of past models and `strength` (n_models,) those of the linking models, whose ids
    are `taken`.
    """
    low, high = np.quantile(known, OUTER)
    is_free = np.array([name not in set(taken) for name in known_ids]) & (known >= low) & (known <= high)
    chosen: list[int] = []
    reached = strength
    while len(chosen) < n_models and is_free.any():
        gap = np.where(is_free, np.abs(known[:, None] - reached).min(axis=1), -np.inf)
        best = int(first_largest(gap))
        chosen.append(best)
        is_free[best] = False
        reached = np.append(reached, known[best])
    return tuple(known_ids[k] for k in chosen)
