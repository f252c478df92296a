"""Every tool on the same simulated matrices, each fit in a process of its own on one thread."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.problems import Problem, judge, save_responses, simulate
from benchmarks.rivals.tools import TOOLS, Tool
from benchmarks.speed_commands import ONE_THREAD

Row = dict[str, Any]
ONE_THREAD_OF_JAX = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"}
WALL_SECONDS_A_CPU_SECOND = 6
"""On a busy machine; a fit that waits instead of working is ended then."""


class Shape(NamedTuple):
    """The size of a simulated matrix, and the dimensions of its abilities."""

    n_models: int
    n_items: int
    n_dims: int


SHAPES = (Shape(400, 1_000, 1), Shape(400, 5_000, 1), Shape(400, 1_000, 5), Shape(400, 5_000, 5))


@dataclass(frozen=True, slots=True)
class Runner:
    """How fits are run.

    Attributes
    ----------
    python : str
        Interpreter of the environment that has the rivals.
    limit : int
        CPU seconds that a fit may take.
    """

    python: str
    limit: int

    def fit(self, tool: Tool, problem: Problem, n_dims: int) -> Row:
        """Fit one tool, and judge what it found; where there is nothing, the row says why."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
            save_responses(source, problem.responses, n_dims)
            cost = self._run(tool, source, target)
            return cost if "skipped" in cost else {**cost, **judge(problem, *_loaded(target))}

    def _run(self, tool: Tool, source: Path, target: Path) -> Row:
        python = sys.executable if tool.is_ours else self.python
        command = [python, "-W", "ignore", "-m", "benchmarks.rivals.fit_one", tool.name, str(source), str(target)]
        environment = {**os.environ, **ONE_THREAD, **ONE_THREAD_OF_JAX}
        try:
            done = subprocess.run(
                [*command, str(self.limit)], capture_output=True, text=True, env=environment, check=False,
                timeout=WALL_SECONDS_A_CPU_SECOND * self.limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"skipped": f"no end in {WALL_SECONDS_A_CPU_SECOND * self.limit} s"}
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"skipped": f"no end in {self.limit} CPU-s"}
        if done.returncode:
            name, _, reason = (done.stderr.strip().splitlines() or ["failed"])[-1].partition(": ")
            return {"skipped": reason or name}
        row: Row = json.loads(done.stdout.strip().splitlines()[-1])
        return row


def _loaded(target: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(target) as result:
        return result["theta"], result["chances"]


def run(runner: Runner, shapes: tuple[Shape, ...], done: list[Row]) -> Iterator[Row]:
    """Give the row of every tool for every shape; those that are in `done` are not measured again."""
    known = {(row["shape"], row["tool"]): row for row in done}
    for shape in shapes:
        problem = simulate(*shape)
        truth: Row = {"version": "", **judge(problem, problem.theta, problem.chances)}
        name = f"{shape.n_models} x {shape.n_items:,}, {shape.n_dims} dimension{'s' if shape.n_dims > 1 else ''}"
        yield {"name": f"truth, {name}", "shape": name, "tool": "truth", **shape._asdict(), **truth}
        for tool in (one for one in TOOLS if one.fits(shape.n_dims)):
            row = known.get((name, tool.name))
            named: Row = {"name": f"{tool.name}, {name}", "shape": name, "tool": tool.name, **shape._asdict()}
            yield row or {**named, **runner.fit(tool, problem, shape.n_dims)}


def table(rows: list[Row]) -> Iterator[str]:
    """Give the lines of a Markdown table for each shape."""
    for shape in dict.fromkeys(row["shape"] for row in rows):
        these = [row for row in rows if row["shape"] == shape]
        ours = next((row for row in these if row["tool"] == "itembank"), {})
        yield from (f"\n**{shape}**\n", "| tool | CPU-s | import | peak MB | held-out log-likelihood | r(ability) |")
        yield "|---|---|---|---|---|---|"
        for row in these:
            yield _line(row, ours.get("cpu_seconds", "nan"))


def _line(row: Row, ours: float) -> str:
    tool = f"{row['tool']} {row.get('version', '')}".strip()
    if "skipped" in row:
        return f"| {tool} | {row['skipped']} | | | | |"
    judged = f"{_decimals(row['held_out_log_likelihood'], 5)} | {_decimals(row['r_ability'], 4)} |"
    if "cpu_seconds" not in row:
        return f"| {tool} | | | | {judged}"
    seconds = row["cpu_seconds"]
    times = "" if row["tool"] == "itembank" else f" ({seconds / ours:.1f}x)"
    return f"| {tool} | {seconds:.1f}{times} | {row['import_seconds']:.1f} | {row['peak_megabytes']:,.0f} | {judged}"


def _decimals(value: float, count: int) -> str:
    return f"{value:.{count}f}".replace("-0.", "-.").replace("nan", "NaN")
