"""itembank alone on ever more cells: seconds, memory, and how far that is from the floor of `floors`."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.problems import MASKED_SHARE
from benchmarks.rivals import floors
from benchmarks.rivals.fit_one import cpu_seconds, peak_megabytes
from benchmarks.rivals.fits import Row
from benchmarks.speed_commands import ONE_THREAD
from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fit_item_model import fit_item_model
from itembank.calibration.variational.blocks import Blocks, UncopiedBlocks
from itembank.responses.responses import ResponseMatrix

SIZES = ((400, 250), (400, 1_000), (400, 5_000), (400, 28_000), (2_000, 28_000), (2_000, 100_000), (10_000, 100_000))
DIMS = (1, 5)
CELLS_OF_MORE_DIMS = 5
"""With five dimensions a cell costs more, so that growth ends at a fifth of the cells."""


def run(most_cells: float, done: list[Row]) -> Iterator[Row]:
    """Give the floors, then the row of each size; those that are in `done` are not measured again."""
    known = {row["name"]: row for row in done}
    yield known.get("floors") or {"name": "floors", **_in_process("floors")}
    for n_dims in DIMS:
        for n_models, n_items in SIZES:
            if n_models * n_items <= most_cells / (1 if n_dims == 1 else CELLS_OF_MORE_DIMS):
                name = f"{n_models:,} x {n_items:,}, {n_dims} dimension{'s' if n_dims > 1 else ''}"
                yield known.get(name) or {"name": name, **_in_process(str(n_models), str(n_items), str(n_dims))}


def table(rows: list[Row]) -> Iterator[str]:
    """Give the lines of a Markdown table, and of the floors before it."""
    floor = floor_of(rows)
    yield (
        f"\nFloors: {floor.cell_ns:.1f} ns a cell and pass for arithmetic, {floor.read_ns:.2f} ns to read a byte, "
        f"{floor.product_gigaflops:.0f} GFLOP/s in matrix products\n"
    )
    yield "| cells | dimensions | CPU-s | passes | ns a cell and pass | times the floor | peak MB, data | r(ability) |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows[1:]:
        cells, each = row["n_models"] * row["n_items"], 1e9 * row["cpu_seconds"] / row["cells_passed"]
        yield (
            f"| {row['n_models']:,} x {row['n_items']:,} | {row['n_dims']} | {row['cpu_seconds']:.2f} "
            f"| {row['cells_passed'] / cells:.0f} | {each:.1f} | {each / floor.pass_ns(row['n_dims']):.1f} "
            f"| {row['peak_megabytes']:,.0f}, {row['data_megabytes']:,.0f} | {row['r_ability']:.4f} |"
        )


def floor_of(rows: list[Row]) -> floors.Floors:
    """Return the floors, which are the first row."""
    return floors.Floors(**{key: value for key, value in rows[0].items() if key != "name"})


def _in_process(*arguments: str) -> Row:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.rivals.growth", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD}, check=True)
    row: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return row


def measure(n_models: int, n_items: int, n_dims: int) -> Row:
    """Calibrate simulated responses, a tenth missing; count the cells that all passes went over."""
    responses, theta = responses_and_truth(n_models, n_items, n_dims)
    before = peak_megabytes()
    matrix = ResponseMatrix.create(responses)
    passed = count_passes()
    started, wall = cpu_seconds(), time.perf_counter()
    found = fit_item_model(matrix, Variational() if n_dims == 1 else Variational("mirt", n_dims=n_dims))
    return {
        "n_models": n_models, "n_items": n_items, "n_dims": n_dims,
        "cpu_seconds": cpu_seconds() - started, "wall_seconds": time.perf_counter() - wall,
        "cells_passed": sum(passed), "peak_megabytes": peak_megabytes(), "data_megabytes": before,
        "r_ability": multiple_correlation(found.abilities, theta),
    }  # fmt: skip


def responses_and_truth(n_models: int, n_items: int, n_dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw what `benchmarks.problems` draws, model by model and in single precision."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(n_models, n_dims))
    direction = np.abs(rng.normal(size=(n_items, n_dims))) if n_dims > 1 else np.ones((n_items, 1))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    discrimination = rng.lognormal(0.0, 0.5, n_items)
    slopes, intercept = (discrimination[:, None] * direction).T, -discrimination * rng.normal(size=n_items)
    responses = np.empty((n_models, n_items), dtype=np.float32)
    for row, ability in zip(responses, theta, strict=True):
        row[:] = rng.random(n_items) < expit(ability @ slopes + intercept)
        row[rng.random(n_items) < MASKED_SHARE] = np.nan
    return responses, theta


def multiple_correlation(abilities: np.ndarray, theta: np.ndarray) -> float:
    """Return the mean correlation of the true dimensions, each with the best sum of the estimated ones."""
    design = np.column_stack([np.ones(len(theta)), abilities])
    fitted = design @ np.linalg.lstsq(design, theta, rcond=None)[0]
    return float(np.mean([np.corrcoef(fitted[:, k], theta[:, k])[0, 1] for k in range(theta.shape[1])]))


def count_passes() -> list[int]:
    """Have every pass over blocks of responses add its cells to the list that is returned."""
    passed: list[int] = []

    def counted(blocks: type[Blocks] | type[UncopiedBlocks], name: str) -> None:
        plain = getattr(blocks, name)

        def counting(self: Blocks | UncopiedBlocks) -> Iterator[Any]:
            passed.append(self.n_cells)
            yield from plain(self)

        setattr(blocks, name, counting)

    counted(Blocks, "slices")  # which its parts are made of
    counted(UncopiedBlocks, "parts")
    return passed


def main() -> None:
    """Measure the floors or one size; print a line of JSON."""
    print(json.dumps(asdict(floors.measure()) if sys.argv[1] == "floors" else measure(*map(int, sys.argv[1:]))))


if __name__ == "__main__":
    main()
