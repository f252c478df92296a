"""How far results differ between BLAS kernels, for one seed.

Every kernel that this processor can run (`benchmarks/blas_kernels.py`) does the same work in a process of its own: the
quickstart, selections and estimates on the Open LLM Leaderboard, sessions, forecasts of scaling. Printed are, for each
result, the largest difference from the first kernel, and how many of the chosen items differ.

    python -m benchmarks.kernels [--parts quickstart,openllm,sessions,scaling,dimensions] [--keep FOLDER]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import itembank as ib
import itembank_scaling
import itembank_studies
from benchmarks.accuracy.data_sets import load
from benchmarks.blas_kernels import KNOWN, code_of, distinct
from itembank.bank.banks import Bank
from itembank.calibration.build import calibrate
from itembank.calibration.dimensions import choose_n_dims
from itembank.cli.quickstart import STRATEGIES, split_runs
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix

Results = Iterator[tuple[str, Any]]
"""Name and value: an array of numbers, or ids of items in the order in which they stand in the bank."""

N_ITEMS = 100
ON_OPENLLM = ("v-optimal", "anchor-correctness", "anchor-irt", "auto")
METHODS = ("weighted", "p-irt", "gp-irt", "factor", "ridge", "stacked", "auto")


def main() -> None:
    arguments = _arguments()
    if arguments.write is not None:
        return _write(arguments.write, arguments.parts.split(","))
    kernels = arguments.kernels.split(",") if arguments.kernels else _runnable()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for kernel in kernels:
            _run(kernel, arguments.parts, folder)
        _print(folder, kernels)
    return None


def _runnable() -> list[str]:
    return list(distinct([(kernel, code_of(kernel)) for kernel in KNOWN]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--kernels", help="by default all that can run here")
    parser.add_argument("--keep")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(kernel: str, parts: str, folder: Path) -> None:
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
    command = [sys.executable, "-m", "benchmarks.kernels", "--write", str(folder / f"{kernel}.npz"), "--parts", parts]
    subprocess.run(command, env=environment, check=True)


def _write(path: Path, parts: list[str]) -> None:
    """Do the work and keep its results."""
    warnings.simplefilter("ignore", ItembankWarning)
    found: dict[str, Any] = {}
    for part in parts:
        started = time.process_time()
        found.update({f"{part}: {name}": np.asarray(value) for name, value in PARTS[part]()})
        found[f"{part}: seconds"] = np.array(time.process_time() - started)
    np.savez(path, **found)


def _print(folder: Path, kernels: list[str]) -> None:
    found = {kernel: dict(np.load(folder / f"{kernel}.npz")) for kernel in kernels}
    first = found[kernels[0]]
    for name, value in first.items():
        if name.endswith("seconds"):
            print(name, *(f"{kernel} {float(found[kernel][name]):.1f}" for kernel in kernels))
            continue
        print(f"{name:70s}", *(f"{kernel} {_difference(value, found[kernel][name]):>9s}" for kernel in kernels[1:]))


def _difference(first: np.ndarray, other: np.ndarray) -> str:
    if first.dtype.kind == "U":
        n = len(set(first.tolist()) ^ set(other.tolist())) // 2
        return f"{n}/{first.size}" if n or first.shape == other.shape else "shape"
    if first.shape != other.shape:
        return "shape"
    unequal = first != other  # infinite in both is no difference
    return f"{np.nanmax(np.abs(first[unequal] - other[unequal]), initial=0.0):.1e}"


def _quickstart() -> Results:
    past, new = split_runs(ib.load_builtin("bytelms"), seed=0)
    bank = calibrate(past, rng=0)
    yield from _bank(bank)
    chosen = {name: select(bank, N_ITEMS, method=name, rng=0) for name in ("stratified", "anchor-irt", "auto")}
    for name, selection in chosen.items():
        yield f"items by {name}", selection.item_ids
        yield f"weights of {name}", selection.weights
    for strategy in STRATEGIES:
        estimates = estimate(bank, new, selection=chosen[strategy.selection], method=strategy.method)
        yield f"estimates, {strategy.name}", estimates.value
        yield f"limits, {strategy.name}", np.stack([estimates.low, estimates.high])


def _bank(bank: Bank) -> Results:
    yield "loadings", bank.parameters.loadings
    yield "intercepts", bank.parameters.intercept
    yield "abilities", bank.calibration.abilities
    yield "steps", bank.calibration.n_iterations


def _openllm_bank(n_models: int = 450) -> tuple[Bank, ResponseMatrix]:
    data = load("openllm1_core", Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data")
    order = np.random.default_rng(0).permutation(data.responses.n_models)
    past, new = np.sort(order[:n_models]), np.sort(order[450:600])
    return calibrate(data.responses.take(models=past), data.spec), data.responses.take(models=new)


def _openllm() -> Results:
    bank, new = _openllm_bank()
    yield from _bank(bank)
    drawn = select(bank, N_ITEMS, method="stratified", rng=0)
    for method in METHODS:
        found = estimate(bank, new, selection=drawn, method=method)
        yield f"estimates from random items, {method}", found.value
        yield f"limits from random items, {method}", np.stack([found.low, found.high])
    for method in ON_OPENLLM:
        chosen = select(bank, N_ITEMS, method=method, rng=0)
        yield f"items by {method}", chosen.item_ids
        yield f"weights of {method}", chosen.weights
        yield f"estimates, {method} + gp-irt", estimate(bank, new, selection=chosen, method="gp-irt").value
        yield f"estimates, {method} + auto", estimate(bank, new, selection=chosen, method="auto").value


def _dimensions() -> Results:
    data = load("openllm1_core", Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data")
    yield "number", choose_n_dims(data.responses).n_dims


def _sessions() -> Results:
    responses = ib.load_builtin("classifiers")
    past, new = responses.take(models=np.arange(0, 180)), responses.take(models=np.arange(180, 195))
    bank = ib.calibrate(past, ib.calibrations.Variational("mirt", n_dims=2))
    for criterion in ("v-optimal", "d-optimal"):
        found = itembank_studies.replay(bank, new, ib.SessionSpec(criterion, budget=ib.Budget(n_items=30)))
        yield f"items by {criterion}", [f"{row['model_id']}: {row['item_id']}" for row in found.asked.rows(named=True)]
        yield f"estimates by {criterion}", found.estimates.value
        yield f"limits by {criterion}", np.stack([found.estimates.low, found.estimates.high])


def _scaling() -> Results:
    probabilities = ib.load_builtin("bytelms", response="probability")
    sorting = probabilities.take(items=np.flatnonzero(probabilities.items["scenario"].to_numpy() == "sorting"))
    compute = itembank_scaling.training_compute(sorting.models, sorting.model_ids)
    law = itembank_scaling.pretraining_law(sorting, compute, target_flops=1e14)
    rows = law.rows()
    for column in ("score", "low", "high"):
        yield f"forecasts, {column}", [float(row[column]) for row in rows if row.get(column) is not None]
    samples = ib.load_builtin("bytelms-samples")
    samples = samples.take(items=np.flatnonzero(samples.items["scenario"].to_numpy() == "addition"))
    spec = itembank_scaling.PassAtKSpec(k=(1, 10, 100, 1000), budget=50)
    found = itembank_scaling.pass_at_k_law(samples, spec, models=list(samples.model_ids[:2]), rng=0)
    for column in found.rows()[0]:
        values = [row[column] for row in found.rows()]
        if all(isinstance(value, float) for value in values):
            yield f"pass@k, {column}", values


PARTS: Mapping[str, Callable[[], Results]] = {
    "quickstart": _quickstart,
    "openllm": _openllm,
    "sessions": _sessions,
    "scaling": _scaling,
    "dimensions": _dimensions,
}

if __name__ == "__main__":
    main()
