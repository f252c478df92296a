"""`itembank plan`: how many items a question needs."""

from typing import Annotated, Any

import itembank as ib
from itembank.cli import options
from itembank.cli.render import detail, note, warnings_as_notes
from itembank.cli.signatures import option, verb

USUAL = 100
"""Items that a plan without a goal begins with."""


@verb("plan")
def plan_command(
    *,
    bank: options.Bank,
    half_width: Annotated[
        float | None, "Wanted half-width of the interval of a model's score, from 0 to 1: 0.05 is ±5 points."
    ],
    difference: Annotated[
        float | None, "Or: difference between two models on the same items that must be found significant, from 0 to 1."
    ],
    target: Annotated[str, "Score to plan for: 'overall' or a scenario."] = "overall",
    estimand: options.Estimand,
    level: options.Level,
    power: Annotated[float, "Probability of finding --difference to be significant, between 0 and 1."] = 0.8,
    max_items: Annotated[int | None, option("Plan for no more items than these.", type=options.COUNT)],
    out: options.Out,
) -> None:
    """Find how many items a question needs, from the bank alone.

    Items are drawn, as itembank select does by default. The table shows how precise scores from each number of items
    will be, by a formula, for models like past ones; with --half-width or --difference the sentence above it answers
    the question.

    If --max-items is too few for the goal, plan says so, and how many it would take.

      itembank plan bank --half-width 0.02
      itembank plan bank --difference 0.03 --power 0.9
      itembank plan bank --target math --max-items 300
    """
    loaded = ib.load_bank(bank)
    goal: dict[str, Any] = {"half_width": half_width, "difference": difference, "power": power}
    with warnings_as_notes():
        made = ib.plan(loaded, target=target, estimand=estimand, level=level, max_items=max_items, **goal)
    out.record(
        made.to_dict(),
        "sizes",
        made.rows(),
        "plan",
        title=_answer(made),
        facts=("target", "detectable_difference"),
        heading="How precise scores from each number of items are, in points",
    )
    if made.message:
        detail(made.message)
    if made.target in loaded.targets.scenarios:
        note("Intervals of scenarios are mostly narrower, of models like past ones: they rest on other scenarios, too.")


def _answer(made: "ib.Plan") -> str:
    """Answer the question in a sentence: or say what a hundred items give, where none was asked."""
    if made.goal is not None and made.n_items is None:
        return made.message
    found = made.near(USUAL) if made.at is None else made.at
    size = f"{found.n_items:,} of {made.n_total:,} items, drawn at random,"
    of = "" if made.target == "overall" else f" of {made.target}"
    if made.goal == "difference":
        return f"{size} tell apart models that differ by {100.0 * found.detectable_difference:.1f} points{of}"
    return f"{size} give an interval{of} of ±{100.0 * found.half_width:.1f} points for models like past ones"
