"""What no fit of this kind can be faster than on this machine, one thread: measured, not quoted."""

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("floor.c")
COMPILE = ("-O3", "-march=native", "-ffast-math", "-fopenmp-simd", "-fPIC", "-c")
LINK = ("-shared", "-lm")
"""Without -ffast-math: gcc would link code that makes the whole process round its smallest numbers to zero."""

N_MODELS, N_ITEMS = 400, 5_000
N_SUMS = 6
BYTES_READ = 2**28
SIDE = 1_024
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Floors:
    """The least that each part of a pass can take.

    Attributes
    ----------
    cell_ns : float
        Nanoseconds of the arithmetic of a cell with one ability, compiled; NaN without a C compiler.
    read_ns : float
        Nanoseconds to read a cell of one byte from memory.
    product_gigaflops : float
        Of matrix products in single precision, in 10^9 operations a second.
    """

    cell_ns: float
    read_ns: float
    product_gigaflops: float

    def pass_ns(self, n_dims: int) -> float:
        """Nanoseconds of a cell and pass: with more abilities, moments and sums are matrix products."""
        return self.cell_ns + (product_operations(n_dims) / self.product_gigaflops if n_dims > 1 else 0.0)


def product_operations(n_dims: int) -> int:
    """Return the operations of a cell in matrix products: logit mean and variance, two sums of the item's update."""
    item, ability = (n_dims + 1) * (n_dims + 2) // 2, n_dims * (n_dims + 1) // 2
    return 2 * ((n_dims + 1) + (item + ability) + item + (n_dims + 1))


def measure() -> Floors:
    """Take the best of several runs of each."""
    rng = np.random.default_rng(0)
    values = rng.random(BYTES_READ // 4, dtype=np.float32)
    left = rng.random((SIDE, SIDE), dtype=np.float32)
    return Floors(
        _cell_ns(rng),
        1e9 * _best(lambda: np.dot(values, values)) / values.nbytes,
        2e-9 * SIDE**3 / _best(lambda: left @ left),
    )


def item_pass(answers: np.ndarray, abilities: np.ndarray, items: np.ndarray) -> Callable[[], np.ndarray] | None:
    """Compile the pass for these arrays; None without a C compiler.

    Parameters
    ----------
    answers : (n_items, n_models) of uint8
        0, 1, and 255 where missing.
    abilities : (2, n_models) of float32
        Means and variances.
    items : (n_items, 5) of float32
        Slope and intercept, variance of the slope, covariance, variance of the intercept.

    Returns
    -------
    function that returns the sums, (n_items, 6), see `floor.c`; or None
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        compiled, library = Path(folder) / "floor.o", Path(folder) / "floor.so"
        for command in ([*COMPILE, str(SOURCE), "-o", str(compiled)], [str(compiled), *LINK, "-o", str(library)]):
            if subprocess.run([compiler, *command], check=False).returncode:
                return None
        run = ctypes.CDLL(str(library)).item_pass
    run.restype = None
    sums = np.empty((len(answers), N_SUMS), dtype=np.float32)

    def call() -> np.ndarray:
        arrays = (abilities, items, sums)
        sizes = [ctypes.c_ssize_t(size) for size in answers.shape]
        run(answers.ctypes.data_as(ctypes.c_void_p), *sizes, *(one.ctypes.data_as(ctypes.c_void_p) for one in arrays))
        return sums

    return call


def _cell_ns(rng: np.random.Generator) -> float:
    answers = rng.choice(np.array([0, 1, 255], dtype=np.uint8), (N_ITEMS, N_MODELS), p=[0.45, 0.45, 0.1])
    abilities = np.stack([rng.normal(size=N_MODELS), np.full(N_MODELS, 0.01)]).astype(np.float32)
    spreads = np.tile([0.02, 0.0, 0.02], (N_ITEMS, 1))
    items = np.column_stack([rng.lognormal(0.0, 0.5, N_ITEMS), rng.normal(size=N_ITEMS), spreads]).astype(np.float32)
    call = item_pass(answers, abilities, items)
    return float("nan") if call is None else 1e9 * _best(call) / answers.size


def _best(call: Callable[[], object]) -> float:
    """CPU seconds of the fastest of several calls, after one that pays for the start."""
    call()
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return min(seconds)
