"""Tasks that the harness's stock command runs: the chosen documents of another task, and the estimate as a metric.

The folders that `itembank export lm-eval-tasks` writes call `exported_task`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from itembank.bank.bank_files import load_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.estimation.estimate import estimate
from itembank.harnesses.lm_eval.documents import BankPrompts, Places, item_id
from itembank.harnesses.lm_eval.patches import Original, check_release
from itembank.harnesses.lm_eval.selected import ChosenItems
from itembank.readers.lm_eval_files import OF_BANK, ORIGINAL
from itembank.readers.lm_eval_samples import ESTIMATES
from itembank.responses.prompts import names_in_harness
from itembank.responses.responses import ResponseMatrix

BANK, SELECTION, TASKS = "bank", "selection.json", "original"
"""What lies in an exported folder: the bank, the selection, and maybe the tasks that the harness does not bring."""
Scored: TypeAlias = tuple[str, float]
"""Id of an item and its response."""


def exported_task(
    config: Mapping[str, Any],  # Of the exported task; ``metadata`` says which task it is a part of
    folder: Path,  # The exported folder
) -> Any:
    """Load the original of an exported task and narrow this one object to the chosen documents.

    `est_full`, `est_low` and `est_high` are among its metrics where the task is a scenario of the bank.
    """
    check_release()
    original = str(config["metadata"][ORIGINAL])
    bank, selection = _bank(folder), Selection.load(folder / SELECTION)
    task = _load(names_in_harness(bank.responses.items).get(original, original), folder)
    own = task.config.metadata or {}
    task.config.metadata = {**own, **{name: config["metadata"][name] for name in (ORIGINAL, OF_BANK)}}
    chosen = [item for item in selection.item_ids if item.rpartition("/")[0] == original]
    hooks = _OneTask(original, chosen, bank)
    hooks.of_bank.set_shots({original: task})
    kind = type(task)
    task.build_all_requests = lambda **arguments: hooks.build(kind.build_all_requests, task, arguments)
    task.doc_iterator = lambda **arguments: hooks.documents(kind.doc_iterator, task, arguments)
    if original in bank.targets.scenarios:
        _add_estimates(task, hooks, bank, _of_scenario(selection, original))
    return task


class _OneTask(ChosenItems):
    """Hooks of one task, which is called otherwise in the bank; it knows which document and filter is being scored."""

    def __init__(self, name: str, chosen: Sequence[str], bank: Bank) -> None:
        items = bank.responses.items
        # the stock command cannot be told to go on with other prompts: it says so, and does
        self.of_bank = BankPrompts(items, fewshot_seed=None, is_ignored=True)
        super().__init__(Places.of_ids(chosen, items), self.of_bank)
        self.name = name
        self.document = -1
        self.n_walks = 0

    def name_of(self, _task: Any) -> str:
        """Name that the task has in the bank."""
        return self.name

    def build(self, original: Original, task: Any, arguments: dict[str, Any]) -> None:
        """Build requests; the walks through documents that follow are one a filter."""
        super().build(original, task, arguments)
        self.n_walks = 0

    def documents(self, original: Original, task: Any, arguments: dict[str, Any]) -> Iterator[tuple[int, Any]]:
        """Walk through documents and remember where the walk is."""
        self.n_walks += 1
        for number, document in super().documents(original, task, arguments):
            self.document = number
            yield number, document

    def filter_name(self, task: Any) -> str:
        """Filter whose results are being scored."""
        names = list(task._instances[0].filtered_resps)
        return str(names[min(self.n_walks, len(names)) - 1])


def _add_estimates(task: Any, hooks: _OneTask, bank: Bank, selection: Selection) -> None:
    """Add the estimate and its interval to the metrics of a task, of the bank's metric and filter."""
    row = bank.responses.items.filter(bank.responses.items["item_id"] == selection.item_ids[0]).to_dicts()[0]
    metric, filter_name = row["metric"], row["filter"]
    process, aggregation, higher_is_better = task.process_results, task.aggregation, task.higher_is_better

    def process_results(document: Any, results: Any) -> dict[str, Any]:
        scores = dict(process(document, results))
        if metric in scores and hooks.filter_name(task) == filter_name:
            scored = (item_id(hooks.name, hooks.document), float(scores[metric]))
            scores.update(dict.fromkeys(ESTIMATES, scored))
        return scores

    @lru_cache(maxsize=4)  # the harness asks for the three numbers of one estimate one after the other
    def estimated(scored: tuple[Scored, ...]) -> tuple[float, ...]:
        values, items = dict(scored), bank.responses.items
        items = items.filter(items["item_id"].is_in(list(values)))
        answers = np.array([[values[item] for item in items["item_id"]]])
        responses = ResponseMatrix.create(answers, model_ids=["model"], items=items)
        estimates = estimate(bank, responses, selection=selection)
        (scenario,) = set(selection.scenarios)
        column = estimates.targets.index(scenario)
        return tuple(float(one[0, column]) for one in (estimates.value, estimates.low, estimates.high))

    def end_of(number: int) -> Callable[[Sequence[Scored]], float]:
        return lambda scored: estimated(tuple((str(item), float(value)) for item, value in scored))[number]

    ends = {name: end_of(number) for number, name in enumerate(ESTIMATES)}
    task.process_results = process_results
    task.aggregation = lambda: {**aggregation(), **ends}
    task.higher_is_better = lambda: {**higher_is_better(), **dict.fromkeys(ESTIMATES, True)}


def _of_scenario(selection: Selection, scenario: str) -> Selection:
    """Return the items of one scenario; how the whole was chosen does not say how these were."""
    positions = [k for k, name in enumerate(selection.scenarios) if name == scenario]
    return replace(
        selection,
        item_ids=tuple(selection.item_ids[k] for k in positions),
        scenarios=(scenario,) * len(positions),
        weights=selection.weights[positions],
        inclusion_probabilities=None,
        recipe=None,
    )


@lru_cache(maxsize=4)
def _bank(folder: Path) -> Bank:
    return load_bank(folder / BANK)


def _load(name: str, folder: Path) -> Any:
    """Load a task by its name: one of the folder's own, or one that the harness brings."""
    own = _manager(folder / TASKS, has_defaults=False) if (folder / TASKS).is_dir() else None
    manager = own if own is not None and name in own.all_tasks else _manager(folder / TASKS, has_defaults=True)
    # data that was copied along is named relative to the folder
    with chdir(folder / TASKS) if manager is own else nullcontext():
        if hasattr(manager, "load"):
            return manager.load([name])["tasks"][name]
        from lm_eval.tasks import get_task_dict  # noqa: PLC0415 (releases before 0.4.12)

        return get_task_dict([name], manager)[name]


@lru_cache(maxsize=4)
def _manager(tasks: Path, *, has_defaults: bool) -> Any:
    """Index tasks; those that the harness brings take it a quarter of a minute, so that this is done once."""
    from lm_eval.tasks import TaskManager  # noqa: PLC0415

    return TaskManager(include_path=str(tasks) if tasks.is_dir() else None, include_defaults=has_defaults)
