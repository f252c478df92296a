"""`ItemDrift`: items that new models answer otherwise than the bank lets expect."""

import math
from dataclasses import dataclass
from typing import Any

from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class DriftedItem:
    """An item beside what other answers of the same models let expect.

    Attributes
    ----------
    item_id, scenario : str
    n_models : int
        New models that answered it.
    difference : float
        Mean answer less expectation, from 0 to 1.
    z : float
        The same in standard errors, which the bank's own models, left out, give.
    is_drifted : bool
        Whether it was taken out of the scale.
    """

    item_id: str
    scenario: str
    n_models: int
    difference: float
    z: float
    is_drifted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the record; differences run from -1 to 1."""
        return {
            "item_id": self.item_id,
            "scenario": self.scenario,
            "n_models": self.n_models,
            "difference": self.difference,
            "z": self.z,
            "verdict": "as expected" if not self.is_drifted else "easier" if self.difference > 0.0 else "harder",
        }


@dataclass(frozen=True, slots=True, repr=False)
class ItemDrift(Tabular):
    """Items that new models answer otherwise than the bank lets expect.

    Attributes
    ----------
    bank_id : str
    n_models : int
        New models.
    since : str
        The date since which models count; empty where all do.
    items : tuple of DriftedItem
        Every item that enough new models answered, the z furthest from 0 first.
    by_chance : float
        Items that as many of the bank's own models, left out, would mark.
    is_limited : bool
        Whether more items would have been marked than a fifth: then it is the models that differ, or the run.
    """

    bank_id: str
    n_models: int
    since: str
    items: tuple[DriftedItem, ...]
    by_chance: float
    is_limited: bool

    @property
    def drifted(self) -> tuple[DriftedItem, ...]:
        """Items that were marked."""
        return tuple(one for one in self.items if one.is_drifted)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Sentences on what was found, and what to do."""
        who = f"{self.n_models} models" + (f" since {self.since}" if self.since else "")
        if not self.items:
            return (f"item drift: no item was answered by enough of the {who} to be examined.",)
        found = (
            f"item drift over {who}: {len(self.drifted)} of {len(self.items)} items are answered otherwise than "
            f"expected (by chance about {math.ceil(self.by_chance)})."
        )
        if self.is_limited:
            return (f"{found} Marking stops at a fifth, and there are more: the run or the models changed, not items.",)
        if len(self.drifted) > 2.0 * self.by_chance:
            return (
                f"{found} Look at them (itembank check BANK), and take them out of the score if they are at fault "
                "(itembank bank retire).",
            )
        return (found,)

    def rows(self) -> list[dict[str, Any]]:
        """One record an item that was examined."""
        return [one.to_dict() for one in self.items]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "n_models": self.n_models,
            "since": self.since or None,
            "n_items": len(self.items),
            "n_drifted": len(self.drifted),
            "by_chance": self.by_chance,
            "is_limited": self.is_limited,
            "verdicts": list(self.verdicts),
        }
