"""Banks of some items of a whole bank, and whether what was made for one bank goes with another."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from itembank.bank.bank_checks import bank_problems
from itembank.bank.bank_history import ACTIVE, STATUSES, BankHistory, KnownTarget
from itembank.bank.banks import Bank
from itembank.bank.known_scores import external_headline, external_names, win_rate_headline
from itembank.bank.selections import Selection
from itembank.errors import (
    BankError,
    DataError,
    DataWarning,
    IntegrityError,
    ParameterError,
    did_you_mean,
    quoted,
    remedy,
    shell_word,
    shown,
    warn,
)
from itembank.numerics.arrays import FloatArray
from itembank.responses.score_names import WIN_RATE
from itembank.responses.targets import ScoreTargets


def whole_bank(bank: Bank) -> Bank:
    """Return the bank of all items, also those kept aside; what changes a bank works on this one."""
    return bank if bank.whole is None else bank.whole


def history_of(bank: Bank) -> BankHistory:
    """Return the history of a bank; of one that has none, the history that begins with it."""
    if bank.history is not None:
        return bank.history
    target = known_target(bank.targets, bank.target_digest, bank.targets.weights, bank.item_model_bias)
    target = replace(target, bank_id=bank.bank_id, response_variance=bank.response_variance)
    nothing = np.zeros(bank.n_items, dtype=np.int64)
    return BankHistory("", (), (target,), 0, nothing, nothing)


def known_target(targets: ScoreTargets, digest: str, weights: FloatArray, bias: FloatArray) -> KnownTarget:
    """Return a target without a name, of which its responses tell the rest."""
    return KnownTarget(
        name="",
        digest=digest,
        bank_id="",
        within=targets.within,
        across=targets.across,
        scenarios=targets.scenarios,
        scenario_weights=targets.scenario_weights,
        weights=weights,
        item_model_bias=bias,
        response_variance=np.full(targets.n_scenarios, np.nan),
    )


def view_of(whole: Bank, history: BankHistory) -> Bank:
    """Return the bank of the current target of a history; the whole bank itself where all items belong to it."""
    known = history.targets[history.current]
    chosen, responses, calibration = known.items, whole.responses, whole.calibration
    is_all = chosen.size == whole.n_items
    if not is_all:
        responses, error = responses.take(items=chosen), calibration.log_precision_error
        calibration = replace(  # abilities stay those that all answers gave
            calibration,
            parameters=calibration.parameters.take(chosen),
            item_covariance=np.ascontiguousarray(calibration.item_covariance[chosen]),
            is_degenerate=calibration.is_degenerate[chosen],
            thresholds={name: at for name, at in calibration.thresholds.items() if name in known.scenarios},
            log_precision_error=None if error is None else error[chosen],
        )
    return replace(
        whole,
        bank_id=known.bank_id,
        responses=responses,
        calibration=calibration,
        targets=replace(
            known.score_targets(responses.items["scenario"].to_list()), rest_sizes=whole.targets.rest_sizes
        ),
        item_model_bias=known.item_model_bias,
        response_variance=known.response_variance,
        history=history,
        whole=None if is_all else replace(whole, history=None, whole=None),
    )


def history_of_view(bank: Bank, bank_id: str) -> BankHistory | None:
    """Return the history of a bank of the items of its target alone, under another id; others are forgotten."""
    history = bank.history
    if history is None:
        return None
    known = history.targets[history.current]
    alone = replace(known, bank_id=bank_id, weights=known.weights[known.items])
    status, since = np.where(history.counted, history.status, STATUSES.index(ACTIVE)), history.since[known.items]
    return replace(history, targets=(alone,), current=0, status=status[known.items], since=since)


def with_target(bank: Bank, target: str) -> Bank:
    """Return the bank that gives another score.

    Everything that takes a bank takes it: estimates from answers to items that were retired since, too.

    Parameters
    ----------
    bank : Bank
    target : str
        'mean_win_rate', against past models, or an external score that the bank keeps: it replaces the
        overall score. Or the name or digest of an earlier set of items.

    Raises
    ------
    BankError
        When the bank does not know the target, or has not all of its items any more.
    DataError
        When the score is known of too few past models.
    """
    if target in (bank.target_id, bank.target_digest, bank.targets.last):
        return bank
    if target in headline_names(bank):
        known = bank.known_scores
        if target == WIN_RATE:
            headline = win_rate_headline(known.value[:, :-1], known.variance[:, :-1])
        else:
            headline = external_headline(bank.responses.models, target, known.value[:, -1])
        view = replace(bank, targets=replace(bank.targets, last=target), headline=headline)
        view.cache.share(bank.cache)
        return view
    targets = () if bank.history is None else bank.history.targets
    for number, one in enumerate(targets):
        if bank.history is not None and target and target in (one.name, one.digest):
            view = view_of(whole_bank(bank), replace(bank.history, current=number))
            problems = bank_problems(view)
            if problems or view.target_digest != one.digest:  # only the current target was checked with the file
                raise IntegrityError(f"target {quoted(target)} is not what its bank says: {' '.join(problems)}")
            view.cache.bank_id = view.bank_id
            if bank.cache.user_folder is not None:
                folder = bank.cache.user_folder
                view.cache.user_folder = folder.with_name(f"{folder.name}-{view.target_digest}")
            return view
    names = [*([one.target_id for one in targets] or [bank.targets.last]), *headline_names(bank)]
    advice = "Take the version of the bank that it was made for."
    if target in bank.targets.scenarios:
        advice = "Scores of scenarios are in every estimate: leave the target out."
    raise BankError(
        f"the target must be one that bank {bank.bank_id} can give, {shown(names)}, got {target!r}."
        f"{did_you_mean(target, names)} {advice}"
    )


def headline_names(bank: Bank) -> tuple[str, ...]:
    """Names of the scores that may replace the overall one; none of a bank without past models' answers."""
    return () if bank.published is not None else (WIN_RATE, *external_names(bank.responses.models))


def refuse_version(bank: Bank, target: str) -> None:
    """Refuse the id of a set of items as a target, which only `estimate` takes."""
    if bank.history is not None and target in {one.target_id for one in bank.history.targets}:
        way = remedy(f"give the bank with_target(bank, {target!r})", f"itembank estimate --target {shell_word(target)}")
        raise ParameterError(f"a target must be a score by its name, got {target!r}, a set of items. For that: {way}.")


def asked_for(bank: Bank, target: str) -> Bank:
    """Return the bank that gives a headline score, where the target is one; else the bank as it is."""
    refuse_version(bank, target)
    return with_target(bank, target) if target in headline_names(bank) else bank


def check_made_for(bank: Bank, selection: Selection) -> None:
    """Warn of a selection that was made for a stranger's bank.

    One of the same score goes with every bank that estimates it, however that was calibrated, and one of an ancestor
    goes with its descendants, as long as all its items still count.
    """
    aside = aside_items(bank, selection.item_ids)
    if aside:
        raise DataError(
            f"the items of a selection must count in the score of bank {bank.bank_id}, and {len(aside)} of "
            f"{selection.n_items} no longer do: {shown(aside)}. Choose again from this bank, or estimate the score "
            f"that it was made for{_in_words(selection.target)}."
        )
    is_related = selection.bank in (*bank.ids, *_ancestors(bank))
    if selection.bank and not is_related and selection.target_digest != bank.target_digest:
        warn(
            f"this selection was made for bank {selection.bank}, not {bank.bank_id}: its weights may not fit. "
            "Choose again from this bank, or estimate with the bank it was made for.",
            DataWarning,
        )
    history = bank.history
    before = [] if history is None else [one.items for one in history.targets if one.digest == selection.target_digest]
    n_new = np.setdiff1d(history.targets[history.current].items, before[0]).size if history and before else 0
    if n_new:
        warn(
            f"{n_new} of {bank.n_items} items came after this selection was made, which could choose none of them. "
            f"Choose again from this bank, or estimate the score that it was made for{_in_words(selection.target)}.",
            DataWarning,
        )


def repeatable(bank: Bank, selection: Selection) -> Selection:
    """Return a selection whose recipe this bank can follow: items that it had to leave out may have been retired."""
    recipe = selection.recipe or {}
    excluded = recipe.get("excluded")
    if not isinstance(excluded, list | tuple):  # a file may hold anything
        return selection
    aside = set(aside_items(bank, list(map(str, excluded))))
    kept = [one for one in excluded if str(one) not in aside]
    return replace(selection, recipe={**recipe, "excluded": kept}) if aside else selection


def aside_items(bank: Bank, item_ids: Sequence[str]) -> list[str]:
    """Return those of some items that the bank keeps aside: they count in its score no more."""
    if not bank.n_aside:
        return []
    aside = set(whole_bank(bank).item_ids) - set(bank.item_ids)
    return [item for item in item_ids if item in aside]


def bank_for(bank: Bank, made_for: str, target_digest: str) -> Bank | None:
    """Return the bank with which what was made for another goes on; None where neither it nor a descendant is given.

    `made_for` and `target_digest` are the bank's id and the digest of the score, which is empty where it is not known.
    """
    if bank.bank_id == made_for:
        return bank
    if not target_digest or bank.history is None or made_for not in _ancestors(bank):
        return None
    if target_digest not in {one.digest for one in bank.history.targets}:
        return None
    return with_target(bank, target_digest)


def _in_words(target: str) -> str:
    if not target:
        return ""
    return f": {remedy(f'with_target(bank, {target!r})', f'--target {shell_word(target)}')}"


def _ancestors(bank: Bank) -> tuple[str, ...]:
    return () if bank.history is None else bank.history.ancestors
