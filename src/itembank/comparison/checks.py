"""Checks of a comparison, which refuse or warn."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from itembank.bank.bank_views import asked_for, headline_names
from itembank.bank.banks import Bank
from itembank.comparison.pairs import model_pairs, shared_counts
from itembank.errors import N_SHOWN, DataError, DataWarning, ParameterError, did_you_mean, shown, warn
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

MANY_ROWS = 500_000
MAXIMUM_ROWS = 5_000_000
"""Each row is some 20 numbers: a tenth of a gigabyte for many rows, nearly one for the most."""


def chosen_models(responses: ResponseMatrix, models: Sequence[str] | None) -> ResponseMatrix:
    """Rows of the models to compare; refuses fewer than two, and one named twice."""
    if models is not None:
        wanted = [str(name) for name in models]
        repeated = [name for name, count in Counter(wanted).items() if count > 1]
        if repeated:
            raise ParameterError(f"every model to compare must be named once, got {shown(repeated)} more than once.")
        responses = responses.take(models=responses.model_indices(wanted))
    if responses.n_models < 2:
        raise ParameterError(
            f"a comparison needs at least two models, got {shown(responses.model_ids) or 'none'}. "
            "Give the responses of another one, or ask itembank estimate for its score."
        )
    return responses


def target_names(bank: Bank, target: str | Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Names of the targets asked for, and where they stand among the bank's."""
    known = bank.targets.names
    wanted = known if target == "all" else (target,) if isinstance(target, str) else tuple(target)
    wanted = tuple(dict.fromkeys(wanted))
    absent = [name for name in wanted if name not in known]
    if absent or not wanted:
        raise ParameterError(
            f"target must be 'all' or one of {shown(known, limit=20)}, got {shown(absent) or 'none'}."
            f"{did_you_mean(absent, known)}"
        )
    return wanted, np.array([known.index(name) for name in wanted], dtype=np.int64)


def bank_and_targets(bank: Bank, target: str | Sequence[str]) -> tuple[Bank, str | Sequence[str]]:
    """Return the bank that gives the headline score among the targets, and the targets; one bank gives one.

    Raises
    ------
    ParameterError
        For two headline scores, or one beside the overall score, in whose place it stands.
    """
    if bank.headline is not None and target == OVERALL:
        return bank, bank.targets.last
    known = headline_names(bank)
    names = [target] if isinstance(target, str) else list(target)
    asked = [name for name in names if name in known]
    if len(asked) + (bool(asked) and OVERALL in names) > 1:
        raise ParameterError(
            f"one comparison is of one of {shown([OVERALL, *known])}, got {shown(names)}. Compare once for each."
        )
    return (asked_for(bank, asked[0]) if asked else bank), target


def check_size(n_models: int, n_targets: int) -> None:
    """Warn of many rows, refuse what would not fit into memory."""
    n_rows = n_models * (n_models - 1) // 2 * n_targets
    advice = "Name fewer models, or ask for fewer targets."
    if n_rows > MAXIMUM_ROWS:
        raise ParameterError(
            f"a comparison holds at most {MAXIMUM_ROWS:,} rows, {n_models} models make {n_rows:,}. {advice}"
        )
    if n_rows > MANY_ROWS:
        warn(f"comparing all pairs of {n_models} models makes {n_rows:,} rows. {advice}", DataWarning)


def check_shared(model_ids: Sequence[str], observed: BoolArray) -> None:
    """Refuse pairs of models without an item in common."""
    shared = shared_counts(observed)
    apart = np.flatnonzero(shared == 0)
    if apart.shape[0]:
        first, second = model_pairs(len(model_ids))
        names = [f"{model_ids[first[k]]} and {model_ids[second[k]]}" for k in apart[: N_SHOWN + 1]]
        raise DataError(
            f"models to compare must share items, {apart.shape[0]} of {shared.shape[0]} pairs share none: "
            f"{shown(names)}. Run the same selection on both, or compare their estimates from itembank estimate."
        )
