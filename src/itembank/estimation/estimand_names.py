"""Names of the scores that an interval may be for; what they mean is computed in `estimands`."""

from typing import Final, Literal, TypeAlias, get_args

Estimand: TypeAlias = Literal["run", "expected"]
ESTIMANDS: tuple[Estimand, ...] = get_args(Estimand)
RUN: Final = "run"

ESTIMANDS_IN_WORDS: dict[str, str] = {
    "run": "the score of one full run on the bank's items",
    "expected": "the expected score over repeated runs on the bank's items",
}
