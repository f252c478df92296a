"""Kill commands, and what tells sessions answers: `python -m tests.attacks N_KILLS N_SESSIONS [SEED]`.

A process of its own: kills need forks, and before a fork Polars must not have been used. Every attack is a line of
JSON, with `problem` empty when all was well; the exit code is 1 when one was not.
"""

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.attacks import killed, killed_sessions
from tests.attacks.jobs import JOBS
from tests.attacks.running import import_everything
from tests.attacks.workplace import make_workplace

QUICK = ("import", "import over another", "simulate", "select", "session start", "import of a journal")
"""Commands that are killed where there are fewer kills than commands."""


def main(n_kills: int, n_sessions: int, seed: int = 5) -> bool:
    """Make the attacks; return whether one found a problem."""
    import_everything()
    rng, is_wrong = np.random.default_rng(seed), False
    with tempfile.TemporaryDirectory(prefix="itembank-attacks-") as place:
        workplace = Path(place)
        killed.answer_of(lambda: make_workplace(workplace))
        names = tuple(JOBS) if n_kills >= len(JOBS) else QUICK
        references = {name: killed.undisturbed(JOBS[name], workplace) for name in names[: n_kills or None]}
        kills = (
            killed.kill(name, JOBS[name], references[name], workplace, rng)
            for name in (names[k % len(names)] for k in range(n_kills))
        )
        sessions = (killed_sessions.survive(workplace, rng) for _ in range(n_sessions))
        for found in (one for attacks in (kills, sessions) for one in attacks):
            sys.stdout.write(json.dumps(dataclasses.asdict(found)) + "\n")
            sys.stdout.flush()
            is_wrong |= bool(found.problem)
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
