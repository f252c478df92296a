"""Run a command once under each BLAS kernel that this processor can run.

OpenBLAS holds a kernel for each kind of processor and takes the newest that fits. Kernels add up sums in another
order, with or without fused multiplication, so that results differ in the last digits. A program whose results rest on
these digits gives other results on other computers; running it under several kernels shows that on one.

    python benchmarks/blas_kernels.py                                   # which can run here
    python benchmarks/blas_kernels.py python -m pytest tests/numerics   # a command under each
    python benchmarks/blas_kernels.py --second python -m pytest ...     # under one only, unlike the default
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

VARIABLE = "OPENBLAS_CORETYPE"
KNOWN = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids")
"""From the oldest to the newest, of 64-bit x86; others have one kernel at most in the wheels of NumPy."""

PROBE = """
import numpy, scipy.linalg, threadpoolctl
a = numpy.random.default_rng(0).random((64, 64))
scipy.linalg.solve(a @ a.T + numpy.eye(64), a.astype("f4") @ a[0].astype("f4"))
print(*{each.get("architecture") for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"})
"""


def code_of(kernel: str | None) -> str | None:
    """Name of the code that OpenBLAS runs when asked for a kernel; None where the processor cannot run it.

    Several kernels may have the same code: those of AMD's processors have that of Haswell.
    """
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if kernel is not None:
        environment[VARIABLE] = kernel
    command = [sys.executable, "-c", PROBE]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def distinct(codes: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    """Kernels that can run, the first of each code."""
    seen: set[str] = set()
    for kernel, code in codes:
        if code is not None and code not in seen:
            seen.add(code)
            yield kernel


def second(kernels: Sequence[tuple[str, str | None]], default: str | None) -> str | None:
    """Return the newest kernel whose code is not the default one's; None where there is no other."""
    others = [kernel for kernel in distinct(kernels) if dict(kernels)[kernel] != default]
    return others[-1] if others else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--second", action="store_true", help="one kernel only, unlike the one taken by default")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    codes = [(kernel, code_of(kernel)) for kernel in KNOWN]
    for kernel, code in codes:
        print(f"kernel {kernel}: {'cannot run here' if code is None else f'runs {code}'}")
    chosen = list(distinct(codes))
    if given.second:
        one = second(codes, code_of(None))
        chosen = [] if one is None else [one]
    failed = []
    for kernel in chosen if given.command else ():
        print(f"== under {VARIABLE}={kernel}: {' '.join(given.command)}", flush=True)
        environment = {**os.environ, VARIABLE: kernel}
        if subprocess.run(given.command, env=environment, check=False).returncode:
            failed.append(kernel)
    print(f"kernels run: {', '.join(chosen) or 'none'}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
