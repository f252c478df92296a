"""How many samples of every item were right: taken from a response matrix, checked, cut down to a budget."""

from dataclasses import dataclass

import numpy as np

from itembank.checks import check_whole
from itembank.errors import DataError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix, describe_cells


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Samples of n_models models on n_items items."""

    n_trials: IntArray  # (n_models, n_items): Whole numbers; zero trials where a model was not asked
    n_correct: IntArray  # (n_models, n_items)

    @property
    def rates(self) -> FloatArray:
        """Fraction of right samples, (n_models, n_items); NaN without samples."""
        empty = np.full(self.n_trials.shape, np.nan)
        result: FloatArray = np.divide(self.n_correct, self.n_trials, out=empty, where=self.n_trials > 0)
        return result

    def take(self, *, models: IntArray | None = None, items: IntArray | None = None) -> "SampleCounts":
        """Return the rows and columns at these indices."""
        rows = np.arange(self.n_trials.shape[0]) if models is None else models
        columns = np.arange(self.n_trials.shape[1]) if items is None else items
        cut = np.ix_(rows, columns)
        return SampleCounts(self.n_trials[cut], self.n_correct[cut])

    def spread(self, where: IntArray, n_items: int) -> "SampleCounts":
        """Return the counts over `n_items` items, among which these stand at `where`; none of the others."""
        n_trials, n_correct = np.zeros((2, self.n_trials.shape[0], n_items), dtype=np.int64)
        n_trials[:, where], n_correct[:, where] = self.n_trials, self.n_correct
        return SampleCounts(n_trials, n_correct)


def sample_counts(responses: ResponseMatrix) -> SampleCounts:
    """Return the counts behind responses.

    Raises
    ------
    DataError
        When there are no counts, none above one, zero trials behind a response, or a response that is no whole number
        of them.
    """
    if responses.n_trials is None:
        kind = "are all 0 or 1" if responses.is_binary else "are shares or probabilities"
        raise DataError(
            f"pass@k needs repeated samples: columns n_correct and n_trials of every model and item, or one row a "
            f"sample read with repeats='count' (itembank import --repeats count); got responses without counts, which "
            f"{kind}."
        )
    is_present = responses.observed
    n_trials = np.where(is_present, responses.n_trials, 0).astype(np.int64)
    _check_trials(n_trials, is_present, responses)
    exact = np.where(is_present, responses.responses, 0.0).astype(np.float64) * n_trials
    n_correct = np.rint(exact).astype(np.int64)
    # a response kept in single precision is off by up to 6e-8 of itself
    is_broken = np.abs(exact - n_correct) > 1e-3 + 1e-6 * n_trials
    if is_broken.any():
        where = describe_cells(is_broken, exact, responses.model_ids, responses.item_ids)
        raise DataError(
            f"response times n_trials must be a whole number of right samples, got {int(is_broken.sum())} others: "
            f"{where}. Give n_correct and n_trials."
        )
    return SampleCounts(n_trials, n_correct)


def cut_down(
    counts: SampleCounts, rows: IntArray, budget: int, rng: np.random.Generator, *, columns: IntArray | None = None
) -> SampleCounts:
    """Draw `budget` samples of each sampled item for the models at `rows`, without replacement.

    Only the items at `columns` are cut, all of them by default: these must have at least `budget` samples.
    """
    cells = np.ix_(rows, np.arange(counts.n_trials.shape[1]) if columns is None else columns)
    n_trials, n_correct = counts.n_trials.copy(), counts.n_correct.copy()
    given, right = n_trials[cells], n_correct[cells]
    n_trials[cells] = np.where(given > 0, budget, 0)
    n_correct[cells] = rng.hypergeometric(right, given - right, n_trials[cells])
    return SampleCounts(n_trials, n_correct)


def check_budget(counts: SampleCounts, budget: int, responses: ResponseMatrix, rows: IntArray) -> None:
    """Raise `ParameterError` for no budget, `DataError` when a cell of these models holds fewer samples than that."""
    check_whole("budget", budget, least=1)
    n_trials = counts.n_trials[rows]
    is_short = (n_trials > 0) & (n_trials < budget)
    if is_short.any():
        names = [responses.model_ids[row] for row in rows]
        where = describe_cells(is_short, n_trials.astype(np.float64), names, responses.item_ids)
        raise DataError(
            f"budget must be at most the samples there are of every item, got {budget} with fewer samples in "
            f"{int(is_short.sum())} of {int((n_trials > 0).sum())} cells: {where}. Take a budget of "
            f"{int(n_trials[is_short].min())}, or leave these items out."
        )


def with_counts(responses: ResponseMatrix, counts: SampleCounts) -> ResponseMatrix:
    """Return the same models and items with other counts."""
    return ResponseMatrix(counts.rates, responses.models, responses.items, counts.n_trials, responses.costs)


def _check_trials(n_trials: IntArray, is_present: BoolArray, responses: ResponseMatrix) -> None:
    """Refuse zero trials behind a response, and data with no repeated sample at all."""
    is_empty = is_present & (n_trials < 1)
    if is_empty.any():
        where = describe_cells(is_empty, n_trials.astype(np.float64), responses.model_ids, responses.item_ids)
        raise DataError(
            f"n_trials must be at least 1 where there is a response, got {int(is_empty.sum())} cells without: "
            f"{where}. Leave these rows out, or give their counts."
        )
    if n_trials.max() < 2:
        raise DataError(
            "pass@k needs repeated samples of some items, got one sample of each: how much pass rates differ beyond "
            "the item model cannot be seen from these. Sample items at least twice."
        )
