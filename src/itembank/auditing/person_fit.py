"""The verb `check_fit`: how well the answers of new models fit a bank."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from itembank.auditing.fit_groups import item_groups
from itembank.auditing.model_fits import Answered, model_fits
from itembank.auditing.past_fit import check_folds, patterns
from itembank.auditing.person_fit_results import FitCheck, ModelFit
from itembank.auditing.run_conditions import check_marked_alike, with_same_content
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.banks import Bank
from itembank.estimation.observations import bank_positions, known_items
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.session_spec import SessionSpec

PART_OF_FOLDS = 0.5
"""Of the progress bar, for fitting without some models."""


def check_fit(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    reference: Sequence[str] | None = None,
    order: Mapping[str, Sequence[str]] | None = None,
    sessions: Mapping[str, SessionSpec] | None = None,
    ignore_unknown: bool = False,
    progress: ProgressCallback = silent,
) -> FitCheck:
    """Examine how well the answers of new models fit a bank, each model by itself.

    Everything is compared with the bank's own models, left out in turn, on the same items: no table of the normal
    distribution is used. What the tables say of other prompts, versions and harnesses than the bank's comes first.

    Parameters
    ----------
    bank : Bank or path
        With its responses and ten models or more.
    responses : ResponseMatrix, path or paths
        Of new models: full runs, selections or sessions. Items whose content is not the bank's are left out.
    groups : mapping of name to item ids, optional
        Items that are suspected of having leaked, by a name of yours: is a model better on them than its answers to
        other items let expect?
    reference : item ids, optional
        Items that cannot have leaked. Groups are compared with these alone; without groups all other items are.
    order : mapping of model id to item ids, optional
        The order in which a model answered, for a CUSUM: do answers get worse or better on the way?
    sessions : mapping of model id to SessionSpec, optional
        Settings of the adaptive session that asked a model whose order is known (`journal_responses` reads all of it
        from journals): it is compared with such sessions of the bank's models, which take seconds the first time.
    ignore_unknown : bool
        Leave out items that the bank does not hold.
    progress : ProgressCallback

    Returns
    -------
    FitCheck

    Raises
    ------
    DataError
        When the bank has no responses or fewer than ten models, an item is not in it, or answers are graded where
        those of the bank are right or wrong.
    ParameterError
        When a group is empty, or shares items with the reference.

    Examples
    --------
    >>> check = check_fit(bank, "new.csv", groups={"public": public_ids})  # doctest: +SKIP
    >>> check.verdicts  # doctest: +SKIP
    """
    bank = as_bank(bank)
    check_folds(bank, part_of(progress, 0.0, PART_OF_FOLDS))
    matrix = as_new_responses(bank, responses, same_content=False)
    matrix = known_items(bank, matrix, None, ignore_unknown=ignore_unknown)
    of_bank = item_groups(bank, groups or {}, reference)
    matrix, changes = with_same_content(bank, matrix)
    check_marked_alike(bank, matrix)
    models: dict[str, ModelFit] = {}
    sets = list(_answered(bank, matrix, order or {}, sessions or {}))
    for number, one in enumerate(sets):
        start, end = (PART_OF_FOLDS + (1.0 - PART_OF_FOLDS) * (number + k) / len(sets) for k in (0, 1))
        progress("examining models", start)
        fits = model_fits(bank, one, of_bank, progress=part_of(progress, start, end))
        models.update((found.model_id, found) for found in fits)
    in_order = tuple(models[name] for name in matrix.model_ids if name in models)
    return FitCheck(bank.bank_id, changes, in_order)


def _answered(
    bank: Bank, matrix: ResponseMatrix, order: Mapping[str, Sequence[str]], sessions: Mapping[str, SessionSpec]
) -> Iterator[Answered]:
    """Put models together that answered the same items; each whose order is known stands alone."""
    positions = bank_positions(bank, matrix.items["item_id"], "responses")
    names = np.array(matrix.model_ids, dtype=object)
    is_ordered = np.isin(names, list(order))
    for rows, columns in patterns(np.where(is_ordered[:, None], np.nan, matrix.responses)):
        by_position = columns[np.argsort(positions[columns])]
        yield Answered(tuple(names[rows]), positions[by_position], matrix.responses[np.ix_(rows, by_position)], False)
    column_of = {item: column for column, item in enumerate(matrix.item_ids)}
    for row in np.flatnonzero(is_ordered).tolist():
        wanted = [column_of[item] for item in order[names[row]] if item in column_of]
        columns = np.array([one for one in wanted if not np.isnan(matrix.responses[row, one])], dtype=np.int64)
        if columns.size:
            answers = matrix.responses[np.ix_(np.array([row]), columns)]
            yield Answered((names[row],), positions[columns], answers, True, sessions.get(names[row]))
