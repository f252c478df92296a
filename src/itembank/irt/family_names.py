"""The table of families of responses; without numpy, so that specs and a command's help can read it.

A new family is a subclass of `itembank.irt.families.ResponseModel` in a file of its own, and a line here.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Family = Literal["bernoulli", "binomial", "beta", "beta-binomial"]
"""Distribution of a response whose mean is the probability."""

Takes = Literal["answers", "counts", "probabilities"]
"""Right or wrong; shares of n_trials that were right; numbers between 0 and 1."""


@dataclass(frozen=True, slots=True)
class FamilyKind:
    """What a family needs of responses and items, and where its likelihood is."""

    model: str  # 'module:class', loaded when it is first needed
    takes: Takes
    has_precision: bool = False  # Whether every item has a precision phi


KINDS: dict[Family, FamilyKind] = {
    "bernoulli": FamilyKind("itembank.irt.bernoulli:BernoulliModel", "answers"),
    "binomial": FamilyKind("itembank.irt.bernoulli:BinomialModel", "counts"),
    "beta": FamilyKind("itembank.irt.beta:BetaModel", "probabilities", has_precision=True),
    "beta-binomial": FamilyKind("itembank.irt.beta_binomial:BetaBinomialModel", "counts", has_precision=True),
}

FAMILIES: tuple[Family, ...] = get_args(Family)
WITH_PRECISION: tuple[Family, ...] = tuple(name for name, kind in KINDS.items() if kind.has_precision)
"""Families that have a precision."""
COUNTS: tuple[Family, ...] = tuple(name for name, kind in KINDS.items() if kind.takes == "counts")
"""Families of counts: the weight of a response depends on its n_trials."""
