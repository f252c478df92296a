"""What a bank without past models' answers knows of them: who they were, what they scored, what they taught.

`Published` replaces the responses of a bank that was published without them.
"""

import datetime
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from itembank.bank.selections import Selection
from itembank.errors import quoted, visible
from itembank.irt.discrepancy import Discrepancy
from itembank.irt.linear_gaussian import FactorModel
from itembank.numerics.arrays import FloatArray, IntArray

_BANK_ID = re.compile(r"[0-9a-f]{1,64}")
PART = "published."
"""Begins the names of its arrays in a bank's files."""
OF_SUBSET = ("weights", "errors", "standard_errors", "scales", "misfit", "apart")
"""Arrays of a `PublishedSubset`."""
PAST_SCORES = "past_scores"
"""Array of the scores of a published bank's past models."""
MEASURED = ("error", "half_width", "coverage")
"""What a bank's record says of the cross-validated errors of a `PublishedSubset`."""
OF_REST = ("sizes", "weights", "squares", "curves", "curve_scenarios", "shifts", "subgroups")
"""Arrays of a `Rest`; their names in a bank's files begin with `rest_`."""
_EARLIER_METHODS: Mapping[str, Mapping[str, Any]] = {
    "PIRT()": {"method": "p-irt"},
    "GPIRT(anchor_variance_factor=4.0, unmeasured_bias=0.05)": {
        "method": "gp-irt",
        "anchor_variance_factor": 4.0,
        "unmeasured_bias": 0.05,
    },
    "Weighted()": {"method": "weighted"},
    "Factor(n_factors='auto', discrepancy='auto')": {"method": "factor", "n_factors": "auto", "discrepancy": "auto"},
    "Factor(n_factors='auto', discrepancy=0.1)": {"method": "factor", "n_factors": "auto", "discrepancy": 0.1},
}
"""What 'stacked' combines, as banks say it that were published before it was written as JSON."""


class PastModels(NamedTuple):
    """Past models of a bank; of some of them the score alone may be known, and no name."""

    names: tuple[str, ...]  # Ids, or with a salt their digests (`name_digest`); none where they are not known
    scores: FloatArray  # (n_models,): The overall score, or the one in its place; NaN where unknown
    salt: str = ""
    told: tuple[str, ...] = ()  # Ids beside digests, where they may be shown

    def rows(self, model_id: str) -> list[int]:
        """Rows of the past models that have this id."""
        wanted = {model_id}
        if self.salt:  # logs name the same model with its organisation and without
            wanted = {name_digest(name, self.salt) for name in (model_id, model_id.rpartition("/")[2])}
        return [row for row, name in enumerate(self.names) if name in wanted]

    def known(self, model_ids: Sequence[str]) -> tuple[str, ...]:
        """Return those of these models that are past models."""
        if not self.salt:
            names = set(self.names)
            return tuple(one for one in model_ids if one in names)
        return tuple(one for one in model_ids if self.rows(one))

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest known score; NaN without any."""
        known = self.scores[~np.isnan(self.scores)]
        return (float(known.min()), float(known.max())) if known.size else (np.nan, np.nan)


def is_name_digest(text: str) -> bool:
    """Whether a text may be a digest of a name."""
    return re.fullmatch(r"[0-9a-f]{16}", text) is not None


def name_digest(model_id: str, salt: str) -> str:
    """Digest of a model's name by which a bank knows it again that does not tell it: of its letters and digits."""
    plain = "".join(letter for letter in model_id.casefold() if letter.isalnum())
    return hashlib.sha256(f"{salt}:{plain}".encode()).hexdigest()[:16]


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
    explanation: str  # How the methods compared
    # What 'stacked' combined, each with its choices: a release that combines others cannot use what is kept here
    methods: tuple[Mapping[str, Any], ...]
    # Of the cross-validated overall score: `error` (mean absolute), `half_width` (mean, of 95 % intervals) and
    # `coverage` (fraction of these that cover the true score); empty without cross-validation. Of drawn items the
    # expected `half_width` alone
    measured: Mapping[str, float] = field(default_factory=dict)
    # Of drawn items: how many factors predict best from them, and how far scenario scores are off then, squared
    # (n_scenarios,); the arrays above have no rows then, since intervals rest on the draw
    n_factors: int = 0
    apart: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True)
class Rest:
    """Sums over the items that count in the scores of a published bank and are not in it, since nobody is to run them.

    Estimates need no more of them. The factor model of such a bank has one more row for each scenario: the weighted
    sum of these items.
    """

    sizes: IntArray  # (n_scenarios,): How many they are
    weights: FloatArray  # (n_scenarios,): Sum of their weights in the scenario's score, and that of their squares
    squares: FloatArray  # (n_scenarios,)
    # (n_curves, 4): Loading, intercept, and two weights of curves ``p = sigmoid(loading theta + intercept)`` that stand
    # in for them: one of p in the weighted sum of theirs, one of ``p (1 - p)`` in the sum by squared weights
    curves: FloatArray
    curve_scenarios: IntArray  # (n_curves,)
    shifts: FloatArray  # (n_items + n_scenarios, n_shifts): Of scenarios and subscenarios, as `with_discrepancy` adds
    subgroups: FloatArray  # (n_items + n_scenarios, n_subgroups)
    target_id: str  # Of the score on all items
    target_digest: str


@dataclass(frozen=True, slots=True)
class Published:
    """What replaces the responses of past models; its numbers have single precision, as in its file."""

    n_models: int  # How many models the bank was calibrated on
    whole_bank: str  # Id of the bank that holds their responses
    noise_ratio: FloatArray  # (n_scenarios,): See `itembank.bank.norms.noise_ratio`
    factor_model: FactorModel  # Of the responses, with as many factors as suit them
    discrepancy: Discrepancy  # What new models may differ by, measured by cross-validation
    item_order: IntArray  # (n_items,): Positions in the order of the past models' answers (`Bank.content_order`)
    subsets: tuple[PublishedSubset, ...] = ()  # None where any items may be run
    newest: datetime.date | None = None  # Of the newest past model; None where unknown
    rest: Rest | None = None  # None where the bank has all items
    past: PastModels | None = None  # Names as digests, and public scores; None where they are not published
    attempts: float = 1.0  # How often past models tried an item, where responses are counts or means of attempts

    def record(self) -> dict[str, Any]:
        """Return everything that is not an array."""
        subsets = [
            {
                "n_items": one.selection.n_items,
                **one.measured,
                "selection": one.selection.to_dict(),
                "explanation": one.explanation,
                "methods": list(one.methods),
                "n_factors": one.n_factors,
            }
            for one in self.subsets
        ]
        return {
            "n_models": self.n_models,
            "whole_bank": self.whole_bank,
            "discrepancy": {"level": self.discrepancy.level, "subgroup": self.discrepancy.subgroup},
            "subsets": subsets,
            "newest": None if self.newest is None else self.newest.isoformat(),
            **({} if self.past is None else {"past_models": list(self.past.names)}),
            **({} if self.attempts <= 1.0 else {"attempts": self.attempts}),
            **({"past_model_ids": list(self.past.told)} if self.past is not None and self.past.told else {}),
            "target": None if self.rest is None else [self.rest.target_id, self.rest.target_digest],
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays, by their names in a bank's files."""
        found = {
            "noise_ratio": self.noise_ratio,
            "factor_mean": self.factor_model.mean,
            "factor_loadings": self.factor_model.loadings,
            "factor_noise": self.factor_model.noise,
        }
        for number, one in enumerate(self.subsets):
            found |= {f"{number}.{name}": getattr(one, name) for name in OF_SUBSET}
        found |= {} if self.past is None else {PAST_SCORES: self.past.scores}
        packed = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in found.items()}
        packed["item_order"] = np.ascontiguousarray(self.item_order, dtype=np.int32)
        if self.rest is not None:  # few numbers, on which every estimate rests
            packed |= {f"rest_{name}": np.ascontiguousarray(getattr(self.rest, name)) for name in OF_REST}
        return {f"{PART}{name}": array for name, array in packed.items()}


def read_published(record: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> Published:
    """Read what `Published.record` and `Published.arrays` wrote; what is not there raises as reading a bank does."""
    found = {name.removeprefix(PART): array for name, array in arrays.items() if name.startswith(PART)}
    subsets = []
    for number, about in enumerate(record["subsets"]):
        measured = {name: float(about[name]) for name in MEASURED if name in about}
        subset = PublishedSubset(
            selection=Selection.from_dict(about["selection"], source="the published selection"),
            explanation=visible(str(about["explanation"])),  # it is shown, and may be a stranger's
            methods=tuple(
                _EARLIER_METHODS.get(one, {}) if isinstance(one, str) else dict(one) for one in about["methods"]
            ),
            **{name: found[f"{number}.{name}"] for name in OF_SUBSET},
            measured=measured,
            n_factors=int(about["n_factors"]),
        )
        subsets.append(subset)
    if not _BANK_ID.fullmatch(str(record["whole_bank"])):
        raise ValueError(f"whole_bank must be the id of a bank, got {quoted(record['whole_bank'])}")
    rest = None
    if record["target"] is not None:
        target_id, digest = map(visible, map(str, record["target"]))
        sums: dict[str, Any] = {name: found[f"rest_{name}"] for name in OF_REST}
        rest = Rest(**sums, target_id=target_id, target_digest=digest)
    names, past = record.get("past_models"), None
    if names is not None:
        told = tuple(
            visible(str(one)) for one in record.get("past_model_ids", ())
        )  # it is shown, as the explanation is
        past = PastModels(tuple(map(str, names)), found[PAST_SCORES], str(record["whole_bank"]), told)
    return Published(
        int(record["n_models"]),
        str(record["whole_bank"]),
        found["noise_ratio"],
        FactorModel(found["factor_mean"], found["factor_loadings"], found["factor_noise"]),
        Discrepancy(float(record["discrepancy"]["level"]), float(record["discrepancy"]["subgroup"])),
        np.asarray(found["item_order"], dtype=np.int64),
        tuple(subsets),
        datetime.date.fromisoformat(record["newest"]) if record.get("newest") else None,
        rest,
        past,
        float(record.get("attempts", 1.0)),
    )
