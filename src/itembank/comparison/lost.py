"""What answers that were lost do to differences."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.comparisons import Comparison, Found, LostByModel, Ranking
from itembank.comparison.difference_tests import Evidence, intervals_and_tests
from itembank.comparison.pairs import model_pairs
from itembank.estimation.estimator_specs import DifferenceEstimand
from itembank.responses.responses import ResponseMatrix

Find = Callable[[ResponseMatrix, DifferenceEstimand | None], Found]


def compared(responses: ResponseMatrix, find: Find, spec: ComparisonSpec) -> Comparison:
    """Compare models as `find` does, with lost answers counted as the responses say."""
    lost, ends, told = responses.lost, None, None
    plain = responses if lost is None else responses.with_lost_as(lost.value)
    found = find(plain, spec.estimand)
    if lost is not None and lost.n.any():
        wrong = responses.with_lost_as(0.0)
        if_wrong = found if lost.errors == "wrong" else find(wrong, found.estimand)
        if lost.errors == "bounds":
            ends = _ends(find(_both(responses.with_lost_as(1.0), wrong), found.estimand).evidence, responses.n_models)
        kinds = tuple(lost[row].in_words for row in range(responses.n_models))
        told = LostByModel(lost.errors, lost.n.sum(axis=1), kinds, if_wrong.evidence.difference)
    spec = replace(spec, estimand=found.estimand)
    difference, tests = intervals_and_tests(found.evidence, spec, ends)
    return Comparison(
        model_ids=tuple(responses.model_ids),
        targets=found.targets,
        difference=difference,
        tests=tests,
        pairs=found.pairs,
        ranking=Ranking.of(responses.model_ids, found.targets, found.score, difference.value, tests, level=spec.level),
        spec=spec,
        method=found.method,
        interval_kind=found.interval_kind,
        bank_id=found.bank_id,
        target_id=found.target_id,
        typicality=found.typicality,
        last=found.last,
        remarks=found.remarks,
        lost=told,
    )


def _both(right: ResponseMatrix, wrong: ResponseMatrix) -> ResponseMatrix:
    """Put every model there twice: first with its lost answers as right ones, then as wrong ones."""
    parts = (right, wrong)
    trials = [one.n_trials if one.n_trials is not None else one.observed.astype(np.int64) for one in parts]
    return ResponseMatrix.create(
        np.vstack([one.responses for one in parts]),
        model_ids=[f"{name} ({how})" for how in ("right", "wrong") for name in right.model_ids],
        items=right.items,
        n_trials=np.vstack(trials) if any(one.n_trials is not None for one in parts) else None,
    )


def _ends(every: Evidence, n_models: int) -> tuple[Evidence, Evidence]:
    """Return the evidence of the lowest and the highest difference of each pair, from that of all pairs of `_both`.

    B - A is lowest if what A lost was right and what B lost was wrong. It is highest the other way round, of which
    the pairs have the opposite: A's wrong answers come after B's right ones.
    """
    first, second = model_pairs(2 * n_models)
    place = np.zeros((2 * n_models, 2 * n_models), dtype=np.int64)
    place[first, second] = np.arange(first.size)
    a, b = model_pairs(n_models)
    lowest, highest = (every.take(rows) for rows in (place[a, n_models + b], place[b, n_models + a]))
    return lowest, highest.turned
