"""Documents of the harness's tasks, as a bank's items name them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from itembank.bank.selections import Selection
from itembank.errors import IntegrityError, shown
from itembank.harnesses.protocol import check_same_content
from itembank.selection.recipes import documents_of

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


def chosen_documents(chosen: Selection | Iterable[str]) -> dict[str, list[int]]:
    """Return the documents by task of a selection, or of item ids ``task/doc_id``.

    Raises
    ------
    DataError
        When an id has another form.
    """
    return documents_of(chosen.item_ids if isinstance(chosen, Selection) else chosen)


def item_id(task: str, number: int) -> str:
    """Id of the item that a document is, as the reader of the harness's logs makes it."""
    return f"{task}/{number}"


def check_contents(task: str, prepared: Prepared, numbers: Iterable[int], contents: Mapping[str, str]) -> None:
    """Check that documents are there, and are what they were when the bank was made.

    Raises
    ------
    IntegrityError
        Naming those that are not.
    """
    numbers = list(numbers)
    absent = [item_id(task, number) for number in numbers if number not in prepared.requests]
    if absent:
        raise IntegrityError(
            f"task {task!r} must hold the documents of the bank, got {len(prepared.requests)} documents and none of "
            f"{len(absent)}: {shown(absent)}. The benchmark changed; run the version that the bank was made of."
        )
    found = {item_id(task, number): prepared.requests[number] for number in numbers}
    check_same_content(task, found, contents, _digest())


def _digest() -> Callable[[list[Any]], str]:
    """Return the digest that the harness logs of a document (`doc_hash`)."""
    import json  # noqa: PLC0415

    from lm_eval.utils import handle_non_serializable, hash_string  # noqa: PLC0415

    def digest(requests: list[Any]) -> str:
        first = min(requests, key=lambda request: request.idx)
        text = json.dumps(first.doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
        return str(hash_string(text))

    return digest
