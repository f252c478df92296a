"""Every law on the built-in language models: the two largest sizes held out, 384 forecasts a law and kind of response.

Laws are fitted to the five smallest sizes, which forecast the two largest, and to six, which forecast the seventh;
items are calibrated on the same sizes. The trend law was chosen and its constants were set on sizes 1 to 5 alone
(fitted to three and four, forecasting the fourth and fifth) and on simulations. One thing was changed after the two
largest sizes had been seen: every scenario has a noise of its own, which sizes 1 to 5, the smaller half of the public
runs and simulations decided for.
"""

import sys
import warnings
from pathlib import Path

import polars as pl

from itembank.errors import ItembankWarning
from itembank.readers.builtin import load_builtin
from itembank_scaling.compute import training_compute
from itembank_scaling.inputs import builtin_bits_per_byte
from itembank_scaling.pretraining.law_specs import LAWS, PretrainingSettings
from itembank_scaling.pretraining.pretraining_law import held_out_coverage

KINDS = {
    "correct": "right or wrong",
    "probability": "probability among choices",
    "probability_per_byte": "probability per byte",
}
FEWEST_SIZES = 5
HEAD = ("responses", "law", "error", "bias", "held", "half-width")


def run(output: Path | None) -> None:
    """Print and keep the table."""
    parts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        for kind in KINDS:
            responses = load_builtin("bytelms", response=kind)
            compute = training_compute(responses.models, responses.model_ids)
            settings = PretrainingSettings(laws=LAWS.builtin_names, fewest_sizes=FEWEST_SIZES)
            found = held_out_coverage(responses, compute, loss=builtin_bits_per_byte(), settings=settings)
            parts.append(found.table.with_columns(kind=pl.lit(kind)))
            print(_table(summarise(parts[-1])), file=sys.stderr)
    forecasts = pl.concat(parts)
    summary = summarise(forecasts)
    print(_table(summary))
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / "laws.md").write_text(_table(summary), encoding="utf-8")
        forecasts.write_csv(output / "laws.csv", float_precision=5)


def summarise(forecasts: pl.DataFrame) -> pl.DataFrame:
    """Error, bias and half-width in points, share held and number of forecasts, for each kind of response and law."""
    return forecasts.group_by("kind", "law", maintain_order=True).agg(
        error=100.0 * pl.col("error").abs().mean(),
        bias=100.0 * pl.col("error").mean(),
        held=pl.col("is_covered").mean(),
        half_width=50.0 * (pl.col("high") - pl.col("low")).mean(),
        n_forecasts=pl.len(),
    )


def _table(summary: pl.DataFrame) -> str:
    """One line a kind of response and law."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for row in summary.iter_rows(named=True):
        numbers = f"{row['error']:.1f} | {row['bias']:+.1f} | {row['held']:.2f} | {row['half_width']:.1f}"
        lines.append(f"| {KINDS[row['kind']]} | {row['law']} | {numbers} |")
    return "\n".join(lines)
