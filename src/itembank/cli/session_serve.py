"""`itembank session serve`: keep a session open, and answer requests on standard input."""

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.options import option
from itembank.cli.render import note, progress, warnings_as_notes
from itembank.cli.session_record import (
    bank_option,
    exit_if_imprecise,
    item_rows,
    journal_argument,
    loaded_bank,
    next_items,
    session_facts,
    wait_option,
)
from itembank.tables import plain

if TYPE_CHECKING:
    from itembank.sessions.answers import Answer
    from itembank.sessions.session import AdaptiveSession

REQUESTS = {"ask": ("n", "only_new"), "tell": ("answers",), "scores": ()}
"""What can be requested, and what each may say."""
MOST_DEPTH = 100
"""Lists and objects within each other in a request; many more could not be written into a reply."""


@click.command("serve", cls=Command)
@journal_argument
@option("--new-units", "Take costs in units that neither the bank has nor are usual.", bool)
@bank_option
@wait_option
def serve(*, journal: Path, new_units: bool, bank: Path | None, wait: float) -> None:
    """Answer requests for items and scores on standard input, one JSON object a line.

    A harness in any language starts this once and keeps it open: a step takes milliseconds, where each itembank session
    ask loads the bank anew. Each request gets one line on standard output. An answer is safe on the disk when its reply
    is there. Requests:

    \b
      {"request": "ask"}
      {"request": "ask", "n": 4, "only_new": true}
      {"request": "tell", "answers": [{"item_id": "q1", "response": 1}]}
      {"request": "scores"}

    Answers are those of itembank session tell. A reply holds items, told or scores, and where the session stands; or
    error, which says what was wrong, and nothing was told. What stands under id comes back with the reply. The end of
    standard input ends the command, with exit code 3 if a precision was asked for and not reached.

    \b
      itembank session serve run.jsonl
      my-harness | itembank session serve run.jsonl > replies.jsonl
    """  # noqa: D301
    from itembank.sessions.journal_sessions import open_session  # noqa: PLC0415

    with ExitStack() as held:
        with warnings_as_notes(), progress("session serve") as report:
            session = held.enter_context(open_session(journal, loaded_bank(bank), wait=wait, progress=report))
        note('Ready for one JSON object a line, such as {"request": "ask"}.')
        for reply in replies(session, sys.stdin.buffer, new_units=new_units):
            sys.stdout.write(f"{json.dumps(plain(reply))}\n")
            sys.stdout.flush()
        exit_if_imprecise(session)


def replies(session: "AdaptiveSession", lines: Iterable[bytes], *, new_units: bool) -> Iterator[dict[str, Any]]:
    """Answer requests one after the other; empty lines mean nothing."""
    from itembank.errors import ItembankError  # noqa: PLC0415

    for line in lines:
        if not line.strip():
            continue
        request: Mapping[str, Any] = {}
        with warnings.catch_warnings(record=True) as caught:
            try:
                request = _parsed(line)
                found = _found(session, request, new_units=new_units)
            except ItembankError as error:
                found = {"error": str(error)}
        if caught:
            found["warnings"] = [str(one.message) for one in caught]
        named = {"id": request["id"]} if "id" in request else {}
        yield {**named, **found, **session_facts(session)}


def _parsed(line: bytes) -> Mapping[str, Any]:
    """Read a request."""
    from itembank.errors import DataError, shown  # noqa: PLC0415

    try:
        request = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"a request must be a JSON object on one line, got {line[:80]!r} ({error}).") from error
    kind = request.get("request") if isinstance(request, dict) else None
    if not isinstance(kind, str) or kind not in REQUESTS:
        raise DataError(f"a request must be an object whose request is one of {shown([*REQUESTS])}, got {line[:80]!r}.")
    unknown = [name for name in request if name not in ("request", "id", *REQUESTS[kind])]
    if unknown:
        raise DataError(f"a request to {kind} may have {shown(['id', *REQUESTS[kind]])}, got {shown(unknown)} too.")
    _check_depth(request)
    return dict(request)


def _check_depth(request: Mapping[str, Any]) -> None:
    """Refuse what is nested so deeply that a reply could not hold it, before anything is done."""
    from itembank.errors import DataError  # noqa: PLC0415

    level: list[Any] = [request]
    for _ in range(MOST_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [value for values in inner for value in values]
        if not level:
            return
    raise DataError(f"a request must have at most {MOST_DEPTH} lists or objects within each other, got more.")


def _found(session: "AdaptiveSession", request: Mapping[str, Any], *, new_units: bool) -> dict[str, Any]:
    """Do what a request says."""
    from itembank.sessions.answers import tell_all  # noqa: PLC0415

    if request["request"] == "ask":
        return {"items": _asked(session, request)}
    if request["request"] == "tell":
        answers = _answers(request)
        tell_all(session, answers, new_units=new_units)
        return {"told": [answer.item_id for answer in answers]}
    return {"scores": session.estimate().scores.rows()}


def _asked(session: "AdaptiveSession", request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Choose items, or give those again that wait for their answers."""
    from itembank.checks import check_whole  # noqa: PLC0415
    from itembank.errors import DataError  # noqa: PLC0415

    n, only_new = request.get("n", 1), request.get("only_new", False)
    check_whole("n", n, least=1)
    if not isinstance(only_new, bool):
        raise DataError(f"only_new must be true or false, got {only_new!r}.")
    items, is_new = next_items(session, n, only_new=only_new)
    return item_rows(session, items, is_new=is_new)


def _answers(request: Mapping[str, Any]) -> "Sequence[Answer]":
    """Read the answers of a request, as `itembank session tell JOURNAL -` reads lines."""
    from itembank.errors import DataError  # noqa: PLC0415
    from itembank.sessions.answers import parse_answers  # noqa: PLC0415

    given = request.get("answers")
    if not isinstance(given, list):
        raise DataError(f"answers must be a list of objects, got {given!r}.")
    return parse_answers("\n".join(json.dumps(one) for one in given), "answers")
