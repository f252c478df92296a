"""`KnownTarget`: a named set of items with their weights, whose score a bank can give."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from itembank.files.digests import digest_of
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.score_names import Across, Within
from itembank.responses.targets import ScoreTargets
from itembank.tabular import Compact

DIGITS = 12
"""Of a digest, in hexadecimal; and significant decimal digits of the weights it is made of."""


@dataclass(frozen=True, slots=True, repr=False)
class KnownTarget(Compact):
    """A set of items with weights, over the items of a whole bank, and what was measured of the bank that gives it."""

    name: str  # 'mmlu_pro@1'; empty where the bank has no name
    digest: str  # Of the items and their weights (`target_digest`)
    bank_id: str  # Of the bank of these items alone
    within: Within
    across: Across
    scenarios: tuple[str, ...]
    scenario_weights: FloatArray  # (n_scenarios,)
    # (n_whole_items,): Weight of each item within its scenario; NaN for items that do not belong to the target.
    weights: FloatArray
    item_model_bias: FloatArray  # (n_scenarios,): Those of `Bank`
    response_variance: FloatArray  # (n_scenarios,)

    @property
    def target_id(self) -> str:
        """The name, or the digest where there is none."""
        return self.name or self.digest

    @property
    def items(self) -> IntArray:
        """Positions of its items in the whole bank."""
        return np.flatnonzero(~np.isnan(self.weights))

    def score_targets(self, scenarios_of_items: Sequence[str]) -> ScoreTargets:
        """Return the score targets over its own items; `scenarios_of_items` are the scenarios of these."""
        place = {name: j for j, name in enumerate(self.scenarios)}
        index = np.array([place[name] for name in scenarios_of_items], dtype=np.int64)
        return ScoreTargets(
            self.scenarios, index, self.weights[self.items], self.scenario_weights, self.within, self.across
        )


def target_digest(item_ids: Sequence[str], targets: ScoreTargets) -> str:
    """First digits of a SHA-256 over items, scenarios and weights, whatever order the items stand in.

    Two banks of the same digest estimate the same score, however they were calibrated.
    """
    rows = sorted(
        f"{item!r} {targets.scenarios[scenario]!r} {weight:.{DIGITS}g}"
        for item, scenario, weight in zip(
            item_ids, targets.scenario_index.tolist(), targets.weights.tolist(), strict=True
        )
    )
    shares = sorted(
        f"{name!r} {weight:.{DIGITS}g}"
        for name, weight in zip(targets.scenarios, targets.scenario_weights.tolist(), strict=True)
    )
    return digest_of("\n".join([*shares, *rows]).encode())[:DIGITS]
