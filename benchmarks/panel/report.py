"""From the estimates of several studies to the tables and figures of the documents."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from benchmarks.panel import bands
from benchmarks.panel.bands import default_estimates
from benchmarks.panel.figure import draw_coverage, draw_widths
from benchmarks.panel.table import cells, markdown, recent_markdown


def report(
    name: str,
    estimates: pl.DataFrame,
    models: Mapping[str, pl.DataFrame],
    output: Path,
    *,
    goals: Callable[[list[dict[str, object]]], str],
    figures: Path | None = None,
) -> str:
    """Write the estimates, the tables as one text, and the figures where a folder is given for them; return the text.

    Parameters
    ----------
    name : str
        Of the text's file.
    estimates : table
        Of `work.estimates_of`, all studies.
    models : mapping of study to table of models
    output : path
    goals : function of the records of cells
        Returns what stands below the first table.
    figures : path or None
    """
    records, default = cells(estimates), default_estimates(estimates)
    families = {
        study: dict(table.select("model_id", pl.col(bands.FAMILY[study]).cast(pl.String)).drop_nulls().iter_rows())
        for study, table in models.items()
        if study in bands.FAMILY
    }
    text = "\n\n".join(
        [
            markdown(records),
            goals(records),
            "Against methods that came out since:",
            recent_markdown(records),
            "The default's intervals, by what a user can see; in brackets a 95 % interval of the coverage as if each "
            "model were one trial:",
            bands.markdown(default, families),
        ]
    )
    output.mkdir(parents=True, exist_ok=True)
    estimates.write_parquet(output / "estimates.parquet")
    (output / f"{name}.md").write_text(text, encoding="utf-8")
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        draw_coverage(records, figures / "coverage.png")
        draw_widths(default, figures / "widths.png")
    return text
