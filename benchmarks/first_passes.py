"""The first passes of a fit that is too large to be ended here: ``python -m benchmarks.first_passes``.

Answers of 10,000 models to 1,000,000 items in a mapped file of 10 GB: those to 20,000 simulated items, fifty times.
Each item is fitted once, given abilities from the shares of right answers to the first thousand items; then the
abilities are fitted once, given all items. A whole fit takes some ten times as many passes. Set OPENBLAS_NUM_THREADS=1.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.past_memory import Case, Watch, simulate

N_MODELS, N_ITEMS, N_DIFFERENT = 10_000, 1_000_000, 20_000
FIRST = 1_000


def main() -> None:
    """Write the answers, go over them, and say what each step took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=N_MODELS)
    parser.add_argument("--items", type=int, default=N_ITEMS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), options.models, options.items)
        for line in passes(Path(name), options.models, options.items):
            print(line, flush=True)


def write(folder: Path, n_models: int, n_items: int) -> None:
    """Write the answers, as whole copies of those to the items that are simulated."""
    n_different = min(N_DIFFERENT, n_items)
    if n_items % n_different:
        sys.exit(f"--items must be a multiple of {n_different:,}.")
    simulate(Case(n_models, n_different, is_mapped=True), folder)
    simulated = (folder / "codes").read_bytes()
    with (folder / "codes").open("ab") as file:
        for _ in range(n_items // n_different - 1):
            file.write(simulated)


def passes(folder: Path, n_models: int, n_items: int) -> Iterator[str]:
    """Give a line of each step."""
    from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation  # noqa: PLC0415
    from itembank.calibration.variational.passes import ability_statistics, item_statistics  # noqa: PLC0415
    from itembank.calibration.variational.sections import coded_sections  # noqa: PLC0415
    from itembank.calibration.variational.state import start_posterior  # noqa: PLC0415
    from itembank.calibration.variational.updates import update_abilities, update_items  # noqa: PLC0415
    from itembank.responses.item_codes import ItemCodes  # noqa: PLC0415

    codes = ItemCodes(np.memmap(folder / "codes", np.uint8, "r", shape=(n_items, n_models)))
    share = codes.block(slice(0, FIRST)).mean(axis=0)
    ability = ((share - share.mean()) / share.std())[:, None]
    with Watch() as watch:
        start = time.process_time()
        blocks = coded_sections(codes, np.zeros(n_items), np.dtype(np.float32), is_complete=True)
        posterior = start_posterior(ability, np.full((n_models, 1, 1), 0.01), n_items, has_common_slope=False)
        yield _line("laid out", start, watch)
        start = time.process_time()
        posterior = update_items(posterior, item_statistics(blocks, posterior, jaakkola_jordan), np.ones(n_items))
        yield _line("items", start, watch)
        start = time.process_time()
        posterior = update_abilities(posterior, ability_statistics(blocks, posterior, normal_expectation), 1.0)
        yield _line("abilities", start, watch)
    truth = np.load(folder / "ability.npy")
    r = np.corrcoef(np.column_stack([ability, posterior.ability_mean, truth]).T)[:, 2]
    yield f"r(ability): {r[0]:.5f} at the start, {r[1]:.5f} after these passes"


def _line(name: str, start: float, watch: Watch) -> str:
    return f"{name:10s} {time.process_time() - start:8.1f} CPU-s {watch.most:8.0f} MB of its own"


if __name__ == "__main__":
    main()
