"""How good estimates from a few items are, as a part of a bank's page."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.pages.blocks import Answer, Block, Chart, Column, Data, Section, Table, Text, bank_argument
from itembank.pages.grammar import PRECISE, Spec, equal, equals, marks, number, of, picture, score, span, tips, when
from itembank.pages.theme import count, level_words, percent, plural, points, share_interval_words, unit_words
from itembank.planning.accuracy import Accuracy, can_be_measured

TITLE = "How good estimates are"
PRECISION = (
    Column("error", "Mean error (points)", "number", 1),
    Column("half_width", "Mean interval (± points)", "number", 1),
    Column("coverage", "Coverage", "percent", 0, "Share of intervals that cover the true score"),
)


def typical(found: Accuracy) -> tuple[int, int, float]:
    """Return the number of items nearest to a hundred that was tried: place among the sizes, number, half-width."""
    place = int(np.argmin(np.abs(np.log(found.sizes / 100))))
    return place, int(found.sizes[place]), float(found.expected_half_widths[place])


def accuracy_answer(found: Accuracy) -> Answer:
    """Return the precision of a usual number of items as one of the page's answers."""
    place, n_items, half_width = typical(found)
    covered, error = found.coverage[place, -1], found.mean_absolute_errors[place, -1]
    return Answer(
        f"A score from {count(n_items)} questions",
        f"± {points(half_width)}",
        f"{level_words(found.level)} interval; it covers the true score of {percent(covered, 0)} of past models",
        f"Mean error {points(error)}, cross-validated. {percent(1.0 - n_items / found.n_total)} of the questions "
        "need not be run.",
    )


def accuracy_section(bank: Bank, found: Accuracy | None) -> Section:
    """Return errors, intervals and coverage by number of items; without trials, what is known in their place."""
    if found is not None:
        return _measured(bank, found)
    if bank.published is not None:
        return Section(TITLE, _published(bank))
    why = f"This was not measured yet: itembank report {bank_argument(bank)} -o bank.html measures it."
    if not can_be_measured(bank):
        why = (
            "Cross-validation needs at least ten past models whose full scores are known. Until then, intervals rest "
            "on how questions are drawn, or on the item model alone."
        )
    return Section(TITLE, (Text(why),))


def _measured(bank: Bank, found: Accuracy) -> Section:
    place, n_items, half_width = typical(found)
    covered = share_interval_words(found.coverage[:, -1].min(), found.coverage[:, -1].max())
    blocks: list[Block] = [
        Text(
            "Cross-validated: each part of the past models was scored as if it were new, with questions, estimates and "
            "intervals made without it. Questions are chosen as itembank select does by default. Scores are in points "
            "from 0 to 100."
        ),
        _precision_chart(found),
        _left_out_chart(bank, found, place),
    ]
    if bank.targets.n_scenarios > 1:
        rows = {
            "scenario": list(bank.targets.scenarios),
            "items": bank.targets.scenario_sizes,
            "error": 100.0 * found.mean_absolute_errors[place, :-1],
            "half_width": 100.0 * found.mean_half_widths[place, :-1],
            "coverage": found.coverage[place, :-1],
        }
        columns = (Column("scenario", "Scenario"), Column("items", "Questions", "count"), *PRECISION)
        note = f"All from the same {count(n_items)} questions of all scenarios together."
        blocks.append(Table.of("Scores of single scenarios", "accuracy_by_scenario", rows, columns, note=note))
    lead = (
        f"{count(n_items)} questions give a new model's score within ± {points(half_width)}. "
        f"{level_words(found.level)} intervals cover the true score of {covered} of past models, depending on the "
        "number of questions."
    )
    return Section(TITLE, tuple(blocks), lead)


def _precision_chart(found: Accuracy) -> Chart:
    half = found.expected_half_widths
    error, margin = found.mean_absolute_errors[:, -1], 2.0 * found.standard_errors[:, -1]
    data = Data(
        "precision",
        {
            "items": found.sizes,
            "share": found.sizes / found.n_total,
            "half_width": 100.0 * half,
            "error": 100.0 * error,
            "error_low": 100.0 * np.maximum(error - margin, 0.0),
            "error_high": 100.0 * (error + margin),
            "coverage": found.coverage[:, -1],
            "difference": 100.0 * found.differences,
            **{f"cost_{k}": cost for k, cost in enumerate(found.costs.values())},
        },
    )
    place, n_items, half_width = typical(found)
    title = (
        f"{count(n_items)} questions give an interval of ± {points(half_width)}; the mean error is "
        f"{points(error[place])}"
    )
    first, last = (int(found.sizes[k]) for k in (0, -1))
    words = (
        f"From {first} to {last} questions the half-width of the {level_words(found.level)} interval falls from "
        f"{points(half[0])} to {points(half[-1])}, the mean error from {points(error[0])} to "
        f"{points(error[-1])}."
    )
    scale = {"nice": False, "domain": [first, 3.2 * last]}  # so far that the lines' names stand behind them
    x = number("items", "Questions run", "d", log=True, scale=scale, values=found.sizes.tolist())
    y = number("half_width", "Points of the score")
    tip = tips(
        items=("Questions", ",d"),
        half_width=("Half-width", ".2f"),
        error=("Mean error", ".2f"),
        coverage=("Coverage (%)", ".0%"),
    )
    lines = (("half_width", "@main", "± interval", -6), ("error", "@other", "mean error", 8))  # apart where both are 0
    label: Spec = {"align": "left", "dx": 8, "fontWeight": 600, "where": equals("items", last)}
    spec = picture(
        marks("rule", x, span(y, "error_low", "error_high"), color="@other"),
        (marks("line", x, of(y, one), tip=tip, color=tone, point={"color": tone}) for one, tone, *_ in lines),
        (marks("text", x, of(y, one), color=tone, text=text, dy=dy, **label) for one, tone, text, dy in lines),
        height=260,
    )
    shows = "Between two models on the same questions, detected 80 % of the time"
    columns = (
        Column("items", "Questions", "count"),
        Column("half_width", "Interval (± points)", "number", 1),
        Column("error", "Mean error (points)", "number", 1),
        Column("coverage", "Coverage", "percent", 0, "Share of intervals that cover the true score, cross-validated"),
        Column("share", "Of all", "percent"),
        Column("difference", "Detectable difference (points)", "number", 1, shows),
        *(Column(f"cost_{k}", f"Cost, {unit_words(unit)}", "number", 2) for k, unit in enumerate(found.costs)),
    )
    note = "Orange bars: mean error ± 2 standard errors over past models, cross-validated."
    return Chart(title, spec, (data,), words, Table("Precision by number of items", data, columns), note)


def _left_out_chart(bank: Bank, found: Accuracy, place: int) -> Chart:
    """Cross-validated estimates of past models against their full scores, at one of the sizes."""
    error, half = found.errors[place, :, -1], found.half_widths[place, :, -1]
    rows = np.flatnonzero(~np.isnan(error))
    error, half = error[rows], half[rows]
    true = bank.known_scores.value[rows, -1]
    estimate, is_covered = true + error, np.abs(error) <= half
    ids = bank.responses.model_ids
    data = Data(
        "left_out",
        {
            "model": [ids[row] for row in rows.tolist()],
            "true": true,
            "estimate": estimate,
            "low": np.clip(estimate - half, 0.0, 1.0),
            "high": np.clip(estimate + half, 0.0, 1.0),
            "error": error,
            "covered": is_covered,
        },
    )
    missed = int((~is_covered).sum())
    n_items, n_intervals = count(int(found.sizes[place])), count(rows.size)
    title = f"From {n_items} questions, {percent(is_covered.mean(), 0)} of {n_intervals} intervals cover the true score"
    largest = int(np.argmax(np.abs(error)))
    words = (
        f"Estimates are off by {points(np.abs(error).mean())} on average, by at most "
        f"{points(abs(float(error[largest])))} ({data.columns['model'][largest]}). {plural(missed, 'interval')} "
        f"{'misses' if missed == 1 else 'miss'} the true score."
    )
    columns = (
        Column("model", "Past model", "id"),
        Column("true", "True score", "score"),
        Column("estimate", "Estimate", "score"),
        Column("low", "From", "score"),
        Column("high", "To", "score"),
        Column("error", "Error", "points"),
        Column("covered", "Covered", "flag", has_menu=True),
    )
    table = Table(f"Past models, cross-validated, from {found.sizes[place]} questions", data, columns)
    x, y = score("true", "True score"), score("estimate", "Estimate")
    color = when(equals("covered", True), "@main", "@other")
    tip = tips(
        model="Model",
        true=("True score", PRECISE),
        estimate=("Estimate", PRECISE),
        low=("From", PRECISE),
        high=("To", PRECISE),
    )
    spec = picture(
        marks("rule", x, span(y), color=color, opacity=0.35),
        equal(x, y, float(min(true.min(), estimate.min())), float(max(true.max(), estimate.max()))),
        marks("point", x, y, tip=tip, color=color, opacity=0.8, size=22),
        height=360,
    )
    note = (
        "Each line is an interval; orange ones miss the true score. On the diagonal, estimate and true score are equal."
    )
    return Chart(title, spec, (data,), words, table, note)


def _published(bank: Bank) -> tuple[Block, ...]:
    """Tell what the whole bank measured for each set of items that the published one asks to be run."""
    subsets = () if bank.published is None else bank.published.subsets
    measured = sorted((one for one in subsets if one.measured), key=lambda one: one.selection.n_items)
    if not measured:
        return (Text("The bank was published without past models' answers and without errors measured on them."),)
    found = {name: np.array([one.measured[name] for one in measured]) for name in ("error", "half_width", "coverage")}
    rows = {
        "items": [one.selection.n_items for one in measured],
        "error": 100.0 * found["error"],
        "half_width": 100.0 * found["half_width"],
        "coverage": found["coverage"],
    }
    columns = (Column("items", "Questions to run", "count"), *PRECISION)
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
                (Column("target", "Score"), PRECISION[0]),
                note=f"From {count(most.selection.n_items)} questions of all scenarios together.",
            )
        )
    return tuple(blocks)
