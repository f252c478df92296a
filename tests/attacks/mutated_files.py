"""Attack: damaged files of every kind, given to the commands that read them."""

import gzip
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from itembank.errors import DataWarning, ItembankError
from itembank.readers.read import read_responses
from itembank_studies.simulation.simulate import load_truth
from tests.attacks.judging import ACCEPTED, REFUSED, contents, problem_of_json, verdict
from tests.attacks.killed import folder_with, is_of
from tests.attacks.mutating import mutate
from tests.attacks.running import Outcome, call_here, run_here
from tests.attacks.targets import TARGETS, Target

NO_VERDICT = "gate.xml"
"""The report of a gate, which says why there is no verdict, too."""
MAY_CHANGE = ("cache/",)
"""Parts of paths of files that any command may make: they can be made again."""


@dataclass(frozen=True, slots=True)
class Case:
    """What became of one damaged file; `detail` is what a person needs to see of a defect."""

    seed: int
    target: str
    verdict: str
    detail: str = ""


def attack(seed: int, workplace: Path, *, seconds: float = 60.0) -> Case:
    """Damage one file as the seed says, give it to its commands, and judge the worst that happened."""
    rng = np.random.default_rng([seed, 11])
    name = list(TARGETS)[seed % len(TARGETS)]
    target = TARGETS[name]
    with folder_with({target.file.split("/")[0], *target.beside}, workplace) as folder:
        _damage(target, workplace, folder, rng)
        result = ACCEPTED
        for words in target.commands:
            found, detail = _judged(target, words, folder, seconds)
            result = REFUSED if found == REFUSED else result
            if found not in {ACCEPTED, REFUSED}:
                return Case(seed, name, found, f"{' '.join(words)}: {detail}")
        return Case(seed, name, result)


def _damage(target: Target, workplace: Path, folder: Path, rng: np.random.Generator) -> None:
    path = folder / target.file
    others = [(workplace / one.file).read_bytes() for one in TARGETS.values()]
    content = gzip.decompress(path.read_bytes()) if target.is_gzipped else path.read_bytes()
    content = mutate(content, rng, others)
    path.write_bytes(gzip.compress(content, mtime=0) if target.is_gzipped else content)
    if target.sign is not None:
        try:
            target.sign(path)
        except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, ItembankError):
            return  # damaged beyond signing: as it is, then


def _judged(target: Target, words: tuple[str, ...], folder: Path, seconds: float) -> tuple[str, str]:
    before = contents(folder)
    stdin = (folder / target.file).read_bytes() if target.is_standard_input else b""
    outcome = _run(words, folder, stdin, seconds)
    found = verdict(outcome)
    if found not in {ACCEPTED, REFUSED}:
        return found, f"exit {outcome.code}; {outcome.escaped[-1500:]}{outcome.err[-1500:]}"
    if found == ACCEPTED and (problem := _problem_of_output(words, outcome, folder)):
        return "bad output", problem
    after = contents(folder)
    new = [path for path in after if path not in before and not _may_change(path)]
    partial = [path for path in new if ".partial" in path]
    left = [path for path in new if (found == REFUSED and path != NO_VERDICT) or not is_of(path, target.writes)]
    changed = [path for path in before if after.get(path) != before[path] and not _may_change(path)]
    if partial or (left and not (found == REFUSED and words[0] == "study")):
        return "left over", f"{found}, left {partial + left}; {outcome.err[-500:]}"
    if found == REFUSED and changed:
        return "changed", f"refused, changed {changed}; {outcome.err[-500:]}"
    return found, ""


def _may_change(path: str) -> bool:
    return any(part in path for part in MAY_CHANGE) and ".partial" not in path


def _run(words: tuple[str, ...], folder: Path, stdin: bytes, seconds: float) -> Outcome:
    if words[0] in FUNCTIONS:
        return call_here(lambda: _clearly(FUNCTIONS[words[0]], folder / words[1]), seconds=seconds)
    outcome = run_here(words, stdin=stdin, seconds=seconds, folder=folder)
    has_failed = words[0] == "gate" and outcome.code == 1 and '"verdict": "fail"' in outcome.out
    return replace(outcome, code=0) if has_failed else outcome  # a verdict is a result


def _clearly(function: Callable[[Path], object], path: Path) -> None:
    """Call a function of the package as the command line does: an error of ours is one line and an exit code."""
    try:
        function(path)
    except (ItembankError, OSError) as error:
        sys.stderr.write(f"Error: {error}\n")
        raise SystemExit(1) from error


FUNCTIONS: dict[str, Callable[[Path], object]] = {"load_truth": load_truth}
"""Files that no command reads."""


def _problem_of_output(words: tuple[str, ...], outcome: Outcome, folder: Path) -> str:
    is_json = "--format" in words or words[:2] in {("session", "ask"), ("session", "tell")}
    if is_json and (problem := problem_of_json(outcome.out)):
        return f"{problem} in {outcome.out[:800]}"
    written = folder / "out.parquet"
    if words[0] != "import" or not written.is_file():
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of runs that were cut short
        responses = read_responses(written).responses
    is_share = np.isnan(responses) | ((responses >= 0.0) & (responses <= 1.0))
    return "" if is_share.all() else f"responses {responses[~is_share][:5].tolist()} in the file"
