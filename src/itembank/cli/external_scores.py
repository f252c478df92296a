"""Options and files of external scores: what past models score by another hand than the bank's items."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from itembank.cli.command import headed
from itembank.cli.options import FILE

if TYPE_CHECKING:
    import polars as pl

    from itembank.responses.responses import ResponseMatrix

external_options = headed(
    "External scores",
    click.option("--scores", type=FILE, help="Scores of models that their items do not make, by model_id."),
    click.option(
        "--score", "external", multiple=True, metavar="COLUMN", help="A column of --scores to keep. Repeatable."
    ),
)
"""Scores that `--target COLUMN` of later commands estimates."""


def check_external_options(scores: Path | None, external: Sequence[str]) -> None:
    """Refuse one of the two options without the other."""
    if (scores is None) != (not external):
        raise click.UsageError("--scores FILE and --score COLUMN go together. Give both, or leave both out.")


def external_table(scores: Path) -> "pl.DataFrame":
    """Read a file of external scores."""
    from itembank.readers.matrix import read_known  # noqa: PLC0415

    return read_known(scores, "model_id")[0]


def with_scores(
    responses: "ResponseMatrix", scores: Path | None, external: Sequence[str], scenarios: Sequence[str]
) -> "ResponseMatrix":
    """Keep the external scores of models beside their responses."""
    if scores is None:
        return responses
    from itembank.bank.headlines import check_external_names, with_external_scores  # noqa: PLC0415

    check_external_names(external, scenarios)
    return responses.with_tables(models=with_external_scores(responses.models, external_table(scores), external))
