"""`Selection`: chosen items with their weights, and the JSON file it lives in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.checks import is_number
from itembank.errors import DataError, shown, visible
from itembank.files.atomic import write_text
from itembank.files.documents import RECORD_KEY, digest_fits, read_json, with_digest
from itembank.numerics.arrays import FloatArray
from itembank.tables import plural
from itembank.tabular import Note, Tabular

SCHEMA_VERSION = "itembank.selection/1"
EXPLANATION = "explanation"
EARLIER = "earlier"
INCLUDED = "included"
"""Stands in a recipe where items had to be chosen."""
NEVER_ASKED = "never_asked"


@dataclass(frozen=True, slots=True, repr=False)
class Selection(Tabular):
    """Chosen items.

    Attributes
    ----------
    item_ids : tuple of n_selected ids
    scenarios : tuple of n_selected scenario names
    weights : (n_selected,)
        Weight of each item in the estimate of its scenario's score; they sum to one in each scenario.
    method : str
        How the items were chosen.
    bank : str
        Id of the bank they were chosen from.
    seed : int or None
    inclusion_probabilities : (n_selected,) or None
        Probability with which each item came into the sample, in (0, 1]; None if it is not known, because
        chance did not choose the items or some that count in the score could not come. Estimates and intervals
        that do not trust the item model need it (`design_based_estimates`).
    recipe : mapping or None
        What `select` was asked for (`n_items`, `per_scenario`, `options` of the method, `excluded`, `included`), so
        that the same choice can be made again without some of the past models; None for items chosen in another
        way.
    explanation : str
        Why these items, if the method was chosen for the user.
    target, target_digest : str
        Which score they are for: the bank's `target_id` and `target_digest`; empty where it is not known.
    never_asked : tuple of records
        One for each scenario that is to be predicted from the items of others (`select` with `predict`): its name
        (`target`), and for past models, scored as if they were new, the mean absolute `error` of predicting its score,
        that of the other past models' mean alone (`error_of_mean`), and the `half_width` of a typical interval; from 0
        to 1, None where not known.
    earlier : Selection or None
        Of a later stage: the items of the stages before it, which the model has answered. Weights are then those that
        the items of all these stages have together (`whole`).
    """

    item_ids: tuple[str, ...]
    scenarios: tuple[str, ...]
    weights: FloatArray
    method: str
    bank: str
    seed: int | None = None
    inclusion_probabilities: FloatArray | None = None
    recipe: Mapping[str, Any] | None = None
    explanation: str = ""
    earlier: "Selection | None" = None
    target: str = ""
    target_digest: str = ""
    never_asked: tuple[Mapping[str, Any], ...] = ()

    @property
    def whole(self) -> "Selection":
        """The items of this stage and of those before it, which estimates rest on; itself if there are none."""
        if self.earlier is None:
            return self
        return replace(
            self,
            item_ids=(*self.earlier.item_ids, *self.item_ids),
            scenarios=(*self.earlier.scenarios, *self.scenarios),
            weights=np.concatenate([self.earlier.weights, self.weights]),
            earlier=None,
        )

    @property
    def n_items(self) -> int:
        """Number of chosen items."""
        return len(self.item_ids)

    @property
    def is_random(self) -> bool:
        """Whether chance alone chose the items (gp-IRT's variance constant depends on it, tinyBenchmarks 4.2)."""
        has_included = self.recipe is not None and bool(self.recipe.get(INCLUDED))
        return self.method in {"random", "stratified"} and not has_included

    def __len__(self) -> int:
        """Return the number of chosen items."""
        return self.n_items

    @property
    def sentence(self) -> str:
        """How many items were chosen, how, and what is to be done with them."""
        return (
            f"{plural(self.n_items, 'item')} of bank {visible(self.bank)}, by {visible(self.method)}\n"
            "Next: run these (item_ids), then ib.estimate(bank, answers, selection)"
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """How the items came about, if there is more to say than the method's name."""
        return (Note(EXPLANATION, f"Chosen by {self.explanation}"),) if self.explanation else ()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON file."""
        return {
            "schema_version": SCHEMA_VERSION,
            "method": self.method,
            "bank": self.bank,
            "target": self.target,
            "target_digest": self.target_digest,
            "seed": self.seed,
            "explanation": self.explanation,
            "recipe": None if self.recipe is None else dict(self.recipe),
            **({NEVER_ASKED: list(self.never_asked)} if self.never_asked else {}),
            "items": self.rows(),
            **({} if self.earlier is None else {EARLIER: self.earlier.rows()}),
        }

    @property
    def table(self) -> pl.DataFrame:
        """One row an item: `item_id`, `scenario`, `weight` and, where known, `inclusion_probability`."""
        columns = {"item_id": self.item_ids, "scenario": self.scenarios, "weight": self.weights}
        chances = self.inclusion_probabilities
        return pl.DataFrame(columns | ({} if chances is None else {"inclusion_probability": chances}))

    @classmethod
    def from_dict(cls, content: Any, *, source: str = "selection") -> Self:
        """Read the content of the JSON file; `DataError` says what is wrong with it."""
        if not isinstance(content, dict) or not isinstance(content.get("items"), list):
            raise DataError(f"{source}: a selection must be a JSON object with a list 'items'.")
        version = content.get("schema_version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            raise DataError(
                f"{source}: schema_version must be {SCHEMA_VERSION!r}, got {version!r}. Choose again with itembank "
                "select."
            )
        ids, scenarios, weights = _read_rows(content["items"], source)
        probabilities = _inclusion_probabilities(content["items"], source)
        method, bank = str(content.get("method", "")), str(content.get("bank", ""))
        recipe = content.get("recipe")
        if not (recipe is None or isinstance(recipe, dict)):
            raise DataError(f"{source}: recipe must be a JSON object or null.")
        never_asked = content.get(NEVER_ASKED, [])
        if not (isinstance(never_asked, list) and all(isinstance(one, dict) for one in never_asked)):
            raise DataError(f"{source}: {NEVER_ASKED} must be a list of JSON objects.")
        earlier = None
        if EARLIER in content:
            earlier = cls(*_read_rows(content[EARLIER], source), method, bank)
            _check_unique((*earlier.item_ids, *ids), source)
        explanation, seed = str(content.get("explanation", "")), content.get("seed")
        return cls(
            ids,
            scenarios,
            weights,
            method,
            bank,
            seed,
            probabilities,
            recipe,
            explanation,
            earlier,
            str(content.get("target", "")),
            str(content.get("target_digest", "")),
            tuple(never_asked),
        )

    def save(self, path: str | Path) -> None:
        """Write the JSON file, whole or not at all."""
        content = with_digest(self.to_dict())
        write_text(Path(path), json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the JSON file."""
        try:
            content = read_json(Path(path))
        except (OSError, DataError) as error:
            raise DataError(f"{error} It was to be a selection; make one with itembank select.") from error
        if isinstance(content, dict) and not digest_fits(content):
            raise DataError(
                f"{path} is not the selection that was written: it is damaged, or was changed by hand. Copy it "
                f"again, or remove its line {RECORD_KEY!r} if you mean what it says now."
            )
        return cls.from_dict(content, source=str(path))


def _read_rows(rows: Any, source: str) -> tuple[tuple[str, ...], tuple[str, ...], FloatArray]:
    """Ids, scenarios and weights (n_rows,) of the items in a list."""
    try:
        ids = tuple(str(row["item_id"]) for row in rows)
        scenarios = tuple(str(row["scenario"]) for row in rows)
        weights = np.array([float(row["weight"]) for row in rows])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{source}: every item must have item_id, scenario and weight (a number).") from error
    if not ids:
        raise DataError(f"{source}: a selection must hold at least one item.")
    _check_unique(ids, source)
    if not np.all(np.isfinite(weights) & (weights >= 0.0)):
        raise DataError(f"{source}: weight must be a finite number >= 0.")
    return ids, scenarios, weights


def _check_unique(ids: tuple[str, ...], source: str) -> None:
    if len(set(ids)) < len(ids):
        raise DataError(f"{source}: item_id must be unique: {shown([i for i in set(ids) if ids.count(i) > 1])}.")


def _inclusion_probabilities(rows: list[dict[str, Any]], source: str) -> FloatArray | None:
    """Inclusion probability of each item, (n_selected,); None where no item has one, as in older files."""
    given = [row.get("inclusion_probability") for row in rows]
    if all(value is None for value in given):
        return None
    is_valid = [is_number(value) and 0.0 < value <= 1.0 for value in given]
    if not all(is_valid):
        wrong = [row["item_id"] for row, fine in zip(rows, is_valid, strict=True) if not fine]
        raise DataError(
            f"{source}: inclusion_probability must be in (0, 1] for every item or absent for all, and is not for "
            f"{len(wrong)} of {len(rows)}: {shown(wrong)}."
        )
    return np.array(given, dtype=np.float64)
