"""`itembank session run`: run the items of a session by any command."""

import contextlib
import json
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Annotated, Any

import click

import itembank as ib
from itembank.checks import check_whole
from itembank.cli import options
from itembank.cli.render import note, versioned, working
from itembank.cli.session_options import (
    WAIT,
    Journal,
    NewUnits,
    cost_words,
    exit_if_imprecise,
    item_rows,
    loaded_bank,
    next_items,
    points_text,
    print_session,
    session_facts,
)
from itembank.cli.signatures import Choices, option, verb
from itembank.errors import DataError, ItembankError, shown, visible, warned_once
from itembank.sessions.events import Answer, Failed
from itembank.tables import plural

_PROGRAM = (
    "The program to run for each item, and its arguments; columns of the item table in braces are replaced: "
    "{item_id}, {scenario}, {subscenario}, ..."
)


def command_options(program: str = _PROGRAM, *, is_required: bool) -> Choices:
    """Make the options that say how a command runs an item."""
    return {
        "The command": {
            "command": option(program, metavar="COMMAND", required=is_required),
            "uses_shell": option("Let a shell read the command: pipes, variables.", "--shell", type=bool),
            "pattern": option(
                "The answer, a number or a word, is the last match of REGEX, or its group.", metavar="REGEX"
            ),
            "uses_exit_status": option("Exit code 0 is right, 1 wrong.", "--exit-code", type=bool),
            "timeout": option("For each item.", metavar="SECONDS", type=float, default=600.0),
            "logs": option("Keep what the programs print, one file an item.", metavar="DIR", type=options.OTHER_FOLDER),
        }
    }


RUNNING: Choices = {
    "n_jobs": option("Items run side by side.", "--jobs", type=options.COUNT, default=1),
    "retries": option(
        "How often an item that failed may be asked again before it is skipped.",
        metavar="N",
        type=click.IntRange(min=0),
        default=2,
    ),
    "new_units": NewUnits,
}


@verb("run")
def run(
    *,
    journal: Journal,
    how: Annotated[Choices, command_options(is_required=True)],
    running: Annotated[Choices, RUNNING],
    bank: options.BankOfJournal,
    out: options.Out,
) -> None:
    """Run the items of a session by a command, one process an item, until the session is over.

    The last thing that the program prints is its answer, as JSON: {"response": 1, "costs": {"cost_usd": 0.02}}, a bare
    number, any fields of itembank session tell ({"resolved": true}), or a word for right or wrong: resolved, incorrect,
    pass. A program that crashes, ends with an error or takes too long has failed: that is no wrong answer. Stop the
    command whenever you like and run it again: no item that was answered runs twice. At the end it prints what itembank
    session status prints, with the same exit codes.

      itembank session run run.jsonl --command 'python agent.py {item_id}' --jobs 4 --timeout 600
      itembank session run run.jsonl --command './solve {item_id}' --exit-code --logs logs
      itembank session run run.jsonl --command './solve {item_id} | tail -n 1' --shell --pattern 'score: (.*)'

    Ctrl-C asks the programs to end and waits three seconds for them; a second Ctrl-C kills them.
    """
    from itembank.harnesses.commands import CommandItems, CommandSpec
    from itembank.sessions.journal_sessions import bank_of_session

    spec = CommandSpec(**how)
    loaded = bank_of_session(journal, bank)
    items = CommandItems(spec, loaded.responses.items)
    with (
        working("session run") as advance,
        ib.open_session(journal, loaded, wait=WAIT, progress=advance) as session,
        ends_like_ctrl_c(session),
        warned_once(),
    ):
        ib.harnesses.drive(session, items, **running, after_answer=_say_how_far, on_interrupt=items.interrupt)
    print_session(journal, loaded, out)


def _say_how_far(session: "ib.AdaptiveSession", answer: "Answer") -> None:
    """Say on standard error, after an answer, how well the score is known and what it has cost."""
    if isinstance(answer, Failed):
        note_failure(answer)
        return
    name = session.pool.spec.wanted
    row = next(row for row in session.estimate().scores.rows() if row["target"] == name)
    note("  ".join([f"{session.n_items} answered", f"{name} {points_text(row)}", *cost_words(session)]))


def note_failure(answer: "Failed") -> None:
    """Say that an attempt failed."""
    more = "it may be asked again" if answer.again else "skipped"
    note(f"{visible(answer.item_id)} failed, {more}: {answer.reason}")


@contextlib.contextmanager
def ends_like_ctrl_c(run: Any) -> Iterator[None]:
    """Let a request to end, of a scheduler or a terminal that closes, do what Ctrl-C does, and say what is kept."""
    numbers = [signal.SIGTERM, signal.SIGHUP]
    is_ours = threading.current_thread() is threading.main_thread()
    changed = [number for number in numbers if is_ours and signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    except KeyboardInterrupt:
        note(f"Stopped with {plural(run.n_items, 'answer')}, all kept. The same command continues from here.")
        raise
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


REQUESTS = {"ask": ("n", "only_new"), "tell": ("answers",), "scores": ()}
"""What can be requested, and what each may say."""
MOST_DEPTH = 100
"""Lists and objects within each other in a request; many more could not be written into a reply."""


@verb("serve")
def serve(*, journal: Journal, new_units: NewUnits, bank: options.BankOfJournal) -> None:
    """Answer requests for items and scores on standard input, one JSON object a line.

    A harness in any language starts this once and keeps it open: a step takes milliseconds, while each itembank session
    ask loads the bank again. Each request gets one line on standard output. An answer is safe on the disk when its
    reply comes. Requests:

      {"request": "ask"}
      {"request": "ask", "n": 4, "only_new": true}
      {"request": "tell", "answers": [{"item_id": "q1", "response": 1}]}
      {"request": "scores"}

    Answers are those of itembank session tell. A reply has items, told or scores, and the state of the session; or
    error, which says what was wrong, and then nothing was told. The id of a request comes back with the reply. The end
    of standard input ends the command, with exit code 3 if a precision was asked for and not reached.

      itembank session serve run.jsonl
      my-harness | itembank session serve run.jsonl > replies.jsonl
    """
    with ExitStack() as held:
        with working("session serve") as report:
            session = held.enter_context(ib.open_session(journal, loaded_bank(bank), wait=WAIT, progress=report))
        note('Ready for one JSON object a line, such as {"request": "ask"}.')
        for reply in replies(session, sys.stdin.buffer, new_units=new_units):
            sys.stdout.write(f"{json.dumps(versioned(reply, 'session-serve'))}\n")
            sys.stdout.flush()
        exit_if_imprecise(session)


def replies(session: "ib.AdaptiveSession", lines: Iterable[bytes], *, new_units: bool) -> Iterator[dict[str, Any]]:
    """Answer requests one after the other; empty lines mean nothing."""
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
    # what is nested too deeply for a reply to hold it is refused before anything is done
    level: list[Any] = [request]
    for _ in range(MOST_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [value for values in inner for value in values]
    if level:
        raise DataError(f"a request must have at most {MOST_DEPTH} lists or objects within each other, got more.")
    return dict(request)


def _found(session: "ib.AdaptiveSession", request: Mapping[str, Any], *, new_units: bool) -> dict[str, Any]:
    """Do what a request says: choose items, or give those again that wait for their answers; tell; or estimate."""
    from itembank.sessions.answers import parse_answers, tell_all

    if request["request"] == "ask":
        n, only_new = request.get("n", 1), request.get("only_new", False)
        check_whole("n", n, least=1)
        if not isinstance(only_new, bool):
            raise DataError(f"only_new must be true or false, got {only_new!r}.")
        items, is_new = next_items(session, n, only_new=only_new)
        return {"items": item_rows(session, items, is_new=is_new)}
    if request["request"] == "tell":
        given = request.get("answers")
        if not isinstance(given, list):
            raise DataError(f"answers must be a list of objects, got {given!r}.")
        answers = parse_answers("\n".join(json.dumps(one) for one in given), "answers")
        tell_all(session, answers, new_units=new_units)
        return {"told": [answer.item_id for answer in answers]}
    return {"scores": session.estimate().scores.rows()}
