"""Changes that fit nothing: names and notes, items retired and restored, external scores."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_history import ACTIVE, RETIRED, STATUSES
from itembank.bank.bank_views import history_of, whole_bank
from itembank.bank.banks import Bank
from itembank.bank.known_scores import check_external_names, with_external_scores
from itembank.errors import ParameterError, shown
from itembank.readers.matrix import read_known
from itembank_living.changes.descendants import descendant


def note(bank: GivenBank, text: str, *, name: str = "") -> Bank:
    """Write a note into a bank's history, and give it a name if one is given.

    Parameters
    ----------
    bank : Bank or path
    text : str
    name : str
        Of the benchmark. Scores are then called ``name@1``, ``name@2``, ... after the version that first gave them;
        those that have a name already keep it.

    Raises
    ------
    ParameterError
        For an empty text, or a name that is none.

    Examples
    --------
    >>> bank = note(bank, "as published in May", name="mmlu_pro")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    if not text.strip():
        raise ParameterError("a note must say something, got an empty text.")
    arguments = {"name": name} if name else {}
    return descendant(bank, whole_bank(bank), "note", note=text.strip(), arguments=arguments, name=name)


def retire(bank: GivenBank, item_ids: Sequence[str], *, reason: str, status: str = RETIRED, label: str = "") -> Bank:
    """Take items out of a bank's score; their parameters and responses stay, so that `restore` is exact.

    Retired items are not chosen and count in no score from here on: the score is another one, with an id of its own.
    The score before stays known: `with_target(bank, "mmlu_pro@1")` gives it.

    Parameters
    ----------
    bank : Bank or path
    item_ids : sequence of item ids
    reason : str
        Kept in the history.
    status : {'retired', 'suspect', 'field-test'}
        'suspect' items still count and may be chosen: a mark for whoever examines them. 'field-test' items count in
        no score, like retired ones.
    label : str
        Ends the id of the new target: ``mmlu_pro@1-clean`` instead of ``mmlu_pro@2``.

    Raises
    ------
    DataError
        When an item is not in the bank, or the bank was published without responses.
    ParameterError
        When the items have that status already, or no item would be left.

    Examples
    --------
    >>> clean = retire(bank, ["law/17"], reason="wrong key", label="clean")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    if status not in STATUSES or status == ACTIVE:
        raise ParameterError(
            f"status must be one of {', '.join(one for one in STATUSES if one != ACTIVE)}, got {status!r}."
        )
    return _marked(bank, item_ids, status, "retire", reason.strip(), label=label)


def restore(bank: GivenBank, item_ids: Sequence[str], *, reason: str) -> Bank:
    """Let items count again that were retired, suspected or on trial.

    A bank whose retired items are all restored gives the estimates of the bank before, to the last bit.

    Parameters
    ----------
    bank : Bank or path
    item_ids : sequence of item ids
    reason : str

    Raises
    ------
    DataError, ParameterError
        As `retire`.
    """
    return _marked(as_bank(bank), item_ids, ACTIVE, "restore", reason.strip())


def _marked(
    bank: Bank, item_ids: Sequence[str], status: str, operation: str, reason: str, *, label: str | None = None
) -> Bank:
    bank.check_responses("Another status of items needs")
    if isinstance(item_ids, str) or not item_ids:
        raise ParameterError(f"item_ids must be a sequence of at least one item id, got {item_ids!r}.")
    if not reason:
        raise ParameterError("reason must say why, for those who read the bank's history; got an empty text.")
    is_now = dict(zip(whole_bank(bank).item_ids, history_of(bank).status.tolist(), strict=True))
    idle = [item for item in item_ids if is_now.get(item) == STATUSES.index(status)]
    if idle:
        raise ParameterError(
            f"items must have another status than {status!r}, got {len(idle)} that have it already: {shown(idle)}."
        )
    arguments, statuses = {} if label is None else {"status": status, "label": label}, dict.fromkeys(item_ids, status)
    whole, label = whole_bank(bank), label or ""
    return descendant(bank, whole, operation, note=reason, arguments=arguments, statuses=statuses, label=label)


def add_scores(bank: GivenBank, scores: str | Path | pl.DataFrame, names: Sequence[str], *, note: str = "") -> Bank:
    """Keep scores of past models that the bank's items do not make: a leaderboard's own, over items the bank lacks.

    `estimate`, `select`, `compare`, `plan` and studies then take each name as their target. Nothing else changes.

    Parameters
    ----------
    bank : Bank or path
    scores : path or DataFrame
        One row a model, with `model_id`; fractions of one, or points up to 100. Models that it lacks, and empty cells,
        have no such score.
    names : sequence of str
        Columns to keep.
    note : str

    Raises
    ------
    ParameterError
        Without a name, or for one that a score of the bank's items has.
    DataError
        When a column is absent or holds other things than scores, or no model of the bank is there.

    Examples
    --------
    >>> bank = add_scores(bank, "leaderboard.csv", ["mmlu_full"])  # doctest: +SKIP
    >>> estimate(bank, "new-model.csv", target="mmlu_full")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    bank.check_responses("External scores are of")
    if isinstance(names, str) or not names:
        raise ParameterError(f"names must be columns of the scores, at least one, got {names!r}.")
    check_external_names(names, bank.targets.scenarios)
    table = scores if isinstance(scores, pl.DataFrame) else read_known(Path(scores), "model_id")[0]
    whole = whole_bank(bank)
    models = with_external_scores(whole.responses.models, table, names)
    changed = replace(whole, responses=whole.responses.with_tables(models=models))
    return descendant(bank, changed, "add-scores", note=note, arguments={"scores": list(names)})
