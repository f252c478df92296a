"""Names of the scores that an interval may be for; what they mean is computed in `estimands`."""

from typing import Final, Literal, TypeAlias, get_args

Estimand: TypeAlias = Literal["run", "expected", "items-like-these"]
ESTIMANDS: tuple[Estimand, ...] = get_args(Estimand)
RUN: Final = "run"

ESTIMANDS_IN_WORDS: dict[str, str] = {
    "run": "the score of one full run on the bank's items",
    "expected": "the expected score over repeated runs on the bank's items",
    "items-like-these": "the score on items like these, of which the bank's are a sample",
}
CHANCE: dict[str, str] = {"expected": "chance of the run", "items-like-these": "chance of which items there are"}
"""What keeps the score of one run from the one that is meant."""
