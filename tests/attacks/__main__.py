"""Kill commands, and what tells sessions answers: `python -m tests.attacks N_KILLS N_SESSIONS [SEED [1]]`.

With a 1 at the end, runs inside harnesses instead: with lm_eval, Inspect and the folder of examples on the path.

A process of its own: kills need forks, and before a fork Polars must not have been used. Every attack is a line of
JSON, with `problem` empty when all was well; the exit code is 1 when one was not.
"""

import dataclasses
import importlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.attacks import killed, killed_sessions
from tests.attacks.jobs import JOBS
from tests.attacks.run_jobs import RUN_JOBS, make_run_workplace
from tests.attacks.running import import_everything
from tests.attacks.workplace import make_workplace

QUICK = ("import", "import over another", "simulate", "select", "session start", "import of a journal")
"""Commands that are killed where there are fewer kills than commands."""


def main(n_kills: int, n_sessions: int, seed: int = 5, in_harnesses: int = 0) -> bool:
    """Make the attacks; return whether one found a problem."""
    import_everything()
    jobs, make, quick = (
        (RUN_JOBS, make_run_workplace, tuple(RUN_JOBS)) if in_harnesses else (JOBS, make_workplace, QUICK)
    )
    for module in ("lm_eval.__main__", "lm_eval.loggers", "simulated_lm") if in_harnesses else ():
        importlib.import_module(module)
    rng, is_wrong = np.random.default_rng(seed), False
    with tempfile.TemporaryDirectory(prefix="itembank-attacks-") as place:
        workplace = Path(place)
        killed.answer_of(lambda: make(workplace))
        names = tuple(jobs) if n_kills >= len(jobs) else quick
        references = {name: killed.undisturbed(jobs[name], workplace) for name in names[: n_kills or None]}
        kills = (
            killed.kill(name, jobs[name], references[name], workplace, rng)
            for name in (names[k % len(references)] for k in range(n_kills))
        )
        sessions = (killed_sessions.survive(workplace, rng) for _ in range(n_sessions))
        for found in (one for attacks in (kills, sessions) for one in attacks):
            sys.stdout.write(json.dumps(dataclasses.asdict(found)) + "\n")
            sys.stdout.flush()
            is_wrong |= bool(found.problem)
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
