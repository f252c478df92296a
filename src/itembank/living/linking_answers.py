"""The answers of linking models to a bank's items and to new ones, put together and checked."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.calibration.calibrate import known_lower_asymptote
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.families import COUNTS
from itembank.irt.family_names import GRADED, WITH_PRECISION, Family
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix


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


LEAST_MODELS = 3
"""Linking models: two cannot show that they differ in how they do on the new items."""
FEW_MODELS = 10
LEAST_OLD_ANSWERS = 10
"""Answers to old items of a model that links: fewer do not say where it stands."""


@dataclass(frozen=True, slots=True)
class LinkingAnswers:
    """What links, with its ids."""

    data: LinkingData
    responses: ResponseMatrix  # Of the linking models to the new items alone
    old: IntArray  # (n_old,): Positions in the bank of the old items


def linking_answers(bank: Bank, responses: ResponseMatrix) -> LinkingAnswers:
    """Gather the answers of all models that answered old and new items.

    A model that the bank has already need not answer the old items again: its answers are the bank's. Old items that
    nobody answered or that told no models apart do not link.
    """
    bank.check_responses("New items need")
    if bank.calibration.item_model == "bifactor":
        raise DataError(
            "items are added to banks whose abilities count in all items, got item_model 'bifactor', with one for "
            "each scenario. Calibrate a bank of all items anew."
        )
    if bank.parameters.family in (*WITH_PRECISION, GRADED):
        part = "steps" if bank.parameters.family == GRADED else "precision"
        raise DataError(
            f"items are added to banks of right and wrong answers or of counts, got family {bank.parameters.family!r}, "
            f"whose {part} a few models cannot tell. Calibrate a bank of all items anew."
        )
    known = {name: place for place, name in enumerate(bank.item_ids)}
    is_new = np.array([name not in known for name in responses.item_ids], dtype=bool)
    if not is_new.any():
        raise DataError(
            f"some items must be new to the bank, and all {responses.n_items} are in it already. "
            "To add models to it, use add_models (itembank bank add-models)."
        )
    new = responses.take(items=np.flatnonzero(is_new))
    old_values, old_trials = _old_answers(bank, responses)
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
        new_lower_asymptotes(bank, new),
        bank.calibration.prior,
        None if old_trials is None else old_trials[links][:, old],
        trials_of(bank, new),
    )
    return LinkingAnswers(data, new, old)


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


def new_lower_asymptotes(bank: Bank, new: ResponseMatrix) -> FloatArray:
    """Chance of guessing each new item, where the bank was calibrated with known guessing."""
    if not np.any(bank.parameters.lower_asymptote > 0.0):
        return np.zeros(new.n_items)
    return known_lower_asymptote(new.items)


def _old_answers(bank: Bank, responses: ResponseMatrix) -> tuple[FloatArray, FloatArray | None]:
    """Answers (n_models, n_bank_items) to the bank's items: the bank's own of its models, and those given here."""
    shape = (responses.n_models, bank.n_items)
    values = np.full(shape, np.nan)
    trials = None if bank.parameters.family not in COUNTS else np.zeros(shape)
    row_of = {name: row for row, name in enumerate(bank.responses.model_ids)}
    both = [(row, row_of[name]) for row, name in enumerate(responses.model_ids) if name in row_of]
    place = {name: k for k, name in enumerate(bank.item_ids)}
    common = [(k, place[name]) for k, name in enumerate(responses.item_ids) if name in place]
    given = responses.take(items=np.array([k for k, _ in common], dtype=np.int64))
    same = [(row, row) for row in range(responses.n_models)]
    # the bank's come last: an answer that it has stays
    sources = [(given, np.array([k for _, k in common], dtype=np.int64), same)]
    sources.append((bank.responses, np.arange(bank.n_items), both))
    for source, columns, rows in sources:
        counted = trials_of(bank, source)
        for row, its_row in rows:
            answered = (
                source.observed[its_row] if source is not bank.responses else ~np.isnan(source.responses[its_row])
            )
            values[row, columns[answered]] = source.responses[its_row, answered]
            if trials is not None and counted is not None:
                trials[row, columns[answered]] = counted[its_row, answered]
    return values, trials


def _linking_models(new: ResponseMatrix, old_values: FloatArray, model_ids: list[str]) -> IntArray:
    """Rows of the models that link; says which others do not."""
    enough_old = (~np.isnan(old_values)).sum(axis=1) >= LEAST_OLD_ANSWERS
    answers_new = new.observed.any(axis=1)
    left_out = [model_ids[k] for k in np.flatnonzero(answers_new & ~enough_old)]
    links = np.flatnonzero(answers_new & enough_old)
    if links.size < LEAST_MODELS:
        raise DataError(
            f"a link needs at least {LEAST_MODELS} models that answered new items and {LEAST_OLD_ANSWERS} or more of "
            f"the bank's, got {links.size}"
            + (f"; too few answers to the bank's items: {shown(left_out)}" if left_out else "")
            + ". Run models of the bank on the new items: their old answers are known."
        )
    if left_out:
        warn(
            f"models with fewer than {LEAST_OLD_ANSWERS} answers to the bank's items do not link: {shown(left_out)}.",
            DataWarning,
        )
    if links.size < FEW_MODELS:
        warn(
            f"{links.size} models link; {FEW_MODELS} to 20 that span the bank's abilities are enough, and with fewer "
            "scores on the new items may be off by more than a point: mind the linking error.",
            DataWarning,
        )
    return links
