"""Names of the families of responses; without numpy, so that a command's help can list them."""

from typing import Literal, get_args

Family = Literal["bernoulli", "binomial", "beta", "beta-binomial", "graded"]
"""Distribution of a response whose mean is the probability."""

FAMILIES: tuple[Family, ...] = get_args(Family)
WITH_PRECISION: tuple[Family, ...] = ("beta", "beta-binomial")
"""Families that have a precision."""
GRADED: Family = "graded"
"""Ordered levels, with steps between them."""
