"""Drawing who answers what rightly, and what is missing."""

import numpy as np

from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

BLOCK_CELLS = 4_000_000
"""32 MB for each array of probabilities, random numbers and logits beside the responses."""


def draw_answers(
    parameters: ItemParameters, abilities: FloatArray, first_item: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw Bernoulli responses, block of models after block.

    Returns
    -------
    responses : (n_models, n_items)
    task_scores : (n_models, n_tasks)
        Mean true probability over the items of each task; `first_item` (n_tasks,) says where they begin.
    """
    n_models, n_items = abilities.shape[0], parameters.n_items
    responses = np.empty((n_models, n_items))
    scores = np.empty((n_models, len(first_item)))
    sizes = np.diff(np.append(first_item, n_items))
    step = max(1, BLOCK_CELLS // n_items)
    for start in range(0, n_models, step):
        rows = slice(start, start + step)
        chances = probability(parameters, abilities[rows])
        scores[rows] = np.add.reduceat(chances, first_item, axis=1) / sizes
        # one block draws after the other, row by row: the answers do not depend on the size of a block
        responses[rows] = rng.random(chances.shape) < chances
    return responses, scores


def draw_missing(n_models: int, n_items: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Draw which responses are missing, (n_models, n_items); every model and every item keeps one."""
    missing: BoolArray = rng.random((n_models, n_items)) < share
    items = np.flatnonzero(missing.all(axis=0))
    missing[rng.integers(n_models, size=len(items)), items] = False
    models = np.flatnonzero(missing.all(axis=1))
    missing[models, rng.integers(n_items, size=len(models))] = False
    return missing
