"""`itembank scaling pretrain`: what a larger training run would score."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
import itembank_scaling
from itembank.cli import options
from itembank.cli.options import file_choices, refuse_unused, report_result, typed, write_figure
from itembank.cli.render import TABLE, Printer, note, print_object, working
from itembank.cli.signatures import Choices, option, verb
from itembank.tables import points_of
from itembank_scaling.cli.scaling_options import Bank, Builtin, Responses, read_responses_or_builtin
from itembank_scaling.pretraining.law_specs import DEFAULT_LAWS, LAWS, PretrainingSettings

if TYPE_CHECKING:
    import polars as pl

    from itembank.pages.blocks import Chart
    from itembank_scaling.pretraining.law_results import PretrainingLaw

AUTO = "auto"
KINDS = ("scores", "laws", "abilities", "decisions")
LEAST = {
    "forecasts": ("note", "n_sizes", "beyond", "law"),
    "comparison": ("residual", "widening", "n_forecasts", "half_width", "bias"),
    "decisions": ("n_recipes",),
    "held-out": ("is_largest", "largest_flops", "beyond", "is_covered", "error"),
}
"""Columns of each table that give way in a narrow terminal, the least needed first."""
PARTS = ("summary", "all", "forecasts", "comparison", "decisions", "held-out", "curves")

_LAWS: Choices = {
    "laws": option(
        "auto: fit irsl, two-step, sigmoid and trend, and show irsl unless another was clearly better on the held-out "
        "sizes. If you name laws, the first is shown. Repeatable.",
        "--law",
        type=(AUTO, *LAWS.builtin_names),
        multiple=True,
        default=(AUTO,),
    )
}


@verb("pretrain")
def pretrain_command(
    *,
    responses: Responses,
    builtin: Builtin,
    target_flops: Annotated[float | None, "Training compute to forecast for.  [default: 10 x the largest]"],
    bank: Bank,
    loss: Annotated[
        Path | None, option("For two-step: table of model_id, item_id and loss or bits_per_byte.", type=options.FILE)
    ],
    drop_unknown: Annotated[bool, "Leave out models of unknown compute."],
    show: Annotated[str, option("One law and the comparison of laws, all laws, or one table.", type=PARTS)] = "summary",
    spec_file: Annotated[
        Path | None, options.spec_file("PretrainingSettings", "n_items, level, n_checked, and the choices of each law")
    ],
    choices: Annotated[Choices, {"Laws": _LAWS}],
    figure: Annotated[Path | None, options.figure(heading="Figure")],
    kind: Annotated[str, option("What to draw.", type=KINDS, heading="Figure")] = "scores",
    report: options.Report,
    out: options.Out,
) -> None:
    """Forecast the scores of a training run that is too large to try, from smaller ones of the same recipe.

    RESPONSES have right or wrong, counts, or probabilities of the right choice, for models of several recipes and
    sizes; the table given to itembank import --models has their training compute (flops, or params and train_tokens;
    recipe; is_final). The item response law (irsl) and three others are fitted, and the largest sizes are held out to
    measure the error of each.

      itembank scaling pretrain --builtin bytelms --target-flops 1e14
      itembank scaling pretrain responses.parquet --target-flops 1e21 --report forecast.html
      itembank scaling pretrain responses.parquet --bank bank
      itembank scaling pretrain responses.parquet --spec published.toml

    with published.toml, for example the law as it was published:

      fewest_sizes = 4
      [[laws]]
      name = "irsl"
      pooling = "none"
      shape = "line"
      gap = "none"
    """
    settings, is_auto = _settings(choices, spec_file)
    refuse_unused(
        ("kind", figure is not None, "--figure FILE"),
        ("loss", "two-step" in settings.names, "--law two-step"),
        ("bank", "irsl" in settings.names, "--law irsl"),
    )
    if figure is not None:
        if kind == "decisions" and settings.n_checked == 0:
            raise click.UsageError(
                "--kind decisions draws sizes that were held out: leave n_checked = 0 out of the file of --spec."
            )
        if kind == "abilities" and "irsl" not in settings.names:
            raise click.UsageError(f"--kind {kind} draws the law irsl: add --law irsl.")
    if show in {"comparison", "decisions", "held-out"} and settings.n_checked == 0:
        raise click.UsageError(
            f"--show {show} needs sizes that are held out: leave n_checked = 0 out of the file of --spec."
        )
    with working("pretrain") as said:
        matrix = read_responses_or_builtin(responses, builtin, prefers="probability")
        if matrix.models.width == 1:
            raise click.UsageError(
                "the training compute of the models is not known: give a table of it to itembank import --models FILE."
            )
        compute = itembank_scaling.training_compute(matrix.models, matrix.model_ids, drop_unknown=drop_unknown)
        matrix = matrix.take(models=matrix.model_indices(compute.model_ids))
        law = itembank_scaling.pretraining_law(
            matrix,
            compute,
            target_flops=target_flops,
            bank=None if bank is None else ib.load_bank(bank),
            loss=_losses(loss, matrix, builtin),
            settings=settings,
            progress=said,
        )
        shown_law = law.best if is_auto else law.names[0]
        if figure is not None:
            write_figure(_chart(law, kind, shown_law), figure)
    _print(law, shown_law, show, out)
    for text in (f"{law.best_reason} {law.trust(shown_law)}".lstrip(), law.message):
        if text:
            note(f"Note: {text}")
    name = "" if is_auto else shown_law
    report_result(*(report, out), lambda typed: itembank_scaling.pretraining_page(law, name=name, command=typed))


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


def _losses(path: Path | None, matrix: "ib.ResponseMatrix", builtin: str | None) -> Any:
    """Read the losses, or take those of the built-in models."""
    if path is not None:
        return itembank_scaling.read_losses(path, matrix)
    return itembank_scaling.builtin_bits_per_byte() if (builtin or "").partition(":")[0] == "bytelms" else None


def _chart(law: "PretrainingLaw", kind: str, shown_law: str) -> "Chart":
    from itembank_scaling.pages import pretraining_charts as charts

    if kind == "laws":
        return charts.laws_chart(law)
    if kind == "abilities":
        return charts.ability_chart(law)
    if kind == "decisions":
        return charts.decision_chart(_decisions(law))
    return charts.forecast_chart(law, shown_law)


def _decisions(law: "PretrainingLaw") -> "pl.DataFrame":
    """Decisions of the check on sizes held out; none without it."""
    import polars as pl

    return pl.DataFrame() if law.held_out is None else law.held_out.beside_by_hand.decisions()


def _print(law: "PretrainingLaw", shown_law: str, show: str, out: Printer) -> None:
    parts = {
        "forecasts": law.rows(),
        "comparison": law.comparison(),
        "decisions": _decisions(law).to_dicts(),
        "held-out": [] if law.held_out is None else law.held_out.beside_by_hand.rows(),
    }
    if show == "curves":
        out.rows(law.curve_rows(), "pretrain-curves", title="Scores in points, by training compute")
    elif out.is_json:
        print_object({**law.to_dict(), **parts}, "pretrain")
    elif show in {"summary", "all"} and out.is_table:
        _print_tables(law, shown_law, parts["comparison"], is_summary=show == "summary")
    else:
        name = "forecasts" if show in {"summary", "all"} else show
        if show == "summary" and len(law.names) > 1:
            parts[name] = _of_law(parts[name], shown_law)
            note(f"Forecasts by {shown_law}; by all laws: --show all.")
        if not parts[name]:
            note(f"Note: there are no {name}: no recipe has enough sizes to hold one out.")
        out.rows(parts[name], "pretrain", title=name.capitalize(), least=LEAST[name])


def _print_tables(law: "PretrainingLaw", shown_law: str, comparison: list[dict[str, Any]], *, is_summary: bool) -> None:
    """Print the forecasts of one law or of all, as far as a terminal has room for them, and the errors of laws."""
    from itembank_scaling.pretraining.law_results import times_words

    rows, found = [], law.rows()
    has_notes = any(row["note"] for row in found)
    for row in found:
        kept = {name: row[name] for name in ("scenario", "recipe", "law", "score", "low", "high", "n_sizes")}
        kept |= {"level": law.level, "beyond": f"{times_words(row['beyond'])} x"}
        rows.append({**kept, **({"note": row["note"]} if has_notes else {})})
    others = [name for name in law.names if name != shown_law]
    if is_summary:
        rows = _of_law(rows, shown_law)
    TABLE.rows(rows, "pretrain", title=_in_a_sentence(law, _of_law(found, shown_law)), least=("n_sizes", "beyond"))
    if comparison:
        title = "Forecasts of the largest sizes, held out; scores in points"
        TABLE.rows(comparison, "pretrain", title=title, least=LEAST["comparison"])
    if is_summary and others:
        *most, last = others
        note(f"Forecasts of {', '.join(most)}{' and ' if most else ''}{last}: --show all.")


def _in_a_sentence(law: "PretrainingLaw", forecasts: Sequence[Mapping[str, Any]]) -> str:
    """Say what the best recipe should score in the first scenario with a forecast, and how good forecasts were."""
    from itembank_scaling.pretraining.law_results import times_words

    rows = [row for row in forecasts if math.isfinite(row["score"])]
    at = f"At {law.target_flops:.3g} FLOP"
    if not rows:
        return f"{at} no recipe has a forecast, in points: none has enough finished sizes"
    one = max((row for row in rows if row["scenario"] == rows[0]["scenario"]), key=lambda row: row["score"])
    score, low, high = (points_of(one[name]) for name in ("score", "low", "high"))
    words = f"{at}, {times_words(one['beyond'])} times its largest run, {one['recipe']} should score {score} points "
    words += f"({low} to {high}) on {one['scenario']}"
    words += f", the best of {len(law.recipes)} recipes" if len(law.recipes) > 1 else ""
    worth = law.worth(one["law"])
    if worth is None:
        return words
    return f"{words}. Forecasts of sizes held out erred by {points_of(worth['error'])} points on average"


def _of_law(rows: list[dict[str, Any]], shown_law: str) -> list[dict[str, Any]]:
    """Return the forecasts by one law; of a scenario that it says nothing of, those by the first that does."""
    laws: dict[str, list[str]] = {}
    for row in rows:
        laws.setdefault(row["scenario"], []).append(row["law"])
    taken = {scenario: shown_law if shown_law in names else names[0] for scenario, names in laws.items()}
    return [row for row in rows if row["law"] == taken[row["scenario"]]]
