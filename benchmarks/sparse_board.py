"""Draw the figure of a sparse board: ``python -m benchmarks.sparse_board`` (a CPU-minute).

The data are those of docs/asked-in-public.md, made by the page's own block. Each model reports nine of thirty scores;
the mean of these and itembank's estimate are shown against the true mean over all thirty.
"""

import argparse
import contextlib
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.pages.theme import points
from itembank.plots import PredictionPanel, predicted_against_true_chart
from tests.docs.blocks import blocks, in_bash

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "figures" / "sparse-board.png")
    output = parser.parse_args().output.resolve()
    page = (ROOT / "docs" / "asked-in-public.md").read_text(encoding="utf-8")
    code = next(code for _, code in blocks(page) if "scores.csv" in code)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        in_bash(code)
        scores, truth = pl.read_csv("scores.csv"), pl.read_csv("truth.csv")
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
