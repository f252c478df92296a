"""CPU time of loading a bank of 28,000 items, estimating from it, and asking for help."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.banks import Bank
from itembank.bank.calibrations import Calibration
from itembank.bank.fingerprint import bank_fingerprint
from itembank.estimation.estimate import estimate
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select

N_MODELS, N_ITEMS, N_DIMS, N_SCENARIOS = 400, 28_000, 5, 6


def run() -> list[dict[str, object]]:
    """Return rows with `name`, `cpu_seconds` (median) and `target` (seconds, or None)."""
    bank = make_bank()
    selection = select(bank, 100, method="stratified", rng=0)
    new = bank.responses.take(models=np.arange(1), items=bank.responses.item_indices(selection.item_ids))
    many = bank.responses.take(models=np.arange(100), items=bank.responses.item_indices(selection.item_ids))
    with tempfile.TemporaryDirectory() as folder:
        save_bank(bank, Path(folder) / "bank")
        return [
            _row("load a bank of 400 x 28,000", lambda: load_bank(Path(folder) / "bank"), 0.3),
            _row("estimate 1 model from 100 of 28,000 items", lambda: estimate(bank, new, selection=selection), 0.03),
            _row("estimate 100 models", lambda: estimate(bank, many, selection=selection), None),
            _row("itembank --help (wall)", _help, 0.3, clock=time.perf_counter),
        ]


def make_bank() -> Bank:
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


def _help() -> None:
    subprocess.run([sys.executable, "-m", "itembank", "--help"], check=True, capture_output=True)


def _row(
    name: str, work: Callable[[], object], target: float | None, *, clock: Callable[[], float] = time.process_time
) -> dict[str, object]:
    work()
    times = []
    for _ in range(7):
        started = clock()
        work()
        times.append(clock() - started)
    return {"name": name, "cpu_seconds": float(np.median(times)), "target": target}
