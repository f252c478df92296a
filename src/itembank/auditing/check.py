"""The verb `check`: what is wrong with items, or with new models on a bank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itembank.auditing.bank_check import BankCheck, check_bank, ran_all_of_a_scenario
from itembank.auditing.fit_statistics import why_not_examined
from itembank.auditing.item_audit import ItemAudit, audit_items
from itembank.auditing.item_drift import ItemDrift, item_drift
from itembank.auditing.person_fit import FitCheck, check_fit
from itembank.auditing.run_conditions import marked_otherwise, with_same_content
from itembank.bank.arguments import GivenBank, GivenResponses, GivenSelection, as_bank, as_new_responses
from itembank.bank.banks import Bank
from itembank.checks import check_one_of, list_of_ids
from itembank.errors import DataError, ParameterError, visible
from itembank.estimation.asked import known_items
from itembank.estimation.notes import note_on_past_models
from itembank.progress import ProgressCallback, silent
from itembank.sessions.journal import is_journal
from itembank.sessions.journal_sessions import JournalAnswers, bank_of_journals, journal_responses
from itembank.tabular import Tabular

FIT, DRIFT, ACCURACY = PARTS = ("fit", "drift", "accuracy")
ENOUGH_FOR_DRIFT = 5
"""New models that are enough to look for drift unasked."""


@dataclass(frozen=True, slots=True, repr=False)
class Checks(Tabular):
    """What was examined of new models on a bank; its records are those of the first part that there is.

    Attributes
    ----------
    bank_id : str
    changes : tuple of str
        What is known to have changed since the bank's past models ran: prompts, versions, harnesses, contents.
    accuracy : BankCheck or None
        Estimates beside the scores of models that ran everything.
    fit : FitCheck or None
        Whether each model answers like past ones.
    drift : ItemDrift or None
        Items that new models answer differently.
    notes : tuple of str
        What a reader must know: models that are past ones, what could not be examined.
    """

    schema = "check"
    header = ("bank=bank_id", "suits", "changes", "verdicts", "hints", "notes")
    main_columns = (
        *("model_id", "target", "n_items", "n_total", "truth", "estimate", "low", "high", "level", "error", "misfit"),
        *("typicality", "p_value", "item_id", "difference", "verdict"),
    )

    bank_id: str
    changes: tuple[str, ...]
    accuracy: BankCheck | None
    fit: FitCheck | None
    drift: ItemDrift | None
    notes: tuple[str, ...] = ()

    @property
    def suits(self) -> bool:
        """Whether nothing was found that chance does not explain, drift apart: that may be the items' fault."""
        found = [one.suits for one in (self.fit, self.accuracy) if one is not None]
        return not self.changes and all(found)

    @property
    def sentence(self) -> str:
        """Whether anything was found, and what has changed."""
        said = "Nothing was found that chance does not explain" if self.suits else "Something does not suit the bank"
        if self.suits and self.drift is not None and self.drift.is_beyond_chance:
            said = "Nothing but drift was found that chance does not explain"
        return "\n".join([f"{said}, bank {self.bank_id}", *(f"Changed: {one}" for one in self.changes)])

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What each part found, in sentences."""
        parts = [one for one in (self.fit, self.drift, self.accuracy) if one is not None]
        return tuple(sentence for one in parts for sentence in one.verdicts)

    @property
    def hints(self) -> tuple[str, ...]:
        """What else there is to say of models and of what such a check can find."""
        return tuple(hint for one in (self.fit, self.accuracy) if one is not None for hint in one.hints)

    def rows(self) -> list[dict[str, Any]]:
        """Return the records of the accuracy, else those of the fit, else those of the drift."""
        return next((one.rows() for one in (self.accuracy, self.fit, self.drift) if one is not None), [])

    def to_dict(self) -> dict[str, Any]:
        """Return the facts, and the records of all parts."""
        found = Tabular.to_dict(self)
        if self.fit is not None:
            found |= {"fit": self.fit.rows(), "groups": self.fit.groups.to_dicts()}
        if self.drift is not None:
            found["drift"] = {**self.drift.to_dict(), "items": [vars(one) for one in self.drift.drifted]}
        if self.accuracy is not None:
            found |= {"level": self.accuracy.level, "scores": self.accuracy.rows()}
        return found


def check(source: Any, responses: GivenResponses | None = None, **choices: Any) -> ItemAudit | Checks:
    """Find what is wrong: with the items of a benchmark, or with new models on a bank.

    Parameters
    ----------
    source : Bank or responses, or their paths
        Alone, its items are examined: for wrong keys, questions that make no sense or were asked twice.
    responses : responses or path, optional
        Of new models, or journals of sessions, with a bank before them: do they fit, did items drift, how good are
        estimates?
    **choices
        Those of `itembank.diagnostics.audit_items` for items, of `itembank.diagnostics.check_models` for models.

    Raises
    ------
    DataError, ParameterError
        As these do.

    Examples
    --------
    >>> check(bank).flagged  # doctest: +SKIP
    >>> check(bank, "full-runs.parquet").suits  # doctest: +SKIP
    """
    return audit_items(source, **choices) if responses is None else check_models(as_bank(source), responses, **choices)


def check_models(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    only: str | Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
    reference: Sequence[str] | None = None,
    since: str | None = None,
    sizes: Sequence[int] = (),
    selection: GivenSelection | None = None,
    rng: int = 0,
    ignore_unknown: bool = False,
    progress: ProgressCallback = silent,
) -> Checks:
    """Examine new models on a bank: what changed, and as far as their results allow fit, drift and accuracy.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths, or table
        Of the new models; or journals of sessions, whose drift cannot be seen.
    only : 'fit', 'drift', 'accuracy', or several of them
        Examine these alone, and fail where one cannot be.
    groups, reference
        As `check_fit` takes them; the fit is then examined in any case.
    since : str
        Look for drift among models of this day or later: ``"2025-01-31"``, or with the column of the model table,
        ``"released=2025-01-31"``.
    sizes, selection, rng
        As `check_bank` takes them.
    ignore_unknown : bool
        Leave out items that the bank does not hold instead of refusing them.

    Raises
    ------
    DataError
        When nothing can be checked, or not what was asked for.
    ParameterError
        For an unknown part, the drift of sessions, or journals together with other results.
    """
    only = (only,) if isinstance(only, str) else only
    for part in only:
        check_one_of("a part", part, PARTS)
    bank, (matrix, order, sessions), notes = _answers(as_bank(bank), responses)
    known = known_items(bank, matrix, None, ignore_unknown=ignore_unknown)
    notes += [note.in_words(is_brief=True) for note in note_on_past_models(bank.past_models, known.model_ids)]
    matrix, changes = with_same_content(bank, known)
    reference = None if reference is None else list_of_ids("the reference", reference)
    others = {FIT: groups or reference, DRIFT: since is not None, ACCURACY: sizes or selection is not None}
    asks = {part for part in PARTS if part in only or others[part]}
    wants = set(only) or set(PARTS)
    if sessions and DRIFT in asks:
        raise ParameterError(
            "drift cannot be seen in adaptive sessions, whose items were chosen by the answers. Give full runs or runs "
            "of a selection."
        )
    fit = drift = accuracy = None
    if FIT in wants - asks:
        reason = why_not_examined(bank, progress) or marked_otherwise(bank, matrix)
        wants -= {FIT} if reason else set()
        notes += [f"The fit of models cannot be compared with that of past models: {reason}."] if reason else []
    if FIT in asks | wants:
        of_sessions: dict[str, Any] = {"order": order, "sessions": sessions}
        fit = check_fit(bank, matrix, groups=groups, reference=reference, progress=progress, **of_sessions)
    if DRIFT in asks or (DRIFT in wants and fit and not sessions and matrix.n_models >= ENOUGH_FOR_DRIFT):
        column, _, day = (since or "").rpartition("=")
        drift = item_drift(bank, matrix, since=day or None, date_column=column or None, progress=progress)
    if ACCURACY in asks or (ACCURACY in wants and ran_all_of_a_scenario(bank, matrix)):
        accuracy = check_bank(bank, matrix, sizes=sizes, selection=selection, rng=rng, progress=progress)
    if not (fit or drift or accuracy or changes):
        raise DataError(
            "Nothing could be checked. Accuracy needs models that ran all items of a scenario; fit and drift need a "
            "bank with past models' answers to the same items."
        )
    return Checks(bank.bank_id, changes, accuracy, fit, drift, tuple(notes))


def _answers(bank: Bank, responses: GivenResponses) -> tuple[Bank, JournalAnswers, list[str]]:
    """Read results, or the answers of sessions with their order, and the bank with the score these were begun for."""
    given: list[Any] = [responses] if isinstance(responses, str | Path) else []
    given = [*responses] if isinstance(responses, list | tuple) else given
    journals = [Path(one) for one in given if is_journal(Path(one))]
    if not journals:
        return bank, (as_new_responses(bank, responses, same_content=False), {}, {}), []
    if len(journals) < len(given):
        raise ParameterError(
            "responses must be journals of sessions or other results, not both. Check them one after the other."
        )
    found = bank_of_journals(bank, journals)
    told = (
        f"The sessions were started for {visible(found.target_id)}: they are checked on its items, also those that "
        f"do not count in {visible(bank.target_id)}."
    )
    return found, journal_responses(found, journals), [told] if found.target_digest != bank.target_digest else []
