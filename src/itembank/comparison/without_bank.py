"""Differences of models from their answers to the same items alone, without a bank."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.comparison.compared_models import check_number, check_shared, wanted_targets
from itembank.comparison.comparisons import Found, ModelPairs
from itembank.comparison.difference_tests import Evidence, mcnemar_exact, paired_t
from itembank.comparison.pairs import model_pairs, shared_counts
from itembank.errors import DataError, remedy, shown
from itembank.estimation.estimates import Typicality
from itembank.estimation.estimator_specs import QUESTIONS, REPEATED, RUN, DifferenceEstimand, needs_repeats
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.paired import paired_look, run_chance
from itembank.progress import ProgressCallback, silent
from itembank.readers.agreement import in_both, other_in
from itembank.responses.error_kinds import Errors
from itembank.responses.how_read import CONTENT, check_read_alike
from itembank.responses.lost_answers import LostAnswers, one_policy
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.tabular import Fact

FEWEST_SHARED = 2
"""Items that it takes to see how differences vary."""


def joined(
    sources: Sequence[ResponseMatrix], errors: Errors | None = None, *, allow_mixed_prompts: bool = False
) -> ResponseMatrix:
    """Put responses of several files together, with all items that any of them has; lost answers count as `errors`.

    A model that is in several continues if it answered other items there. If it answered the same, these are runs of
    their own, with a number after the name.
    """
    policy = one_policy((source.lost for source in sources), errors)
    sources = [one.with_errors(policy) for one in sources]
    if len(sources) == 1:
        return sources[0]
    items = sources[0].items
    for one in sources[1:]:
        changed = other_in(in_both(one.items, items, CONTENT), CONTENT)
        if changed:
            raise DataError(
                f"models to compare must have answered the same items, got {len(changed)} with another content: "
                f"{shown(changed)}. The benchmark changed between the runs: run one of them anew."
            )
        advice = f"To compare them anyway: {remedy('allow_mixed_prompts=True', '--allow-mixed-prompts')}."
        check_read_alike(one.items, items, whose="others", advice=advice, is_ignored=allow_mixed_prompts)
        items = pl.concat([items, one.items], how="diagonal_relaxed").unique(
            "item_id", keep="first", maintain_order=True
        )
    place = {item: column for column, item in enumerate(items["item_id"])}
    runs: list[tuple[str, FloatArray, IntArray, IntArray, IntArray]] = []  # With lost answers and their kinds
    for one in sources:
        columns = np.array([place[item] for item in one.item_ids], dtype=np.int64)
        for row, name in enumerate(one.model_ids):
            asked = one.asked[row]
            where, answers = columns[asked], one.responses[row, asked]
            like = (run for run in runs if run[0] == name and np.isnan(run[1][where]).all() and not run[3][where].any())
            run = next(like, None)
            if run is None:
                run = (name, np.full(len(place), np.nan), *np.zeros((3, len(place)), dtype=np.int64))
                runs.append(run)
            run[1][where] = answers
            run[2][where] = ~np.isnan(answers) if one.n_trials is None else one.n_trials[row, asked]
            if one.lost is not None:
                run[3][where], run[4][where] = one.lost.n[row, asked], one.lost.kind[row, asked]
    names = [name for name, *_ in runs]
    numbered = [
        f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)
    ]
    lost = LostAnswers(np.stack([run[3] for run in runs]), np.stack([run[4] for run in runs]), policy)
    is_repeated = any(one.n_trials is not None for one in sources)
    return ResponseMatrix.create(
        np.stack([run[1] for run in runs]),
        model_ids=numbered,
        items=items,
        n_trials=np.stack([run[2] for run in runs]) if is_repeated else None,
        lost=lost if lost.n.any() else None,
    )


def compare_answers(
    responses: ResponseMatrix,  # Of two models or more
    target: str | Sequence[str],
    estimand: DifferenceEstimand,
    *,
    progress: ProgressCallback = silent,
) -> Found:
    """Compare all pairs of models by the items that both answered, as `gate` does two runs.

    A scenario's score is the mean over its items, the overall one that over all items. Of a pair the model that
    answered more items is the baseline (`paired_look`).
    """
    n_models, values, trials = responses.n_models, responses.responses, responses.n_trials
    scenarios = responses.items["scenario"].to_numpy()
    known = tuple(dict.fromkeys(scenarios.tolist()))
    targets = wanted_targets((*known, *([] if OVERALL in known else [OVERALL])), target)
    check_number(n_models, len(targets))
    check_shared(responses.model_ids, shared_counts(~np.isnan(values)), least=FEWEST_SHARED)
    columns = [np.arange(scenarios.size) if name == OVERALL else np.flatnonzero(scenarios == name) for name in targets]
    first, second = model_pairs(n_models)
    shape = (first.size, len(targets))
    difference, variance, degrees, plain, of_many = np.full((5, *shape), np.nan)
    unit, fell, rose, only_a, only_b = np.zeros((5, *shape))
    shared = np.zeros(shape, dtype=np.int64)
    for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if k % 100 == 0:
            progress("comparing pairs of models", k / first.size)
        for t, places in enumerate(columns):
            x, y = values[a, places], values[b, places]
            d = (y - x)[~np.isnan(x + y)]
            shared[k, t] = d.size
            only_a[k, t], only_b[k, t] = np.sum(d < 0.0), np.sum(d > 0.0)
            if d.size < FEWEST_SHARED:
                continue
            plain[k, t], of_many[k, t] = d.mean(), d.var(ddof=1) / d.size
            chance = None
            if estimand == REPEATED:
                chance = None if trials is None else run_chance(values[[a, b]][:, places], trials[[a, b]][:, places])
                if chance is None:
                    raise needs_repeats()
            is_turned = np.isnan(x).sum() > np.isnan(y).sum()
            look = paired_look(*((y, x) if is_turned else (x, y)), is_finite=estimand != QUESTIONS, chance=chance)
            difference[k, t] = -look.difference if is_turned else look.difference
            variance[k, t], unit[k, t], degrees[k, t] = look.variance, look.unit, look.degrees
            fell[k, t], rose[k, t] = look.flips[::-1] if is_turned else look.flips
    observed = np.column_stack([(~np.isnan(values[:, places])).sum(axis=1) for places in columns])
    score = np.column_stack(
        [_scores(values[:, places], difference[:, t], shared[:, t]) for t, places in enumerate(columns)]
    )
    if not responses.is_binary:
        only_a, only_b = np.full((2, *shape), np.nan)
    is_uneven = OVERALL in targets and len({int(np.sum(scenarios == name)) for name in known}) > 1
    said = f"the overall score is the mean over all items, of {len(known)} scenarios of unequal size"
    return Found(
        targets=targets,
        evidence=Evidence(difference, variance, unit, fell, rose, degrees, np.ones(shape), estimand == RUN),
        pairs=ModelPairs(
            *(first, second, shared, observed[first], observed[second], only_a, only_b, plain),
            mcnemar_p=mcnemar_exact(only_a, only_b),
            paired_t_p=paired_t(plain, of_many, np.maximum(shared - 1, 1)),
        ),
        score=score,
        estimand=estimand,
        method="paired",
        interval_kind="classical",
        typicality=Typicality.unknown(n_models),
        remarks=(Fact(said),) if is_uneven else (),
    )


def _scores(
    values: FloatArray,  # (n_models, n_items)
    difference: FloatArray,  # (n_pairs,)
    shared: IntArray,  # (n_pairs,)
) -> FloatArray:
    """Scores (n_models,) that differ as the shared items say, by least squares weighted by their number.

    If all models answered the same items these are their means. Means over different items cannot be compared: the
    models may have been asked easier ones. The weighted mean of the scores is that of the answers.
    """
    answered = ~np.isnan(values)
    counts = answered.sum(axis=1)
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.where(answered, values, 0.0).sum(axis=1) / np.where(counts > 0, counts, np.nan)
    if (answered == answered[0]).all() or np.isnan(difference).any():
        return means
    first, second = model_pairs(len(values))
    laplacian, right = np.zeros((len(values), len(values))), np.zeros(len(values))
    np.add.at(laplacian, (first, second), -shared)
    laplacian += laplacian.T
    laplacian -= np.diag(laplacian.sum(axis=1))
    np.add.at(right, second, shared * difference)
    np.add.at(right, first, -shared * difference)
    relative = np.linalg.lstsq(laplacian, right, rcond=None)[0]
    return np.asarray(relative + np.average(means - relative, weights=counts))
