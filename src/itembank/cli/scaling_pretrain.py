"""`itembank scaling pretrain`: what a larger training run would score."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command, gathered, headed
from itembank.cli.options import FILE, format_option, level_option, refuse_unused, seed_option
from itembank.cli.render import note, print_object, print_rows, progress, warnings_as_notes
from itembank.cli.report_options import figure_option, report_option, report_result, write_figure
from itembank.cli.scaling_options import (
    bank_option,
    read_responses_or_builtin,
    responses_or_builtin,
)
from itembank.cli.spec_options import file_choices, spec_file_option, spec_option, typed
from itembank.scaling.pretraining.method_specs import DEFAULT_LAWS, LAWS, PretrainingSettings

if TYPE_CHECKING:
    import polars as pl

    from itembank.pages.blocks import Chart
    from itembank.pages.render import Page
    from itembank.readers.compute import TrainingCompute
    from itembank.responses.responses import ResponseMatrix
    from itembank.scaling.pretraining.law_results import PretrainingLaw

AUTO = "auto"
KINDS = ("scores", "laws", "abilities", "decisions", "items")
LEAST = {
    "forecasts": ("note", "n_sizes", "beyond", "law"),
    "comparison": ("residual", "widening", "n_forecasts", "width", "mean_error"),
    "decisions": ("n_recipes",),
    "held-out": ("is_largest", "largest_flops", "beyond", "is_covered", "law", "error"),
}
"""Columns of each table that give way in a narrow terminal, the least needed first."""
PARTS = ("summary", "all", "forecasts", "comparison", "decisions", "held-out", "curves")

_LAWS = headed(
    "Laws",
    click.option(
        "--law",
        "laws",
        multiple=True,
        type=click.Choice((AUTO, *LAWS.builtin_names)),
        default=(AUTO,),
        show_default=True,
        help="auto: fit irsl, two-step, sigmoid and trend, show irsl unless another was clearly closer; else show the "
        "first. Repeatable.",
    ),
    spec_option(
        PretrainingSettings,
        "n_items",
        "Test every model on N items a scenario only.",
        "--budget",
        metavar="N",
    ),
    spec_option(
        PretrainingSettings,
        "n_checked",
        "Largest sizes to hold out.",
        "--checked",
        metavar="N",
    ),
    level_option,
)


@click.command("pretrain", cls=Command)
@responses_or_builtin
@click.option("--target-flops", type=float, help="Training compute to forecast for.  [default: 10 x the largest]")
@bank_option
@click.option(
    "--loss",
    type=FILE,
    help="For two-step: table of model_id, item_id and loss or bits_per_byte.",
)
@click.option("--recipe-column", help="Column of MODELS that tells recipes apart.  [default: recipe, mixture, family]")
@click.option("--drop-unknown", is_flag=True, help="Leave out models of unknown compute.")
@click.option(
    "--show",
    type=click.Choice(PARTS),
    default="summary",
    show_default=True,
    help="One law and the comparison of laws, all laws, or one table.",
)
@spec_file_option("PretrainingSettings", "calibration_recipes, and the choices of each law")
@gathered("choices", _LAWS)
@headed(
    "Figure",
    figure_option(),
    click.option("--kind", type=click.Choice(KINDS), default="scores", show_default=True, help="What to draw."),
    click.option("--recipe", help="Recipe in colour.  [default: the best, or the first]"),
    click.option("--item", "item_ids", multiple=True, metavar="ITEM_ID", help="Item of --kind items. Repeatable."),
)
@report_option
@seed_option
@format_option
def command(
    *,
    responses: tuple[Path, ...],
    builtin: str | None,
    target_flops: float | None,
    bank: Path | None,
    loss: Path | None,
    recipe_column: str | None,
    drop_unknown: bool,
    spec_file: Path | None,
    choices: dict[str, Any],
    show: str,
    figure: Path | None,
    kind: str,
    recipe: str | None,
    item_ids: tuple[str, ...],
    report: Path | None,
    seed: int,
    output_format: str,
) -> None:
    """Forecast the scores of a training run that is too large to try, from smaller ones of the same recipe.

    RESPONSES hold right or wrong, counts, or probabilities of the right choice, of models of several recipes and
    sizes; the table given to itembank import --models says what training them took (flops, or params and train_tokens;
    recipe; is_final). The item response law (irsl) and three others are fitted, and the largest sizes are held out to
    see what each is worth.

    \b
      itembank scaling pretrain --builtin bytelms --target-flops 1e14
      itembank scaling pretrain responses.parquet --target-flops 1e21 --report forecast.html
      itembank scaling pretrain responses.parquet --bank bank --budget 50
      itembank scaling pretrain responses.parquet --spec published.toml

    where published.toml says how, for example the law as it was published:

    \b
      fewest_sizes = 4
      [[laws]]
      name = "irsl"
      pooling = "none"
      shape = "line"
      gap = "none"
    """  # noqa: D301
    from itembank.errors import shown  # noqa: PLC0415
    from itembank.scaling.pretraining.pretraining_law import pretraining_law  # noqa: PLC0415

    settings, is_auto = _settings(choices, spec_file)
    refuse_unused(
        *((name, figure is not None, "--figure FILE") for name in ("kind", "recipe", "item_ids")),
        ("recipe", kind not in {"decisions", "items"}, "--kind scores, laws or abilities"),
        ("loss", "two-step" in settings.names, "--law two-step"),
        ("bank", "irsl" in settings.names, "--law irsl"),
    )
    if figure is not None:
        _check_kind(kind, settings, item_ids)
    _check_show(show, settings)
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin, prefers="probability")
        compute = read_compute(matrix, recipe_column, drop_unknown=drop_unknown)
        if recipe is not None and recipe not in compute.recipes:
            raise click.UsageError(
                f"--recipe must be one of {shown(list(dict.fromkeys(compute.recipes)))}, got {recipe!r}."
            )
        matrix.item_indices(item_ids)  # names those that are not there before the long work
        matrix = matrix.take(models=matrix.model_indices(compute.model_ids))
        with progress("pretrain") as said:
            law = pretraining_law(
                matrix,
                compute,
                target_flops=target_flops,
                bank=None if bank is None else _bank(bank),
                loss=read_loss(loss, matrix, builtin),
                settings=settings,
                rng=seed,
                progress=said,
            )
        shown_law = law.best if is_auto else law.names[0]
        if figure is not None:
            write_figure(_chart(law, kind, shown_law, recipe or "", (matrix, item_ids)), figure)
    for text in (law.message, law.best_reason, law.closer_by_hand(shown_law)):
        if text:
            note(f"Note: {text}")
    _print(law, shown_law, show, output_format)
    report_result(report, output_format, partial(_page, law, shown_law))


def _page(law: "PretrainingLaw", shown_law: str, typed: str) -> "Page":
    from itembank.pages.pretraining_page import pretraining_page  # noqa: PLC0415

    return pretraining_page(law, name=shown_law, command=typed)


def _check_kind(kind: str, settings: PretrainingSettings, item_ids: tuple[str, ...]) -> None:
    """Refuse a figure of what was not asked for, before the long work."""
    if (kind == "items") != bool(item_ids):
        raise click.UsageError("--kind items and --item go together: name the items whose curves to draw.")
    if kind == "decisions" and settings.n_checked == 0:
        raise click.UsageError("--kind decisions draws sizes that were held out: leave --checked 0 out.")
    if kind in {"abilities", "items"} and "irsl" not in settings.names:
        raise click.UsageError(f"--kind {kind} draws the law irsl: add --law irsl.")


def _check_show(show: str, settings: PretrainingSettings) -> None:
    """Refuse a table of what was not asked for."""
    if show in {"comparison", "decisions", "held-out"} and settings.n_checked == 0:
        raise click.UsageError(f"--show {show} needs sizes that are held out: leave --checked 0 out.")


def _settings(choices: Mapping[str, Any], spec_file: Path | None) -> tuple[PretrainingSettings, bool]:
    """Make the settings of the options and the file.

    Also say whether the law shown is the one that was closest on the sizes held out, or the first one named.
    """
    given, found = typed(choices), file_choices(spec_file, PretrainingSettings, {"laws": (LAWS, "name")})
    own = {LAWS.name_of(one): one for one in map(LAWS.resolve, found.get("laws", ()))}
    names = dict.fromkeys(given.get("laws", tuple(own) or (AUTO,)))
    is_auto = set(names) == {AUTO}
    if AUTO in names and not is_auto:
        raise click.UsageError("--law auto fits four laws: give it alone, or name the laws.")
    laws = tuple(own.get(name, name) for name in (DEFAULT_LAWS if is_auto else names))
    return PretrainingSettings(**{**found, **given, "laws": laws}), is_auto


def read_compute(
    matrix: "ResponseMatrix", recipe_column: str | None, *, drop_unknown: bool = False
) -> "TrainingCompute":
    """Find the training compute in what is known of the models.

    Raises
    ------
    click.UsageError
        When nothing is known of them.
    """
    from itembank.readers.compute import training_compute  # noqa: PLC0415

    if matrix.models.width == 1:
        raise click.UsageError(
            "nothing is known of the models: give the table of their training compute to itembank import --models FILE."
        )
    return training_compute(matrix.models, matrix.model_ids, recipe_column=recipe_column, drop_unknown=drop_unknown)


def _bank(path: Path) -> Any:
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415

    return load_bank(path)


def read_loss(path: Path | None, matrix: "ResponseMatrix", builtin: str | None) -> Any:
    """Read the losses, or take those of the built-in models."""
    if path is None and (builtin or "").partition(":")[0] == "bytelms":
        from itembank.readers.builtin import builtin_bits_per_byte  # noqa: PLC0415

        return builtin_bits_per_byte()
    if path is None:
        return None
    from itembank.readers.choice_table import read_losses  # noqa: PLC0415

    return read_losses(path, matrix)


def _chart(
    law: "PretrainingLaw", kind: str, shown_law: str, recipe: str, items: "tuple[ResponseMatrix, tuple[str, ...]]"
) -> "Chart":
    """Draw what was asked for; `items` are those of --kind items, with the responses."""
    from itembank.pages import pretraining_charts as charts  # noqa: PLC0415

    if kind == "items":
        return charts.item_curves_chart(law, *items)
    if kind == "laws":
        return charts.laws_chart(law, recipe)
    if kind == "abilities":
        return charts.ability_chart(law, recipe=recipe)
    if kind == "decisions":
        return charts.decision_chart(_decisions(law))
    return charts.forecast_chart(law, shown_law, recipe=recipe)


def _decisions(law: "PretrainingLaw") -> "pl.DataFrame":
    """Decisions of the check on sizes held out; none without it."""
    import polars as pl  # noqa: PLC0415

    return pl.DataFrame() if law.held_out is None else law.held_out.beside_by_hand.decisions()


def _print(law: "PretrainingLaw", shown_law: str, show: str, output_format: str) -> None:
    """Print everything as one JSON object, or one table."""
    parts = {
        "forecasts": law.rows(),
        "comparison": law.comparison(),
        "decisions": _decisions(law).to_dicts(),
        "held-out": [] if law.held_out is None else law.held_out.beside_by_hand.rows(),
    }
    if show == "curves":
        print_rows(law.curve_rows(), output_format, title="Scores, from 0 to 1, by training compute")
    elif output_format == "json":
        print_object({**law.to_dict(), **parts})
    elif show in {"summary", "all"} and output_format == "table":
        _print_tables(law, shown_law, parts["comparison"], is_summary=show == "summary")
    else:
        name = "forecasts" if show in {"summary", "all"} else show
        if not parts[name]:
            note(f"Note: there are no {name}: no recipe has enough sizes to hold one out.")
        print_rows(parts[name], output_format, title=f"{name.capitalize()}, scores from 0 to 1", least=LEAST[name])


def _print_tables(law: "PretrainingLaw", shown_law: str, comparison: list[dict[str, Any]], *, is_summary: bool) -> None:
    """Print the forecasts of one law or of all, and what laws were worth."""
    rows = _short(law)
    others = [name for name in law.names if name != shown_law]
    if is_summary:
        rows = _of_one_law(rows, shown_law)
    title = f"Scores, from 0 to 1, at {law.target_flops:.3g} FLOP"
    print_rows(rows, "table", title=title, least=("n_sizes", "beyond"))
    if comparison:
        title = "Forecasts of the largest sizes, held out; scores from 0 to 1"
        print_rows(comparison, "table", title=title, least=LEAST["comparison"])
    if is_summary and others:
        *most, last = others
        note(f"Forecasts of {', '.join(most)}{' and ' if most else ''}{last}: --show all.")


def _of_one_law(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Keep the rows of one law; of a scenario that it could not be fitted to, those of the first law there."""
    laws: dict[str, list[str]] = {}
    for row in rows:
        laws.setdefault(row["scenario"], []).append(row["law"])
    return [row for row in rows if row["law"] == (name if name in laws[row["scenario"]] else laws[row["scenario"]][0])]


def _short(law: "PretrainingLaw") -> list[dict[str, Any]]:
    """Say what a terminal has room for."""
    rows = []
    has_notes = any(row["note"] for row in law.rows())
    for row in law.rows():
        kept = {name: row[name] for name in ("scenario", "recipe", "law", "score", "low", "high", "n_sizes")}
        rows.append({**kept, "beyond": f"{row['beyond']:.3g} x", **({"note": row["note"]} if has_notes else {})})
    return rows
