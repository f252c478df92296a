"""From a kind of split and the model table to the models of each fold, and what may be known of whom."""

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.known_scores import KnownScores
from itembank.calibration.fit_item_model import MINIMUM_MODELS
from itembank.errors import DataError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.splits import Split, dealt_out, first_tested, splits_of
from itembank.responses.model_features import dates_of, model_dates
from itembank.responses.responses import ResponseMatrix, column_of
from itembank.responses.score_names import EXTERNAL, Across, Within
from itembank.responses.siblings import sibling_groups
from itembank.responses.targets import ScoreTargets
from itembank_studies.split_specs import (
    Ahead,
    Beyond,
    ByGroup,
    KFold,
    LeaveOneOut,
    Matching,
    NamedGroup,
    RandomShare,
    SplitSpec,
    TrainingShare,
)


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return the generator of one place in a study: the same seed and path always give the same numbers."""
    key = tuple(zlib.crc32(part.encode()) if isinstance(part, str) else part for part in path)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


NO_GROUP = "(none)"


@dataclass(frozen=True, slots=True)
class Fold(Split):
    """Past models and new models.

    `repeats` are those that it serves: one, or all where the split is not random, since the bank is the same.
    """

    split: str  # Name in the results
    repeats: tuple[int, ...]
    fold: int  # Number among the folds of the same split and repeat

    @property
    def division(self) -> bytes:
        """What of the responses the fold takes."""
        place = f"{self.split}/{self.repeats}/{self.fold}/".encode()
        return place + self.train.tobytes() + b"/" + self.test.tobytes()


def folds_of(
    splits: Sequence[SplitSpec],
    responses: ResponseMatrix,
    repeats: int = 1,
    seed: int = 0,
    *,
    within: Within = "micro",  # How the overall score is made, by which `Beyond` knows the best
    across: Across = "scenarios",
) -> list[Fold]:
    """Return all folds of some splits of the models of these responses."""
    siblings, scores = sibling_groups(responses), None
    if any(isinstance(split, Beyond) for split in splits):
        targets = ScoreTargets.create(responses.items, within=within, across=across)
        scores = KnownScores.of(responses, targets).value[:, -1]
    return [
        fold
        for split in splits
        for fold in make_folds(split, responses.models, repeats, seed, siblings=siblings, scores=scores)
    ]


def make_folds(
    split: SplitSpec,
    models: pl.DataFrame,
    repeats: int,
    seed: int,
    *,
    # (n_models,): Group of each model (`sibling_groups`): where chance divides models, none is calibrated on a tested
    # one's sibling. Dates and named groups say themselves what is known when
    siblings: IntArray | None = None,
    scores: FloatArray | None = None,  # (n_models,): Overall scores, NaN where unknown; `Beyond` needs them
) -> list[Fold]:
    """Return all folds of a split."""
    folds = list(_folds(split, models, repeats, seed, scores))
    if siblings is not None and isinstance(split, LeaveOneOut | KFold | RandomShare | Beyond):
        folds = [replace(fold, train=fold.train[~np.isin(siblings[fold.train], siblings[fold.test])]) for fold in folds]
    for fold in folds:
        if fold.train.size < MINIMUM_MODELS or fold.test.size < 1:
            raise DataError(
                f"split {fold.split!r} must leave at least {MINIMUM_MODELS} models to calibrate on and one to test, "
                f"got {fold.train.size} and {fold.test.size} of {models.height}. Take another split, or more models."
            )
    return folds


def _folds(
    split: SplitSpec, models: pl.DataFrame, repeats: int, seed: int, scores: FloatArray | None
) -> Iterator[Fold]:
    n_models, every = models.height, tuple(range(repeats))
    match split:
        case LeaveOneOut():
            yield from _numbered(split.name, every, splits_of(np.arange(n_models)))
        case Ahead():
            by_name = None if split.column else model_dates(models)
            dates = _dates(models, split.column or ("date" if by_name is None else by_name.name))
            if split.months:
                yield from _months_after(split, dates, every)
            else:
                is_new = dates > _days(split.until) if split.until else _newest(dates, split.test_share, split.name)
                yield from _numbered(split.name, every, [Split.of(is_new)])
        case Beyond():
            yield from _numbered(split.name, every, [Split.of(_best(scores, split))])
        case Matching():
            texts = column_of(models, split.column, f"split {split.name!r}").cast(pl.String).to_list()
            found = [text is not None and re.search(split.pattern, text) is not None for text in texts]
            yield from _numbered(split.name, every, [Split.of(np.array(found, dtype=bool))])
        case NamedGroup():
            yield from _numbered(split.name, every, [Split.of(_named(models, split))])
        case TrainingShare():
            for repeat in every:
                yield from _training_sizes(split, n_models, repeat, stream(seed, "split", split.name, repeat))
        case _:
            for repeat in every:
                rng = stream(seed, "split", split.name, repeat)
                yield from _numbered(split.name, (repeat,), _random_splits(split, models, rng))


def _numbered(name: str, repeats: tuple[int, ...], splits: Sequence[Split]) -> Iterator[Fold]:
    return (Fold(split.train, split.test, name, repeats, number) for number, split in enumerate(splits))


def _random_splits(split: KFold | RandomShare | ByGroup, models: pl.DataFrame, rng: np.random.Generator) -> list[Split]:
    """Draw the folds of one repeat."""
    n_models = models.height
    match split:
        case KFold():
            if n_models < split.k:
                raise DataError(f"split {split.name!r} of {split.k} folds needs as many models, got {n_models}.")
            return splits_of(dealt_out(rng.permutation(n_models), split.k))
        case RandomShare():
            return [first_tested(rng.permutation(n_models), _n_tested(n_models, split.test_share))]
        case ByGroup():
            # groups by number, in sorted order so that the order of models does not matter
            values = column_of(models, split.column, f"split {split.name!r}").cast(pl.String).fill_null(NO_GROUP)
            names, index = np.unique(values.to_numpy().astype(str), return_inverse=True)
            needed, group = split.k or 2, index.astype(np.int64)
            if names.size < needed:
                raise DataError(
                    f"split {split.name!r} needs at least {needed} groups, got {names.size} in column "
                    f"{split.column!r}: {shown(names.tolist())}."
                )
            sizes, order = np.bincount(group), rng.permutation(int(names.size))
            if split.k is None:
                held = np.cumsum(sizes[order])[:-1]
                n_taken = 1 + int(np.argmin(np.abs(held - split.test_share * group.size)))
                return [Split.of(np.isin(group, order[:n_taken]))]
            # the largest groups first, ties by chance, each into the part that holds the fewest models
            part, n_held = np.empty(sizes.size, dtype=np.int64), np.zeros(split.k)
            for one in order[np.argsort(-sizes[order], kind="stable")]:
                part[one] = np.lexsort((rng.random(split.k), n_held))[0]
                n_held[part[one]] += sizes[one]
            return splits_of(part[group])


def _n_tested(n_models: int, share: float) -> int:
    return max(1, round(share * n_models))


def _training_sizes(split: TrainingShare, n_models: int, repeat: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Yield one fold a size: the same new models, and ever larger parts of one order of the others."""
    order, n_test = rng.permutation(n_models), _n_tested(n_models, split.test_share)
    n_left = n_models - n_test
    sizes = split.n_models or tuple(max(split.minimum, round(share * n_left)) for share in split.shares)
    large = [size for size in sizes if size > n_left]
    if large:
        raise DataError(
            f"split {split.name!r} must take at most the {n_left} models that are not tested, got {shown(large)}."
        )
    for size in dict.fromkeys(sizes):
        yield from _numbered(f"{split.name} {size}", (repeat,), [first_tested(order, n_test, size)])


def _named(models: pl.DataFrame, split: NamedGroup) -> BoolArray:
    column = column_of(models, split.column, f"split {split.name!r}")
    values = column.to_list()
    absent = [value for value in split.values if value not in values]
    if absent:
        known = column.drop_nulls().unique(maintain_order=True).to_list()
        raise DataError(
            f"split {split.name!r}: every value must be one of column {split.column!r} (of type {column.dtype}), got "
            f"{shown(absent)} ({type(absent[0]).__name__}); it has {shown(known, 20)}."
        )
    return np.array([value in split.values for value in values], dtype=bool)


def _dates(models: pl.DataFrame, column: str) -> IntArray:
    """Days since 1970 of each model; `DataError` names models without a date."""
    values = column_of(models, column, "a split by date")
    days = dates_of(values)
    unknown = days.is_null()
    if unknown.any():
        named = models.select("model_id", text=values.cast(pl.String)).filter(unknown)
        listed = [f"{model} ({text or 'empty'})" for model, text in named.rows()]
        raise DataError(
            f"a split by date needs a date (year, month, day) in column {column!r} for every model, got none for "
            f"{len(listed)} of {models.height}: {shown(listed)}. Add them, or leave these models out (drop_models)."
        )
    return days.to_physical().cast(pl.Int64).to_numpy()


def _months_after(split: Ahead, dates: IntArray, repeats: tuple[int, ...]) -> Iterator[Fold]:
    """Yield one fold a month: the same past models, and the models dated after the month before."""
    ends = [_days(split.until, month) for month in (0, *split.months)]
    known = np.flatnonzero(dates <= ends[0])
    for month, after, end in zip(split.months, ends, ends[1:], strict=False):
        tested = np.flatnonzero((dates > after) & (dates <= end))
        yield from _numbered(f"{split.name} {month}", repeats, [Split(known, tested)])


def _days(day: str, months_later: int = 0) -> int:
    """Days since 1970 of a date, or of some months after it."""
    return int(pl.Series([day]).str.to_date().dt.offset_by(f"{months_later}mo").to_physical()[0])


def _best(scores: FloatArray | None, split: Beyond) -> BoolArray:
    """Mark the share of the models that score best."""
    if scores is None or np.isnan(scores).all():
        raise DataError(f"split {split.name!r} needs models whose overall scores are known, got none.")
    known = np.flatnonzero(~np.isnan(scores))
    best = known[np.argsort(scores[known], kind="stable")][-_n_tested(known.size, split.test_share) :]
    return np.isin(np.arange(scores.size), best)


def _newest(dates: IntArray, share: float, name: str) -> BoolArray:
    """Mark the models from the date on that comes closest to this share of all."""
    known = np.unique(dates)
    if known.size < 2:
        raise DataError(f"split {name!r} needs models of at least two dates, got one date only.")
    newer = np.array([np.mean(dates >= date) for date in known[1:]])
    result: BoolArray = dates >= known[1:][np.argmin(np.abs(newer - share))]
    return result


ITEM_COLUMNS = ("item_id", "scenario", "subscenario", "weight", "chance", "n_options")
"""What of the item table a method may see: other columns often hold means over all models, new ones too."""


def calibration_part(responses: ResponseMatrix, fold: Fold) -> ResponseMatrix:
    """Return the past models' responses, to the items one of them answered, and their external scores alone."""
    answered = np.flatnonzero(responses.observed[fold.train].any(axis=0))
    external = [name for name in responses.models.columns if name.startswith(EXTERNAL)]
    return _bare(responses.take(models=fold.train, items=answered), external)


def answers_of(new: ResponseMatrix, chosen: IntArray) -> ResponseMatrix:
    """Return the new models' responses to the chosen items, and nothing else of them."""
    return _bare(new.take(items=chosen))


def check_no_leak(bank: Bank, new: ResponseMatrix) -> None:
    """Refuse a bank that was calibrated on a model it is to be tested with."""
    both = sorted(set(bank.responses.model_ids) & set(new.model_ids))
    if both:
        raise DataError(
            f"no model may be both tested and calibrated on, got {len(both)}: {shown(both)}. "
            "This is a mistake in the split, not in the data."
        )


def _bare(responses: ResponseMatrix, of_models: Sequence[str] = ()) -> ResponseMatrix:
    """Leave out what tables say of models (their scores, often) beyond these, and of items beyond `ITEM_COLUMNS`."""
    columns = [name for name in ITEM_COLUMNS if name in responses.items.columns]
    return ResponseMatrix(
        responses.responses,
        responses.models[["model_id", *of_models]],
        responses.items.select(columns),
        responses.n_trials,
        responses.costs,
    )
