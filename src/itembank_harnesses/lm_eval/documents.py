"""Documents of the harness's tasks, as a bank's items name them, and their prompts, before any of them is sent."""

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from itembank.errors import IntegrityError, shown
from itembank.harnesses.id_forms import chosen_documents, document_place
from itembank.readers.matching import AUTO, Document, find_items, in_harness
from itembank.responses.prompts import (
    DIFFERS,
    PROMPT_HASH,
    PROMPT_SETTINGS,
    joined_settings,
    settings_by_task,
    settings_text,
)
from itembank.tables import plural
from itembank_harnesses.lm_eval.command import USUAL_SEED
from itembank_harnesses.lm_eval.patches import group_tasks, task_names
from itembank_harnesses.readers.lm_eval_files import run_of
from itembank_harnesses.running import check_same_content, compare_prompts

HARNESS = "lm-eval"
Documents = Mapping[str, Sequence[int]]
"""Numbers of documents by task, ascending and each once."""


@dataclass(slots=True)
class Prepared:
    """One task with all its requests, and those of each document."""

    documents: Any  # sequence of documents, by number
    requests: dict[int, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Any) -> "Prepared":
        """Take the requests that a task has just built."""
        documents = task.eval_docs
        made = cls(documents if hasattr(documents, "__getitem__") else list(documents))
        for request in task._instances:
            made.requests.setdefault(request.doc_id, []).append(request)
        return made

    def fresh(self, numbers: Iterable[int]) -> list[Any]:
        """Return the requests of these documents, without any response."""
        requests = [request for number in numbers for request in self.requests[number]]
        for request in requests:
            request.resps, request.filtered_resps = [], {}
        return requests


def item_id(task: str, number: int) -> str:
    """Id of the item that a document is, as the reader of the harness's logs makes it."""
    return f"{task}/{number}"


def tasks_of(items: pl.DataFrame, item_ids: Iterable[str]) -> list[str]:
    """Return the bank's tasks that items are of, as its table or their ids tell; none where neither does."""
    ids = list(item_ids)
    if "task" in items.columns:
        return sorted(items.filter(pl.col("item_id").is_in(ids))["task"].drop_nulls().unique())
    return [] if any(document_place(one) is None for one in ids) else list(chosen_documents(ids))


@dataclass(slots=True)
class Places:
    """Where items are among the documents of the harness, which is known when it has loaded its tasks."""

    wanted: Sequence[str]  # Ids of all items that may be run
    items: pl.DataFrame | None = None  # The bank's table of items; without, ids must be ``task/doc_id``
    match: str = AUTO  # How they are found (`itembank.readers.matching`)
    by_item: dict[str, tuple[str, int]] = field(default_factory=dict)  # Task and number
    are_ids: bool = False  # Whether ids are ``task/doc_id`` themselves

    @classmethod
    def of_ids(cls, item_ids: Iterable[str]) -> "Places":
        """Take the places that ids tell; `DataError` names ids that are not ``task/doc_id``."""
        made = cls(list(item_ids))
        made._take_ids()
        return made

    def _take_ids(self) -> None:
        chosen_documents(self.wanted)  # which refuses other ids
        self.by_item = {item: place for item in self.wanted if (place := document_place(item))}
        self.are_ids = True

    def find(self, loaded: Any) -> None:
        """Find the items among the documents of loaded tasks, and compare what they ask with the bank's."""
        tasks, groups = task_names(loaded), group_tasks(loaded)
        places = [document_place(one) for one in self.wanted]
        is_told = self.match == AUTO and None not in places and any(one and one[0] in tasks for one in places)
        if is_told or self.items is None:
            self._take_ids()
            return
        documents = [_document(name, k, one) for name, task in tasks.items() for k, one in enumerate(task.eval_docs)]
        found = find_items(self.items, self.wanted, documents, self.match, groups)
        check_same_content(found, self.items, HARNESS)
        self.by_item = {item: (one.task, int(one.name)) for item, one in found.items()}

    def documents(self, item_ids: Iterable[str]) -> dict[str, list[int]]:
        """Return ``{task: [numbers]}`` of items, sorted."""
        found: dict[str, list[int]] = {}
        for task, number in sorted(self.by_item[item] for item in item_ids):
            found.setdefault(task, []).append(number)
        return found

    def local_items(self) -> pl.DataFrame | None:
        """Return the table of items by the ids and tasks that the harness has for them."""
        if self.are_ids or self.items is None:
            return self.items
        return in_harness(self.items, {item: (task, str(number)) for item, (task, number) in self.by_item.items()})


def check_contents(task: str, prepared: Prepared, numbers: Iterable[int], items: pl.DataFrame | None) -> None:
    """Check that documents are there, and are what they were when the bank was made."""
    numbers = list(numbers)
    absent = [item_id(task, number) for number in numbers if number not in prepared.requests]
    if absent:
        raise IntegrityError(
            f"task {task!r} must hold the documents of the bank, got {plural(len(prepared.requests), 'document')} and "
            f"none of {len(absent)}: {shown(absent)}. The benchmark changed; run the version that the bank was made of."
        )
    if items is not None:
        asked = {number: min(prepared.requests[number], key=lambda request: request.idx).doc for number in numbers}
        found = {item_id(task, number): _document(task, number, one) for number, one in asked.items()}
        check_same_content(found, items, HARNESS)


def _document(task: str, number: int, content: Any) -> Document:
    """Make a document whose hash is the one that the harness logs (`doc_hash`)."""

    def own_hash() -> str:
        from lm_eval.utils import handle_non_serializable, hash_string  # noqa: PLC0415

        return str(hash_string(json.dumps(content, indent=2, default=handle_non_serializable, ensure_ascii=False)))

    return Document(task, str(number), content if isinstance(content, Mapping) else {}, own_hash)


@dataclass(slots=True)
class BankPrompts:
    """How a bank's items were asked, and what a run does with it."""

    items: pl.DataFrame  # The bank's table of items
    sets_shots: bool = True  # Whether tasks are given the bank's numbers of shots; not where the user names another
    fewshot_seed: int | None = USUAL_SEED  # Of the run; None where it is not known
    # Whether a chat template will be applied, where prompts are built without a model; None where there is one.
    has_template: bool | None = None
    is_ignored: bool = False  # Say once that prompts differ, and go on
    _has_warned: bool = field(default=False, init=False)

    def set_shots(self, tasks: Mapping[str, Any]) -> None:
        """Give loaded tasks the numbers of shots that the bank's runs had, which a group may have changed."""
        if not self.sets_shots:
            return
        known = settings_by_task(self.items)
        now = _settings(tasks, {})
        for name, task in tasks.items():
            n_shots = known.get(name, {}).get("num_fewshot")
            if isinstance(n_shots, int) and n_shots != now.get(name, {}).get("num_fewshot"):
                task.set_config(key="num_fewshot", value=n_shots)

    def check(
        self,
        prepared: Mapping[str, Prepared],
        tasks: Mapping[str, Any],
        may_be_run: Documents,
        arguments: Mapping[str, Any],  # What the harness builds requests with
    ) -> None:
        """Compare the prompts that were built with the bank's, until a difference was told."""
        if self._has_warned:
            return
        general = {
            "chat_template": bool(arguments.get("apply_chat_template")),
            "fewshot_as_multiturn": bool(arguments.get("fewshot_as_multiturn")),
            "system_instruction": arguments.get("system_instruction"),
            "fewshot_seed": self.fewshot_seed,
        }
        if self.has_template is not None:
            general |= {"chat_template": self.has_template, "fewshot_as_multiturn": None}
        settings = {task: settings_text(one) for task, one in _settings(tasks, general).items()}
        hashes = {} if self.has_template else prompt_hashes(prepared)
        rows = [
            {"item_id": item, PROMPT_HASH: hashes.get(item), PROMPT_SETTINGS: settings.get(task)}
            for task, numbers in may_be_run.items()
            for item in (item_id(task, number) for number in numbers)
        ]
        schema = dict.fromkeys(("item_id", PROMPT_HASH, PROMPT_SETTINGS), pl.String)
        advice = (
            "Leave out the arguments of lm_eval that make prompts (--num_fewshot, --apply_chat_template, --seed, ...): "
            "those of the bank's runs are taken then; name the group (--tasks) where they named one."
        )
        if joined_settings(settings_by_task(self.items).values()).get("system_prompt"):
            advice += " The bank knows a digest of the system prompt only: give its text (--system_instruction)."
        asked = pl.DataFrame(rows, schema=schema)
        self._has_warned = compare_prompts(asked, self.items, advice=advice, is_ignored=self.is_ignored)


def arguments_of(items: pl.DataFrame, tasks: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of the harness's `simple_evaluate` that make the prompts of all these tasks, but for shots.

    Only those that differ from what the harness takes by itself, and on which all tasks agree.
    """
    from lm_eval import evaluator  # noqa: PLC0415

    known = settings_by_task(items)
    joined = joined_settings(known[task] for task in tasks if task in known)
    agreed = {name: value for name, value in joined.items() if value != DIFFERS}
    found: dict[str, Any] = {}
    if agreed.get("chat_template") is True:
        found["apply_chat_template"] = True
        turns = inspect.signature(evaluator.simple_evaluate).parameters["fewshot_as_multiturn"].default
        if agreed.get("fewshot_as_multiturn", turns) != turns:
            found["fewshot_as_multiturn"] = not turns
    if agreed.get("fewshot_seed", USUAL_SEED) != USUAL_SEED:
        found["fewshot_random_seed"] = agreed["fewshot_seed"]
    return found


def prompt_hashes(prepared: Mapping[str, Prepared]) -> dict[str, str]:
    """Return the hash of each item's prompt as the harness logs it: of the first request's first argument."""
    from lm_eval.utils import hash_string  # noqa: PLC0415

    found = {}
    for task, one in prepared.items():
        for number, requests in one.requests.items():
            first = min(requests, key=lambda request: request.idx)
            found[item_id(task, number)] = str(hash_string(first.arguments[0]))
    return found


def _settings(tasks: Mapping[str, Any], general: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of loaded tasks, as the reader of the harness's logs finds them in its results."""
    about: dict[str, Any] = {name: general[name] for name in ("fewshot_as_multiturn", "system_instruction") if general}
    if general:
        about["chat_template"] = "applied" if general["chat_template"] else None
        about["config"] = {"fewshot_seed": general["fewshot_seed"]}
    configs = {
        name: {"num_fewshot": task.get_config("num_fewshot"), "metadata": task.get_config("metadata")}
        for name, task in tasks.items()
    }
    versions = {name: task.VERSION for name, task in tasks.items()}
    found = run_of({**about, "configs": configs, "versions": versions}, "").settings
    return {name: dict(one) for name, one in found.items()}
