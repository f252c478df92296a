"""What a bank that was published without past models' responses keeps of them, in numbers that name no model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.bank.selections import Selection
from itembank.errors import quoted, visible
from itembank.irt.discrepancy import Discrepancy
from itembank.irt.linear_gaussian import FactorModel
from itembank.numerics.arrays import FloatArray

_BANK_ID = re.compile(r"[0-9a-f]{1,64}")
PART = "published."
"""Begins the names of its arrays in a bank's files."""
OF_SUBSET = ("weights", "errors", "standard_errors", "scales", "misfit", "misfit_errors", "tail")
"""Arrays of a `PublishedSubset`."""


@dataclass(frozen=True, slots=True)
class PublishedSubset:
    """Items to run, and how well estimates from them served the past models when each was left out.

    Each column of `errors`, with its `standard_errors` and `scales`, is in an order of its own, so that no row belongs
    to one model.
    """

    selection: Selection
    weights: FloatArray  # (n_members, n_targets): Of the methods that 'stacked' combines
    # (n_models, n_targets): Of 'stacked', out of fold; NaN where unknown. No rows where models were too few to leave
    # some out.
    errors: FloatArray
    standard_errors: FloatArray  # (n_models, n_targets): The size of each error that the item model expects
    scales: FloatArray  # (n_models, n_targets): The size that the widths of intervals follow
    misfit: FloatArray  # (n_models,): How far past models' answers lay from what is expected of them, ascending
    # (2,): Mean absolute error of the overall score for the tenth with the largest misfit, and for the others.
    misfit_errors: FloatArray
    tail: FloatArray  # (1,): Misfit from which errors grow faster, infinite where they do not
    explanation: str  # How the methods compared
    methods: tuple[str, ...]  # What 'stacked' combined: a release that combines others cannot use what is kept here


@dataclass(frozen=True, slots=True)
class Published:
    """What stands in for the responses of past models."""

    n_models: int  # How many models the bank was calibrated on
    whole_bank: str  # Id of the bank that holds their responses
    noise_ratio: FloatArray  # (n_scenarios,): See `itembank.estimation.response_summary.noise_ratio`
    factor_model: FactorModel  # Of the responses, with as many factors as suit them
    discrepancy: Discrepancy  # What new models may differ by, measured on past models left out
    subset: PublishedSubset | None = None  # None where any items may be run

    def record(self) -> dict[str, Any]:
        """Return everything that is not an array."""
        subset = self.subset
        return {
            "n_models": self.n_models,
            "whole_bank": self.whole_bank,
            "discrepancy": {"level": self.discrepancy.level, "subgroup": self.discrepancy.subgroup},
            "selection": None if subset is None else subset.selection.to_dict(),
            "explanation": "" if subset is None else subset.explanation,
            "methods": [] if subset is None else list(subset.methods),
        }

    def arrays(self) -> dict[str, FloatArray]:
        """Return the arrays, by their names in a bank's files."""
        found = {
            "noise_ratio": self.noise_ratio,
            "factor_mean": self.factor_model.mean,
            "factor_loadings": self.factor_model.loadings,
            "factor_noise": self.factor_model.noise,
        }
        if self.subset is not None:
            found |= {name: getattr(self.subset, name) for name in OF_SUBSET}
        return {f"{PART}{name}": np.ascontiguousarray(array, dtype=np.float64) for name, array in found.items()}


def read_published(record: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> Published:
    """Read what `Published.record` and `Published.arrays` wrote; what is not there raises as reading a bank does."""
    found = {name.removeprefix(PART): array for name, array in arrays.items() if name.startswith(PART)}
    subset = None
    if record["selection"] is not None:
        selection = Selection.from_dict(record["selection"], source="the published selection")
        subset = PublishedSubset(
            selection=selection,
            explanation=visible(str(record["explanation"])),  # it is shown, and may be a stranger's
            methods=tuple(map(str, record["methods"])),
            **{name: found[name] for name in OF_SUBSET},
        )
    if not _BANK_ID.fullmatch(str(record["whole_bank"])):
        raise ValueError(f"whole_bank must be the id of a bank, got {quoted(record['whole_bank'])}")
    return Published(
        int(record["n_models"]),
        str(record["whole_bank"]),
        found["noise_ratio"],
        FactorModel(found["factor_mean"], found["factor_loadings"], found["factor_noise"]),
        Discrepancy(float(record["discrepancy"]["level"]), float(record["discrepancy"]["subgroup"])),
        subset,
    )
