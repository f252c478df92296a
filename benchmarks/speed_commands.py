"""CPU seconds of what a user waits for: ``ITEMBANK_SHARED=... python -m benchmarks.speed_commands`` (some minutes).

Every command runs in a process of its own on one thread, the first with an empty cache. Modules are compiled
beforehand, as an installation leaves them: an environment may forbid Python to write bytecode.
Real leaderboards come from ``ITEMBANK_SHARED``; without it their rows are left out.
"""

import compileall
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import itembank as ib
from itembank.bank.banks import Bank, Calibration, bank_fingerprint
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets

SHARED = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
N_MODELS, N_ITEMS, N_DIMS, N_SCENARIOS = 400, 28_000, 5, 6


@dataclass(frozen=True, slots=True)
class Waited:
    """What one command cost.

    Attributes
    ----------
    name : str
    cpu_seconds : float
        User and system time.
    goal : float or None
    """

    name: str
    cpu_seconds: float
    goal: float | None

    def line(self) -> str:
        """Say it in a line of the table."""
        goal = "" if self.goal is None else f"   goal {self.goal:g}"
        return f"  {self.name:55s} {self.cpu_seconds:9.2f} CPU-s{goal}"


def main() -> None:
    """Print the table, a line as soon as it is known."""
    for row in run():
        print(row.line(), flush=True)


def run() -> Iterator[Waited]:
    """Run every command."""
    compileall.compile_dir(Path(ib.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if SHARED.is_dir():
            yield from _calibrations(folder)
            yield from _sessions(folder)
        yield _timed("quickstart", 10.0, folder, "quickstart", "-o", "quickstart")
        yield from _large_bank(folder)


def _calibrations(folder: Path) -> Iterator[Waited]:
    """Calibrate three leaderboards, everything by default."""
    source = SHARED / "openllm1_core"
    table = ib.read_responses(source / "responses.parquet", items=source / "items.csv")
    some = np.flatnonzero(np.arange(table.n_models) % 4 < 3)
    write_responses(table.take(models=some), folder / "open-llm.parquet")
    yield _timed("calibrate Open LLM v1, 450 x 1,537", 15.0, folder, "calibrate", "open-llm.parquet", "-o", "bank")
    for name, data in (("SWE-bench, 100 x 500", "swebench_verified"), ("BFCL, 56 x 1,700", "bfcl_v1")):
        responses = str((SHARED / data / "responses.parquet").resolve())
        yield _timed(f"calibrate {name}", 6.0, folder, "calibrate", responses, "-o", data)


def _sessions(folder: Path) -> Iterator[Waited]:
    """Begin a session on the first of the banks, then another."""
    for name, goal in (("first", 5.0), ("second", 0.8)):
        journal = ("-o", f"{name}.jsonl", "--model-id", name)
        yield _timed(f"session start, {name}", goal, folder, "session", "start", "bank", *journal)


def _large_bank(folder: Path) -> Iterator[Waited]:
    """Choose items of a bank of 28,000 and estimate a model's score from them, each once and once again."""
    bank = _bank_of_known_parameters()
    bank.save(folder / "large")
    for name, goal in (("first", None), ("second", 3.0)):
        wanted = ("-n", "100", "-o", f"{name}.json")
        yield _timed(f"select of 400 x 28,000, {name}", goal, folder, "select", "large", *wanted)
    items = ib.Selection.load(folder / "first.json").item_ids
    new = bank.responses.take(models=np.arange(1), items=bank.responses.item_indices(items))
    write_responses(new, folder / "new.parquet")
    for name, goal in (("first", None), ("second", 1.5)):
        given = ("large", "new.parquet", "--selection", "first.json")
        yield _timed(f"estimate of 400 x 28,000, {name}", goal, folder, "estimate", *given)


def _bank_of_known_parameters() -> Bank:
    """Make a bank of known parameters, without a calibration."""
    rng = np.random.default_rng(0)
    loadings = rng.lognormal(0.0, 0.5, (N_ITEMS, N_DIMS)) / np.sqrt(N_DIMS)
    parameters = ItemParameters.create(loadings, rng.normal(size=N_ITEMS))
    abilities = rng.normal(size=(N_MODELS, N_DIMS))
    answers = (rng.random((N_MODELS, N_ITEMS)) < probability(parameters, abilities)).astype(float)
    names = [f"task{i % N_SCENARIOS}" for i in range(N_ITEMS)]
    ids = [f"{name}/{i}" for i, name in enumerate(names)]
    responses = ResponseMatrix.create(answers, item_ids=ids, scenarios=names)
    calibration = Calibration(
        parameters,
        np.tile(0.01 * np.eye(N_DIMS + 1), (N_ITEMS, 1, 1)),
        abilities,
        np.tile(0.01 * np.eye(N_DIMS), (N_MODELS, 1, 1)),
        AbilityPrior.standard(N_DIMS),
        np.zeros(N_ITEMS, dtype=bool),
        {},
        "variational",
        "mirt",
        True,
        1,
        "made up",
        np.zeros(1),
    )
    targets = ScoreTargets.create(responses.items)
    bank_id = bank_fingerprint(responses, parameters, targets)
    return Bank(bank_id, responses, calibration, targets, np.full(N_SCENARIOS, 0.02), np.full(N_SCENARIOS, 0.2))


def _timed(name: str, goal: float | None, folder: Path, *arguments: str) -> Waited:
    """Run one command in the folder, with its cache there."""
    environment = {**os.environ, **ONE_THREAD, "ITEMBANK_CACHE": str(folder / "cache")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "itembank", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Waited(name, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, goal)


if __name__ == "__main__":
    main()
