"""`itembank plan`: how many items a question needs."""

from pathlib import Path
from typing import Annotated, Any

import itembank as ib
from itembank.cli import options
from itembank.cli.new_results import importing_first
from itembank.cli.render import detail, note, warnings_as_notes
from itembank.cli.signatures import option, verb
from itembank.tables import detectable

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
    trials: Annotated[bool, "Say how much chance moves one run, and the mean of several."],
    budget: Annotated[float | None, "What all trials may cost: how it is best split into items and trials."],
    cost: Annotated[str | None, "Unit of --budget.  [default: cost_usd, or the bank's only unit]"],
    judged: Annotated[
        Path | None,
        option(
            "The same answers by several judges, a table with a column judge: what comes from judges counts as chance.",
            type=options.FILE,
        ),
    ],
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

    With --trials, for items that may be tried several times: many items once or fewer items more often, and what two
    runs of the same model differ by.

      itembank plan bank --trials --budget 50
    """
    loaded = ib.load_bank(bank)
    options.refuse_unused(
        (("half_width", "difference", "max_items", "estimand"), not trials, "a number of items, not with --trials"),
        (("budget", "judged"), trials, "--trials"),
        ("cost", budget is not None, "--budget"),
    )
    if trials:
        asked: dict[str, Any] = {"budget": budget, "cost_unit": cost, "target": target, "level": level, "power": power}
        judges: list[ib.ResponseMatrix] = []
        with warnings_as_notes():
            if judged is not None:
                from itembank.readers.judges import read_by_judge

                with importing_first([judged]):
                    judges = read_by_judge(judged)
            split = ib.plan_trials(loaded, judged=judges, **asked)
        out.record(
            split.to_dict(),
            "splits",
            split.rows(),
            "plan-trials",
            title=split.message,
            facts=("target", "task_error", "trial_error", "judge_error"),
            heading="What each number of trials an item brings, scores in points",
        )
        for one in split.notes[1:]:
            note(one.text)
        return
    goal: dict[str, Any] = {"half_width": half_width, "difference": difference, "power": power}
    with warnings_as_notes():
        made = ib.plan(loaded, target=target, estimand=estimand, level=level, max_items=max_items, **goal)
    about, rows = made.to_dict(), made.rows()
    for row in [about, *rows] if out.is_table else []:
        if row["detectable_difference"] is not None:
            row["detectable_difference"] = detectable(row["detectable_difference"])
    out.record(
        about,
        "sizes",
        rows,
        "plan",
        title=_answer(made, " for models like past ones" if loaded.n_calibration_models else ""),
        facts=("target", "detectable_difference"),
        heading="How precise scores from each number of items are, in points",
    )
    if made.message:
        detail(made.message)
    if made.trials_in_words:
        note(made.trials_in_words)
    if made.target in loaded.targets.scenarios:
        note("Intervals of scenarios are mostly narrower, of models like past ones: they rest on other scenarios, too.")


def _answer(made: "ib.Plan", whose: str) -> str:
    """Answer the question in a sentence: or say what a hundred items give, where none was asked."""
    if made.goal is not None and made.n_items is None:
        return made.message
    found = made.near(USUAL) if made.at is None else made.at
    size = f"{found.n_items:,} of {made.n_total:,} items, drawn at random,"
    of = "" if made.target == "overall" else f" of {made.target}"
    if made.goal == "difference":
        return f"{size} tell apart models that differ by {100.0 * found.detectable_difference:.1f} points{of}"
    return f"{size} give an interval{of} of ±{100.0 * found.half_width:.1f} points{whose}"
