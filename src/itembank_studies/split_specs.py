"""Which models are known and which are new: one frozen spec for each kind of split."""

import re
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any, TypeAlias

from itembank.checks import check_fraction, check_whole, is_whole
from itembank.errors import ParameterError
from itembank.methods import MethodTable


@dataclass(frozen=True, slots=True)
class KFold:
    """Models shuffled into k parts; each is tested once, on a bank of the others.

    Attributes
    ----------
    k : int
    name : str
        Of the split in results.
    """

    k: int = 4
    name: str = "k-fold"

    def __post_init__(self) -> None:
        check_whole("k of a split", self.k, least=2)


@dataclass(frozen=True, slots=True)
class RandomShare:
    """A random share of the models is tested, another in each repeat.

    Attributes
    ----------
    test_share : float
    name : str
    """

    test_share: float = 0.25
    name: str = "random"

    def __post_init__(self) -> None:
        check_fraction("test_share", self.test_share)


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """Every model is tested on a bank of all others: for data with few models."""

    name: str = "leave-one-out"


@dataclass(frozen=True, slots=True)
class Ahead:
    """The newest models are tested on a bank of older ones; no date is on both sides.

    Attributes
    ----------
    column : str
        Column of the model table: dates, or text or whole numbers that say year, month and day. By default the one
        whose name says most clearly how new a model is, such as 'release_date' or 'date'.
    test_share : float
        The date that comes closest to it divides the models. 0.75 tests a long time ahead (tinyBenchmarks Figure 11).
    until : str
        Instead of a share: the last date to calibrate on, as year-month-day.
    months : tuple of int
        With `until`: rising numbers of months after that date. Models are tested from the one before (the date itself,
        for the first) to each of them, on the same bank: each time is a split of its own.
    name : str
        Of the split in results; of several times ``name n``, by the month that each ends with.
    """

    column: str = ""
    test_share: float = 0.25
    until: str = ""
    months: tuple[int, ...] = ()
    name: str = "ahead"

    def __post_init__(self) -> None:
        check_fraction("test_share", self.test_share)
        try:
            if self.until:
                object.__setattr__(self, "until", date.fromisoformat(self.until).isoformat())
        except (TypeError, ValueError) as error:
            raise ParameterError(f"until must be a date such as 2024-01-31, got {self.until!r}.") from error
        is_rising = isinstance(self.months, tuple) and all(map(is_whole, self.months))
        if not is_rising or any(b <= a for a, b in pairwise((0, *self.months))):
            raise ParameterError(f"months must be a list of rising whole numbers from 1, got {self.months!r}.")
        if self.months and not self.until:
            raise ParameterError("months are counted from a date: give until, the last date to calibrate on.")


@dataclass(frozen=True, slots=True)
class Beyond:
    """The best models are tested on a bank of worse ones: as the next generation will be, with no date needed.

    Attributes
    ----------
    test_share : float
        Share of the models whose overall score is known.
    name : str
    """

    test_share: float = 0.25
    name: str = "beyond"

    def __post_init__(self) -> None:
        check_fraction("test_share", self.test_share)


@dataclass(frozen=True, slots=True)
class ByGroup:
    """Whole groups are tested (organisations, families, prompt templates): none is on both sides.

    Attributes
    ----------
    column : str
        Column of the model table. Models without a value form one group of their own.
    test_share : float
        Groups are drawn at random until they hold this share of the models, or come as close as they can.
    k : int or None
        Instead of a share: divide the groups into k parts of about as many models each, and test each once.
    name : str
    """

    column: str
    test_share: float = 0.25
    k: int | None = None
    name: str = "group"

    def __post_init__(self) -> None:
        check_fraction("test_share", self.test_share)
        if self.k is not None:
            check_whole("k of a split", self.k, least=2)


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """The models of named groups are tested, all others calibrate (tinyBenchmarks's specialised models, Figure 5).

    Attributes
    ----------
    column : str
        Column of the model table.
    values : tuple
        Values of the models to be tested.
    name : str
    """

    column: str
    values: tuple[object, ...]
    name: str = "named-group"

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple) or not self.values:
            raise ParameterError(f"values must list at least one group to test, got {self.values!r}.")


@dataclass(frozen=True, slots=True)
class Matching:
    """The models whose text matches a pattern are tested: fine-tunes and merges that are known by their names.

    Attributes
    ----------
    column : str
        Column of the model table; 'model_id' for the names themselves.
    pattern : str
        Regular expression that some part of the text must match. Models without a text do not.
    name : str
    """

    column: str
    pattern: str
    name: str = "matching"

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except (re.error, TypeError) as error:
            raise ParameterError(f"pattern must be a regular expression, got {self.pattern!r}: {error}.") from error


@dataclass(frozen=True, slots=True)
class TrainingShare:
    """Fewer and fewer past models, the tested ones staying the same: each size is a split of its own.

    Attributes
    ----------
    n_models : tuple of int
        Numbers of past models, 10 or more each; a smaller one is a part of a larger one.
    shares : tuple of float
        Instead of numbers: shares of the models that are not tested.
    test_share : float
    name : str
        The results call each split ``name n``.
    """

    n_models: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()
    test_share: float = 0.25
    name: str = "training-share"
    minimum: int = field(default=10, init=False)

    def __post_init__(self) -> None:
        check_fraction("test_share", self.test_share)
        lists: tuple[Any, ...] = (self.n_models, self.shares)
        if not all(isinstance(one, tuple) for one in lists) or bool(self.n_models) == bool(self.shares):
            raise ParameterError("a training-share split takes either n_models or shares, a list of at least one.")
        bad = [n for n in self.n_models if not is_whole(n) or n < self.minimum]
        if bad:
            raise ParameterError(f"n_models of a split must be whole numbers from {self.minimum}, got {bad}.")
        for share in self.shares:
            check_fraction("shares of a split", share, whole=True)


SplitSpec: TypeAlias = (
    KFold | RandomShare | LeaveOneOut | Ahead | Beyond | ByGroup | NamedGroup | Matching | TrainingShare
)

# The classes without defaults are never made by their name alone.
SPLITS: MethodTable[SplitSpec] = MethodTable(
    "split",
    {
        "k-fold": KFold,
        "random": RandomShare,
        "leave-one-out": LeaveOneOut,
        "ahead": Ahead,
        "beyond": Beyond,
        "group": ByGroup,
        "named-group": NamedGroup,
        "matching": Matching,
        "training-share": TrainingShare,
    },
)
