"""The long run: `make attack`, or `python -m tests.attacks -o FOLDER`.

Every attack has a number, from which it can be repeated: `python -m tests.attacks --repeat files:123`.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.attacks import flipped, judging, killed, killed_sessions
from tests.attacks.campaigns import campaign, import_everything
from tests.attacks.mutated_files import attack
from tests.attacks.workplace import make_workplace

SECONDS = 180.0
"""After which an attack counts as one that hangs; a command has a third of it."""
SLOW = {"quickstart": 60, "scaling": 6, "estimate": 3, "study run": 3}
"""Commands that are killed less often, by how much."""
QUICK = ("import", "import over another", "simulate", "select", "session start", "session export")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def files(number: int, workplace: Path) -> dict[str, Any]:
    """Damage a file."""
    case = attack(number, workplace, seconds=SECONDS / 3)
    return {"kind": case.target, "verdict": case.verdict, "detail": case.detail}


def tells(number: int, workplace: Path) -> dict[str, Any]:
    """Kill commands that tell one session answers."""
    found = killed_sessions.survive(workplace, np.random.default_rng([number, 3]))
    return {
        **dataclasses.asdict(found),
        "kind": "session tell",
        "verdict": _lost(found.problem),
        "detail": found.problem,
    }


def kills(number: int, workplace: Path, references: dict[str, killed.Reference]) -> dict[str, Any]:
    """Kill a command that writes."""
    turn, place = divmod(number, len(references))
    name = list(references)[place]
    if turn % SLOW.get(name, 1):
        name = "import"
    found = killed.kill(name, references[name], workplace, np.random.default_rng([number, 5]))
    return {
        "kind": name,
        "way": found.way,
        "n_killed": int(found.was_killed),
        "verdict": _lost(found.problem),
        "detail": found.problem,
    }


def flips(number: int, workplace: Path, right: dict[str, Any]) -> dict[str, Any]:
    """Turn over one bit."""
    kind = list(flipped.KINDS)[number % len(flipped.KINDS)]
    found = flipped.flip(kind, workplace, right[kind], np.random.default_rng([number, 9]))
    return {"kind": kind, "verdict": found.verdict, "detail": f"{found.file} {found.position}: {found.detail}"}


def _lost(problem: str) -> str:
    return "spoilt" if problem else "whole"


FINE = (judging.ACCEPTED, judging.REFUSED, "whole", flipped.SAME, flipped.SAID)


def works(names: Sequence[str], jobs: Sequence[str], workplace: Path) -> dict[str, Callable[[int], dict[str, Any]]]:
    """Return the attacks by name, with what they compare with."""
    references = {name: killed.undisturbed(killed.JOBS[name], workplace) for name in jobs} if "kills" in names else {}
    right: dict[str, Any] = {}

    def flip(number: int) -> dict[str, Any]:
        kind = list(flipped.KINDS)[number % len(flipped.KINDS)]
        if kind not in right:  # in the process that makes the attack: only there may Polars be used
            right[kind] = flipped.expected(kind, workplace)
        return flips(number, workplace, right)

    return {
        "files": lambda number: files(number, workplace),
        "tells": lambda number: tells(number, workplace),
        "kills": lambda number: kills(number, workplace, references),
        "flips": flip,
    }


def summary(name: str, records: Sequence[dict[str, Any]]) -> int:
    """Print a table of what became of the attacks of a name, and the defects; return how many there are."""
    counts = Counter((record.get("kind", "?"), record["verdict"]) for record in records)
    totals = Counter(record["verdict"] for record in records)
    say(f"\n{name}: {len(records)} attacks; " + ", ".join(f"{verdict} {n}" for verdict, n in sorted(totals.items())))
    for kind in dict.fromkeys(kind for kind, _ in sorted(counts)):
        found = ", ".join(f"{verdict} {n}" for (one, verdict), n in sorted(counts.items()) if one == kind)
        say(f"  {kind}: {found}")
    for total in ("n_told", "n_killed", "n_confirmed", "n_unconfirmed", "n_torn"):
        if any(total in record for record in records):
            say(f"  {total}: {sum(record.get(total, 0) for record in records)}")
    defects = [record for record in records if record["verdict"] not in FINE]
    for record in defects:
        say(f"  {record['verdict']}: python -m tests.attacks --repeat {name}:{record['number']}")
        say("    " + str(record.get("detail", ""))[-600:].replace("\n", "\n    "))
    return len(defects)


def main() -> int:
    """Run what the options say; exit 1 when there is a defect."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--files", type=int, default=10_000, help="damaged files")
    parser.add_argument(
        "--tells", type=int, default=35, help="sessions, each told 20 answers by commands that are killed"
    )
    parser.add_argument("--kills", type=int, default=500, help="other commands that are killed")
    parser.add_argument("--flips", type=int, default=4000, help="single bits turned over")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("attacks"), help="folder of the logs; goes on from there"
    )
    parser.add_argument("--repeat", metavar="NAME:NUMBER", help="make one attack again and print what became of it")
    parser.add_argument("--quick", action="store_true", help="kill quick commands only")
    options = parser.parse_args()
    import_everything()
    with tempfile.TemporaryDirectory(prefix="itembank-attacks-") as place:
        workplace = Path(place)
        killed.answer_of(lambda: make_workplace(workplace))
        if options.repeat:
            name, _, number = options.repeat.partition(":")
            say(str(works([name], list(killed.JOBS), workplace)[name](int(number))))
            return 0
        options.output.mkdir(parents=True, exist_ok=True)
        wanted = {
            name: getattr(options, name) for name in ("flips", "tells", "kills", "files") if getattr(options, name)
        }
        work = works(list(wanted), QUICK if options.quick else list(killed.JOBS), workplace)
        n_defects = 0
        for name, n_attacks in wanted.items():
            log = options.output / f"{name}.jsonl"
            # kills start processes of their own, which need no bound
            bound = 4.0 if name in {"files", "flips"} else None
            records = campaign(work[name], range(n_attacks), log, n_jobs=options.jobs, seconds=SECONDS, gibibytes=bound)
            n_defects += summary(name, records)
    return int(n_defects > 0)


if __name__ == "__main__":
    sys.exit(main())
