"""What answers that were lost do to a verdict."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl

from itembank.errors import DataError, remedy, shown
from itembank.gating.gate_spec import GateSpec
from itembank.gating.results import Gate, Look, Lost, LostBySide, signed
from itembank.readers.agreement import only_items
from itembank.responses.error_kinds import Errors
from itembank.responses.lost_answers import one_policy
from itembank.responses.responses import ResponseMatrix
from itembank.tables import all_of

WAYS: Final[Mapping[str, tuple[float, float]]] = {
    "missing": (math.nan, math.nan),
    "wrong": (0.0, 0.0),
    "worst": (1.0, 0.0),
    "best": (0.0, 1.0),
}
"""What a lost answer of the baseline and of the candidate may count as: nothing (NaN), wrong (0), or right (1)."""
DECISIVE: Final[Mapping[Errors, Sequence[str]]] = {
    "missing": ("missing",),
    "wrong": ("wrong",),
    "bounds": ("worst", "best"),
}
"""Ways that the verdict rests on, by policy."""
Judge = Callable[[ResponseMatrix, ResponseMatrix], Gate]
JudgeUpTo = Callable[[ResponseMatrix, ResponseMatrix, float], Gate]
"""Takes every look at no more than so many items, whichever decides; lost answers complete a stage, too."""


def counted(
    baseline: ResponseMatrix, candidate: ResponseMatrix, values: tuple[float, float]
) -> tuple[ResponseMatrix, ResponseMatrix]:
    """Count lost answers of the two as values (`WAYS`), and leave out items that the baseline then has no answer to."""
    one, other = (of.with_lost_as(value) for of, value in zip((baseline, candidate), values, strict=True))
    gone = set(asked_items(baseline)) - set(asked_items(one))
    kept = [place for place, item in enumerate(other.item_ids) if item not in gone] if gone else None
    return one, other if kept is None else other.take(items=np.array(kept, dtype=np.int64))


def as_counted(
    baseline: ResponseMatrix, candidate: ResponseMatrix, errors: Errors | None
) -> tuple[ResponseMatrix, ResponseMatrix]:
    """Count lost answers by a policy, or as the responses say; 'bounds' leaves them out."""
    policy = one_policy((baseline.lost, candidate.lost), errors)
    return counted(baseline, candidate, WAYS["wrong" if policy == "wrong" else "missing"])


def with_lost(
    baseline: ResponseMatrix,
    candidate: ResponseMatrix,
    spec: GateSpec,
    judge: Judge,
    judge_upto: JudgeUpTo | None = None,
) -> Gate:
    """Judge a candidate with lost answers counted as `spec.errors` says, and say what they do to the verdict.

    Left out, they make it undecided where it would be another one if they counted as wrong. By 'bounds' there is a
    verdict if it is the same whichever lost answers were right. A plan of stages, which gives `judge_upto`, has left
    out or counted those of the baseline, and has those of the candidate run again that count as missing.
    """
    in_stages = judge_upto is not None
    for name, one in (("baseline", baseline), ("candidate", candidate)):
        check_one_model(name, one)
    asked = asked_items(baseline)
    sides = baseline, only_items(candidate, asked)[0]
    policy = one_policy((side.lost for side in sides), spec.errors)
    if not any(one.lost is not None and one.lost.n.any() for one in sides):
        found = judge(*counted(baseline, candidate, WAYS["missing"]))
        return found if in_stages else _told_of_absent(found, *sides)
    if policy == "missing" and not sides[1].observed.any():
        lost = _by_side(sides[1])
        raise DataError(
            f"the candidate lost {all_of(lost.n, 'answer')} ({lost.kinds}), and nothing is known of it. Run them "
            f"again. {how_to_count()}."
        )
    planned = math.nan if baseline.lost is None else baseline.lost.value
    ways: dict[str, Gate] = {}
    for way in DECISIVE[policy] if in_stages else dict.fromkeys((*DECISIVE[policy], "missing", "wrong")):
        first, second = WAYS[way]
        with nullcontext() if way in DECISIVE[policy] else suppress(DataError):  # of one that lost all it was asked
            ways[way] = judge(*counted(baseline, candidate, (planned if in_stages else first, second)))
    shown = ways
    if policy == "bounds" and judge_upto is not None:  # each case has stopped at a look of its own
        is_same = ways["worst"].verdict == ways["best"].verdict != "undecided"
        most = min(one.last.n_items for one in ways.values()) if is_same else math.inf
        shown = {}
        for way in ("worst", "best", "missing"):
            with suppress(DataError):  # a stage of which all was lost
                shown[way] = judge_upto(*counted(baseline, candidate, (planned, WAYS[way][1])), most)
    found = _whichever(ways, shown) if policy == "bounds" else ways[policy]
    outcomes = {name: (shown[name].difference, one.verdict) for name, one in ways.items()}
    told = Lost(policy, _by_side(sides[0]), _by_side(sides[1]), outcomes)
    if found.verdict == "pass" and told.share > (1.0 if spec.max_lost is None else spec.max_lost):
        told, found = replace(told, reason="too many"), replace(found, verdict="undecided")
    elif policy == "missing" and "wrong" in ways and _is_turned(found, ways["wrong"]):
        told = replace(told, reason="decide")
        found = replace(found, verdict="undecided", items_to_decide=None, cost_to_decide={})
    elif policy == "bounds" and found.verdict == "undecided" and ways["worst"].verdict != ways["best"].verdict:
        told = replace(told, reason="decide")
    return replace(found, lost=told, notes=(told.in_words, *found.notes))


def _is_turned(found: Gate, if_wrong: Gate) -> bool:
    """Whether the verdict is another one if lost answers are wrong; a failure stays one that is no longer proved."""
    if found.verdict == "fail":
        return if_wrong.verdict == "pass" or (if_wrong.verdict == "fail" and if_wrong.low * found.low < 0.0)
    return if_wrong.verdict != found.verdict


def _whichever(ways: Mapping[str, Gate], shown: Mapping[str, Gate]) -> Gate:
    """Put the worst and the best case together: bounds that hold in both, and a verdict if both have the same.

    `shown` has the looks, the same ones in each case.
    """
    worst, best, found = shown["worst"], shown["best"], shown.get("missing", shown["worst"])
    looks = []
    for low, high, middle in zip(worst.looks, best.looks, found.looks, strict=True):
        difference = middle.difference if "missing" in shown else 0.5 * (low.difference + high.difference)
        by_miss, by_alarm = (
            (min(one[0], other[0]), max(one[1], other[1]))
            for one, other in ((low.by_miss, high.by_miss), (low.by_alarm, high.by_alarm))
        )
        ends = min(low.low, high.low), max(low.high, high.high)
        is_exact = low.is_exact and high.is_exact and ends[0] == ends[1]
        looks.append(Look(middle.n_items, difference, *ends, by_miss, by_alarm, is_exact))
    verdict = ways["worst"].verdict if ways["worst"].verdict == ways["best"].verdict else "undecided"
    if shown is not ways:  # of stages: what is said of both cases
        notes = tuple(note for note in worst.notes if note in best.notes)
        found = replace(found, notes=notes, n_items=worst.n_items)
    return replace(
        found,
        verdict=verdict,
        looks=tuple(looks),
        items_to_decide=None,
        cost_to_decide={},
        next_items=ways["worst"].next_items or ways["best"].next_items if verdict == "undecided" else (),
    )


def _told_of_absent(found: Gate, baseline: ResponseMatrix, candidate: ResponseMatrix) -> Gate:
    """Say of a nearly full run that passes what answers do that it has no row of, if they were lost."""
    total, n_known = int(baseline.observed.sum()), int(candidate.observed.sum())
    if_wrong = float(np.nansum(candidate.responses) - np.nansum(baseline.responses)) / total
    is_turned = found.verdict == "pass" and if_wrong <= -found.spec.margin
    # with fewer than four fifths a candidate was hardly meant to run all
    if found.bank_id or not is_turned or not 0.8 * total <= n_known < total:
        return found
    note = (
        f"the candidate's results have no row of {total - n_known} of the baseline's {total} items. If these were run, "
        f"and their answers lost: counted as wrong, the difference is {signed(if_wrong)} points"
    )
    return replace(found, notes=(*found.notes, note))


def check_one_model(name: str, responses: ResponseMatrix) -> None:
    """Refuse a baseline or a candidate that is not one model."""
    if responses.n_models != 1:
        raise DataError(
            f"the {name} must be one model, got {responses.n_models}: {shown(responses.model_ids) or 'none'}. Give "
            f"{remedy('responses.take(models=[...])', 'a file that has the rows of one model_id alone')}."
        )


def asked_items(responses: ResponseMatrix) -> list[str]:
    """Items that the one model of these responses was asked."""
    return responses.items["item_id"].filter(pl.Series(responses.asked[0])).to_list()


def _by_side(responses: ResponseMatrix) -> LostBySide:
    every, lost = responses.with_lost_as(0.0), responses.lost
    n_asked = int(every.observed.sum() if every.n_trials is None else every.n_trials.sum())
    return LostBySide(0, n_asked, "") if lost is None else LostBySide(int(lost.n.sum()), n_asked, lost.in_words)


def how_to_count() -> str:
    """Advise the policies by which lost answers count."""
    return "To count what was lost: " + remedy("errors='wrong' or 'bounds'", "--errors wrong or bounds")
