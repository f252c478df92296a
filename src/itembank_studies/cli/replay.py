"""`itembank replay`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

import itembank as ib
import itembank_studies
from itembank.cli import options
from itembank.cli.command import EXIT_IMPRECISE
from itembank.cli.new_results import read_new_results, say_notes, typicality_text
from itembank.cli.render import Printer, is_verbose, note, working
from itembank.cli.session_options import ReplayedSession, session_spec
from itembank.cli.signatures import option, verb
from itembank.responses.score_names import without_only_scenario
from itembank.tables import plural

if TYPE_CHECKING:
    from itembank_studies.replays import ReplayResult

LEAST = ("typicality", "n_answered", "items", "reason_stopped")
"""Columns that give way in a narrow terminal, the least needed first."""


@verb("replay")
def replay_command(
    *,
    bank: options.Bank,
    responses: options.Responses,
    choices: ReplayedSession,
    batch: Annotated[int, option("Ask this many items at once.", type=options.COUNT)] = 1,
    jobs: options.Jobs,
    output: Annotated[
        Path | None,
        options.written(
            "Also write every item asked, one row each, to this .csv or .parquet file.",
            "PATH",
            options.NEW_FILE,
            callback=options.checked_table_path,
        ),
    ],
    allow_mixed_prompts: options.MixedPrompts,
    seed: options.Seed,
    out: options.Out,
) -> None:
    """Run recorded models through adaptive sessions.

    RESPONSES are response files or harness logs of models that answered many items of the bank. Each model is asked
    what a session would ask it, and gets the estimate that the session would end with: the same numbers as itembank
    session gives with the same seed. An item without a response counts as failed.

      itembank replay bank models.parquet --max-items 50
      itembank replay bank models.parquet --half-width 0.03 --max-items 200 --format json
      itembank replay bank models.parquet --cost tokens --max-cost tokens=20000 --jobs 2

    The exit code is 3 if a precision was asked for and some model's session ended without it.
    """
    loaded = ib.load_bank(bank)
    spec = session_spec(choices, seed=seed)
    with working("replay") as report:
        matrix = read_new_results(loaded, responses, allow_mixed_prompts=allow_mixed_prompts)
        result = itembank_studies.replay(loaded, matrix, spec, batch=batch, n_jobs=jobs, progress=report)
    if output is not None:
        options.write_table(result.asked, output, result.asked.write_csv)
    units = [] if spec.cost_unit is None else [spec.cost_unit.name]
    # what was not asked for is told if it is clear which it is
    units += [*spec.budget.costs] * (len(spec.budget.costs) == 1) + [*result.costs] * (len(result.costs) == 1)
    _print(result, next(iter(units), None), out)
    say_notes(result.estimates.notes)
    if spec.stopping.has_rules and not result.is_precise.all():
        note(f"{int((~result.is_precise).sum())} of {result.n_models} sessions ended without the precision asked for.")
        click.get_current_context().exit(EXIT_IMPRECISE)


def _print(result: "ReplayResult", unit: str | None, out: Printer) -> None:
    """Print the rows; a table has each estimate with its interval and how the session ended."""
    rows = result.rows(unit)
    main = result.estimates.main_target
    widths = [50.0 * (row["high"] - row["low"]) for row in rows if row["target"] == main]
    is_known = any(row["typicality"] is not None for row in rows)
    columns = ["model_id", "target", "estimate", "low", "high", "n_items", "n_total", "n_answered"]
    columns += [] if unit is None else [f"cost ({unit})"]
    columns += [*["typicality"] * is_known, "reason_stopped"]
    if out.is_table:
        if result.n_models > 1 and not is_verbose():
            rows = [row for row in rows if row["target"] == main]
        rows = [
            {
                **row,
                f"cost ({unit})": row["cost"],
                "typicality": typicality_text(row),
                "reason_stopped": row["reason_stopped"] if row["target"] == main else "",
            }
            for row in without_only_scenario(rows)
        ]
    mean, width = sum(result.n_answered.tolist()) / result.n_models, sum(widths) / result.n_models
    of = plural(result.n_models, "model")
    title = f"Sessions of {of}: on average {mean:.0f} items answered and intervals of ±{width:.1f} points"
    out.rows(rows, "replay", title=title, columns=columns, least=LEAST)
