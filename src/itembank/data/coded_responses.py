"""`CodedResponses`: responses as small codes, what a large import holds in place of a `ResponseMatrix`."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from itembank.data.code_array import CodeArray
from itembank.data.responses import ResponseMatrix
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

CELLS_AT_ONCE = 2**20
"""Cells that are made into numbers at a time."""

MOST_AT_ONCE = 2**24
"""Cells whose mean is taken at once, so that it rounds as that of a matrix does."""


@dataclass(frozen=True, slots=True)
class CodedResponses:
    """What a `ResponseMatrix` holds, in a byte a cell where the responses are right or wrong.

    Attributes
    ----------
    responses : CodeArray of n_models x n_items cells
    models, items : tables, as those of a `ResponseMatrix`
    n_trials : CodeArray, or None
    costs : mapping of name to CodeArray
    """

    responses: CodeArray
    models: pl.DataFrame
    items: pl.DataFrame
    n_trials: CodeArray | None = None
    costs: Mapping[str, CodeArray] = field(default_factory=dict)

    @property
    def n_models(self) -> int:
        """Number of models."""
        return self.models.height

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.items.height

    @property
    def model_ids(self) -> list[str]:
        """Ids of the models."""
        return self.models["model_id"].to_list()

    @property
    def observed(self) -> BoolArray:
        """Where a response is present, (n_models, n_items)."""
        return self.responses.known(self.n_models, self.n_items)

    def block(self, first: int, last: int) -> ResponseMatrix:
        """Return models `first` to `last` (not included) as a matrix."""
        return ResponseMatrix(
            self.responses.block(first, last, self.n_items),
            self.models[first:last],
            self.items,
            None if self.n_trials is None else _trials(self.n_trials.block(first, last, self.n_items)),
            {name: cost.block(first, last, self.n_items) for name, cost in self.costs.items()},
        )

    def to_matrix(self) -> ResponseMatrix:
        """Return all models as a matrix."""
        shape = (self.n_models, self.n_items)
        responses = np.empty(shape)
        n_trials = None if self.n_trials is None else np.empty(shape, dtype=np.int64)
        costs = {name: np.empty(shape) for name in self.costs}
        for first, last in spans(self):
            block = self.block(first, last)
            responses[first:last] = block.responses
            if n_trials is not None and block.n_trials is not None:
                n_trials[first:last] = block.n_trials
            for name, cost in block.costs.items():
                costs[name][first:last] = cost
        return ResponseMatrix(responses, self.models, self.items, n_trials, costs)


def spans(responses: ResponseMatrix | CodedResponses) -> Iterator[tuple[int, int]]:
    """Give the first model, and the one after the last, of parts of about `CELLS_AT_ONCE` cells."""
    step = max(1, CELLS_AT_ONCE // max(1, responses.n_items))
    for first in range(0, responses.n_models, step):
        yield first, min(first + step, responses.n_models)


def blocks(responses: ResponseMatrix | CodedResponses) -> Iterator[ResponseMatrix]:
    """Give the models a part at a time, in order."""
    for first, last in spans(responses):
        if isinstance(responses, CodedResponses):
            yield responses.block(first, last)
        else:
            yield ResponseMatrix(
                responses.responses[first:last],
                responses.models[first:last],
                responses.items,
                None if responses.n_trials is None else responses.n_trials[first:last],
                {name: cost[first:last] for name, cost in responses.costs.items()},
            )


@dataclass(frozen=True, slots=True)
class ResponseSummary:
    """How many responses there are, their mean, whether all are 0 or 1, and their trials (None where not told)."""

    n_responses: int
    mean_response: float
    is_binary: bool
    n_trials: int | None


def summary(responses: ResponseMatrix | CodedResponses) -> ResponseSummary:
    """Return what there is to say of all responses, a part of the models at a time."""
    n_responses = n_trials = 0
    total, is_binary = 0.0, True
    for part in blocks(responses):
        observed = part.observed
        known = part.responses[observed]
        n_responses += known.size
        total += float(known.sum())
        is_binary &= part.is_binary
        if part.n_trials is not None:
            n_trials += int(part.n_trials[observed].sum())
    if not is_binary and responses.n_models * responses.n_items <= MOST_AT_ONCE:
        mean = float(np.concatenate([part.responses[part.observed] for part in blocks(responses)]).mean())
    else:  # the sum of parts is exact where all are whole numbers
        mean = total / n_responses if n_responses else math.nan
    return ResponseSummary(n_responses, mean, is_binary, None if responses.n_trials is None else n_trials)


def _trials(values: FloatArray) -> IntArray:
    """Trials as whole numbers, 0 where there are none."""
    return np.nan_to_num(values, nan=0.0).astype(np.int64)
