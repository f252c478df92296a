"""Stages of a multistage test inside Inspect: which one follows from what was answered."""

import warnings
from collections.abc import Mapping

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning, shown
from itembank.harnesses.inspect.answers import MODEL, answers_to, matrix_of
from itembank.harnesses.inspect.task_items import TaskItems
from itembank.planning.select import has_next_stage, next_stage
from itembank.selection.recipes import read_recipe


def stage_after(bank: Bank, stage: Selection, answers: Mapping[str, list[float]], model_id: str = MODEL) -> Selection:
    """Choose the next stage from the answers to this one and those before it."""
    told = matrix_of(bank, answers_to(stage.whole.item_ids, answers), model_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # Inspect itself says which samples have no score
        return next_stage(bank, stage, told)


def stage_of(bank: Bank, routing: Selection, answers: Mapping[str, list[float]], model_id: str = MODEL) -> Selection:
    """Find the stage that these answers have come to, from the first stage on.

    A stage is over when an item that it does not hold was answered: the next one was chosen from all of it then.
    """
    stage = routing
    while has_next_stage(stage):
        told = answers_to(stage.whole.item_ids, answers)
        if not told or len(told) == len(answers):
            return stage
        stage = stage_after(bank, stage, told, model_id)
    return stage


def check_routing(routing: Selection, known: TaskItems) -> None:
    """Refuse a selection that is no first stage, or one whose stages may ask items of other tasks."""
    recipe = read_recipe(routing)
    if recipe is None or routing.earlier is not None or not has_next_stage(routing):
        raise DataError(
            f"a run in stages needs the selection of a first stage, got one of {routing.n_items} items that no stage "
            "follows. Choose it with itembank select --stages 2."
        )
    open_ones = sorted(set(known.others) - set(recipe.excluded))
    if open_ones:
        raise DataError(
            f"a run in stages is of one task, {known.task!r}, but its stages may ask {len(open_ones)} items of others: "
            f"{shown(open_ones)}. Choose the first stage with those excluded, as itembank run inspect -n does."
        )
