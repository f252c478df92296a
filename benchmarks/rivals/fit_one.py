"""Fit one tool in a process of its own: ``python -m benchmarks.rivals.fit_one TOOL IN.npz OUT.npz CPU_SECONDS``.

Abilities and predicted probabilities go to OUT.npz, what the fit cost to standard output as a line of JSON. The system
ends the process after so many CPU seconds. Only the adapter of itembank imports itembank, so that rivals may live in
another environment.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.rivals import adapters
from benchmarks.rivals.tools import Tool, tool_named

STATUS = Path("/proc/self/status")


def main() -> None:
    """Fit one tool; print what it cost."""
    name, source, target, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    with np.load(source) as problem:
        responses, n_dims = problem["responses"], int(problem["n_dims"])
    cost, fitted = fit(tool_named(name), responses, n_dims)
    if fitted is not None:
        np.savez(target, theta=fitted[0], chances=fitted[1].astype(np.float64))
    print(json.dumps(cost))


def fit(tool: Tool, responses: np.ndarray, n_dims: int) -> tuple[dict[str, object], adapters.Fitted | None]:
    """Return what the fit cost and what it found, or why there is none."""
    if not is_installed(tool):
        return {"skipped": "not installed"}, None
    started = time.process_time()
    importlib.import_module(tool.module)
    imported, wall = cpu_seconds(), time.perf_counter()
    import_seconds = time.process_time() - started
    fitted = getattr(adapters, tool.adapter)(responses, n_dims)
    return {
        "version": version_of(tool),
        "import_seconds": import_seconds,
        "cpu_seconds": cpu_seconds() - imported,
        "wall_seconds": time.perf_counter() - wall,
        "peak_megabytes": peak_megabytes(),
    }, fitted


def is_installed(tool: Tool) -> bool:
    """Tell whether the module, or for R the program and its package, is there."""
    if tool.name == "R mirt":
        return adapters.r_mirt_version() is not None
    return importlib.util.find_spec(tool.module.split(".")[0]) is not None


def version_of(tool: Tool) -> str:
    """Return the version that was fitted."""
    if tool.name == "R mirt":
        return adapters.r_mirt_version() or ""
    return importlib.metadata.version(tool.distribution)


def cpu_seconds() -> float:
    """User and system time of this process, all threads, and of the processes it started."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def peak_megabytes() -> float:
    """Peak memory of this process, or of a larger one that it started.

    Linux counts the memory of the process that started this one into ``ru_maxrss``, so its own status is asked first.
    """
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024.0
    if not STATUS.exists():
        return max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0)
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return max(children, float(line.split()[1]) / 1024.0)


if __name__ == "__main__":
    main()
