"""Where the ascent starts: at leading directions of the responses, or, of incomplete ones, at scores that link models.

A bound has several maxima where models answered blocks of items: a block's slopes can be turned together with the
abilities of the models that answered no other. Started beside the right end, the ascent goes to the wrong one and
stops there. The two starts then differ, and the end with the higher bound is taken. Where the bounds of two different
ends hardly differ, the responses do not say which is right.
"""

from typing import NamedTuple, TypedDict

import numpy as np

from itembank.calibration.fits import FitData
from itembank.calibration.specs import Variational
from itembank.calibration.start import linked_abilities, start_abilities, start_values
from itembank.calibration.variational.ascent import SMALLEST_SIZE, Ascent, ascend
from itembank.calibration.variational.blocks import ResponseBlocks
from itembank.calibration.variational.covariates import start_covariates
from itembank.calibration.variational.passes import CellRule, extended
from itembank.calibration.variational.state import CovariatePrior, Posterior, TaskPrior, start_posterior
from itembank.calibration.variational.tasks import start_tasks
from itembank.errors import remedy
from itembank.numerics.arrays import FloatArray
from itembank.progress import silent

ROUGH_TOLERANCE = 1e-3
"""Of the ascent by the bound, whose maximum is not the one that is wanted: it need only come near. From 0.1 to 1e-5
simulated fits end within 0.03 of a bound of -12,613; the tighter tolerances cost up to ten sweeps more."""
START_VARIANCE = 0.1
"""Of the abilities at the start: anything up to the prior's variance, one. From 0.01 to 1 the ends are the same."""
ALIKE = 0.9
"""Correlation from which on two starts, or two ends, count as one."""


class Centres(TypedDict, total=False):
    """What the centres of the items' priors follow."""

    tasks: TaskPrior
    covariates: CovariatePrior


class Started(NamedTuple):
    """The end of the rough ascent, and whether no other start led to a different one that is about as good."""

    ascent: Ascent
    is_determined: bool = True


def start_of_centres(data: FitData, n_dims: int) -> Centres:
    """Start of what the centres of the items' priors follow, if anything."""
    if data.features is not None:
        return {"covariates": start_covariates(data.features)}
    return {} if data.task_index is None else {"tasks": start_tasks(data.task_index, n_dims + 1)}


def from_nothing(blocks: ResponseBlocks, data: FitData, spec: Variational, rule: CellRule) -> Started:
    """Go part of the way from the leading directions in which models differ, or from scores that link models.

    The second start is tried where cells are missing and the first does not hold the scores.
    """
    values = start_values(data)
    leading = start_abilities(values, data.observed, n_dims=spec.n_dims)
    first = _part_of_the_way(blocks, data, spec, rule, leading)
    if data.observed is None:
        return Started(first)
    linked = linked_abilities(values, data.observed, n_dims=spec.n_dims)
    if multiple_correlation(linked[:, 0], leading) >= ALIKE:
        return Started(first)
    other = _part_of_the_way(blocks, data, spec, rule, linked)
    # a rough end is not the maximum: of two on the way to the same, the higher bound means nothing
    if correlation_of_logits(first.posterior, other.posterior) >= ALIKE:
        return Started(first)
    ours, theirs = first.history[-1], other.history[-1]
    margin = ROUGH_TOLERANCE * max(abs(ours), abs(theirs), SMALLEST_SIZE)
    return Started(other if theirs > ours else first, is_determined=abs(theirs - ours) > margin)


def advice(spec: Variational) -> str:
    """Say what to do where the responses do not determine the fit, for its message."""
    other = "fewer abilities"
    if spec.n_dims == 1:
        other = remedy("positive_discrimination=True", "--positive-discrimination")
    return (
        "; a second start led to a different fit that is about as good: groups of models that answered different items "
        "have too little in common. Let some models answer the items of several groups, leave a group out, or take "
        f"{other}"
    )


def _part_of_the_way(
    blocks: ResponseBlocks, data: FitData, spec: Variational, rule: CellRule, abilities: FloatArray
) -> Ascent:
    """Ascend from these abilities, (n_models, n_dims), until the end is near."""
    covariance = np.tile(START_VARIANCE * np.eye(spec.n_dims), (len(abilities), 1, 1))
    start = start_posterior(
        abilities,
        covariance,
        blocks.n_items,
        has_common_slope=spec.item_model == "1pl",
        is_nested=spec.item_model == "nested",
        is_positive=spec.positive_discrimination,
        **start_of_centres(data, spec.n_dims),
    )
    return ascend(
        blocks,
        start,
        rule,
        tolerance=max(ROUGH_TOLERANCE, spec.tolerance),
        max_sweeps=spec.max_iterations,
        progress=silent,
        is_rough=True,
    )


def multiple_correlation(score: FloatArray, abilities: FloatArray) -> float:
    """Correlation of a score, (n_models,), with the closest combination of abilities, (n_models, n_dims)."""
    centred = score - score.mean()
    size = float(centred @ centred)
    if size == 0.0:
        return 1.0
    directions = abilities - abilities.mean(axis=0)
    fitted = directions @ np.linalg.lstsq(directions, centred, rcond=None)[0]
    return float(np.sqrt(fitted @ fitted / size))


def correlation_of_logits(one: Posterior, other: Posterior) -> float:
    """Correlation over models of the logits that two posteriors expect, those of all items taken together."""
    ours, theirs = (_centred_logits(posterior) for posterior in (one, other))
    size = float(np.sqrt(np.sum(ours**2) * np.sum(theirs**2)))
    return float(np.sum(ours * theirs)) / size if size > 0.0 else 1.0


def _centred_logits(posterior: Posterior) -> FloatArray:
    """Give expected logits less their mean over models, (n_items, n_models)."""
    logits: FloatArray = posterior.item_mean @ extended(posterior.ability_mean).T
    logits -= logits.mean(axis=1, keepdims=True)
    return logits
