"""Attack: small files that ask for all memory, files without end, and a disk that takes no more."""

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from tests.attacks.jobs import Job
from tests.attacks.judging import contents, verdict
from tests.attacks.killed import folder_with
from tests.attacks.running import Outcome, run_here
from tests.attacks.targets import words_of

MOST_MEMORY = 4 * 2**30
SECONDS = 60
DEEP = 100_000
HUGE = 20 * 2**30


@dataclass(frozen=True, slots=True)
class Bomb:
    """How to make it in a folder that holds a copy of the good files, the command, and whether it may be taken."""

    make: Callable[[Path], object]
    words: tuple[str, ...]
    beside: tuple[str, ...] = ()
    may_be_taken: bool = False


def _unique_ids(folder: Path) -> None:
    """A row for each of 60,000 models and as many items, as time stamps among the ids make it."""
    rows = "".join(f"m{k},q{k},1\n" for k in range(60_000))
    (folder / "r.csv").write_text(f"model_id,item_id,response\n{rows}", encoding="utf-8")


def _packed(name: str, start: bytes, part: bytes) -> Callable[[Path], object]:
    """Members of gzip one after the other unpack as one stream: some megabytes make six gigabytes."""

    def make(folder: Path) -> None:
        member = gzip.compress(part * (10_000_000 // len(part)), mtime=0)
        (folder / name).write_bytes(gzip.compress(start, mtime=0) + member * 600)

    return make


def _instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replace(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return replace


def _endless(name: str) -> Callable[[Path], object]:
    return _instead(name, lambda path: path.symlink_to("/dev/zero"))


def _pipe(name: str) -> Callable[[Path], object]:
    return _instead(name, os.mkfifo)


def _sparse(name: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        (folder / name).touch()
        os.truncate(folder / name, HUGE)

    return make


def _text(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def _constant_rows(folder: Path) -> None:
    """Ten million rows that say the same, in some kilobytes of Parquet."""
    n_rows = 10_000_000
    same = {"model_id": pl.repeat("a", n_rows, eager=True), "item_id": pl.repeat("x", n_rows, eager=True)}
    pl.DataFrame(same | {"response": np.ones(n_rows)}).write_parquet(folder / "r.parquet")


def _bomb(make: Callable[[Path], object], line: str, beside: str = "", *, may_be_taken: bool = False) -> Bomb:
    return Bomb(make, words_of(line), tuple(beside.split()), may_be_taken)


NEST = '{"a": ' + "[" * DEEP + "]" * DEEP + "}"
NEST_OF_TOML = f"a = {'[' * DEEP}{']' * DEEP}"
INFO, STATUS, STUDY = "info bank JSON", "session status run.jsonl", "study run study.toml -o study"
READ = "import {} -o out.parquet"
READ_MODELS = READ.format("long.csv") + " --models models.csv"
BY_JQ = READ + " --jq '{{model_id: $stem, item_id: length, response: 1}}'"
USE_SELECTION = "estimate bank new.csv --selection selection.json FAST JSON"
USE_CACHE = "estimate cached new.csv --selection selection.json --method p-irt JSON"
NEEDS, OF_SESSION, OF_CACHE = "bank new.csv selection.json", "bank run.jsonl", "cached new.csv selection.json"
PACKED_CSV = _packed("r.csv.gz", b"model_id,item_id,response\n", b"a,x,1\n")
PACKED_JSON = _packed("r.jsonl.gz", b'{"model_id": "', b"a")
FOLDS = "cached/cache/folds.safetensors"
BOMBS = {
    "60,000 ids": _bomb(_unique_ids, READ.format("r.csv")),
    "gzip of a CSV without end": _bomb(PACKED_CSV, READ.format("r.csv.gz")),
    "gzip of one line of JSON": _bomb(PACKED_JSON, READ.format("r.jsonl.gz")),
    "gzip of one line of JSON, by jq": _bomb(PACKED_JSON, BY_JQ.format("r.jsonl.gz")),
    "empty lists, by jq": _bomb(_text("r.json", f"[{'[],' * 20_000_000}[]]"), BY_JQ.format("r.json")),
    "JSON nested deeply, by jq": _bomb(_text("r.json", NEST), BY_JQ.format("r.json")),
    "a program of jq that is a pipe": _bomb(_pipe("r.jq"), READ.format("long.csv") + " --jq r.jq", "long.csv"),
    "a CSV that is /dev/zero": _bomb(_endless("r.csv"), READ.format("r.csv")),
    "a Parquet file that is /dev/zero": _bomb(_endless("r.parquet"), READ.format("r.parquet")),
    "a CSV that is a pipe": _bomb(_pipe("r.csv"), READ.format("r.csv")),
    "a bank's items that are /dev/zero": _bomb(_endless("bank/items.parquet"), INFO, NEEDS),
    "a bank's record that is /dev/zero": _bomb(_endless("bank/bank.json"), INFO, NEEDS),
    "a bank's items that are a pipe": _bomb(_pipe("bank/items.parquet"), INFO, NEEDS),
    "a cache that is /dev/zero": _bomb(_endless(FOLDS), USE_CACHE, OF_CACHE, may_be_taken=True),
    "a selection that is a pipe": _bomb(_pipe("selection.json"), USE_SELECTION, NEEDS),
    "a journal that is a pipe": _bomb(_pipe("run.jsonl"), STATUS, OF_SESSION),
    "a journal of 20 GiB": _bomb(_sparse("run.jsonl"), STATUS, OF_SESSION),
    "a selection of 20 GiB": _bomb(_sparse("selection.json"), USE_SELECTION, NEEDS),
    "a bank's record of 20 GiB": _bomb(_sparse("bank/bank.json"), INFO, NEEDS),
    "a bank's arrays of 20 GiB": _bomb(_sparse("bank/arrays.safetensors"), INFO, NEEDS),
    "a CSV of 20 GiB": _bomb(_sparse("long.csv"), READ.format("long.csv"), "long.csv"),
    "a model table of 20 GiB": _bomb(_sparse("models.csv"), READ_MODELS, "long.csv models.csv"),
    "a study file that is a pipe": _bomb(_pipe("study.toml"), STUDY),
    "a selection nested deeply": _bomb(_text("selection.json", NEST), USE_SELECTION, NEEDS),
    "a bank's record nested deeply": _bomb(_text("bank/bank.json", NEST), INFO, NEEDS),
    "a study nested deeply": _bomb(_text("study.toml", NEST_OF_TOML), STUDY),
    "JSON Lines nested deeply": _bomb(_text("r.jsonl", NEST), READ.format("r.jsonl")),
    "ten million rows that are one": _bomb(_constant_rows, READ.format("r.parquet"), may_be_taken=True),
}


def explode(name: str, workplace: Path) -> tuple[str, str]:
    """Give a bomb to its command, in a process of its own with little memory; return the verdict and what was said."""
    bomb = BOMBS[name]
    command = [sys.executable, "-m", "itembank", *bomb.words]
    how = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 2 * SECONDS}
    with folder_with(bomb.beside, workplace) as folder:
        bomb.make(folder)
        try:
            done = subprocess.run(command, cwd=folder, check=False, preexec_fn=_limit, **how)
        except subprocess.TimeoutExpired:
            return "hang", f"longer than {2 * SECONDS} s"
        found = verdict(Outcome(done.returncode, done.stdout, done.stderr))
        left = [path.name for path in folder.rglob("*.partial")]
        return ("left over", str(left)) if left else (found, done.stderr)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def fill(job: Job, workplace: Path, n_bytes: int) -> tuple[str, str]:
    """Run a command that writes where no file may have more than so many bytes, as on a full disk.

    Returns the verdict and what was said; `changed` where something that was there is not what it was, `left over`
    where something new is not whole.
    """
    with folder_with(job.beside, workplace) as folder:
        before = contents(folder)
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, most[1]))
        try:
            outcome = run_here(job.words, folder=folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
        after = contents(folder)
        if spoilt := [path for path in before if after.get(path) != before[path]]:
            return "changed", f"{spoilt}: {outcome.err}"
        if left := [path for path in after if path not in before and "cache/" not in path]:
            return "left over", f"{left}: {outcome.err}"
        return verdict(outcome), outcome.err
