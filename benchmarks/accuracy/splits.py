"""Which models are known and which are new."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.data_sets import DataSet
from itembank.numerics.arrays import IntArray

TEST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Split:
    """Calibration models, new models, and the repeats this split stands for."""

    train: IntArray
    test: IntArray
    repeats: tuple[int, ...]


def splits(data_set: DataSet, kind: str, n_repeats: int) -> Iterator[Split]:
    """Give the splits of one kind; those by date are the same in every repeat, so they are made once."""
    n_models = data_set.responses.n_models
    if kind == "date":
        yield _by_date(data_set, tuple(range(n_repeats)))
        return
    for repeat in range(n_repeats):
        rng = np.random.default_rng([repeat, n_models])
        if kind == "folds":
            for fold in np.array_split(rng.permutation(n_models), 4):
                yield _split(fold, n_models, (repeat,))
        elif kind == "organisation":
            yield _split(_whole_organisations(data_set, rng), n_models, (repeat,))
        else:
            yield _split(rng.permutation(n_models)[: round(TEST_SHARE * n_models)], n_models, (repeat,))


def _split(test: IntArray, n_models: int, repeats: tuple[int, ...]) -> Split:
    return Split(np.setdiff1d(np.arange(n_models), test), np.sort(test), repeats)


def _by_date(data_set: DataSet, repeats: tuple[int, ...]) -> Split:
    """Test the models from the date on that comes closest to a quarter: no date is on both sides, as in the panel."""
    dates = data_set.dates
    if dates is None:
        raise ValueError(f"{data_set.name} has no dates.")
    known = np.unique(dates)
    newer = np.array([np.mean(dates >= date) for date in known[1:]])
    first = known[1:][np.argmin(np.abs(newer - TEST_SHARE))]
    return _split(np.flatnonzero(dates >= first), dates.size, repeats)


def _whole_organisations(data_set: DataSet, rng: np.random.Generator) -> IntArray:
    """Models of organisations drawn until they hold a quarter: no organisation is on both sides."""
    organisation = data_set.responses.models["org"].fill_null("").to_numpy()
    order = rng.permutation(np.unique(organisation))
    sizes = np.array([np.sum(organisation == name) for name in order])
    n_taken = int(np.searchsorted(np.cumsum(sizes), TEST_SHARE * organisation.size)) + 1
    return np.flatnonzero(np.isin(organisation, order[:n_taken]))
