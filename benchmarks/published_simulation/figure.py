"""RMSE of difficulties against the number of models (after IRSL Figure 2), and against the samples a cell."""

from pathlib import Path

import polars as pl

WAYS = {
    "published": ("#7f7f7f", "published objective"),
    "variational": ("#1b6ca8", "variational"),
    "map": ("#d95f02", "joint MAP"),
}
LINES = {"beta": "-", "bernoulli": ":", "binomial": "--"}
NAMES = {"beta": "probabilities", "bernoulli": "single answers"}


def draw(recovery: pl.DataFrame, budgets: pl.DataFrame, path: Path) -> None:
    """Write the figure as a PNG file."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(2, 3, figsize=(11.0, 6.4))
    for line, item_model in enumerate(("1pl", "2pl")):
        _recovery_panel(axes[line, 0], recovery.filter(pl.col("item_model") == item_model))
        axes[line, 0].set_ylabel(f"{item_model.upper()}\nRMSE of difficulty")
        part = budgets.filter((pl.col("item_model") == item_model) & (pl.col("way") == "variational"))
        for axis, n_models in zip(axes[line, 1:], (8, 32), strict=True):
            _budget_panel(axis, part.filter(pl.col("n_models") == n_models))
            axis.set_title(f"{n_models} models, variational", fontsize=9)
    axes[0, 0].set_title("IRSL's simulation", fontsize=9)
    axes[1, 0].set_xlabel("models")
    for axis in axes[1, 1:]:
        axis.set_xlabel("samples of each cell")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=3, fontsize=8, frameon=False)
    axes[0, 1].legend(fontsize=7, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _recovery_panel(axis, found: pl.DataFrame) -> None:
    for way, (colour, name) in WAYS.items():
        for family in ("bernoulli", "beta"):
            line = found.filter((pl.col("way") == way) & (pl.col("family") == family)).sort("n_models")
            if line.height:
                label = f"{NAMES[family]}, {name}"
                axis.plot(line["n_models"], line["rmse"], LINES[family], marker="o", ms=3, color=colour, label=label)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")


def _budget_panel(axis, found: pl.DataFrame) -> None:
    for family, colour in (("beta", "#b2182b"), ("binomial", "#1b6ca8")):
        line = found.filter(pl.col("family") == family).sort("n_samples")
        label = "counts" if family == "binomial" else "rates as probabilities"
        axis.plot(line["n_samples"], line["rmse"], LINES[family], marker="o", ms=3, color=colour, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
