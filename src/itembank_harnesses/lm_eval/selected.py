"""`selected`: whatever calls the harness inside the block runs the chosen items, with the prompts of the full run.

And what such a run would send, without a model (`dry_run`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.costs import INPUT_TOKENS, OUTPUT_TOKENS
from itembank.bank.selections import Selection
from itembank.errors import ParameterError, shown
from itembank.harnesses.id_forms import chosen_documents
from itembank.readers.matching import AUTO
from itembank.responses.prompts import names_in_harness
from itembank_harnesses.lm_eval.documents import BankPrompts, Documents, Places, Prepared, check_contents, tasks_of
from itembank_harnesses.lm_eval.patches import (
    HarnessError,
    Original,
    hooked,
    is_overridden,
    narrowed,
    renamed,
    task_names,
)
from itembank_harnesses.running import usual_costs

CHARACTERS_A_TOKEN = 4.0
"""Of English text, about; for a bank whose responses recorded no tokens."""


@contextmanager
def selected(
    chosen: Selection | Iterable[str], *, bank: Bank | None = None, match: str = AUTO, ignore_prompts: bool = False
) -> Iterator[tuple[str, ...]]:
    """Make every evaluation of lm_eval inside the block run the chosen items only.

    All contexts of a task are built, in order, and then the chosen documents are kept: random few-shot examples are
    those of the full run, and so are document ids. On several ranks each takes its part of the chosen documents. Tasks
    of which nothing was chosen are left out, also of groups. What the harness prints as a score is the mean of the
    chosen items, not an estimate of anything.

    Parameters
    ----------
    chosen : Selection or iterable of item ids
        Without a bank ids are ``task/doc_id``.
    bank : Bank, optional
        Its documents and prompts are compared with those that are built, before the first request.
    match : str
        How its items are found among the documents: 'auto', 'hash' or 'doc.FIELD' (`itembank.readers.matching`).
    ignore_prompts : bool
        Run also where prompts are others than those of the bank's runs.

    Yields
    ------
    tuple of names of the tasks
        What to give as `tasks`, where they can be loaded by their own names; empty where the bank names none.

    Raises
    ------
    MissingDependencyError, HarnessError
        When lm_eval is not installed, or is of a release that does not fit.
    DataError
        When an item id is not ``task/doc_id``, without a bank.
    IntegrityError
        Inside the block, when an item is not found, or its document or prompt is not the one of the bank.

    Examples
    --------
    >>> with selected(selection, bank=bank) as tasks:  # doctest: +SKIP
    ...     results = lm_eval.simple_evaluate(model, tasks=list(tasks))
    """
    ids = list(chosen.item_ids if isinstance(chosen, Selection) else chosen)
    if bank is None:
        hooks, tasks = ChosenItems(Places.of_ids(ids)), list(chosen_documents(ids))
    else:
        items = bank.responses.items
        prompts = BankPrompts(items, sets_shots=False, fewshot_seed=None, is_ignored=ignore_prompts)
        own = names_in_harness(items)
        hooks = ChosenItems(Places(ids, items, match), prompts)
        tasks = [own.get(task, task) for task in tasks_of(items, ids)]
    with hooked(hooks):
        yield tuple(tasks)


class _AllPreparedError(Exception):
    """Ends an evaluation before its first request."""


class ChosenItems:
    """Hooks that evaluate some documents of each task, with the requests of all."""

    runs_all = True
    """Whether all items that may be run are run in each evaluation, or those that `chosen` holds at the time."""

    def __init__(self, places: Places, prompts: BankPrompts | None = None) -> None:  # And what their prompts must be
        self.places, self.prompts = places, prompts
        self.checked: Documents = {}
        """What is compared with the bank when a task is made ready: all that may be run."""
        self.chosen: Documents = {}
        self.contents: pl.DataFrame | None = None
        if places.by_item:
            self._know_places()
        self.bank_names = (
            {} if prompts is None else {own: task for task, own in names_in_harness(prompts.items).items()}
        )
        self.prepared: dict[str, Prepared] = {}
        self._tasks: dict[str, Any] = {}  # holds tasks, so that another can be told from one that was made ready
        self._is_building = False
        self._waits_for: set[str] = set()

    def _know_places(self) -> None:
        """Take over what is known of the items when they were found."""
        self.contents = self.places.local_items()
        self.checked = self.places.documents(self.places.wanted)
        self.chosen = self.checked if self.runs_all else {}
        if self.prompts is not None and self.contents is not None:
            self.prompts.items = self.contents

    def load(self, arguments: Mapping[str, Any]) -> Any:
        """Return the loaded tasks by the names that the bank has for them, when the items are found in them."""
        loaded = renamed(arguments["task_dict"], self.bank_names)
        if not self.places.by_item:
            self.places.find(loaded)
            self._know_places()
        return loaded

    def build(self, original: Original, task: Any, arguments: dict[str, Any]) -> None:
        """Build all requests once, as a full run on one rank does, and keep this rank's part of the chosen."""
        name = str(task.config.task)
        _refuse_parts(arguments)
        numbers = self.chosen.get(name, ())
        world_size = int(arguments.get("world_size", 1))
        if len(numbers) < world_size:
            raise HarnessError(
                f"task {name!r} must have a chosen document for each of {world_size} ranks, got {len(numbers)}. Choose "
                "more items, run on fewer ranks, or leave the task out."
            )
        if self._tasks.get(name) is not task:
            self._is_building = True
            try:
                original(task, **{**arguments, "rank": 0, "world_size": 1})
            finally:
                self._is_building = False
            self.prepared[name], self._tasks[name] = Prepared.of(task), task
            check_contents(name, self.prepared[name], self.checked.get(name, ()), self.contents)
            if self.prompts is not None and set(self.checked) <= set(self.prepared):
                self.prompts.check(self.prepared, self._tasks, self.checked, arguments)
        mine = numbers[int(arguments.get("rank", 0)) :: world_size]
        task._instances = self.prepared[name].fresh(mine)
        if self._waits_for and not self._waits_for - set(self.prepared):
            raise _AllPreparedError

    def documents(self, original: Original, task: Any, arguments: dict[str, Any]) -> Iterator[tuple[int, Any]]:
        """Walk through all documents while requests are built, and through the chosen ones afterwards."""
        if self._is_building:
            walk: Iterator[tuple[int, Any]] = original(task, **{**arguments, "rank": 0, "world_size": 1})
            return walk
        name = str(task.config.task)
        documents = self.prepared[name].documents
        numbers = self.chosen[name][int(arguments.get("rank", 0)) :: int(arguments.get("world_size", 1))]
        return iter([(number, documents[number]) for number in numbers])

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Evaluate the tasks of which something was chosen, by the names that the bank has for them."""
        loaded = self.load(arguments)
        self.check_tasks(loaded)
        _refuse_parts(arguments)
        if self.prompts is not None:
            tasks = task_names(loaded)
            self.prompts.set_shots({name: tasks[name] for name in self.checked})
        return original(**{**arguments, "task_dict": narrowed(loaded, self.chosen)})

    def check_tasks(self, loaded: Any) -> None:
        """Check that all tasks with a document to check are loaded, by classes whose methods are the harness's."""
        names = task_names(loaded)
        absent = [name for name in self.checked if name not in names]
        if absent:
            raise ParameterError(
                f"the tasks of all chosen items must be loaded, got {shown(list(names))} without {shown(absent)}. Name "
                "them or their group (tasks, --tasks), or choose no items of them."
            )
        own = [name for name in self.checked if is_overridden(names[name])]
        if own:
            raise HarnessError(
                f"tasks must build requests as lm_eval's Task does, and {shown(own)} have methods of their own. Leave "
                "them out."
            )
        if any("bypass" in getattr(task, "_metric_fn_list", {}) for task in names.values()):
            raise ParameterError("chosen items must be scored to be estimated from, got predict_only. Leave it out.")

    def prepare_all(self, original: Original, arguments: dict[str, Any]) -> None:
        """Build the requests of all tasks with documents to check, and check these; no request is sent."""
        self.load(arguments)
        chosen, self.chosen = self.chosen, self.checked
        self.prepared, self._tasks, self._waits_for = {}, {}, set(self.checked)
        try:
            ChosenItems.evaluate(self, original, arguments)
        except _AllPreparedError:
            pass
        finally:
            self.chosen, self._waits_for = chosen, set()


def _refuse_parts(arguments: Mapping[str, Any]) -> None:
    """Refuse what would run a part of the chosen items."""
    given = [name for name in ("limit", "samples") if arguments.get(name) is not None]
    if given:
        raise ParameterError(f"the selection says which items are run, got {given[0]} too. Leave {given[0]} out.")


class _Counting(ChosenItems):
    """Hooks that build and check requests, and end the evaluation there."""

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Build the requests of all chosen documents."""
        self.prepare_all(original, arguments)
        raise _AllPreparedError


def dry_run(
    launch: Callable[[], Any],  # Calls the harness, with a model that asks for nothing
    bank: Bank,
    item_ids: Sequence[str],  # Those that may be run
    *,
    # Run so many of them; their requests and tokens are then those of a mean item times as many
    n_items: int | None = None,
    prompts: BankPrompts | None = None,  # What prompts must be
    match: str = AUTO,  # How items are found
) -> dict[str, Any]:
    """Compare documents and prompts with the bank's and count what would be sent.

    Tokens are those that past models needed, else input tokens as the length of prompts suggests; None where
    unknown.
    """
    hooks = _Counting(Places(item_ids, bank.responses.items, match), prompts)
    with hooked(hooks), suppress(_AllPreparedError):
        launch()
    places = list(hooks.places.by_item.values())
    n_run = len(places) if n_items is None else min(n_items, len(places))
    share = n_run / len(places)
    requests = [request for task, number in places for request in hooks.prepared[task].requests[number]]
    counts = [request.repeats or 1 for request in requests]
    lengths = (sum(len(part) for part in request.args if isinstance(part, str)) for request in requests)
    costs = usual_costs(bank, item_ids, n_run)
    tokens, basis = {unit: costs[unit] for unit in (INPUT_TOKENS, OUTPUT_TOKENS) if unit in costs}, "past models"
    if not tokens:
        n_characters = sum(n * length for n, length in zip(counts, lengths, strict=True))
        tokens = {INPUT_TOKENS: n_characters / CHARACTERS_A_TOKEN * share}
        basis = f"the length of prompts, at {CHARACTERS_A_TOKEN:g} characters a token"
    rounded = {unit: round(tokens[unit]) if unit in tokens else None for unit in (INPUT_TOKENS, OUTPUT_TOKENS)}
    return {"n_items": n_run, "n_requests": round(sum(counts) * share), **rounded, "tokens_from": basis}
