"""A process that works on a session until there is nothing left to do, or until it is killed.

    python session_worker.py JOURNAL BANK new|again [SEED]

Prints the id of each item once its answer is told. With a seed, it kills itself while it writes to the journal: at a
random write, after a random part of it.
"""

import hashlib
import os
import signal
import sys

import numpy as np


def response_to(item_id):
    """Return the answer that this made-up model gives, however often it is asked."""
    return (hashlib.sha256(item_id.encode()).digest()[0] % 3) / 2


def work(session, *, report=lambda item_id: None):
    """Answer items, three at a time and those pending first, until none is left to ask."""
    while items := session.pending or session.ask(3):
        for item in items:
            session.tell(item, response_to(item), costs={"output_tokens": 0.1 * len(item)})
            report(item)


def die_while_writing(rng):
    """Replace the write to the disk by one that ends the process in the middle of it."""
    write, left = os.pwrite, [int(rng.integers(14))]

    def write_and_die(handle, content, offset):
        if left[0]:
            left[0] -= 1
            return write(handle, content, offset)
        write(handle, content[: rng.integers(len(content) + 1)], offset)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")

    os.pwrite = write_and_die


def say(line):
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main():
    """Open the session for each item, so that several workers can share it, or once for all of them."""
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.sessions.journal_sessions import open_session  # noqa: PLC0415

    journal, bank, kind, *seed = sys.argv[1:]
    bank = load_bank(bank)
    if seed:
        die_while_writing(np.random.default_rng(int(seed[0])))
    say("ready")
    if kind == "again":
        with open_session(journal, bank) as session:
            work(session, report=say)
        return
    while True:
        with open_session(journal, bank, wait=60.0) as session:
            items = session.ask()
        if not items:
            return
        with open_session(journal, bank, wait=60.0) as session:
            session.tell(items[0], response_to(items[0]))
        say(items[0])


if __name__ == "__main__":
    main()
