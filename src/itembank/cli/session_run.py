"""`itembank session run`: run the items of a session by any command."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command, gathered, headed
from itembank.cli.options import COUNT, FOLDER, format_option, option
from itembank.cli.render import note, progress, warnings_as_notes
from itembank.cli.report_options import report_option
from itembank.cli.session_record import bank_option, cost_words, journal_argument, print_session, wait_option
from itembank.errors import visible, warned_once

if TYPE_CHECKING:
    from itembank.sessions.answers import Answer
    from itembank.sessions.session import AdaptiveSession

_COMMAND = gathered(
    "how",
    headed(
        "The command",
        option(
            "--command COMMAND",
            "The program to run for each item, and its arguments. {item_id}, {scenario}, {subscenario} and other columns "
            "of the item table in braces are replaced.",
            required=True,
        ),
        option("--shell uses_shell", "Let a shell read the command: pipes, variables.", bool),
        option("--pattern REGEX", "The answer is the last number that REGEX finds."),
        option("--exit-code uses_exit_status", "Exit code 0 is right, 1 wrong.", bool),
        option("--timeout SECONDS", "For each item.", float, default=600.0),
        option("--logs DIR", "Keep what the programs print, one file an item.", FOLDER),
    ),
)
_RUNNING = gathered(
    "running",
    option("--jobs n_jobs", "Items run side by side.", COUNT, default=1),
    option(
        "--retries N",
        "How often an item that failed may be asked again before it is skipped.",
        click.IntRange(min=0),
        default=2,
    ),
    option("--max-failures N", "Stop after so many failures in a row.", COUNT, default=10),
    option("--new-units", "Take costs in units that neither the bank has nor are usual.", bool),
)


@click.command("run", cls=Command)
@journal_argument
@_COMMAND
@_RUNNING
@bank_option
@wait_option
@report_option
@format_option
def run(
    *,
    journal: Path,
    how: Mapping[str, Any],
    running: Mapping[str, Any],
    bank: Path | None,
    wait: float,
    report: Path | None,
    output_format: str,
) -> None:
    """Run the items of a session by a command, one process an item, until the session is over.

    The program prints its answer as JSON, last of all: {"response": 1, "costs": {"cost_usd": 0.02}}, a bare number, any
    fields of itembank session tell ({"resolved": true}), or a word for right or wrong: resolved, incorrect, pass. A
    program that breaks down, ends with an error or takes too long has failed: that is no wrong answer. Stop it whenever
    you like and run the same command again: no item that was answered runs twice. At the end stands what itembank
    session status prints; exit codes are the same.

    \b
      itembank session run run.jsonl --command 'python agent.py {item_id}' --jobs 4 --timeout 600
      itembank session run run.jsonl --command './solve {item_id}' --exit-code --logs logs
      itembank session run run.jsonl --command './solve {item_id} | tail -n 1' --shell --pattern 'score: (.*)'

    Ctrl-C asks the programs to end and waits three seconds for them; a second Ctrl-C kills them.
    """  # noqa: D301
    from itembank.harnesses.commands import CommandItems, CommandSpec  # noqa: PLC0415
    from itembank.harnesses.drive import drive  # noqa: PLC0415
    from itembank.sessions.journal_sessions import bank_of_session, open_session  # noqa: PLC0415

    spec = CommandSpec(**how)
    loaded = bank_of_session(journal, bank)
    items = CommandItems(spec, loaded.responses.items)
    with (
        warnings_as_notes(),
        progress("session run") as advance,
        open_session(journal, loaded, wait=wait, progress=advance) as session,
        _ends_like_ctrl_c(),
    ):
        try:
            with warned_once():
                drive(session, items, **running, after_answer=_teller(), on_interrupt=items.interrupt)
        except KeyboardInterrupt:
            note(f"Stopped with {session.n_items} answers, all kept. The same command goes on from here.")
            raise
    print_session(journal, loaded, output_format, report)


def _teller() -> Callable[["AdaptiveSession", "Answer"], None]:
    """Make what says on standard error, after each answer, how well the score is known and what it has cost."""

    def tell(session: "AdaptiveSession", answer: "Answer") -> None:
        if answer.failed:
            more = "it may be asked again" if answer.again else "skipped"
            note(f"{visible(answer.item_id)} failed, {more}: {answer.reason}")
            return
        parts = [f"{session.n_items} answered", _score(session), *cost_words(session)]
        note("  ".join(parts))

    return tell


def _score(session: "AdaptiveSession") -> str:
    """Write the score that is wanted, with its interval."""
    from itembank.sessions.session_spec import CUSTOM  # noqa: PLC0415

    target = session.pool.spec.target
    name = target if isinstance(target, str) else CUSTOM
    row = next(row for row in session.estimate().scores.rows() if row["target"] == name)
    return f"{name} {row['estimate']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


@contextlib.contextmanager
def _ends_like_ctrl_c() -> Iterator[None]:
    """Let a request to end, of a scheduler or a terminal that closes, do what Ctrl-C does."""
    numbers = [signal.SIGTERM, signal.SIGHUP]
    is_ours = threading.current_thread() is threading.main_thread()
    changed = [number for number in numbers if is_ours and signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
