"""What is asked of a bank, decided once: which items, how they were drawn, and what models answered to them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.bank.arguments import NewResponses, read_new
from itembank.bank.bank_views import aside_items, check_made_for, repeatable
from itembank.bank.banks import Bank
from itembank.bank.past_models import PublishedSubset
from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning, ModelWarning, first_few, quoted, remedy, shown, warn
from itembank.estimation.estimator_specs import METHODS, PointSpec, Stacked
from itembank.estimation.observations import Observations, bank_positions, found_items, size_in_words
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.agreement import only_items, without_unattempted
from itembank.responses.error_kinds import Errors
from itembank.responses.responses import ResponseMatrix
from itembank.selection.recipes import Recipe, n_items_asked, read_recipe
from itembank.tables import plural

MOSTLY = 0.9
"""Fraction of published items whose answers show that it was these that were run."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Items of a bank that models were asked, how these came about, and the answers; made from a selection, once."""

    bank: Bank  # Gives the scores that are asked for
    observations: Observations  # The answers, and the items with their weights
    # How each fold chooses items of its own; None where chance chose them, or nothing is known.
    recipe: Recipe | None = None
    # (n_selected,): Of each item in `observations.selected`, that it was drawn; None where the draw says nothing.
    chances: FloatArray | None = None
    not_drawn: str = ""  # Why the draw says nothing of the scores
    kept: PublishedSubset | None = None  # What a published bank keeps of estimates from these items

    @classmethod
    def of(cls, bank: Bank, responses: ResponseMatrix, selection: Selection | None) -> Self:
        """Find the bank's items among the responses; with a selection keep only its items.

        A `DataWarning` tells of a selection made for a stranger's bank, of its items that are missing, and of models
        without any response.
        """
        if selection is not None:
            check_made_for(bank, selection)
        observations = found_items(bank, responses, selection)
        check_answered(observations, responses, selection)
        return cls.of_observations(bank, observations, selection)

    @classmethod
    def of_past(cls, bank: Bank, selection: Selection) -> Self:
        """Ask a bank's own past models the items of a selection made from it."""
        positions = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
        order = np.argsort(positions)  # as of new models, so that what was found for a selection is found again
        positions, weights = positions[order], selection.weights[order]
        answered = bank.responses.of_items(positions)
        observations = Observations.of_items(answered, positions, weights, is_random=selection.is_random)
        return cls.of_observations(bank, observations, selection)

    @classmethod
    def of_observations(cls, bank: Bank, observations: Observations, selection: Selection | None) -> Self:
        """Decide how the items of a selection came about, to which answers have been aligned."""
        why = why_not_drawn(bank, selection)
        if selection is None:
            return cls(bank, observations, not_drawn=why)
        chances, kept = None, bank.subsets
        if selection.inclusion_probabilities is not None:
            chance_of = np.full(bank.n_items, np.nan)
            chance_of[bank.responses.item_indices(selection.item_ids)] = selection.inclusion_probabilities
            chances = chance_of[observations.selected]
        return cls(
            bank,
            observations,
            None if selection.is_random else read_recipe(selection),
            chances,
            why,
            next((one for one in kept if one.selection.item_ids == selection.item_ids), None),
        )

    def take(self, *, models: IntArray, columns: IntArray) -> "Asked":
        """Return some models and columns; the items that were to be answered stay."""
        return replace(self, observations=self.observations.take(models=models, columns=columns))

    @property
    def has_too_few(self) -> BoolArray:
        """Whether models answered so few of the drawn items that their spread says nothing, (n_models,)."""
        n_answered = np.sum(~np.isnan(self.observations.responses), axis=1)
        result: BoolArray = n_answered < min(2, self.observations.selected.size)
        return result

    @property
    def is_drawn(self) -> bool:
        """Whether chance drew the items, and some model answered enough of them."""
        return not self.not_drawn and not self.has_too_few.all()

    def without_few(self, model_ids: Sequence[str]) -> "Asked":
        """Take the answers of models with too few away where others have enough: these keep their intervals.

        A `ModelWarning` names the former.
        """
        answers, few = self.observations.responses, self.has_too_few
        some = few & ~np.isnan(answers).all(axis=1)
        if few.all() or not some.any():
            return self
        warn(
            "an interval by the draw needs answers to at least 2 of the chosen items, got fewer from "
            f"{shown([model_ids[model] for model in np.flatnonzero(some).tolist()])}: no estimate for them.",
            ModelWarning,
        )
        return replace(
            self, observations=replace(self.observations, responses=np.where(some[:, None], np.nan, answers))
        )

    @property
    def chances_of_columns(self) -> FloatArray:
        """Of each item that was answered, that it was drawn, (n_columns,); of drawn items alone."""
        chances: FloatArray = np.asarray(self.chances)
        return chances[np.searchsorted(self.observations.selected, self.observations.positions)]

    def check_drawn(self, model_ids: Sequence[str]) -> None:
        """Refuse items that were not drawn, and models with too few answers."""
        if self.not_drawn:
            raise DataError(self.not_drawn)
        lacking = np.flatnonzero(self.has_too_few)
        if lacking.size:
            raise DataError(
                "design-based intervals need responses to at least 2 of the chosen items, got fewer from "
                f"{shown([model_ids[model] for model in lacking.tolist()])}. Run the missing ones, or leave these "
                "models out."
            )

    def as_if_drawn(self) -> "Asked":
        """Return the same where it is known how the items were drawn; else as a random sample of each scenario.

        A `DataWarning` says so of the latter.
        """
        if self.chances is not None:
            return self
        targets, selected = self.bank.targets, self.observations.selected
        counts = targets.weights > 0.0
        drawn, index = counts[selected], targets.scenario_index
        if drawn.sum() < counts.sum():
            warn(
                "it is unknown how these items were chosen, so they count as drawn at random within each scenario. If "
                "they are not, scores and intervals are wrong. Choose items with itembank select, and give the "
                "selection.",
                DataWarning,
            )
        n_drawn, n_all = (
            np.bincount(index[items], minlength=targets.n_scenarios)
            for items in (selected[drawn], np.flatnonzero(counts))
        )
        chances = np.where(drawn, (n_drawn / np.maximum(n_all, 1))[index[selected]], np.nan)
        return replace(self, chances=chances, not_drawn="")

    def kept_of(self, spec: PointSpec | Stacked) -> PublishedSubset | None:
        """Return what a published bank keeps of a method's estimates from these items; None where nothing is.

        It is kept for the stacked estimate. Where a model left some items unanswered it still serves: widths are in
        units of what the item model expects of the items answered.
        """
        one, weights = self.kept, self.observations.selected_weights
        if one is None or spec != Stacked() or one.methods != stacked_methods() or not one.errors.shape[0]:
            return None
        order = np.argsort(self.bank.responses.item_indices(one.selection.item_ids))
        is_same = np.array_equal(one.selection.weights[order], weights)
        return one if is_same and one.weights.shape[0] == len(one.methods) else None


def why_not_drawn(bank: Bank, selection: Selection | None) -> str:
    """Say why the draw of the items says nothing of this bank's scores; empty where it does."""
    if selection is None:
        return (
            "design-based intervals need to know how the items were drawn: give the selection (--selection), made "
            "with method 'drawn', 'random' or 'stratified'."
        )
    if selection.inclusion_probabilities is None:
        return (
            "design-based intervals need the probability with which each item was drawn, and this selection "
            f"(method {selection.method!r}) does not know it. Choose the items with --method drawn, random or "
            "stratified, and exclude none."
        )
    if selection.bank not in ("", bank.bank_id) and selection.target_digest != bank.target_digest:
        return (
            f"inclusion probabilities hold for the bank the items were drawn from, {selection.bank}, not "
            f"{bank.bank_id}. Choose again from this bank, or estimate with that one."
        )
    n_asked = n_items_asked(selection)
    if n_asked is not None and n_asked != selection.n_items:
        return (
            f"inclusion probabilities hold for the {n_asked} items that were drawn, and this selection has "
            f"{selection.n_items}. Give the selection as it was made: items that were not run count as missing."
        )
    return ""


def check_answered(observations: Observations, responses: ResponseMatrix, selection: Selection | None) -> None:
    """Refuse models that answered nothing, and warn of items without an answer."""
    n_missing, n_models = observations.n_missing, responses.n_models
    if selection is not None and responses.lost is not None:  # of which another note tells
        own, _ = only_items(responses, selection.item_ids)
        n_missing = n_missing - (own.asked & ~own.observed).sum(axis=1)
    if selection is not None and n_missing.any() and not np.all(n_missing == selection.n_items):
        lacking = np.flatnonzero(n_missing)
        names = [f"{quoted(responses.model_ids[index])} ({n_missing[index]})" for index in lacking.tolist()]
        warn(
            f"of the {selection.n_items} items of the selection some have no response by {lacking.shape[0]} of "
            f"{n_models} models: {first_few(names)}. They count as missing at random; if hard items are missing, "
            "scores come out too high.",
            ModelWarning,
        )
    silent = np.flatnonzero(np.isnan(observations.responses).all(axis=1))
    if silent.size == n_models:
        raise DataError(
            f"at least one response to the items to be used is needed, got none from {plural(n_models, 'model')}. "
            "Check that the selection and the responses belong together."
        )
    if silent.size:
        names = [responses.model_ids[index] for index in silent]
        warn(f"no response to the items to be used from {shown(names)}: no estimate for them.", ModelWarning)


def selection_or_published(
    bank: Bank, selection: Selection | None, answered: Collection[str] | None = None
) -> Selection | None:
    """Return the selection, or else items that a bank was published with, where there are such.

    Of several sets of items it is the one that answers were given to, `answered`: of those with most of their items
    answered the largest. Where nobody has answered yet it is the usual one; where most answers are to other items of
    the bank, none.
    """
    if selection is not None:
        return repeatable(bank, selection)
    known = set(bank.item_ids).intersection(answered or ())
    if not (known and bank.own_selections):
        return bank.items_to_run
    counts = [(len(known.intersection(one.item_ids)), one) for one in bank.own_selections]
    count, best = max(counts, key=lambda pair: (pair[0] / pair[1].n_items >= MOSTLY, pair[0], -pair[1].n_items))
    return None if bank.rest is None and 2 * count < len(known) else best


def answers_to_items(
    bank: Bank, responses: NewResponses, selection: Selection | None, errors: Errors | None
) -> tuple[ResponseMatrix, Selection | None]:
    """Read the responses of new models to the items that they are to, and find these: `all_answers`.

    A `DataWarning` tells of answers to items that the bank was not published with, which are left out.
    """
    whole, given, chosen = all_answers(bank, responses, selection, errors)
    if selection is None and chosen is not None and given.n_items < whole.n_items:
        _, others = only_items(whole, chosen.item_ids)
        warn(
            f"{len(others)} of {whole.n_items} items are not among the {chosen.n_items} that the bank was published "
            f"with, and are left out: {shown(others)}.",
            DataWarning,
        )
    return given, chosen


def all_answers(
    bank: Bank, responses: NewResponses, selection: Selection | None, errors: Errors | None = None
) -> tuple[ResponseMatrix, ResponseMatrix, Selection | None]:
    """Read the responses of new models, and find the items that they are to: `selection_or_published`.

    Returns all of them, those to these items, and the items. Raises `DataError` where models answered different sets of
    those that the bank was published with.
    """
    whole, given = read_new(bank, responses, selection, errors=errors)
    if selection is not None:
        among = given if bank.rest is None else only_items(given, bank.item_ids)[0]
        return whole, among if among.n_items else given, selection_or_published(bank, selection)
    if not bank.own_selections:
        return whole, given, None
    ids, found = given.items["item_id"], {}
    for kind in np.unique(given.asked, axis=0):
        if kind.any():
            one = selection_or_published(bank, None, ids.filter(pl.Series(kind)).to_list())
            found[None if one is None else one.item_ids] = one
    if len(found) > 1:
        sizes = sorted("other items" if ids is None else plural(len(ids), "item") for ids in found)
        raise DataError(
            f"models must have run the same of the sets of items that the bank was published with, got {shown(sizes)}. "
            f"Estimate them apart, or name the items ({remedy('selection=...', '--selection FILE')})."
        )
    chosen = next(iter(found.values()), bank.items_to_run)
    if chosen is None:
        return whole, given, None
    among, _ = only_items(given, chosen.item_ids)
    return whole, among if among.n_items else given, chosen


def stacked_methods() -> tuple[dict[str, Any], ...]:
    """Name what this release's 'stacked' combines, as plain data."""
    return tuple(METHODS.to_plain(one, "method") for one in Stacked().members)


def known_items(
    bank: Bank, responses: ResponseMatrix, selection: Selection | None, *, ignore_unknown: bool
) -> ResponseMatrix:
    """Return the responses to items that the bank holds, with a `DataWarning` where others are left out."""
    responses = without_unattempted(responses, bank.responses.items["item_id"])
    known, others = only_items(responses, bank.responses.items["item_id"])
    if not others:
        return responses
    aside = aside_items(bank, others)
    if known.n_items == 0 or (selection is None and not ignore_unknown and len(aside) < len(others)):
        way_out = remedy("ignore_unknown=True", "--ignore-unknown")
        ways = [f"leave them out ({way_out})"] if known.n_items else []
        if "task" in responses.items.columns:
            rename = remedy("task_names=...", "task_names of itembank import --spec")
            match = remedy("read_new_responses(..., match='doc.FIELD')", "--match doc.FIELD")
            ways += [f"read a task of logs by the name it had ({rename})", f"name the field that holds ids ({match})"]
        advice = ", ".join([*ways, "or check" if ways else "check"])
        advice = advice[0].upper() + advice[1:]
        bank_positions(bank, responses.items["item_id"], "responses", advice=advice)
    _tell_left_out(bank, responses, others, are_aside=len(aside) == len(others))
    return known


def tell_of_strangers(bank: Bank, responses: ResponseMatrix) -> None:
    """Warn of answers to items that are not in a bank, if all of its items are known by their ids."""
    others = only_items(responses, bank.item_ids)[1] if bank.rest is None else []
    if 0 < len(others) < responses.n_items:
        _tell_left_out(bank, responses, others, are_aside=False)


def _tell_left_out(bank: Bank, responses: ResponseMatrix, others: Sequence[str], *, are_aside: bool) -> None:
    what = "no longer count in the score of" if are_aside else "are not in"
    held = "" if bank.rest is None else f", which holds {size_in_words(bank)},"
    warn(
        f"{len(others)} of {responses.n_items} items {what} bank {bank.bank_id}{held} and are left out: "
        f"{shown(others)}.",
        DataWarning,
    )
