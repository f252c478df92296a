"""Passes over responses on a GPU against those of NumPy: ``python -m benchmarks.device_passes --device cuda``.

Right and wrong answers are simulated in a byte each. For each size and number of abilities a line says how long the
answers took to the device, and the seconds of one pass for the items and one for the abilities, on the device and by
NumPy, in single precision unless ``--double`` is given. ``--fit`` also calibrates, on the device and by NumPy.
Seconds are wall time. NumPy takes as many threads as the machine has unless OMP_NUM_THREADS says otherwise.

The large sizes need a GPU: by NumPy a pass over 10,000 x 100,000 answers takes a minute.
``--size 400x5000 --device cpu`` tries the same with torch on the processor.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import expit

from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import ItemModel, Variational
from itembank.calibration.variational.blocks import ResponseBlocks
from itembank.calibration.variational.cells import normal_expectation
from itembank.calibration.variational.coded_blocks import coded_blocks
from itembank.calibration.variational.device_passes import codes_on_device
from itembank.calibration.variational.passes import ability_statistics, item_statistics
from itembank.calibration.variational.state import Covariances, Posterior, start_posterior
from itembank.numerics.devices import open_device
from itembank.responses.coded_responses import CodedResponses
from itembank.responses.item_codes import Codes, ItemCodes

SIZES = ((2_000, 28_000), (10_000, 100_000))
DIMS = (1, 10)
ITEMS_AT_ONCE = 256
ROUNDS = 3
"""Passes of which the fastest counts, after one that is thrown away: the first loads the device's programs."""


def main() -> None:
    """Print a line for each size and number of abilities."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu for torch without a GPU")
    parser.add_argument("--size", type=_size, action="append", metavar="MODELSxITEMS", help="repeatable")
    parser.add_argument("--dims", type=int, action="append", help="repeatable; 1 and 10 by default")
    parser.add_argument("--double", action="store_true", help="passes in double precision")
    parser.add_argument("--no-numpy", action="store_true", help="leave NumPy out")
    parser.add_argument("--fit", action="store_true", help="also calibrate")
    options = parser.parse_args()
    print(f"{'models x items':>18s} {'dims':>4s} {'to device':>9s} {'items':>15s} {'abilities':>15s} {'fit':>17s}")
    print(f"{'':18s} {'':4s} {'':9s} {'device   NumPy':>15s} {'device   NumPy':>15s} {'device     NumPy':>17s}")
    for n_models, n_items in options.size or SIZES:
        for n_dims in options.dims or DIMS:
            print(_line(n_models, n_items, n_dims, options), flush=True)


def _line(n_models: int, n_items: int, n_dims: int, options: argparse.Namespace) -> str:
    posterior, codes = simulate(n_models, n_items, n_dims)
    dtype: np.dtype[np.floating] = np.dtype(np.float64 if options.double else np.float32)
    device, cells, lower = open_device(options.device), ItemCodes(codes), np.zeros(n_items)
    device.host(device.put(np.zeros(1)))  # the first use of a device takes longer
    start = time.perf_counter()
    there = codes_on_device(cells, lower, dtype, device, is_complete=True)
    device.host(there.values.block(slice(0, 1)))
    brought = time.perf_counter() - start
    items, abilities = _passes(there, posterior)
    by_numpy = fits = (float("nan"), float("nan"))
    if not options.no_numpy:
        by_numpy = _passes(coded_blocks(cells, lower, dtype, is_complete=True), posterior)
    if options.fit:
        del there  # makes room for the fit's own
        item_model: ItemModel = "2pl" if n_dims == 1 else "mirt"
        spec = Variational(item_model, n_dims, single_precision=not options.double)
        on_device = _fit(codes, replace(spec, device=options.device))
        fits = (on_device, float("nan") if options.no_numpy else _fit(codes, spec))
    return (
        f"{f'{n_models:,} x {n_items:,}':>18s} {n_dims:4d} {brought:9.2f} {items:7.3f} {by_numpy[0]:7.3f} "
        f"{abilities:7.3f} {by_numpy[1]:7.3f} {fits[0]:8.1f} {fits[1]:8.1f}"
    )


def simulate(n_models: int, n_items: int, n_dims: int, seed: int = 0) -> tuple[Posterior, Codes]:
    """Draw parameters, as a posterior that holds them for nearly certain, and answers, (n_items, n_models)."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n_models, n_dims))
    item = np.column_stack([rng.normal(1.0, 0.4, (n_items, n_dims)) / np.sqrt(n_dims), rng.normal(0.0, 1.2, n_items)])
    codes = np.empty((n_items, n_models), dtype=np.uint8)
    for first in range(0, n_items, ITEMS_AT_ONCE):
        part = slice(first, first + ITEMS_AT_ONCE)
        logits = (item[part, :n_dims] @ ability.T + item[part, n_dims:]).astype(np.float32)
        codes[part] = rng.random(logits.shape, dtype=np.float32) < expit(logits)
    start = start_posterior(ability, np.tile(0.01 * np.eye(n_dims), (n_models, 1, 1)), n_items, has_common_slope=False)
    spread = Covariances.of(np.tile(0.01 * np.eye(n_dims + 1), (n_items, 1, 1)))
    return replace(start, item_mean=item, items_spread=spread), codes


def _passes(blocks: ResponseBlocks, posterior: Posterior) -> tuple[float, float]:
    """Seconds of a pass for the items and of one for the abilities."""
    return (
        _fastest(lambda: item_statistics(blocks, posterior, normal_expectation)),
        _fastest(lambda: ability_statistics(blocks, posterior, normal_expectation)),
    )


def _fastest(call: Callable[[], object]) -> float:
    call()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _fit(codes: Codes, spec: Variational) -> float:
    start = time.perf_counter()
    calibrate(CodedResponses.from_item_codes(codes), spec)
    return time.perf_counter() - start


def _size(text: str) -> tuple[int, int]:
    n_models, n_items = text.split("x")
    return int(n_models), int(n_items)


if __name__ == "__main__":
    main()
