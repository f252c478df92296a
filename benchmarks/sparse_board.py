"""Draw the figure of a sparse board: ``python -m benchmarks.sparse_board`` (a CPU-minute).

Each of sixty made-up models reports nine of thirty scores, rather those that it is good at. The mean of these and
itembank's estimate are shown against the true mean over all thirty.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.pages.theme import points
from itembank.plots import PredictionPanel, predicted_against_true_chart

ROOT = Path(__file__).resolve().parents[1]


def board(rng: np.random.Generator, n_models: int = 60, n_benchmarks: int = 30) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what each model reports, and its true mean over all benchmarks."""
    ability, hard = rng.normal(size=(n_models, 1)), rng.normal(0, 1.2, n_benchmarks)
    chance = 1 / (1 + np.exp(-rng.lognormal(0, 0.4, n_benchmarks) * (ability - hard)))  # (n_models, n_benchmarks)
    size = rng.choice([100, 200, 500], n_benchmarks)
    right = rng.binomial(size, chance)
    liking = 0.8 * np.log(chance / (1 - chance)) + rng.gumbel(size=chance.shape)
    model, benchmark = np.nonzero(liking >= np.sort(liking, axis=1)[:, [-9]])
    names = np.char.add("model-", np.arange(n_models).astype(str))
    reported = {"model_id": names[model], "item_id": np.char.add("benchmark-", benchmark.astype(str))}
    counts = {"n_correct": right[model, benchmark], "n_trials": size[benchmark]}
    return pl.DataFrame(reported | counts), pl.DataFrame({"model_id": names, "truth": chance.mean(axis=1)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "figures" / "sparse-board.png")
    output = parser.parse_args().output.resolve()
    scores, truth = board(np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        scores.write_csv("scores.csv")
        calibrate = [sys.executable, "-m", "itembank", "calibrate", "scores.csv", "-o", "board", "--dims", "1"]
        subprocess.run(calibrate, check=True, capture_output=True)
        found = ib.estimate("board", "scores.csv", method="p-irt")
    reported = scores.group_by("model_id").agg((pl.col("n_correct") / pl.col("n_trials")).mean().alias("mean"))
    table = pl.DataFrame({"model_id": found.model_ids})
    for known in (truth, reported):
        table = table.join(known, on="model_id", how="left", maintain_order="left")
    true, mean, no_end = table["truth"].to_numpy(), table["mean"].to_numpy(), np.full(table.height, np.nan)
    panels = [
        PredictionPanel("mean of what is reported", true, mean, no_end, no_end),
        PredictionPanel("itembank, p-irt", true, found.value[:, -1], found.low[:, -1], found.high[:, -1]),
    ]
    means, estimates = (points(panel.error) for panel in panels)
    title = f"Means of nine scores err by {means}, estimates by {estimates}"
    predicted_against_true_chart(panels, title=title).save(output)
    print(title)


if __name__ == "__main__":
    main()
