"""Ways to divide models into those a fit may see and those it is tried on; the first of each group of an order."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.numerics.arrays import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Split:
    """What a fit may see, and what it is tried on."""

    train: IntArray  # (n_train,), (n_test,): Rows, rising; no row is in both
    test: IntArray  # (n_train,), (n_test,)

    @classmethod
    def of(cls, is_test: BoolArray) -> Self:
        """Test the rows that are marked, (n,), and train on all others."""
        return cls(np.flatnonzero(~is_test), np.flatnonzero(is_test))


def splits_of(fold: IntArray) -> list[Split]:
    """Leave out every fold once, given the fold of each row, (n,), numbered from 0; -1 is never left out."""
    return [Split.of(fold == number) for number in range(int(fold.max()) + 1)]


def dealt_out(
    order: IntArray,  # (n,): A permutation; by score, each fold gets strong and weak models alike
    n_folds: int,
    rng: np.random.Generator | None = None,
) -> IntArray:
    """Deal rows out to folds in this order, so that every fold spans it; return the fold of each row, (n,).

    `rng` deals every round of `n_folds` rows in a new random order, so that no fold always gets the first of a round.
    Without it fold 0 gets the first row of each round, fold 1 the second, and so on.
    """
    n_rounds = -(-order.size // n_folds)
    rounds = [np.arange(n_folds) if rng is None else rng.permutation(n_folds) for _ in range(n_rounds)]
    fold = np.empty(order.size, dtype=np.int64)
    fold[order] = np.concatenate(rounds)[: order.size]
    return fold


def random_folds(n: int, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Draw folds whose sizes differ by one at most; return the fold of each row, (n,)."""
    return rng.permutation(n) % n_folds  # not `dealt_out(rng.permutation(n), n_folds)`: other folds from the same seed


def first_tested(order: IntArray, n_test: int, n_train: int | None = None) -> Split:
    """Test the first rows of an order, and train on those that follow: on all of them, or on `n_train`."""
    end = None if n_train is None else n_test + n_train
    return Split(train=np.sort(order[n_test:end]), test=np.sort(order[:n_test]))


def places_within(counts: IntArray) -> IntArray:
    """Place of each row within its group, from 0, where groups of these sizes follow one another, (n,)."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def first_of_each(
    order: IntArray,  # (n_ordered,): Rows; need not have all
    group: IntArray,  # (n,): Group of each row, numbered from 0
    counts: IntArray,  # (n_groups,): How many rows to take of each group; all of one that has no more
) -> IntArray:
    """First rows of every group in an order.

    Returns rows, (n_taken,), group by group, each in the order given.
    """
    by_group = order[np.argsort(group[order], kind="stable")]
    sizes = np.bincount(group[by_group], minlength=counts.size)
    return by_group[places_within(sizes) < counts[group[by_group]]]
