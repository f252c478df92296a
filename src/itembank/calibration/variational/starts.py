"""Where the ascent starts: the centres that items of a task share, and the better of two starts of abilities."""

from functools import partial

import numpy as np

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.start import start_values
from itembank.calibration.two_starts import ROUGH_TOLERANCE, End, Started, better_start
from itembank.calibration.variational.ascent import Ascent, ascend
from itembank.calibration.variational.blocks import ResponseBlocks
from itembank.calibration.variational.passes import CellRule
from itembank.calibration.variational.state import TaskPrior, start_posterior
from itembank.calibration.variational.tasks import start_tasks
from itembank.numerics.arrays import FloatArray
from itembank.progress import silent

START_VARIANCE = 0.1
"""Of the abilities at the start: anything up to the prior's variance, one. From 0.01 to 1 the ends are the same."""


def start_of_tasks(data: FitData, n_dims: int) -> TaskPrior | None:
    """Start of the centres that items of one task share, if they do."""
    return None if data.task_index is None else start_tasks(data.task_index, n_dims + 1)


def from_nothing(blocks: ResponseBlocks, data: FitData, spec: Variational, rule: CellRule) -> Started[Ascent]:
    """Go part of the way from the better of two starts."""
    climb = partial(_part_of_the_way, blocks, data, spec, rule)
    return better_start(climb, _end, start_values(data), data.observed, n_dims=spec.n_dims)


def _end(ascent: Ascent) -> End:
    posterior = ascent.posterior
    return End(posterior.item_mean, posterior.ability_mean, ascent.history[-1])


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
        tasks=start_of_tasks(data, spec.n_dims),
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
