"""`itembank estimate`: full-benchmark scores from some responses."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import itembank as ib
from itembank.cli.command import Command
from itembank.cli.new_results import (
    ignore_unknown_option,
    match_option,
    mixed_prompts_option,
    note_flagged,
    note_known_models,
    note_overall,
    read_new_results,
    selection_option,
    typicality_text,
    why_not_calibrated,
)
from itembank.cli.options import (
    MethodName,
    bank_argument,
    estimand_option,
    format_option,
    level_option,
    method_option,
    models_option,
    note_report,
    option,
    report_option,
    typed_command,
    write_report,
)
from itembank.cli.render import note, print_rows, progress, refuse_empty, warnings_as_notes
from itembank.errors import visible
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, MEANING, METHODS, RUN, IntervalKind
from itembank.responses.score_names import without_only_scenario

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.bank.selections import Selection
    from itembank.estimation.estimates import ScoreEstimates
    from itembank.responses.responses import ResponseMatrix

TITLES = {
    "run": "Estimated full-benchmark scores",
    "expected": "Estimated full-benchmark scores over repeated runs",
}
"""What the table shows for each estimand."""


@click.command("estimate", cls=Command)
@bank_argument
@click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))
@selection_option
@ignore_unknown_option
@method_option(MethodName(METHODS), "How the score is estimated.")
@option(
    "--interval",
    "Where the width of intervals comes from: errors made on bank models left out (calibrated), the item model, "
    "or how items were drawn (design).",
    IntervalKind,
    default="calibrated",
)
@estimand_option
@level_option
@option(
    "--covariate COLUMN covariates",
    "What else is known of models, such as date or size: a column of the bank's model table and of --models. "
    "Repeatable.",
    many=True,
)
@option(
    "--target ID",
    "Score in place of the overall one: mean_win_rate, against the bank's models, or an external score that the "
    "bank keeps. Or NAME@1, the score that it gave before items were retired.",
)
@option(
    "--parent MODEL_ID",
    "Past model that the new ones descend from: their scores are its own and what the answers differ by, as far as "
    "that served past models. auto: find it by the answers.",
)
@models_option
@report_option
@match_option
@mixed_prompts_option
@format_option
def estimate_command(
    *,
    bank: Path,
    responses: tuple[Path, ...],
    selection: Path | None,
    target: str | None,
    models: Path | None,
    parent: str | None,
    report: Path | None,
    match: str,
    allow_mixed_prompts: bool,
    output_format: str,
    **choices: Any,
) -> None:
    """Estimate what new models would score on the full benchmark.

    RESPONSES are response files or harness logs of the new models, over any items of the bank. With --covariate they
    may be left out: the scores of the models of --models are then forecast by these columns alone.

    \b
      itembank estimate bank new-model.csv --selection selection.json
      itembank estimate bank output/new-model/ --selection selection.json --report new-model.html
      itembank estimate bank quantised.csv --selection selection.json --parent our-model
      itembank estimate bank new-model.csv --selection random.json --interval design
      itembank estimate bank new-model.csv --models models.csv --covariate date
    """  # noqa: D301
    if models and not choices["covariates"]:
        raise click.UsageError("--models goes with --covariate. Leave it out.")
    loaded = ib.load_bank(bank) if target is None else ib.banks.with_target(ib.load_bank(bank), target)
    chosen = None if selection is None else ib.Selection.load(selection).whole
    with warnings_as_notes():
        matrix = _new_results(loaded, responses, chosen, models, match=match, allow_mixed_prompts=allow_mixed_prompts)
        note_known_models(loaded, matrix.model_ids)
        with progress("estimate") as advance:
            estimates = ib.estimate(loaded, matrix, selection=chosen, parent=parent or "", progress=advance, **choices)
    if estimates.explanation:
        note(f"Estimated by {estimates.explanation}")
    print_estimates(estimates, output_format)
    if choices["interval"] == "calibrated" and estimates.interval_kind != "calibrated":
        note(why_not_calibrated(loaded))
    note(MEANING[estimates.interval_kind])
    if loaded.newest is not None:
        note(f"The bank's newest past model is of {loaded.newest}.")
    if estimates.estimand != RUN:
        note(f"Intervals are for {ESTIMANDS_IN_WORDS[estimates.estimand]}.")
    note_flagged(estimates, loaded.n_compared_models)
    note_overall(loaded)
    if report is not None:
        from itembank.pages.estimates_page import estimates_page  # noqa: PLC0415

        page = estimates_page(
            loaded,
            matrix,
            estimates,
            chosen,
            files=[str(one) for one in responses],
            selection_file="" if selection is None else str(selection),
            command=typed_command(),
        )
        write_report(page, report)
    elif output_format == "table":
        note_report(report)
    refuse_empty(estimates.rows(), "estimate", ("model_id", "target"))


def _new_results(
    bank: "Bank",
    responses: tuple[Path, ...],
    selection: "Selection | None",
    models: Path | None,
    **choices: Any,
) -> "ResponseMatrix":
    """Read what the new models answered, or only what is known of them."""
    if responses:
        return read_new_results(bank, responses, selection, models=models, **choices)
    if models is None:
        raise click.UsageError(
            "Missing argument 'RESPONSES...'. Only forecasts by columns of a model table do without: --models FILE "
            "--covariate COLUMN."
        )
    from itembank.estimation.covariates import unanswered  # noqa: PLC0415
    from itembank.readers.matrix import read_known  # noqa: PLC0415

    return unanswered(bank, read_known(models, "model_id")[0])


def print_estimates(estimates: "ScoreEstimates", output_format: str) -> None:
    """Print the rows; in a table each estimate stands with its interval and the items behind it."""
    rows = estimates.rows()
    if output_format == "table":
        is_known = any(row["typicality"] is not None for row in rows)
        rows = [
            {
                "model_id": row["model_id"],
                "target": row["target"],
                "estimate": row["estimate"],
                f"{100 * row['level']:g} % interval": interval_text(row),
                "items": f"{row['n_items']}/{row['n_total']}",
                **({"typicality": typicality_text(row, estimates.main_target)} if is_known else {}),
            }
            for row in without_only_scenario(rows)
        ]
    what = TITLES[estimates.estimand]
    of = f" of {visible(estimates.target_id)}" if "@" in estimates.target_id else ""
    title = f"{what}{of}, from 0 to 1, by {estimates.method}, bank {estimates.bank_id}"
    print_rows(rows, output_format, title=title, least=("typicality", "items"))


def interval_text(row: dict[str, Any]) -> str:
    """Both ends of an interval, or a dash."""
    low, high = row["low"], row["high"]
    return "-" if low != low or high != high else f"{low:.4f} to {high:.4f}"  # noqa: PLR0124 (NaN)
