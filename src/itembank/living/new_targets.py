"""Targets of a bank that changes: the scores it gave before, and the one it gives from now on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from itembank.bank.bank_history import BankHistory, check_name
from itembank.bank.banks import Bank
from itembank.bank.fingerprint import bank_fingerprint
from itembank.bank.known_targets import KnownTarget, target_digest
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import ParameterError
from itembank.numerics.arrays import IntArray
from itembank.responses.targets import ScoreTargets


def known_targets_of(bank: Bank) -> tuple[KnownTarget, ...]:
    """Return the one target of a bank without history."""
    targets = bank.targets
    return (
        KnownTarget(
            name="",
            digest=bank.target_digest,
            bank_id=bank.bank_id,
            within=targets.within,
            across=targets.across,
            scenarios=targets.scenarios,
            scenario_weights=targets.scenario_weights,
            weights=targets.weights,
            item_model_bias=bank.item_model_bias,
            response_variance=bank.response_variance,
        ),
    )


def named(history: BankHistory) -> list[KnownTarget]:
    """Give targets without a name one, where the bank has a name: that of the first version that gave them."""
    if not history.name:
        return list(history.targets)
    majors = {change.target_id: change.version.split(".")[0] for change in reversed(history.changes)}
    return [
        one if one.name else replace(one, name=f"{history.name}@{majors.get(one.digest, '1')}")
        for one in history.targets
    ]


def score_targets_of(
    whole: Bank, counted: IntArray, known: Sequence[KnownTarget], scheme: ScoreTargets
) -> tuple[str, ScoreTargets]:
    """Return the digest and the score targets of the items that count.

    Where a known target has these very items its weights stay; else they are made anew by the same rule.
    """
    items = whole.responses.items[counted]
    for one in known:
        if np.array_equal(one.items, counted):
            return one.digest, one.score_targets(items["scenario"].to_list())
    targets = _in_order(ScoreTargets.create(items, within=scheme.within, across=scheme.across), scheme.scenarios)
    return target_digest(items["item_id"].to_list(), targets), targets


def _in_order(targets: ScoreTargets, wanted: Sequence[str]) -> ScoreTargets:
    """Put scenarios into the order of the bank before; new ones last."""
    names = [
        *(name for name in wanted if name in targets.scenarios),
        *(n for n in targets.scenarios if n not in wanted),
    ]
    order = np.array([targets.scenarios.index(name) for name in names])
    return replace(
        targets,
        scenarios=tuple(names),
        scenario_index=np.argsort(order)[targets.scenario_index],
        scenario_weights=targets.scenario_weights[order],
    )


def measured(known: KnownTarget, whole: Bank, *, is_other: bool) -> KnownTarget:
    """Carry a target over to a changed bank; with `is_other`, models, answers or parameters of its items changed."""
    weights = np.concatenate([known.weights, np.full(whole.n_items - known.weights.size, np.nan)])
    known = replace(known, weights=weights)
    if not is_other:
        return known
    targets = known.score_targets(whole.responses.items["scenario"].gather(known.items).to_list())
    variance = response_variance(whole.responses.take(items=known.items), targets)
    return _with_id(replace(known, response_variance=variance), targets, whole)


def new_target(
    whole: Bank,
    counted: IntArray,
    score: tuple[str, ScoreTargets],
    known: Sequence[KnownTarget],
    before: BankHistory,
    *,
    version: str,
    label: str,
) -> KnownTarget:
    """Name a score that the bank did not give before, and say what is known of its scenarios.

    The item model's bias stays what was measured of the scenario before: few items make little difference to it.
    """
    digest, targets = score
    last = known[before.current]
    bias = dict(zip(whole.targets.scenarios, whole.item_model_bias.tolist(), strict=True))
    bias |= dict(zip(last.scenarios, last.item_model_bias.tolist(), strict=True))
    weights = np.full(whole.n_items, np.nan)
    weights[counted] = targets.weights
    made = KnownTarget(
        name=_name(before.name, last, known, version=version, label=label),
        digest=digest,
        bank_id="",
        within=targets.within,
        across=targets.across,
        scenarios=targets.scenarios,
        scenario_weights=targets.scenario_weights,
        weights=weights,
        item_model_bias=np.array([bias.get(name, np.nan) for name in targets.scenarios]),
        response_variance=response_variance(whole.responses.take(items=counted), targets),
    )
    return _with_id(made, targets, whole)


def _name(bank: str, last: KnownTarget, known: Sequence[KnownTarget], *, version: str, label: str) -> str:
    """Name a new target: by the version's major number, or by the last target's name and a label."""
    if not bank:
        if label:
            raise ParameterError(f"a target is labelled after the bank's name, and this bank has none, got {label!r}.")
        return ""
    name = f"{bank}@{version.partition('.')[0]}"
    if label:
        of, _, rest = last.name.rpartition("@")
        name = f"{of}@{rest.partition('-')[0]}-{check_name(label)}"
    if any(one.name == name for one in known):
        raise ParameterError(f"a target's name must be new, got {name!r}, which is another one. Choose another label.")
    return name


def _with_id(known: KnownTarget, targets: ScoreTargets, whole: Bank) -> KnownTarget:
    """Give the bank of this target its id."""
    prior = whole.calibration.prior
    numbers = (prior.mean, prior.covariance, known.item_model_bias, known.response_variance)
    responses, parameters = whole.responses, whole.parameters
    if known.items.size < whole.n_items:
        responses, parameters = responses.take(items=known.items), parameters.take(known.items)
    return replace(known, bank_id=bank_fingerprint(responses, parameters, targets, *numbers))
