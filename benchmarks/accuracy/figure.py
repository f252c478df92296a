"""Error against number of items, one panel for each data set and split (after tinyBenchmarks Figure 3)."""

from pathlib import Path

import polars as pl

from benchmarks.accuracy.study import P1_SELECTIONS, SIZES
from benchmarks.accuracy.summary import STRATEGIES

COLOURS = dict(zip(P1_SELECTIONS, ("#7f7f7f", "#d95f02", "#1b6ca8"), strict=True))
ROWS = {"random": 0, "folds": 0, "date": 1}
TITLES = {
    "openllm1_core": "Open LLM Leaderboard v1\n600 × 1,537, six scenarios",
    "mmlu-pro": "MMLU-Pro\n34 × 10,077",
    "alpacaeval2": "AlpacaEval 2.0\n55 × 805",
    "swebench_verified": "SWE-bench Verified\n100 × 500",
    "leaderboard2_factors": "Leaderboard v2 (simulated)\n2,211 × 9,574",
}


def draw(summary: pl.DataFrame, path: Path) -> None:
    """Write the figure as a PNG file."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    names = [name for name in TITLES if name in summary["data_set"].unique().to_list()]
    figure, axes = plt.subplots(2, len(names), figsize=(2.7 * len(names), 5.2), sharex=True, squeeze=False)
    empty = {(row, column) for row in range(2) for column in range(len(names))}
    for column, name in enumerate(names):
        axes[0, column].set_title(TITLES[name], fontsize=9)
        for split, row in ROWS.items():
            part = summary.filter((pl.col("data_set") == name) & (pl.col("split") == split))
            if part.height:
                _panel(axes[row, column], part)
                empty.discard((row, column))
        axes[0 if (1, column) in empty else 1, column].set_xlabel("items answered")
        axes[0, column].tick_params(labelbottom=True)
    for row, column in empty:
        axes[row, column].set_axis_off()
    axes[0, 0].set_ylabel("random split\nmean error (points)")
    axes[1, 0].set_ylabel("newest models\nmean error (points)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=6, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(axis, part: pl.DataFrame) -> None:
    for selection, estimator in STRATEGIES:
        line = part.filter((pl.col("selection") == selection) & (pl.col("estimator") == estimator)).sort("n_items")
        axis.errorbar(
            line["n_items"].to_numpy(),
            line["error"].to_numpy(),
            yerr=line["standard_error"].fill_null(0.0).to_numpy(),
            color=COLOURS[selection],
            linestyle="-" if estimator == "++" else ":",
            marker="o" if estimator == "++" else "s",
            markersize=3,
            linewidth=1.3,
            label=f"{selection}{'++' if estimator == '++' else ''}",
        )
    axis.set_xticks(SIZES)
    axis.set_ylim(0, None)
    axis.grid(alpha=0.25)
    axis.tick_params(labelsize=8)
