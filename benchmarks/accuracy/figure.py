"""Error against number of items, one panel for each data set and split (after tinyBenchmarks Figure 3)."""

from pathlib import Path

import polars as pl

from benchmarks.accuracy.study import P1_SELECTIONS, SIZES
from benchmarks.accuracy.summary import STRATEGIES
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import SOLID, marks, number, panels, shade, span
from itembank.pages.theme import points

COLOURS = ("@muted", "@other", "@main")
SPLITS = {"random": "new at random", "folds": "new at random", "date": "newest"}
TITLES = {
    "openllm1_core": "Open LLM v1",
    "mmlu-pro": "MMLU-Pro",
    "alpacaeval2": "AlpacaEval 2.0",
    "swebench_verified": "SWE-bench Verified",
    "leaderboard2_factors": "Leaderboard v2, simulated",
}
STATED = 100
"""Items for which the message says who errs least."""


def draw(summary: pl.DataFrame, path: Path) -> None:
    """Write the figure as a PNG file."""
    strategies = pl.DataFrame(STRATEGIES, schema=["selection", "estimator"], orient="row")
    summary = summary.join(strategies, on=strategies.columns, how="semi", maintain_order="left")  # without variants
    shown = [
        part.with_columns(panel=pl.lit(f"{TITLES[name]}, {SPLITS[split]}"))
        for split in SPLITS
        for name in TITLES
        if (part := summary.filter(pl.col("data_set") == name, pl.col("split") == split)).height
    ]
    names = [part["panel"][0] for part in shown]
    rows = pl.concat(shown).sort("n_items", maintain_order=True)
    doubt = rows["standard_error"].fill_null(0.0)
    data = Data(
        "errors",
        {
            "panel": rows["panel"],
            "place": [names.index(name) for name in rows["panel"]],
            "selection": rows["selection"],
            "strategy": [name_of(*one) for one in rows.select("selection", "estimator").rows()],
            "n_items": rows["n_items"],
            "error": rows["error"],
            "low": rows["error"] - doubt,
            "high": rows["error"] + doubt,
        },
    )
    x = number("n_items", "Items", "d", log=True, values=list(SIZES))
    y = number("error", "Mean error (points)")
    legend = {"symbolType": "stroke", "labelLimit": 250}
    tones = {name_of(*one): COLOURS[P1_SELECTIONS.index(one[0])] for one in STRATEGIES}
    dashes = {name_of(*one): SOLID if one[1] == "++" else [2, 3] for one in STRATEGIES}
    colour, dash = (shade("strategy", one, **legend) for one in (tones, dashes))
    words = _message(rows)
    chart = Chart(
        words,
        panels(
            "panel",
            "place",
            marks("rule", x, span(y), color=colour),
            marks("line", x, y, color=colour, strokeDash=dash),
            marks("point", x, y, color=colour, size=22),
            resolve={"scale": {"y": "independent"}},
            height=140,
        ),
        (data,),
        f"{words}.",
        note="Bars: one standard error over repeats to each side. Solid (++): read by gp-IRT; dotted: by the weighted "
        "mean.",
    )
    chart.save(path)


def _message(summary: pl.DataFrame) -> str:
    """Say who errs least with 100 items, on the mean over panels, beside a random sample."""
    means = {
        name_of(*strategy): summary.filter(
            pl.col("selection") == strategy[0], pl.col("estimator") == strategy[1], pl.col("n_items") == STATED
        )["error"].mean()
        for strategy in STRATEGIES
    }
    best = min(means, key=means.__getitem__)
    plain = name_of(P1_SELECTIONS[0], "weighted")
    return (
        f"{STATED} items, on the mean over the panels: {best} errs by {points(0.01 * means[best])}, a {plain} "
        f"sample by {points(0.01 * means[plain])}"
    )


def name_of(selection: str, estimator: str) -> str:
    """Name a strategy as tinyBenchmarks does."""
    return f"{selection}{'++' if estimator == '++' else ''}"
