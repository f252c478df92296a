"""`itembank estimate`: full-benchmark scores from some responses."""

from typing import Annotated, Any

import itembank as ib
from itembank.cli import options
from itembank.cli.new_results import note_overall, read_new_results, say_notes, typicality_text
from itembank.cli.options import report_result
from itembank.cli.render import Printer, detail, is_verbose, note, refuse_empty, working
from itembank.cli.signatures import MethodName, option, verb
from itembank.errors import visible
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, MEANING, METHODS, RUN, IntervalChoice
from itembank.responses.score_names import OVERALL, without_only_scenario

RESTS_ON = {
    "calibrated": "intervals from past models' errors",
    "model-based": "intervals from the item model alone, too narrow if it is wrong",
    "design": "intervals from the random draw of items",
}
"""Kinds of intervals in the note below a table; `MEANING` says more."""
SMALLEST_ERROR = 0.05
"""In points: of all items, or nearly, there is no error to tell."""


@verb("estimate")
def estimate_command(
    *,
    bank: options.Bank,
    responses: options.Responses,
    selection: options.Selection,
    ignore_unknown: options.IgnoreUnknown,
    method: Annotated[str, option("How the score is estimated.", type=MethodName(METHODS))] = "auto",
    interval: Annotated[
        IntervalChoice,
        "Where the width of intervals comes from: how items were drawn (design), cross-validated errors of past models "
        "(calibrated), or the item model. auto: design where items were drawn by chance, else calibrated.",
    ] = "auto",
    estimand: options.Estimand,
    level: options.Level,
    target: Annotated[
        str | None,
        option(
            "Score in place of the overall one: mean_win_rate, against past models, or an external score that the bank "
            "keeps. Or NAME@1: its score before items were retired.",
            metavar="ID",
        ),
    ],
    parent: Annotated[
        str | None,
        option(
            "Past model that the new ones descend from: start from its score, as far as that helped for past models. "
            "auto: find it by the answers.",
            metavar="MODEL_ID",
        ),
    ],
    reading: options.NewResults,
    report: options.Report,
    out: options.Out,
) -> None:
    """Estimate what new models would score on the full benchmark.

    RESPONSES are response files or harness logs of the new models, or JSON that --jq reads, over any items of the bank.

    Several models are shown by their overall scores. --verbose shows the scenarios too; JSON and CSV always have all.

      itembank estimate bank new-model.csv --selection selection.json
      itembank estimate bank output/new-model/ --selection selection.json --report new-model.html
      itembank estimate bank quantised.csv --selection selection.json --parent our-model
      itembank estimate bank runs/new --jq our-runs.jq
      itembank estimate bank new-model.csv --selection random.json --interval design
    """
    loaded = ib.load_bank(bank) if target is None else ib.banks.with_target(ib.load_bank(bank), target)
    chosen = None if selection is None else ib.Selection.load(selection).whole
    how: dict[str, Any] = {"method": method, "interval": interval, "estimand": estimand, "level": level}
    how |= {"parent": parent or "", "ignore_unknown": ignore_unknown}
    with working("estimate") as advance:
        matrix = read_new_results(loaded, responses, chosen, keep_others=True, **reading)
        estimates = ib.estimate(loaded, matrix, selection=chosen, progress=advance, **how)
    print_estimates(estimates, out)
    if not estimates.is_exact.all():
        points = 100.0 * estimates.cross_validated_error
        error = f" (cross-validated error {points:.1f} points)" if points >= SMALLEST_ERROR else ""
        rests_on = RESTS_ON[estimates.main_interval]
        note(f"Method: {estimates.method}{error}; {rests_on}.")
    if estimates.explanation and (parent or is_verbose()):
        note(f"Estimated by {estimates.explanation}")
    detail(MEANING[estimates.main_interval])
    if loaded.newest is not None:
        detail(f"The newest past model is of {loaded.newest}.")
    if estimates.estimand != RUN:
        note(f"Intervals are for {ESTIMANDS_IN_WORDS[estimates.estimand]}.")
    note_overall(loaded)
    say_notes(estimates.notes)
    report_result(
        *(report, out),
        lambda typed: ib.pages.estimates_page(
            *(loaded, matrix, estimates, chosen),
            files=[str(one) for one in responses],
            selection_file=str(selection or ""),
            command=typed,
        ),
    )
    by_draw = ", or take --interval calibrated" if estimates.interval_kind == "design" != interval else ""
    other = by_draw if method == "auto" else ", or take --method auto"
    refuse_empty(estimates.rows(), "estimate", ("model_id", "target"), other)


def print_estimates(estimates: "ib.ScoreEstimates", out: Printer) -> None:
    """Print the rows; a table has each estimate with its interval and the items behind it.

    Of several models it has the main score alone, or with --verbose the scores of all scenarios.
    """
    rows = estimates.rows()
    columns = ["model_id", "target", "estimate", "low", "high", "n_items", "n_total"]
    is_of_several, is_brief = out.is_table and len(estimates.model_ids) > 1, False
    if out.is_table:
        columns += ["typicality"] * any(row["typicality"] is not None for row in rows)
        main = estimates.main_target
        rows = [{**row, "typicality": typicality_text(row, main)} for row in without_only_scenario(rows)]
        if is_of_several and len({row["target"] for row in rows}) > 1 and not is_verbose():
            rows, is_brief = [row for row in rows if row["target"] == main], True
        if is_of_several and {row["target"] for row in rows} == {OVERALL}:
            columns.remove("target")
    of = f" (of {visible(estimates.target_id)})" if "@" in estimates.target_id else ""
    out.rows(rows, "estimate", title=f"{estimates.sentence}{of}", columns=columns, least=("typicality", "items"))
    if is_brief:
        note("Scores of scenarios: --verbose.")
