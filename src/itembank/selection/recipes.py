"""The request that a selection answers, stored with it to be repeated, and selections as harnesses take them."""

import dataclasses
from collections.abc import Collection
from typing import Any

from itembank.bank.bank_cache import cache_name
from itembank.bank.selections import INCLUDED, Selection
from itembank.errors import ParameterError
from itembank.selection.selector_specs import METHODS, NOT_NAMED, SelectionSpec, VOptimal

STAGES, STAGE, ROUTING = "stages", "stage", "routing"
"""Stand in a recipe where a model is asked in stages: their numbers of items, the stage, the first stage's method."""
KNOWN = {STAGES, STAGE, ROUTING, INCLUDED, "n_items", "per_scenario", "options", "excluded"}


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """Every argument of `select` besides the bank and the random numbers.

    `stages` are the numbers of items of the stages that a model answers, `n_items` of the first among them; empty where
    all items come at once.
    """

    spec: SelectionSpec
    n_items: int
    per_scenario: bool
    excluded: tuple[str, ...]
    included: tuple[str, ...] = ()
    stages: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What trials of this recipe are kept under."""
        others = [getattr(self, one.name) for one in dataclasses.fields(self) if one.name != "spec"]
        return cache_name("recipe", METHODS.to_plain(self.spec, "method"), *others)

    @property
    def later_spec(self) -> VOptimal:
        """How stages after the first are chosen: for the scores that the first was chosen for."""
        return self.spec if isinstance(self.spec, VOptimal) else VOptimal()


def recipe_of(
    spec: SelectionSpec, n_items: int, *, per_scenario: bool, excluded: Collection[str], included: Collection[str] = ()
) -> dict[str, Any]:
    """Return the recipe as a selection file holds it."""
    options = dataclasses.asdict(spec)
    if isinstance(spec, VOptimal):
        for name, usual in NOT_NAMED.items():
            if options[name] is usual:
                del options[name]
    return {
        "n_items": int(n_items),
        "per_scenario": bool(per_scenario),
        "options": options,
        "excluded": sorted(excluded),  # a set has no order, and a file must not depend on one
        **({INCLUDED: sorted(included)} if included else {}),
    }


def stages_of(selection: Selection) -> tuple[tuple[int, ...], int]:
    """Numbers of items of all stages that a selection was planned for, and which of them it is, from 1.

    No stages, and 1, for a selection that is one batch.
    """
    about = selection.recipe or {}
    sizes, number = tuple(int(size) for size in about.get(STAGES, ())), int(about.get(STAGE, 1))
    if sizes and not (1 <= number <= len(sizes) and min(sizes) >= 1):
        raise ValueError(f"stage {number} of {sizes}")
    return sizes, number


def n_items_asked(selection: Selection) -> int | None:
    """Return how many items the selection had when it was made; None where it does not say."""
    about = selection.recipe
    try:
        if about is None:
            return None
        sizes, number = stages_of(selection)
        if sizes:
            return sum(sizes[:number])
        return int(about["n_items"]) * (len(set(selection.scenarios)) if about["per_scenario"] else 1)
    except (KeyError, TypeError, ValueError):
        return None


def read_recipe(selection: Selection) -> Recipe | None:
    """Read a selection's recipe; None where it has no recipe, or one that this release cannot follow.

    Of a selection that was cut or added to since it was made, the recipe asks for as many items as there are now:
    what estimates from twice as many are worth would promise too much. Of a later stage it is that of all stages up to
    there (`Selection.whole`).
    """
    about = selection.recipe
    kind = METHODS.kinds.get(str((about or {}).get(ROUTING, selection.method)))
    if about is None or kind is None or set(about) - KNOWN:
        return None
    try:
        sizes, number = stages_of(selection)
        recipe = Recipe(
            kind(**about["options"]),
            int(about["n_items"]),
            bool(about["per_scenario"]),
            tuple(str(item) for item in about["excluded"]),
            tuple(str(item) for item in about.get(INCLUDED, ())),
            sizes[:number] if number > 1 else (),
        )
    except (KeyError, TypeError, ValueError, ParameterError):
        return None
    n_more = selection.n_items - (n_items_asked(selection) or 0)
    if n_more == 0:
        return recipe
    if recipe.stages:
        last = recipe.stages[-1] + n_more
        return dataclasses.replace(recipe, stages=(*recipe.stages[:-1], last)) if last > 0 else None
    return dataclasses.replace(recipe, n_items=selection.n_items, per_scenario=False)
