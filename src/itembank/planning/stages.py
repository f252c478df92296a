"""How a budget of items is divided among stages, and whether stages pay."""

import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import is_whole
from itembank.errors import ParameterError, remedy
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.planning.auto import FALLBACK, Tried, aimed_at_headline, best_of, errors_of
from itembank.progress import ProgressCallback, silent
from itembank.responses.score_names import OVERALL
from itembank.selection.recipes import LATER_SCENARIOS, STAGE, STAGES, read_recipe, stages_of
from itembank.selection.select import candidates
from itembank.selection.selector_specs import SelectionSpec, VOptimal

AUTO = "auto"
MOST_STAGES = 3
"""Each stage is a run of the harness, and more would gain little."""


def check_stages(stages: object) -> None:
    """Refuse another number of stages."""
    if not (stages == AUTO or (is_whole(stages) and 1 <= stages <= MOST_STAGES)):
        raise ParameterError(f"stages must be 1, 2, {MOST_STAGES} or {AUTO!r}, got {stages!r}.")


def check_for_stages(bank: Bank, stages: object, *, is_auto: bool, per_scenario: bool) -> None:
    """Refuse what does not go together with stages."""
    if per_scenario:
        raise ParameterError(
            "stages and per_scenario do not go together: a later stage asks what tells most of a model."
        )
    if stages == AUTO and not is_auto:
        raise ParameterError(
            "stages 'auto' compares stages with the method 'auto'. Leave the method at that, or say 2."
        )
    bank.check_responses("Stages need")


def routing_method(bank: Bank) -> SelectionSpec:
    """Return how 'auto' chooses a routing stage: V-optimally, or by chance where few models say little of the items.

    With a headline score the stage is chosen for that score; later stages are for the score of the first.
    """
    if bank.distinct_models.size < MINIMUM_FOR_FOLDS:
        return FALLBACK
    return next(iter(aimed_at_headline(bank)), VOptimal())


def check_later_scenarios(bank: Bank, stages: object, later_scenarios: object) -> None:
    """Refuse a number of scenarios that later stages cannot have."""
    if later_scenarios is None:
        return
    if stages == 1:
        raise ParameterError("later_scenarios says of what later stages ask: it goes with stages 2 or 3.")
    most = bank.targets.n_scenarios
    if not (is_whole(later_scenarios) and 1 <= later_scenarios <= most):
        raise ParameterError(
            f"later_scenarios must be from 1 to {most}, the scenarios of the bank, got {later_scenarios!r}."
        )


def first_of_stages(selection: Selection, sizes: tuple[int, ...], later_scenarios: int | None = None) -> Selection:
    """Make a selection the routing stage of so many items in all stages."""
    limit = {} if later_scenarios is None else {LATER_SCENARIOS: int(later_scenarios)}
    return replace(selection, recipe={**(selection.recipe or {}), STAGES: list(sizes), STAGE: 1, **limit})


def stage_sizes(
    bank: Bank, n_items: int, stages: int | Literal["auto"], *, excluded: Collection[str] = (), n_included: int = 0
) -> tuple[int, ...]:
    """Divide items among stages: a third for the routing stage, as many as it must have at least, the rest equally.

    Raises
    ------
    ParameterError
        With too few items, or more than the bank has to choose from.
    """
    n_stages = 2 if isinstance(stages, str) else stages
    least = max(bank.targets.n_scenarios, n_included)
    first = max(n_items // 3, least)
    most = int(candidates(bank, VOptimal(), excluded).sum())
    if not first + n_stages - 1 <= n_items <= most:
        raise ParameterError(
            f"n_items in {n_stages} stages must be from {least + n_stages - 1} (the first stage has an item of every "
            f"scenario, and all that must be included) to {most} (all that tell models apart), got {n_items}."
        )
    later = n_items - first
    parts = [later // (n_stages - 1) + (number < later % (n_stages - 1)) for number in range(n_stages - 1)]
    return (first, *parts)


@dataclass(frozen=True, slots=True)
class StagesCompared:
    """One batch and stages of as many items, tried on calibration models left out."""

    batch: Tried
    stages: Tried
    target: str = OVERALL  # The score that the errors are of

    @property
    def score(self) -> str:
        """The score in words."""
        return "the overall score" if self.target == OVERALL else repr(self.target)

    @property
    def stages_pay(self) -> bool:
        """Whether errors in stages are smaller, by more than a standard error of the difference."""
        return best_of([self.batch, self.stages]) is self.stages

    @property
    def explanation(self) -> str:
        """Say what was taken, and why."""
        taken = self.stages if self.stages_pay else self.batch
        n_stages = len(self.stages.recipe.stages)
        is_smallest = taken.error <= min(self.batch.error, self.stages.error)
        reason = "" if is_smallest else "; one batch is taken unless stages are clearly better"
        return (
            f"{taken.label} in {'one batch' if taken is self.batch else f'{n_stages} stages'}. Mean errors of "
            f"{self.score} of calibration models left out in turn, in points: one batch "
            f"{100.0 * self.batch.error:.2f}, {n_stages} stages {100.0 * self.stages.error:.2f}{reason}."
        )

    @property
    def advice(self) -> str:
        """Say whether stages pay, and by how much, for a plan of one batch."""
        n_items, n_stages = self.batch.recipe.n_items, len(self.stages.recipe.stages)
        batch, stages = 100.0 * self.batch.error, 100.0 * self.stages.error
        if not self.stages_pay:
            return (
                f"One batch will do: in {n_stages} stages the mean error of {self.score} from {n_items} items was "
                f"{stages:.2f} points, in one batch {batch:.2f}."
            )
        is_overall = self.target == OVERALL
        how = remedy(
            f"select({'bank' if is_overall else f'with_target(bank, {self.target!r})'}, {n_items}, stages={n_stages})",
            f"select -n {n_items} --stages {n_stages}{'' if is_overall else f' --target {shlex.quote(self.target)}'}",
        )
        return (
            f"Two stages pay: the mean error of {self.score} from {n_items} items falls from {batch:.2f} "
            f"points in one batch to {stages:.2f} ({how})."
        )


def compare_stages(
    bank: Bank, batch: Selection, routing: Selection, progress: ProgressCallback = silent
) -> StagesCompared | None:
    """Try a batch and stages on calibration models left out; None with too few models for that.

    Parameters
    ----------
    bank : Bank
    batch, routing : Selection
        All items at once, and the routing stage of as many.
    progress : ProgressCallback
    """
    recipes = read_recipe(batch), read_recipe(routing)
    if recipes[0] is None or recipes[1] is None or not folds(bank, progress=progress):
        return None
    sizes, _ = stages_of(routing)
    in_stages, seed = replace(recipes[1], stages=sizes), batch.seed or 0
    return StagesCompared(
        Tried(recipes[0], errors_of(bank, recipes[0], seed)),
        Tried(in_stages, errors_of(bank, in_stages, seed, progress=progress)),
        bank.targets.last,
    )


def better_of_stages(bank: Bank, batch: Selection, routing: Selection, progress: ProgressCallback) -> Selection:
    """Return the routing stage where stages would have served the calibration models clearly better than the batch."""
    compared = compare_stages(bank, batch, routing, progress)
    if compared is None:
        return batch
    return replace(routing if compared.stages_pay else batch, explanation=compared.explanation)
