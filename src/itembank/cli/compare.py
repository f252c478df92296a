"""`itembank compare`: which of two models is better."""

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.new_results import importing_first, read_new_results
from itembank.cli.options import is_bank, refuse_unused, report_result
from itembank.cli.render import Printer, detail, note, progress, refuse_empty, warnings_as_notes
from itembank.cli.signatures import MethodName, NamedChoice, argument, option, verb
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.errors import DataWarning, shown, unsaid, visible
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, METHODS, REPEATED, DifferenceEstimand
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.score_names import without_only_scenario
from itembank.tables import detectable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from itembank.pages.render import Page


@verb("compare")
def compare_command(
    *,
    sources: Annotated[
        tuple[Path, ...], argument(type=options.BankPath(file_okay=True), metavar="[BANK] RESPONSES...")
    ],
    models: Annotated[
        tuple[str, ...],
        option(
            "Compare these models only, in this order. Repeatable.  [default: all models of the files]",
            "--model",
            metavar="MODEL_ID",
        ),
    ],
    selection: options.Selection,
    ignore_unknown: options.IgnoreUnknown,
    method: Annotated[
        str,
        option(
            "How differences are estimated: 'paired' from the raw answers alone, the others from estimated scores.",
            type=MethodName(METHODS, "paired"),
        ),
    ] = "auto",
    estimand: Annotated[
        DifferenceEstimand | None,
        option(
            "What differences are of: this run on exactly these items (run), the mean over repeated runs on these "
            "(repeated), or questions like these (questions).  [default: questions; with a bank run, unless all or "
            "nearly all was run]",
            type=NamedChoice(get_args(DifferenceEstimand), expected=REPEATED),
        ),
    ],
    level: options.Level,
    target: Annotated[
        tuple[str, ...],
        option(
            "Score to compare: 'overall', a scenario, or 'all'; mean_win_rate or an external score. Repeatable.",
            show_default="overall",
        ),
    ] = ("overall",),
    ranking: Annotated[bool, "Print the models in order with tied groups instead of pairs."],
    report: options.Report,
    reading: options.NewResults,
    out: options.Out,
) -> None:
    """Compare models that ran the same items.

    RESPONSES are response files or harness logs of the models. A difference is the second model's score less the
    first's: over the items that both answered, or with a bank over its full benchmark. With more than two models,
    intervals and p-values are adjusted for the number of pairs (Holm).

      itembank compare old.csv new.csv
      itembank compare results.parquet --ranking --report ranking.html
      itembank compare bank old.csv new.csv --selection selection.json --target all
    """
    from itembank.comparison.compared_models import bank_and_targets
    from itembank.comparison.without_bank import joined
    from itembank.estimation.notes import said_of_unlike
    from itembank.readers.read import read_matrix

    has_bank = is_bank(sources[0])
    if len(sources) == has_bank:
        raise click.UsageError("Missing argument 'RESPONSES...'.")
    refuse_unused((("ignore_unknown", "method", "match"), has_bank, "a bank before the results"))
    wanted: str | Sequence[str] = "all" if "all" in target else target
    loaded = ib.load_bank(sources[0]) if has_bank else None
    chosen = None if selection is None else ib.Selection.load(selection)
    with warnings_as_notes():
        if loaded is None:
            how = {name: value for name, value in reading.items() if name != "match"}
            with importing_first(sources, reading["jq"]):
                given = [read_matrix([path], ReadingSpec(**how)) for path in sources]
            matrix = joined(given, reading["errors"], allow_mixed_prompts=reading["allow_mixed_prompts"])
            compared = partial(ib.compare, matrix)
        else:
            loaded, wanted = bank_and_targets(loaded, wanted)
            paths = sources[1:]
            matrix = read_new_results(loaded, paths, chosen, **reading)
            compared = partial(ib.compare, loaded, matrix, ignore_unknown=ignore_unknown)
        spec = ComparisonSpec(level=level, estimand=estimand)
        compared = partial(compared, models=models or None, selection=chosen, spec=spec)
        with progress("compare") as said:
            comparison = compared(method=method, target=wanted, progress=said)
    _print(comparison, out, is_ranking=ranking)
    if loaded is not None and comparison.flagged_models:
        note(f"{visible(shown(comparison.flagged_models))}: {said_of_unlike(loaded.n_compared_models)}.")
    other = ", or take --method auto" * (method != "auto")
    refuse_empty(comparison.rows(), "difference", ("model_a", "model_b", "target"), other)

    def page(typed: str) -> "Page":
        from itembank.comparison.with_bank import BY_DESIGN

        every, found = comparison, comparison.method
        if len(comparison.targets) == 1 and len(comparison.model_ids) == 2:  # every score of two models
            with unsaid(DataWarning):  # given before
                every = compared(method=method if found == BY_DESIGN else found, target="all")
        if loaded is None:
            return ib.pages.comparison_page(comparison, by_scenario=every, command=typed)
        return ib.pages.comparison_page(comparison, loaded, matrix, selection=chosen, by_scenario=every, command=typed)

    report_result(report, out, page)


def _print(comparison: "ib.Comparison", out: Printer, *, is_ranking: bool) -> None:
    """Print pairs or ranking; a table of pairs shows what decides, notes below it what one must know."""
    rows = comparison.ranking_rows() if is_ranking else comparison.rows()
    if out.is_table and is_ranking:
        rows = [_ranking_cells(row, comparison.spec.level) for row in rows]
    elif out.is_table:
        rows = [_cells(row, many=comparison.n_pairs > 1) for row in without_only_scenario(comparison.main_rows())]
    of_what = f"{comparison.targets[0]} score" if len(comparison.targets) == 1 else "scores"
    title = "" if is_ranking else comparison.sentence
    if not title:
        by_bank = f"; method {comparison.method}" if comparison.bank_id else ""
        what = _first_in_words(comparison, of_what) if is_ranking else _pairs_in_words(comparison, of_what)
        title = f"{what}{by_bank}"
    out.rows(
        rows,
        "ranking" if is_ranking else "compare",
        title=title,
        columns=[name for name in rows[0] if name != "target" or len(comparison.targets) > 1],
        least=("n_in_group", "group") if is_ranking else ("shared items", "detectable", "p", "P(B better)"),
    )
    exactly = " The difference is known exactly, which says nothing of other questions." if comparison.is_exact else ""
    note(f"Differences are of {ESTIMANDS_IN_WORDS[comparison.estimand]} (--estimand).{exactly}")
    for text in comparison.notes:
        note(f"Note: {text}.")
    if is_ranking and not comparison.is_exact:
        note(
            "As many models are clearly better than each model of a group; places are what these tests leave possible. "
            "Of group 1 no model is clearly better than another."
        )
        detail(
            f"Clearly is an adjusted p below {1.0 - comparison.spec.level:.3g}; intervals are adjusted alike (Holm)."
        )


def _first_in_words(comparison: "ib.Comparison", of_what: str) -> str:
    """Say which model is first, and how far before the next, if it is one score that they are ranked by."""
    first, second, *_ = comparison.ranking_rows()
    if len(comparison.targets) > 1:
        return f"{len(comparison.model_ids)} models in order of their {of_what}"
    words = f"{first['model_id']} is first of {len(comparison.model_ids)} models by the {of_what}"
    before = 100.0 * abs(second["behind_best"])
    return f"{words}, {before:.1f} points ahead of the next" if before > 0.0 else words


def _pairs_in_words(comparison: "ib.Comparison", of_what: str) -> str:
    """Say how many differences are clear, where there are several."""
    n_clear = int((comparison.ranking.rank_low - 1).sum())  # each pair once, by the one that is worse
    which = f"{len(comparison.model_ids)} models" if comparison.n_pairs > 1 else "both models"
    return (
        f"{n_clear} of {comparison.difference.value.size} differences of {which} are clear; {of_what}, B - A, in points"
    )


def _ranking_cells(row: dict[str, Any], level: float) -> dict[str, Any]:
    """Columns of the table of a ranking: a model in points behind the best one, with the interval of that."""
    points, low, high = (100.0 * row[name] + 0.0 for name in ("behind_best", "behind_lower", "behind_upper"))
    is_known = not math.isnan(points + low + high)
    places = str(row["rank_low"]) if row["rank_low"] == row["rank_high"] else f"{row['rank_low']} to {row['rank_high']}"
    return {
        **{name: row[name] for name in ("target", "rank")},
        "places": places,
        **{name: row[name] for name in ("group", "n_in_group", "model_id", "score")},
        "points behind": f"{abs(points):.1f}" if is_known else "-",
        f"{100 * level:g} % interval": f"{low:.1f} to {high:.1f}" if is_known else "-",
    }


def _cells(row: dict[str, Any], *, many: bool) -> dict[str, Any]:
    """Columns of the table; the adjusted p-value only if there are several pairs."""
    cells = {
        **{name: row[name] for name in ("model_a", "model_b", "target", "difference", "low", "high", "level")},
        "P(B better)": row["probability_b_better"],
        "p": _p_value(row["p_value"]),
        "detectable": detectable(row["smallest_detectable_difference"]),
        "shared items": row["n_shared_items"],
    }
    return {**cells, "p (Holm)": _p_value(row["p_holm"])} if many else cells


def _p_value(value: float) -> str:
    """Four decimals; of a smaller one only that it is smaller."""
    return "-" if math.isnan(value) else "<0.0001" if value < 1e-4 else f"{value:.4f}"
