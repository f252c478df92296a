"""The long run: `make attack`, or `python -m tests.attacks [NAME=COUNT ...]` for some attacks, or fewer.

Attacks end up in logs, one a line; the same command goes on where it was stopped. Every attack has a number, from
which it is made again: `python -m tests.attacks --repeat files:123`.
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

from tests.attacks import bombs, flipped, hostile, judging, killed, killed_sessions
from tests.attacks.campaigns import campaign, import_everything
from tests.attacks.jobs import JOBS
from tests.attacks.mutated_files import attack
from tests.attacks.running import run_here
from tests.attacks.workplace import make_workplace
from tests.bank.crafted_banks import FURTHER, HISTORIES, REVIEWED, craft
from tests.living.living import retired_bank

Record = dict[str, Any]

COUNTS = {
    "banks": len(REVIEWED | FURTHER | HISTORIES),  # crafted, their digests right
    "bombs": len(bombs.BOMBS),
    "names": 1,  # all hostile names through all commands
    "flips": 500 * len(flipped.KINDS),  # single bits of files that itembank writes
    "tells": 35,  # sessions, each told 20 answers by commands that are killed
    "kills": 500,  # of other commands
    "files": 10_000,  # damaged
}
SECONDS = 180.0
"""After which an attack counts as one that hangs; a command has a third of it."""
GIBIBYTES = 4.0
OF_THEIR_OWN = ("kills", "tells", "bombs")
"""Attacks in processes of their own, whose parents need no bound of memory."""
SLOW = {"quickstart": 60, "scaling": 6, "estimate": 3, "study run": 3}
"""Commands that are killed less often, by how much."""
QUICK = ("import", "import over another", "simulate", "select", "session start", "import of a journal")
FINE = (judging.ACCEPTED, judging.REFUSED, "whole", flipped.SAME, flipped.SAID)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclasses.dataclass
class Attacks:
    """The attacks by name, with what they compare with; each takes a number and returns a record."""

    workplace: Path
    jobs: Sequence[str] = tuple(JOBS)
    references: dict[str, killed.Reference] = dataclasses.field(default_factory=dict)
    right: dict[str, Any] = dataclasses.field(default_factory=dict)

    def prepare(self, name: str) -> None:
        """Run undisturbed what kills are compared with."""
        if name == "kills":
            self.references = {one: killed.undisturbed(JOBS[one], self.workplace) for one in self.jobs}

    def banks(self, number: int) -> Record:
        """Give a crafted bank to a command."""
        name, change = list((REVIEWED | FURTHER | HISTORIES).items())[number]
        with tempfile.TemporaryDirectory(prefix="itembank-bank-") as place:
            bank = retired_bank() if name in HISTORIES else None
            outcome = run_here(("info", craft(Path(place) / "bank", change, bank)))
        is_refused = judging.verdict(outcome) == judging.REFUSED and outcome.code == 4
        kind = "of the review" if name in REVIEWED else "further ones"
        return {"kind": kind, "verdict": judging.REFUSED if is_refused else "taken", "detail": f"{name}: {outcome.err}"}

    def bombs(self, number: int) -> Record:
        """Give a bomb to its command."""
        name = list(bombs.BOMBS)[number]
        found, said = bombs.explode(name, self.workplace)
        if found == judging.ACCEPTED and not bombs.BOMBS[name].may_be_taken:
            found = "taken"
        return {"kind": name, "verdict": found, "detail": said}

    def names(self, number: int) -> Record:
        """Give all hostile names to all commands."""
        with tempfile.TemporaryDirectory(prefix="itembank-names-") as place:
            hostile.make_hostile(Path(place))
            found = hostile.problems(Path(place))
        n_outputs = 3 * len(hostile.COMMANDS) + len(hostile.MESSAGES) + len(hostile.FIGURES)
        return {"kind": f"{n_outputs} outputs", "verdict": _spoilt(bool(found)), "detail": "\n".join(found)}

    def flips(self, number: int) -> Record:
        """Turn over one bit."""
        kind = list(flipped.KINDS)[number % len(flipped.KINDS)]
        if kind not in self.right:  # in the process that makes the attack: only there may Polars be used
            self.right[kind] = flipped.expected(kind, self.workplace)
        found = flipped.flip(kind, self.workplace, self.right[kind], np.random.default_rng([number, 9]))
        return {"kind": kind, "verdict": found.verdict, "detail": f"{found.file} {found.position}: {found.detail}"}

    def tells(self, number: int) -> Record:
        """Kill commands that tell one session answers."""
        found = killed_sessions.survive(self.workplace, np.random.default_rng([number, 3]))
        about = {"kind": "session tell", "verdict": _spoilt(bool(found.problem)), "detail": found.problem}
        return dataclasses.asdict(found) | about

    def kills(self, number: int) -> Record:
        """Kill a command that writes; slow ones less often, with quick ones in their place."""
        turn, place = divmod(number, len(self.jobs))
        name = self.jobs[place] if turn % SLOW.get(self.jobs[place], 1) == 0 else QUICK[turn % len(QUICK)]
        found = killed.kill(name, self.references[name], self.workplace, np.random.default_rng([number, 5]))
        about = {"kind": name, "verdict": _spoilt(bool(found.problem)), "detail": found.problem}
        return about | {"way": found.way, "n_killed": int(found.was_killed)}

    def files(self, number: int) -> Record:
        """Damage a file."""
        case = attack(number, self.workplace, seconds=SECONDS / 3)
        return {"kind": case.target, "verdict": case.verdict, "detail": case.detail}


def _spoilt(is_spoilt: bool) -> str:
    return "spoilt" if is_spoilt else "whole"


def summary(name: str, records: Sequence[Record]) -> int:
    """Print what became of the attacks of a name, and the defects; return how many there are."""
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
    default = ", ".join(f"{name}={count}" for name, count in COUNTS.items())
    parser.add_argument("counts", nargs="*", metavar="NAME[=COUNT]", help=f"how many of which attacks [all: {default}]")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="kill only commands that end soon")
    parser.add_argument("-o", "--output", type=Path, default=Path("attacks"), help="folder of the logs")
    parser.add_argument("--repeat", metavar="NAME:NUMBER", help="make one attack again, and print what became of it")
    options = parser.parse_args()
    named = (one.partition("=") for one in options.counts)
    wanted = {name: int(count or COUNTS[name]) for name, _, count in named} or COUNTS
    import_everything()
    with tempfile.TemporaryDirectory(prefix="itembank-attacks-") as place:
        attacks = Attacks(Path(place), QUICK if options.quick else tuple(JOBS))
        killed.answer_of(lambda: make_workplace(attacks.workplace))
        if options.repeat:
            name, _, number = options.repeat.partition(":")
            attacks.prepare(name)
            say(str(killed.answer_of(lambda: getattr(attacks, name)(int(number)))))
            return 0
        options.output.mkdir(parents=True, exist_ok=True)
        return int(sum(_run(attacks, name, count, options) for name, count in wanted.items()) > 0)


def _run(attacks: Attacks, name: str, count: int, options: argparse.Namespace) -> int:
    """Make the attacks of a name, and print what became of them; return the number of defects."""
    attacks.prepare(name)
    make: Callable[[int], Record] = getattr(attacks, name)
    records = campaign(
        make,
        range(count),
        options.output / f"{name}.jsonl",
        n_jobs=options.jobs,
        seconds=SECONDS,
        gibibytes=None if name in OF_THEIR_OWN else GIBIBYTES,
    )
    return summary(name, records)


if __name__ == "__main__":
    sys.exit(main())
