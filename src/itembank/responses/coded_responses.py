"""`CodedResponses`: a `ResponseMatrix` of small codes, for more responses than the memory holds as numbers."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.code_array import MISSING, RIGHT, WRONG, CodeArray, Codes, ItemCodes, codes_of
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix

CELLS_AT_ONCE = 2**20
"""Cells that are made into numbers at a time."""

MOST_AT_ONCE = 2**24
"""Cells whose mean is taken at once, so that it rounds as that of a matrix does."""

NUMBERS_UP_TO = 30_000_000
"""Cells up to which responses are held as numbers, eight bytes each."""

CODES_DOWN_TO = 5_000_000
"""Cells down to which a part of coded responses stays coded: half of the models, or a fold."""


class CodedResponses(ResponseMatrix):
    """A `ResponseMatrix` in a byte a cell where the responses are right or wrong.

    It keeps codes in place of the arrays. `responses`, `n_trials` and `costs` are made of them each time they are asked
    for, in eight bytes a cell: what can should go over the `parts`. Make one with `from_item_codes`.
    """

    __slots__ = ("_codes", "_codes_of_costs", "_codes_of_trials")

    _codes: CodeArray
    _codes_of_trials: CodeArray | None
    _codes_of_costs: Mapping[str, CodeArray]

    def __init__(  # noqa: PLR0917 (the fields of a `ResponseMatrix`, in their order)
        self,
        responses: FloatArray | CodeArray,
        models: pl.DataFrame,
        items: pl.DataFrame,
        n_trials: IntArray | CodeArray | None = None,
        costs: Mapping[str, FloatArray | CodeArray] | None = None,
        lost: LostAnswers | None = None,
    ) -> None:
        """Hold codes of n_models x n_items cells as they are, and numbers as codes."""
        # What a `ResponseMatrix` is made of may be given to make one of these, as `dataclasses.replace` does.
        kept = {
            "_codes": _coded(responses),
            "models": models,
            "items": items,
            "_codes_of_trials": None if n_trials is None else _coded(n_trials),
            "_codes_of_costs": {name: _coded(cost) for name, cost in (costs or {}).items()},
            "lost": lost,
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)  # it is frozen

    @classmethod
    def from_item_codes(
        cls, cells: Codes, *, models: pl.DataFrame | None = None, items: pl.DataFrame | None = None
    ) -> Self:
        """Hold right and wrong answers that lie item after item, as in a file that is mapped with `numpy.memmap`.

        Parameters
        ----------
        cells : (n_items, n_models) of uint8
            1 right, 0 wrong, 255 missing. Taken as they are, not copied.
        models, items : tables, optional
            With ids, as for `ResponseMatrix.create`; else models and items are numbered.

        Raises
        ------
        DataError
            When a cell holds another number, or the tables do not fit.

        Examples
        --------
        >>> import numpy as np
        >>> from itembank.calibrations import CodedResponses
        >>> CodedResponses.from_item_codes(np.array([[0, 1], [1, 255], [1, 0]], dtype=np.uint8)).n_models
        2
        """
        if cells.ndim != 2 or cells.dtype != np.uint8:
            raise DataError(
                f"codes must have two axes (n_items, n_models) of uint8, got shape {cells.shape} of {cells.dtype}."
            )
        sample = ResponseMatrix.create(
            np.zeros((1, cells.shape[0])), items=items
        )  # the item table, checked and completed
        of_models = ResponseMatrix.create(np.zeros((cells.shape[1], 1)), models=models)
        for part, codes in ItemCodes(np.asarray(cells)).blocks():
            n_wrong = int(np.count_nonzero((codes > RIGHT) & (codes != MISSING)))
            if n_wrong:
                raise DataError(
                    f"codes must be {WRONG}, {RIGHT} or {MISSING} (missing), got {n_wrong} others among items "
                    f"{part.start + 1} to {part.stop}. Write the answers anew."
                )
        values = np.array([WRONG, RIGHT], dtype=np.float64)
        return cls(CodeArray.of_cells(cells.T, values), of_models.models, sample.items)

    @property
    def responses(self) -> FloatArray:
        """As that of a `ResponseMatrix`, made anew each time."""
        return self._numbers(self._codes)

    @property
    def n_trials(self) -> IntArray | None:
        """As that of a `ResponseMatrix`, made anew each time."""
        return None if self._codes_of_trials is None else _trials(self._numbers(self._codes_of_trials))

    @property
    def costs(self) -> Mapping[str, FloatArray]:
        """As those of a `ResponseMatrix`, each made anew when it is taken."""
        return _Costs(self._codes_of_costs, self._numbers)

    @property
    def observed(self) -> BoolArray:
        """Where a response is present, (n_models, n_items)."""
        return self._codes.known(self.n_models, self.n_items)

    @property
    def is_complete(self) -> bool:
        """Whether every model answered every item."""
        return all(part.is_complete for part in blocks(self))

    @property
    def is_binary(self) -> bool:
        """Whether every response present is 0 or 1."""
        return self._codes.is_binary or all(part.is_binary for part in blocks(self))

    def block(self, first: int, last: int) -> ResponseMatrix:
        """Return models `first` to `last` (not included) as a matrix."""

        def part(codes: CodeArray) -> FloatArray:
            return codes.block(first, last, self.n_items)

        trials = self._codes_of_trials
        return ResponseMatrix(
            part(self._codes),
            self.models[first:last],
            self.items,
            None if trials is None else _trials(part(trials)),
            {name: part(cost) for name, cost in self._codes_of_costs.items()},
            None if self.lost is None else self.lost[first:last],
        )

    def parts(self) -> Iterator[ResponseMatrix]:
        """Give the models a part at a time, as numbers."""
        return blocks(self)

    def take(self, *, models: IntArray | None = None, items: IntArray | None = None) -> ResponseMatrix:
        """Return the rows and columns at these indices, in that order; as numbers where they are few."""
        rows = np.arange(self.n_models) if models is None else np.asarray(models)
        columns = np.arange(self.n_items) if items is None else np.asarray(items)

        trials = self._codes_of_trials
        cut = CodedResponses(
            self._codes.take(rows, columns),
            self.models[rows],
            self.items[columns],
            None if trials is None else trials.take(rows, columns),
            {name: cost.take(rows, columns) for name, cost in self._codes_of_costs.items()},
            None if self.lost is None else self.lost[np.ix_(rows, columns)],
        )
        return cut if rows.size * columns.size > CODES_DOWN_TO else cut.to_matrix()

    def of_items(self, items: IntArray, *, models: IntArray | None = None) -> FloatArray:
        """As that of a `ResponseMatrix`, without numbers of the others."""
        if models is None:
            return self._codes.columns(self.n_models, items)
        return self._codes.crossed(models, items)

    def with_tables(self, *, models: pl.DataFrame | None = None, items: pl.DataFrame | None = None) -> ResponseMatrix:
        """Return the same responses with other tables of models or items, in the same order."""
        models, items = self.models if models is None else models, self.items if items is None else items
        return CodedResponses(self._codes, models, items, self._codes_of_trials, self._codes_of_costs, self.lost)

    def item_codes(self) -> ItemCodes | None:
        """Return right and wrong answers item after item; None if responses are others."""
        return self._codes.item_codes(self.n_models, self.n_items) if self._codes.is_binary else None

    def to_matrix(self) -> ResponseMatrix:
        """Return all models as a matrix of numbers."""
        return ResponseMatrix(self.responses, self.models, self.items, self.n_trials, dict(self.costs), self.lost)

    def __repr__(self) -> str:
        """Say how many there are; numbers of all cells are not made for it."""
        return f"{type(self).__name__} of {self.n_models} models to {self.n_items} items"

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        """Send another process the codes."""
        return type(self), (
            *(self._codes, self.models, self.items, self._codes_of_trials, self._codes_of_costs, self.lost),
        )

    def _numbers(self, codes: CodeArray) -> FloatArray:
        """Return the numbers of codes (n_models, n_items), made a part at a time."""
        result = np.empty((self.n_models, self.n_items))
        for first, last in spans(self):
            result[first:last] = codes.block(first, last, self.n_items)
        return result


class _Costs(Mapping[str, FloatArray]):
    """Costs by unit, made of codes as they are taken."""

    def __init__(self, codes: Mapping[str, CodeArray], numbers: Callable[[CodeArray], FloatArray]) -> None:
        self._codes, self._numbers = codes, numbers

    def __getitem__(self, name: str) -> FloatArray:
        return self._numbers(self._codes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._codes)

    def __len__(self) -> int:
        return len(self._codes)


def _coded(cells: FloatArray | IntArray | CodeArray) -> CodeArray:
    """Return codes as they are, and codes of numbers."""
    return cells if isinstance(cells, CodeArray) else CodeArray.of_numbers(cells)


def spans(responses: ResponseMatrix) -> Iterator[tuple[int, int]]:
    """Give the first model, and the one after the last, of parts of about `CELLS_AT_ONCE` cells."""
    step = max(1, CELLS_AT_ONCE // max(1, responses.n_items))
    for first in range(0, responses.n_models, step):
        yield first, min(first + step, responses.n_models)


def blocks(responses: ResponseMatrix) -> Iterator[ResponseMatrix]:
    """Give the models a part at a time, in order."""
    return (responses.block(first, last) for first, last in spans(responses))


def are_many(n_models: int, n_items: int) -> bool:
    """Whether responses are too many to be held as numbers."""
    return n_models * n_items > NUMBERS_UP_TO


def are_fitted_as_codes(responses: ResponseMatrix) -> bool:
    """Whether responses are so many, or are a large part of so many, that a fit takes them as codes."""
    n_models, n_items = responses.n_models, responses.n_items
    is_part = isinstance(responses, CodedResponses) and n_models * n_items > CODES_DOWN_TO
    return is_part or are_many(n_models, n_items)


def binary_codes(responses: ResponseMatrix) -> ItemCodes | None:
    """Return right and wrong answers item after item, in a byte each; None where responses are others."""
    if isinstance(responses, CodedResponses):
        return responses.item_codes()
    return codes_of(responses.responses) if responses.is_binary else None


@dataclass(frozen=True, slots=True)
class ResponseSummary:
    """How many responses there are, their mean, whether all are 0 or 1, and their trials (None where not told)."""

    n_responses: int
    mean_response: float
    is_binary: bool
    n_trials: int | None


def summary(responses: ResponseMatrix) -> ResponseSummary:
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
