"""`itembank plan`: how many items a question needs, and whether asking one at a time pays."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import itembank as ib
from itembank.cli.command import Command
from itembank.cli.options import (
    COUNT,
    MethodName,
    bank_argument,
    estimand_option,
    format_option,
    level_option,
    method_option,
    option,
    parallel_option,
    refuse_unused,
    seed_option,
)
from itembank.cli.render import detail, note, print_record, progress, warnings_as_notes
from itembank.estimation.estimator_specs import METHODS
from itembank.planning.plan_spec import PlanSpec
from itembank.selection.selector_specs import METHODS as SELECTORS

if TYPE_CHECKING:
    from itembank.planning.plan import Plan
    from itembank.sessions.plan_sessions import SessionPlan

DEFAULT_SESSION = ""
USUAL = 100
"""Items that a plan without a goal begins with."""


@click.command("plan", cls=Command)
@bank_argument
@option("--half-width", "Wanted half-width of the interval of a model's score, from 0 to 1: 0.05 is ±5 points.", float)
@option(
    "--difference",
    "Or: difference between two models on the same items that must be found significant, from 0 to 1.",
    float,
)
@option("--target", "Score to plan for: 'overall', a scenario, mean_win_rate, or an external score.", default="overall")
@estimand_option
@level_option
@option("--power", "Probability of finding --difference to be significant, between 0 and 1.", PlanSpec)
@option("--selector", "How items will be chosen.", MethodName(SELECTORS, "auto"), default="auto")
@method_option(MethodName(METHODS), "How scores will be estimated.")
@option("--max-items", "Plan for no more items than these.", COUNT)
@option(
    "--session [FILE.toml] session_file",
    "Compare asking at once, in two stages and one by one: in a default session, or in that of the file.",
    is_flag=False,
    flag_value=DEFAULT_SESSION,
)
@option("-n --n-items", "--session: items to ask, in place of --half-width.", COUNT)
@parallel_option
@seed_option
@format_option
def plan_command(
    *,
    bank: Path,
    half_width: float | None,
    target: str,
    level: float,
    session_file: str | None,
    n_items: int | None,
    output_format: str,
    **asked: Any,
) -> None:
    """Find how many items a question needs, from the bank alone.

    Each past model is scored as if it were new (cross-validation). The table shows how precise scores from each number
    of items are; with --half-width or --difference the sentence above it answers the question.

    With --session it says whether asking one item at a time pays. A session chooses each item by the answers before it,
    which takes a run of your harness for every item; the same number of items chosen beforehand takes one run. Errors
    are in points. Asking at once is recommended unless another way is better by more than a standard error of the
    difference.

    If --max-items is too few for the goal, plan says so, and estimates how many it would take.

    \b
      itembank plan bank --half-width 0.02
      itembank plan bank --difference 0.03 --power 0.9
      itembank plan bank --session --half-width 0.03
      itembank plan bank --session session.toml -n 100 --target math
    """  # noqa: D301
    from itembank.sessions.plan_sessions import plan_sessions  # noqa: PLC0415

    is_session = session_file is not None
    refuse_unused(
        *((name, not is_session, "items that are asked at once, not with --session") for name in asked),
        ("n_items", is_session, "--session"),
    )
    loaded = ib.load_bank(bank)
    if session_file is not None:
        if (n_items is None) == (half_width is None):
            raise click.UsageError("--session needs the number of items: one of -n N and --half-width W.")
        path = None if session_file == DEFAULT_SESSION else Path(session_file)
        from itembank.sessions.session_spec import read_session_fields  # noqa: PLC0415

        choices: dict[str, Any] = {
            "half_width": half_width,
            "target": target,
            "level": level,
            "spec": (ib.SessionSpec() if path is None else ib.SessionSpec(**read_session_fields(path))),
        }
        with warnings_as_notes(), progress("plan") as advance:
            ways = plan_sessions(loaded, n_items, **choices, progress=advance)
        _print_ways(ways, bank, output_format)
        return
    with warnings_as_notes(), progress("plan") as advance:
        spec = PlanSpec(level, *(asked.pop(name) for name in ("power", "seed", "estimand")))
        made = ib.plan(loaded, half_width=half_width, target=target, spec=spec, progress=advance, **asked)
    print_record(
        made.to_dict(),
        "sizes",
        made.rows(),
        output_format,
        "plan",
        title=_answer(made, loaded.n_models),
        facts=("target", "detectable_difference"),
        heading="How precise scores from each number of items are, in points",
        least=("mean_absolute_error",),
    )
    if made.message:
        detail(made.message)
    if made.stages_advice:
        note(made.stages_advice)


def _answer(made: "Plan", n_models: int) -> str:
    """Answer the question in a sentence: or say what a hundred items give, where none was asked."""
    goal, n_items, how = made.goal, made.n_items, f"(cross-validated on {n_models:,} past models)"
    if goal.name is None:
        known = [row for row in made.rows() if row["n_items"] < goal.n_total] or made.rows()
        row = min(known, key=lambda row: abs(row["n_items"] - USUAL))
        n_items, half_width = row["n_items"], row["half_width"]
    elif made.answer.measured is None or n_items is None:
        return made.message
    else:
        half_width = made.answer.measured
    size = f"{n_items:,} of {goal.n_total:,} items"
    of = "" if made.target == "overall" else f" of {made.target}"
    if goal.name == "difference":
        return f"{size} tell apart models that differ by {100.0 * (goal.value or 0.0):g} points{of} {how}"
    return f"{size} give an interval{of} of ±{100.0 * half_width:.1f} points {how}"


def _print_ways(made: "SessionPlan", bank: Path, output_format: str) -> None:
    """Print the ways of asking."""
    rows, facts = made.rows(), made.to_dict()
    if output_format == "table":
        facts["command"] = made.best.command.replace("BANK", str(bank))
    print_record(
        facts,
        "designs",
        [_in_points(row) for row in rows] if output_format == "table" else rows,
        output_format,
        "plan-session",
        title=made.message,
        facts=("n_items", "target", "command"),
        heading="Cross-validated errors of estimates, in points",
        least=("half-width",),
    )


def _in_points(row: Mapping[str, Any]) -> dict[str, Any]:
    """Write errors in points, each with its standard error."""
    is_first = row["gain"] == 0.0 and row["standard_error_of_gain"] == 0.0
    return {
        "design": row["design"],
        "mean error": f"{_points(row['mean_absolute_error'])} ± {_points(row['standard_error'])}",
        "gain": "" if is_first else f"{_points(row['gain'])} ± {_points(row['standard_error_of_gain'])}",
        "half-width": _points(row["half_width"]),
        "take": "this" if row["is_taken"] else "",
    }


def _points(value: float) -> str:
    return f"{100.0 * value:.2f}"
