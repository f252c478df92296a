"""How good estimates from a few items are, as a part of a bank's page."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.pages.blocks import Answer, Block, Chart, Column, Data, Section, Table, Text, heads
from itembank.pages.grammar import Spec, equals, marks, number, of, picture, tips
from itembank.pages.theme import count, level_words, percent, points, unit_words
from itembank.planning.plan import Plan

TITLE = "How good estimates are"
ERROR = Column("error", "Mean error (points)", "number", 1)
USUAL = 100
"""Questions that the page begins with."""


def precision_answer(found: Plan) -> Answer:
    """Return the precision of a usual number of items as one of the page's answers."""
    usual = found.near(USUAL)
    return Answer(
        f"A score from {count(usual.n_items)} questions",
        f"± {points(usual.half_width)}",
        f"{level_words(found.level)} interval, for a model like past ones",
        f"Drawn at random. {percent(1.0 - usual.n_items / found.n_total)} of the questions need not be run.",
    )


def precision_section(bank: Bank, found: Plan | None) -> Section | None:
    """Return intervals by number of drawn items, and what was measured of those that a published bank asks to be run.

    None where neither is known: a bank that is asked for a score that no draw gives an interval.
    """
    blocks, lead = (() if bank.published is None else _published(bank)), ""
    if found is not None:
        usual = found.near(USUAL)
        lead = (
            f"{count(usual.n_items)} questions give the score of a model like past ones within ± "
            f"{points(usual.half_width)}. Intervals cover the true score whatever a model is; for models unlike past "
            "ones they are wider or narrower."
        )
        how = (
            "By a formula: questions are drawn at random as itembank select does by default, and answers are as far "
            "from predictions as the item model expects. Scores are in points from 0 to 100."
        )
        blocks = (Text(how), precision_chart(found), *blocks)
    return Section(TITLE, blocks, lead) if blocks else None


def precision_chart(found: Plan) -> Chart:
    """Draw the interval and the difference that shows by the number of drawn items."""
    rows = found.table
    sizes, half, apart = (
        np.array([getattr(one, name) for one in rows]) for name in ("n_items", "half_width", "detectable_difference")
    )
    data = Data(
        "precision",
        {
            "items": sizes,
            "share": sizes / found.n_total,
            "half_width": 100.0 * half,
            "difference": 100.0 * apart,
            **{f"cost_{k}": np.array([one.costs[unit] for one in rows]) for k, unit in enumerate(rows[0].costs)},
        },
    )
    usual, first, last = found.near(USUAL), int(sizes[0]), int(sizes[-1])
    title = f"{count(usual.n_items)} questions give an interval of ± {points(usual.half_width)}"
    words = (
        f"From {count(first)} to {count(last)} questions the half-width of the {level_words(found.level)} interval "
        f"falls from {points(half[0])} to {points(half[-1])}."
    )
    scale = {"nice": False, "domain": [first, max(last, first + 1)]}  # the table of a tiny bank has one size
    x = number("items", "Questions run", "d", log=True, scale=scale, values=sizes.tolist())
    y = number("half_width", "Points of the score")
    tip = tips(items=("Questions", ",d"), half_width=("Half-width", ".2f"), difference=("Detectable difference", ".2f"))
    lines = (("half_width", "@main", "± interval"), ("difference", "@other", "detectable difference"))
    # over the beginning of each line, from where it falls
    label: Spec = {"align": "left", "dx": 6, "dy": -8, "fontWeight": 600, "where": equals("items", first)}
    spec = picture(
        (marks("line", x, of(y, one), tip=tip, color=tone, point={"color": tone}) for one, tone, _ in lines),
        (marks("text", x, of(y, one), color=tone, text=text, **label) for one, tone, text in lines),
        height=260,
    )
    shows = f"Between two models on the same questions, detected {percent(found.power, 0)} of the time"
    columns = (
        *heads("items", "half_width", "share"),
        Column("difference", "Detectable difference (points)", "number", 1, shows),
        *(Column(f"cost_{k}", f"Cost, {unit_words(unit)}", "number", 2) for k, unit in enumerate(rows[0].costs)),
    )
    note = "For models like past ones. Detectable: the true difference of two models that would show as significant."
    return Chart(title, spec, (data,), words, Table("Precision by number of items", data, columns), note)


def _published(bank: Bank) -> tuple[Block, ...]:
    """Tell what the whole bank measured for each set of items that the published one asks to be run."""
    measured = sorted((one for one in bank.subsets if "error" in one.measured), key=lambda one: one.selection.n_items)
    if not measured and any(one.apart.size for one in bank.subsets):
        return (Text("The items that it asks to be run were drawn by chance: intervals hold whatever a model is."),)
    if not measured:
        return (Text("The bank was published without past models' answers and without errors measured on them."),)
    found = {name: np.array([one.measured[name] for one in measured]) for name in ("error", "half_width", "coverage")}
    rows = {
        "items": [one.selection.n_items for one in measured],
        "error": 100.0 * found["error"],
        "half_width": 100.0 * found["half_width"],
        "coverage": found["coverage"],
    }
    columns = (
        Column("items", "Questions to run", "count"),
        ERROR,
        Column("half_width", "Mean interval (± points)", "number", 1),
        *heads("coverage"),
    )
    said = (
        f"Cross-validated on {count(measured[0].errors.shape[0])} past models before the bank was published: the mean "
        "error of the overall score and the mean half-width of 95 % intervals."
    )
    blocks: list[Block] = [Text(said), Table.of("Past models, cross-validated", "published_errors", rows, columns)]
    if bank.targets.n_scenarios > 1:
        most = measured[-1]
        sizes = [float(np.abs(error[~np.isnan(error)]).mean()) for error in most.errors[:, :-1].T]
        blocks.append(
            Table.of(
                "Scores of single scenarios",
                "published_errors_by_scenario",
                {"target": list(bank.targets.scenarios), "error": [100.0 * one for one in sizes]},
                (*heads("target"), ERROR),
                note=f"From {count(most.selection.n_items)} questions of all scenarios together.",
            )
        )
    return tuple(blocks)
