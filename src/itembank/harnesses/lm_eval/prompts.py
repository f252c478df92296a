"""Prompts that the harness has built, before any of them is sent: those of samples that are kept, and of the bank."""

from collections.abc import Mapping

from itembank.data.prompts import PROMPT_HASH
from itembank.errors import DataError, shown
from itembank.harnesses.lm_eval.documents import Prepared, item_id
from itembank.harnesses.lm_eval.rows import Rows


def prompt_hashes(prepared: Mapping[str, Prepared]) -> dict[str, str]:
    """Return the hash of each item's prompt as the harness logs it: of the first request's first argument."""
    from lm_eval.utils import hash_string  # noqa: PLC0415

    found = {}
    for task, one in prepared.items():
        for number, requests in one.requests.items():
            first = min(requests, key=lambda request: request.idx)
            found[item_id(task, number)] = str(hash_string(first.arguments[0]))
    return found


def check_kept_prompts(rows: Rows, prepared: Mapping[str, Prepared]) -> None:
    """Check that items with samples had the prompts that the harness has built now.

    Raises
    ------
    DataError
        Naming those that had others; no request was sent.
    """
    if not rows.by_item:
        return
    built = prompt_hashes(prepared)
    kept = {name: samples[0].get(PROMPT_HASH) for name, (_, samples) in rows.by_item.items() if name in built}
    unlike = [name for name, prompt in kept.items() if prompt is not None and prompt != built[name]]
    if unlike:
        raise DataError(
            f"a run goes on with the prompts that it was started with, and {len(unlike)} of {len(kept)} answered items "
            f"have others now: {shown(unlike)}. No request was sent. Give the arguments of lm_eval that make prompts "
            "(shots, seed, templates, system instruction) as before, or take another folder."
        )
