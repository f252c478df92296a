"""Is this checkout slower than another? ``python -m benchmarks.regression OTHER``: ratios, in one run, alternating.

OTHER is another checkout, the interpreter of an environment in which another version is installed, or a revision of
this repository, as ``v0.1.0``. A handful of calls run in a process of their own on one thread, here and there in turn.
Each ratio is that of the fastest rounds, and the range beside it that of the ratios of all rounds: where 1 lies in it,
the difference is noise. A round before the first fills what Python keeps of compiled modules. This is a benchmark and
not a test.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from benchmarks.speed_commands import ONE_THREAD

SEEN = 1.1
"""A ratio that all rounds must exceed for a call to be named slower."""
HERE = Path(__file__).parents[1]
CALLS = Path(__file__).with_name("regression_calls.py")


@dataclass(frozen=True, slots=True)
class Side:
    """One of two versions.

    Attributes
    ----------
    python : str
        Interpreter that runs it.
    source : Path or None
        Folder that itembank is imported from; None where it is installed.
    """

    python: str
    source: Path | None

    def seconds(self, compiled: Path) -> dict[str, float]:
        """Make all calls in a new process, with compiled modules in a folder; return the CPU seconds of each."""
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, **ONE_THREAD, "ITEMBANK_CACHE": cache, "PYTHONPYCACHEPREFIX": str(compiled)}
            for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
                environment.pop(name, None)
            if self.source is not None:
                environment["PYTHONPATH"] = str(self.source)
            command = [self.python, str(CALLS)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True, cwd=cache)
        found = json.loads(done.stdout.strip().splitlines()[-1])
        if self.source is not None and self.source.resolve() not in Path(found["place"]).resolve().parents:
            raise SystemExit(f"itembank must come from {self.source}, got {found['place']}")
        seconds: dict[str, float] = found["seconds"]
        return seconds


@contextmanager
def side_of(other: str) -> Iterator[Side]:
    """Find out what the name of the other version means, and have it ready."""
    path = Path(other)
    if path.is_file():
        yield Side(str(path.absolute()), None)
        return
    if (path / "src" / "itembank").is_dir():
        yield Side(sys.executable, path / "src")
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            [str(shutil.which("git")), "-C", str(HERE), "archive", "--format=tar", other, "src"],
            capture_output=True,
            check=False,
        )
        if packed.returncode:
            raise SystemExit(
                f"OTHER must be a checkout, an interpreter or a revision of this repository, got {other!r}: "
                f"{packed.stderr.decode().strip()}"
            )
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Side(sys.executable, Path(folder) / "src")


Seconds = dict[str, tuple[np.ndarray, np.ndarray]]
"""Of each call in each round, (n_rounds,) here and there; none there for a call that the other version has not."""


def compare(here: Side, there: Side, n_rounds: int) -> Seconds:
    """Return the seconds of the calls; which side begins turns round by round."""
    sides = (here, there)
    rounds: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    with tempfile.TemporaryDirectory() as folder:
        compiled = [Path(folder) / name for name in ("here", "there")]
        for number in range(n_rounds + 1):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                rounds[which].append(sides[which].seconds(compiled[which]))
    ours, theirs = (of_side[1:] for of_side in rounds)
    return {
        name: (np.array([one[name] for one in ours]), np.array([one[name] for one in theirs if name in one]))
        for name in ours[0]
    }


def table(found: Seconds) -> Iterator[str]:
    """Give the lines of the table."""
    yield f"{'CPU seconds':44s} {'here':>8s} {'there':>8s}  ratio  (of the rounds)"
    for name, (ours, theirs) in found.items():
        if not theirs.size:
            yield f"{name:44s} {ours.min():8.3f} is not there, so that the next call pays for what it loads there"
            continue
        ratios = ours / theirs
        best = ours.min() / theirs.min()
        mark = "  slower" if ratios.min() > SEEN else "  faster" if ratios.max() < 1.0 / SEEN else ""
        yield (
            f"{name:44s} {ours.min():8.3f} {theirs.min():8.3f} {best:6.2f}  ({ratios.min():.2f} to {ratios.max():.2f})"
            f"{mark}"
        )


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", help="checkout, interpreter or revision to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with side_of(options.other) as there:
        found = compare(Side(sys.executable, HERE / "src"), there, options.rounds)
    for line in table(found):
        print(line)


if __name__ == "__main__":
    main()
