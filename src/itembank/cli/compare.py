"""`itembank compare`: which of two models is better."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.new_results import ignore_unknown_option, note_known_models, read_new_results
from itembank.cli.option_types import MethodName
from itembank.cli.options import bank_argument, format_option, refuse_unused, response_options, seed_option
from itembank.cli.render import note, print_rows, progress, refuse_empty, warnings_as_notes
from itembank.estimation.specs import METHODS

if TYPE_CHECKING:
    from itembank.comparison.comparisons import Comparison


class ManyModels(click.Command):
    """A command whose option `--models` takes every value up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each of its values, which is what click reads."""
        return super().parse_args(ctx, _repeated(args, "--models"))


@click.command("compare", cls=ManyModels)
@bank_argument
@click.argument("responses", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--models",
    multiple=True,
    metavar="MODEL...",
    help="Compare these models, in this order: every value up to the next option is a model, so give it after the "
    "files. All models of the files by default. Repeatable.",
)
@click.option(
    "--selection",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The selection that was run; only its items are used.",
)
@ignore_unknown_option
@click.option(
    "--method",
    type=MethodName(METHODS, "paired"),
    default="auto",
    show_default=True,
    help="How differences are estimated: 'paired' by raw differences alone, the others by those of estimates.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the interval, between 0 and 1.")
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    help="Power of the smallest detectable difference, between 0 and 1.",
)
@click.option(
    "--target",
    multiple=True,
    default=("overall",),
    show_default="overall",
    help="Score to compare: 'overall', a scenario, or 'all'. Repeatable.",
)
@click.option("--ranking", is_flag=True, help="Print the models in order with tied groups instead of the pairs.")
@response_options
@seed_option
@format_option
def command(
    *,
    bank: Path,
    responses: tuple[Path, ...],
    models: tuple[str, ...],
    selection: Path | None,
    ignore_unknown: bool,
    method: str,
    level: float,
    power: float,
    target: tuple[str, ...],
    ranking: bool,
    reading: dict[str, Any],
    seed: int,
    output_format: str,
) -> None:
    """Say which of two models, or of many, is better.

    RESPONSES are response files or harness logs of the models, best over the same items of the bank. The difference
    is that of the second model less the first, over the full benchmark; p-values of many pairs are Holm-adjusted.

    \b
      itembank compare bank old.csv new.csv --selection selection.json
      itembank compare bank results.parquet --models old new --target all
      itembank compare bank results.parquet --ranking
    """  # noqa: D301
    from itembank.comparison.compare import compare  # noqa: PLC0415
    from itembank.comparison.comparison_spec import ComparisonSpec  # noqa: PLC0415
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.data.selections import Selection  # noqa: PLC0415

    refuse_unused(("power", not ranking, "pairs of models, not with --ranking"))
    loaded = load_bank(bank)
    chosen = None if selection is None else Selection.load(selection)
    with warnings_as_notes():
        matrix = read_new_results(loaded, responses, reading, chosen)
        note_known_models(loaded, models or matrix.model_ids)
        with progress("compare") as report:
            comparison = compare(
                loaded,
                matrix,
                models=models or None,
                selection=chosen,
                ignore_unknown=ignore_unknown,
                method=method,
                target="all" if "all" in target else target,
                spec=ComparisonSpec(level, power, seed=seed),
                progress=report,
            )
    _print(comparison, output_format, is_ranking=ranking)
    refuse_empty(comparison.rows(), "difference", ("model_a", "model_b", "target"))


def _print(comparison: "Comparison", output_format: str, *, is_ranking: bool) -> None:
    """Print pairs or ranking; a table of pairs shows what decides, notes below it what one must know."""
    rows = comparison.ranking.rows() if is_ranking else comparison.rows()
    if output_format == "table" and not is_ranking:
        for text in dict.fromkeys(row["note"] for row in rows if row["note"]):
            note(f"Note: {text}.")
        rows = [_cells(row, comparison.spec.level, many=comparison.n_pairs > 1) for row in rows]
    of_what = f"{comparison.targets[0]} score" if len(comparison.targets) == 1 else "scores"
    title = (
        f"Models in order of their {of_what} (0 to 1)" if is_ranking else f"Difference of the {of_what} (0 to 1), B - A"
    )
    print_rows(
        rows,
        output_format,
        title=f"{title}, by {comparison.method}, bank {comparison.bank_id}",
        columns=[name for name in rows[0] if name != "target" or len(comparison.targets) > 1],
        least=("n_in_group",) if is_ranking else ("shared items", "detectable", "p", "P(B better)"),
    )
    if comparison.interval_kind == "classical":
        note("Too few calibration models to calibrate intervals: they take the items as a random sample.")
    if is_ranking:
        note(
            f"Models of a group do not differ significantly from its best (Holm-adjusted p >= "
            f"{1.0 - comparison.spec.level:.3g}); models of neighbouring groups may be tied too."
        )


def _cells(row: dict[str, Any], level: float, *, many: bool) -> dict[str, Any]:
    """Columns of the table; the adjusted p-value only where there are several pairs."""
    low, high = row["low"], row["high"]
    known = low == low and high == high  # noqa: PLR0124 (NaN)
    cells = {
        "model_a": row["model_a"],
        "model_b": row["model_b"],
        "target": row["target"],
        "difference": "-" if math.isnan(row["difference"]) else f"{row['difference']:+.4f}",
        f"{100 * level:g} % interval": f"{low:+.4f} to {high:+.4f}" if known else "-",
        "P(B better)": row["probability_b_better"],
        "p": _p_value(row["p_value"]),
        "detectable": row["smallest_detectable_difference"],
        "shared items": row["n_shared_items"],
    }
    return {**cells, "p (Holm)": _p_value(row["p_holm"])} if many else cells


def _p_value(value: float) -> str:
    """Four decimals; of a smaller one only that it is smaller."""
    return "-" if math.isnan(value) else "<0.0001" if value < 1e-4 else f"{value:.4f}"


def _repeated(args: list[str], option: str) -> list[str]:
    """Put the option before every value that follows it up to the next option."""
    found: list[str] = []
    is_inside = False
    for word in args:
        if word == option or word.startswith(f"{option}="):
            found.extend([] if word == option else [option, word.partition("=")[2]])
            is_inside = True
            continue
        is_inside = is_inside and not word.startswith("-")
        found.extend([option, word] if is_inside else [word])
    return found
