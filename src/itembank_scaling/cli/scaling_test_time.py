"""`itembank scaling test-time`: what k samples of every item will solve."""

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
import itembank_scaling
from itembank.calibration.calibration_specs import METHODS as CALIBRATIONS
from itembank.cli import options
from itembank.cli.new_results import note_known_models
from itembank.cli.options import file_choices, report_result, typed, write_figure
from itembank.cli.render import Printer, note, print_object, working
from itembank.cli.signatures import Choices, WholeNumbers, option, verb
from itembank.tables import points_of
from itembank_scaling.cli.scaling_options import Bank, Builtin, Responses, read_responses_or_builtin
from itembank_scaling.pass_at_k.specs import METHODS, PassAtKSpec

if TYPE_CHECKING:
    from itembank_scaling.pass_at_k.results import PassAtKLaw

LEAST_METHODS = ("jeffreys", "beta-binomial", "irsl-plug-in", "plug-in", "unbiased")
"""Those whose columns give way in a narrow terminal, the least needed first."""
PARTS = ("curves", "errors", "tail")

_OPTIONS: Choices = {
    "bank": Bank,
    "models": option("Report this model only. Repeatable.", "--model", metavar="MODEL_ID", multiple=True),
    "k": option(
        "Numbers of samples, which may be more than there are.  [default: 1, 2, 5, ... 10000]", type=WholeNumbers()
    ),
    "methods": option("Repeatable.  [default: all]", "--method", type=tuple(METHODS), multiple=True),
    "budget": option(
        "Use only N samples of each item, drawn at random, and compare with all.", metavar="N", of=PassAtKSpec
    ),
    "spec_file": options.spec_file("PassAtKSpec", "item_model, level, minimum_pass_rate or interval"),
}


@verb("test-time")
def test_time_command(
    *,
    responses: Responses,
    builtin: Builtin,
    choices: Annotated[Choices, _OPTIONS],
    show: Annotated[
        str | None, option("Which table: errors with --budget.  [default: curves; JSON has all]", type=PARTS)
    ],
    figure: options.Figure,
    report: options.Report,
    out: options.Out,
) -> None:
    """Forecast pass@k, how often at least one of k samples is right, for any k from few samples.

    RESPONSES have n_correct and n_trials of every model and item (itembank import --repeats count counts samples in
    rows of their own). The default method, irsl, learns about an item from all models: an item that a model never
    solved in 50 samples does not count as impossible if similar models solve it now and then. It gives intervals, and
    forecasts beyond the samples.

      itembank scaling test-time samples.parquet --k 1,10,100,1000 --report pass-at-k.html
      itembank scaling test-time samples.parquet --budget 50 --show errors
      itembank scaling test-time new-model.csv --bank bank --show tail
    """
    if show == "errors" and choices["budget"] is None:
        raise click.UsageError("--show errors needs --budget.")
    names = {one.name for one in fields(PassAtKSpec)}
    given = {name: value for name, value in typed(choices).items() if name in names}
    in_file = file_choices(choices["spec_file"], PassAtKSpec, {"item_model": (CALIBRATIONS, "name")})
    spec = PassAtKSpec(**{**in_file, **given})
    with working("test-time") as said:
        matrix = read_responses_or_builtin(responses, builtin)
        bank = None if choices["bank"] is None else ib.load_bank(choices["bank"])
        if bank is not None:
            note_known_models(bank, matrix.model_ids)
        models = choices["models"] or None
        law = itembank_scaling.pass_at_k_law(matrix, spec, bank=bank, models=models, progress=said)
        if figure is not None:
            from itembank_scaling.pages.pass_at_k_page import pass_at_k_chart

            write_figure(pass_at_k_chart(law), figure)
    for text in law.notes:
        note(f"Note: {text}.")
    _print(law, show or "curves", out, are_asked=bool(choices["methods"]))
    report_result(report, out, lambda typed: replace(ib.show(law), command=typed))


def _print(law: "PassAtKLaw", show: str, out: Printer, *, are_asked: bool) -> None:
    errors = law.errors() + (law.errors(kept=True) if law.minimum_pass_rate else [])
    if out.is_json:
        print_object({**law.to_dict(), "curves": law.rows(), "errors": errors, "tail": law.tail()}, "test-time")
        return
    if show == "curves":
        rows = law.rows()
        if out.is_table:  # a line for each curve and k, a column a method
            wide: dict[tuple[Any, ...], dict[str, Any]] = {}
            for row in rows:
                key = (row["model_id"], row["scenario"], row["k"])
                line = wide.setdefault(key, dict(zip(("model_id", "scenario", "k"), key, strict=True)))
                line[row["method"]] = "-" if math.isnan(row["pass_at_k"]) else f"{100.0 * row['pass_at_k']:.1f}"
                if row["method"] == "irsl":
                    line |= {"low": row["low"], "high": row["high"], "level": law.level}
                if "truth" in row:
                    line["truth"] = row["truth"]
            rows = list(wide.values())
        least = () if are_asked else LEAST_METHODS
        out.rows(rows, "test-time", title=_in_a_sentence(law), least=least)
    elif show == "errors":
        out.rows(
            errors,
            "test-time",
            title=f"Errors of pass@k, in points, from {law.budget} samples an item",
            least=("share_known", "error_of_negative_log"),
        )
    else:
        out.rows(law.tail(), "test-time", title=f"Items that fail most often at k = {law.k[-1]:g}")


def _in_a_sentence(law: "PassAtKLaw") -> str:
    """Say how much the most samples should solve, by the law itself; of several curves, by the best."""
    last = [row for row in law.rows() if row["method"] == "irsl" and row["k"] == max(law.k)]
    if not last:
        return "pass@k, in points"
    best = max(last, key=lambda row: row["pass_at_k"])
    score, low, high = (points_of(best[name]) for name in ("pass_at_k", "low", "high"))
    others = f", the best of {len(last)}" if len(last) > 1 else ""
    return (
        f"pass@{best['k']:g} of {best['model_id']} on {best['scenario']} should be {score} points ({low} to {high})"
        f"{others}"
    )
