"""Items in the form that lm-evaluation-harness takes."""

from collections.abc import Iterable

from itembank.errors import DataError, shown


def documents_of(item_ids: Iterable[str]) -> dict[str, list[int]]:
    """Return ``{task: [doc ids]}``, sorted and unique, of items of lm-evaluation-harness.

    Item ids must be ``task/doc_id``, as the reader of its logs makes them.

    Raises
    ------
    DataError
        When an item id has another form.
    """
    samples: dict[str, set[int]] = {}
    foreign = []
    for item_id in item_ids:
        task, slash, document = item_id.rpartition("/")
        if slash and task and document.isascii() and document.isdigit():
            samples.setdefault(task, set()).add(int(document))
        else:
            foreign.append(item_id)
    if foreign:
        raise DataError(
            f"item ids must be 'task/doc_id' to be run by lm-evaluation-harness, got {len(foreign)} others: "
            f"{shown(foreign)}. Calibrate on logs of lm-evaluation-harness."
        )
    return {task: sorted(documents) for task, documents in sorted(samples.items())}
