"""What the tests of session commands share: options, and the loop of the documentation."""

from pathlib import Path

import itembank as ib
import tests.sessions
from itembank.sessions.journal import read_journal
from tests.sessions.session_worker import response_to

LIMIT = ("--max-items", 6)
FAST = ("--session", str(Path(tests.sessions.__file__).with_name("model-based.toml")))
"""Calibrated intervals take a fit for every fold."""


def session_file(folder, content):
    """Write a file of rare choices with intervals of the item model; return the option that takes it."""
    path = folder / "session.toml"
    path.write_text(f'interval = "model-based"\n{content}')
    return "--session", path


def settings_of(journal):
    plain = dict(read_journal(journal).header["settings"])
    plain.pop("model_id")
    return ib.SessionSpec.from_dict(plain)


def ids(run, journal, *options):
    return run("session", "ask", journal, "--format", "ids", *options).out.splitlines()


def play(run, journal, *options, respond=response_to):
    """Run the loop that the documentation shows; return the exit code of the last question."""
    while True:
        asked = run("session", "ask", journal, "--format", "ids", *options)
        if asked.code or not asked.out:
            return asked.code
        for item in asked.out.splitlines():
            run.ok("session", "tell", journal, item, "--response", respond(item))


def read_responses_of(run, journal):
    answers = journal.parent / "answers-of-loop.parquet"
    run.ok("import", journal, "-o", answers)
    responses = ib.read_responses(answers)
    return [
        {"item_id": item, "response": value}
        for item, value in zip(responses.item_ids, responses.responses[0].tolist(), strict=True)
    ]
