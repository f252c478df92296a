"""`itembank scaling decisions`: how often laws of small models pick the better of two recipes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.options import FILE, format_option, refuse_unused, seed_option
from itembank.cli.render import print_object, print_rows, progress, warnings_as_notes
from itembank.cli.report_options import figure_option, write_figure
from itembank.cli.scaling_options import read_responses_or_builtin, responses_or_builtin
from itembank.cli.scaling_pretrain import read_compute, read_loss
from itembank.cli.spec_options import spec_option
from itembank.scaling.pretraining.law_specs import PretrainingSettings

if TYPE_CHECKING:
    import polars as pl

    from itembank.responses.responses import ResponseMatrix
    from itembank.scaling.pretraining.decision_study import DecisionMethod

METHODS = ("traditional", "1PL", "2PL", "2PL with gap", "2PL pooled")
FIRST_SIZES, BUDGET = 2, 50
"""Sizes of the first fit, and items a scenario, as in IRSL."""


@click.command("decisions", cls=Command)
@responses_or_builtin
@click.option(
    "--accuracy",
    type=FILE,
    help="Right or wrong of the same models and items: then the truth, and fitted to, too.",
)
@click.option("--loss", type=FILE, help="For traditional: table of model_id, item_id and loss or bits_per_byte.")
@click.option("--recipe-column", help="Column of MODELS that tells recipes apart.  [default: recipe, mixture, family]")
@click.option("--drop-unknown", is_flag=True, help="Leave out models of unknown compute.")
@click.option(
    "--method", "methods", multiple=True, type=click.Choice(METHODS), help="Show this one. Repeatable.  [default: all]"
)
@click.option(
    "--splits", type=click.IntRange(min=1), default=5, show_default=True, help="Random choices of calibrating recipes."
)
@click.option(
    "--calibrating",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Recipes that calibrate the items of a split; the others are ordered.",
)
@spec_option(
    PretrainingSettings,
    "n_items",
    f"Test every model on N items a scenario only.  [default: {BUDGET}]",
    "--budget",
    metavar="N",
)
@click.option(
    "--show",
    type=click.Choice(["mean", "scenarios"]),
    default="mean",
    show_default=True,
    help="Mean of all scenarios, or each; JSON has both.",
)
@figure_option()
@seed_option
@format_option
def command(
    *,
    responses: tuple[Path, ...],
    builtin: str | None,
    accuracy: Path | None,
    loss: Path | None,
    recipe_column: str | None,
    drop_unknown: bool,
    methods: tuple[str, ...],
    splits: int,
    calibrating: int,
    n_items: int | None,
    show: str,
    figure: Path | None,
    seed: int,
    output_format: str,
) -> None:
    """Say how often laws of small models order two training recipes as the largest size does.

    Some recipes, drawn at random, calibrate the items. Laws of the others are fitted up to each size in turn, on a
    budget of items: the traditional two-step law, item response laws (1PL, 2PL), and these with lines that lean on each
    other (2PL pooled). Every method is fitted to RESPONSES, and to right or wrong where --accuracy gives them.

    \b
      itembank scaling decisions --builtin bytelms --figure decisions.png
      itembank scaling decisions probabilities.parquet --accuracy right.parquet
    """  # noqa: D301
    from itembank.pages.pretraining_charts import decision_chart  # noqa: PLC0415
    from itembank.scaling.pretraining.decision_study import (  # noqa: PLC0415
        decision_curves,
        mean_decisions,
        mean_over_splits,
    )

    refuse_unused(
        ("loss", not methods or "traditional" in methods, "--method traditional"),
        ("accuracy", builtin is None, "RESPONSES, not with --builtin, which has them"),
    )
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin, prefers="probability")
        refuse_unused(("accuracy", not matrix.is_binary, "RESPONSES that are probabilities"))
        compute = read_compute(matrix, recipe_column, drop_unknown=drop_unknown)
        matrix = matrix.take(models=matrix.model_indices(compute.model_ids))
        metrics = _metrics(matrix, builtin, accuracy)
        settings = PretrainingSettings(fewest_sizes=FIRST_SIZES, n_items=n_items or BUDGET, n_checked=0)
        with progress("decisions") as report:
            curves = decision_curves(
                metrics,
                compute,
                methods=_methods(metrics, methods),
                loss=read_loss(loss, matrix, builtin),
                actual=next(iter(metrics)),
                n_splits=splits,
                n_calibration=calibrating,
                settings=settings,
                rng=seed,
                progress=report,
            )
        by_scenario = mean_over_splits(curves)
        if figure is not None:
            write_figure(decision_chart(by_scenario), figure)
    _print(mean_decisions(by_scenario), by_scenario, show, output_format)


def _metrics(matrix: "ResponseMatrix", builtin: str | None, accuracy: Path | None) -> "dict[str, ResponseMatrix]":
    """Responses by metric; the first is the truth."""
    from itembank.readers.builtin import load_builtin  # noqa: PLC0415
    from itembank.readers.read import read_responses  # noqa: PLC0415
    from itembank.scaling.pretraining.decision_study import ACCURACY, PROBABILITY  # noqa: PLC0415

    if matrix.is_binary:
        return {ACCURACY: matrix}
    if builtin is None and accuracy is None:
        return {PROBABILITY: matrix}
    right = load_builtin(str(builtin).partition(":")[0]) if accuracy is None else read_responses([accuracy])
    right = right.take(models=right.model_indices(matrix.model_ids), items=right.item_indices(matrix.item_ids))
    return {ACCURACY: right, PROBABILITY: matrix}


def _methods(metrics: Mapping[str, Any], names: tuple[str, ...]) -> "dict[str, DecisionMethod]":
    """Methods by label, a name and the metric that it is fitted to."""
    from itembank.scaling.pretraining.decision_study import EVERY_METHOD  # noqa: PLC0415

    wanted = [f"{name} {metric}" for metric in metrics for name in dict.fromkeys(names or METHODS)]
    return {label: EVERY_METHOD[label] for label in wanted}


def _print(mean: "pl.DataFrame", by_scenario: "pl.DataFrame", show: str, output_format: str) -> None:
    """Print both tables as one object, or one of them."""
    over_scenarios = mean.rename({"share": "share_of_target", "mean": "decision_accuracy"}).drop("place", "n")
    parts = {"mean": over_scenarios.to_dicts(), "scenarios": by_scenario.to_dicts()}
    if output_format == "json":
        print_object(parts)
    else:
        print_rows(parts[show], output_format, title="Pairs of recipes ordered rightly, from 0 to 1")
