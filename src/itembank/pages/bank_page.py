"""The page of a bank: what it holds, how good estimates from few items are, its models, items, history and costs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from itembank.auditing.run_conditions import told_conditions
from itembank.bank.ability_axis import AbilityAxis
from itembank.bank.bank_records import read_record
from itembank.bank.banks import KNOWN_PARAMETERS, Bank
from itembank.bank.costs import costs_of_items
from itembank.errors import ItembankError
from itembank.numerics.arrays import FloatArray
from itembank.pages.bank_items import items_section
from itembank.pages.blocks import (
    Answer,
    Answers,
    Block,
    Caution,
    Chart,
    Column,
    Data,
    Facts,
    Pair,
    Section,
    Table,
    Text,
    bank_provenance,
    bank_title,
    heads,
)
from itembank.pages.grammar import ROW, Spec, equals, marks, nominal, number, of, picture, score, span, tips
from itembank.pages.past_models import PastScores, past_chart
from itembank.pages.render import Page
from itembank.pages.theme import count, interval_words, level_words, money, percent, points, unit_words
from itembank.planning.plan import Plan, overall_plan
from itembank.responses.model_features import model_dates
from itembank.responses.sizes import assumed_questions
from itembank.tables import plural

SOURCES = ("source", "url", "dataset", "revision", "license")
"""Columns of tables of items and models that say where these are from."""


def bank_page(bank: Bank, *, title: str = "", command: str = "") -> Page:
    """Return the page of a bank.

    Parameters
    ----------
    bank : Bank
    title, command : str
    """
    found = overall_plan(bank)
    sections = (
        precision_section(bank, found),
        contents_section(bank),
        _models_section(bank),
        items_section(bank),
        _costs(bank),
        _history(bank),
    )
    return Page(
        title=title or bank_title(bank),
        kind="Item bank" if bank.newest is None else f"Item bank, newest past model {bank.newest!s}",
        lead=(_summary(bank), Answers(tuple(_answers(bank, found))), *_cautions(bank)),
        sections=tuple(section for section in sections if section is not None),
        provenance=(*bank_provenance(bank), *_made(bank)),
        command=command,
    )


def bank_summary(bank: Bank, title: str = "") -> Page:
    """Return what a notebook shows of a bank: how good estimates are, and what it holds."""
    lead = (_summary(bank), Answers(tuple(_answers(bank, overall_plan(bank)))))
    return Page(title or bank_title(bank), "Item bank", lead, (contents_section(bank),))


def _summary(bank: Bank) -> Text:
    """Say in a sentence what the bank is for."""
    if bank.n_calibration_models == 0:
        return Text(f"A bank of {plural(bank.n_total, 'question')}, without past models.")
    learned = f"learned from {plural(bank.n_calibration_models, 'past model')}"
    return Text(f"A bank of {plural(bank.n_total, 'question')}, {learned}, to score new models from few answers.")


def _answers(bank: Bank, found: Plan | None) -> Iterator[Answer]:
    """Say how good estimates are, if that is known, and how much the bank has."""
    if found is not None:
        usual = found.near(USUAL)
        yield Answer(
            f"A score from {count(usual.n_items)} questions",
            f"± {points(usual.half_width)}",
            f"{level_words(found.level)} interval, for a model like past ones",
            f"Drawn at random. {percent(1.0 - usual.n_items / found.n_total)} of the questions need not be run.",
        )
    aside = f", {count(bank.n_aside)} more kept aside" if bank.n_aside else ""
    yield Answer("Questions", count(bank.n_total), words=f"in {plural(bank.targets.n_scenarios, 'scenario')}{aside}")
    overall = bank.best_known_scores[:, -1]
    overall = overall[np.isfinite(overall)]
    n_past = bank.n_calibration_models
    some = f"{count(overall.size)} of them " if 0 < overall.size < n_past else ""
    words = f"{some}with {scores_in_words(overall)}" if overall.size else ""
    yield Answer("Past models", count(n_past), words=words)


def _cautions(bank: Bank) -> Iterator[Block]:
    calibration = bank.calibration
    if not calibration.is_fitted:
        models = plural(bank.n_models, "past model")
        yield Caution(
            f"The bank has only {models}, too few for an item model. Its estimates are means of the questions that "
            "were run, with the wide intervals of random samples; intervals narrow as models are added."
        )
    elif calibration.method == KNOWN_PARAMETERS:
        yield Caution(
            "The bank was made from known item parameters, without past models: it is only as good as they are."
        )
    elif not calibration.converged:
        yield Caution(f"The calibration did not converge: {calibration.message}")
    if calibration.caution:
        yield Caution(calibration.caution)
    if bank.published is not None:
        yield Text(
            f"The bank was published without the answers of its {plural(bank.n_calibration_models, 'past model')}: "
            "this page shows its questions and at most the overall scores of these models."
        )
    share = float(bank.responses.observed.mean()) if bank.n_models else 1.0
    if share < 0.9:
        yield Text(f"{percent(share, 0)} of the past models' answers are known; the rest count as missing.")


def contents_section(bank: Bank) -> Section:
    """Show the scenarios with their sizes, weights and the scores of past models."""
    targets, n_scenarios = bank.targets, bank.targets.n_scenarios
    scores = bank.best_known_scores[:, :-1]
    same = np.bincount(targets.scenario_index, bank.calibration.is_degenerate, n_scenarios).astype(np.int64)
    known: dict[str, object] = {
        "scenario": list(targets.scenarios),
        "items": targets.scenario_sizes,
        "weight": targets.scenario_weights,
        "same": same,
    }
    has_scores = bool(np.isfinite(scores).any())
    if has_scores:
        found = np.full((5, n_scenarios), np.nan)
        is_known = np.isfinite(scores).any(axis=0)
        found[:, is_known] = np.nanquantile(scores[:, is_known], [0.0, 0.25, 0.5, 0.75, 1.0], axis=0)
        known |= dict(zip(("lowest", "low", "middle", "high", "highest"), found, strict=True))
    if np.isfinite(bank.item_model_bias).any():
        known["bias"] = 100.0 * bank.item_model_bias
    data = Data("scenarios", known)
    error = "Mean error of the score that the item model alone predicts, cross-validated, in points"
    columns = (
        Column("scenario", "Scenario"),
        *heads("items", "weight", "middle", "lowest", "highest", "same"),
        Column("bias", "Item model error", "number", 1, error),
    )
    blocks: list[Block] = [Table("Scenarios", data, tuple(one for one in columns if one.name in known), n_shown=20)]
    if has_scores and n_scenarios > 1:
        blocks.insert(0, _scores_chart(data))
    words = f" The overall score is {targets.overall_in_words}." if targets.overall_in_words else ""
    return Section(
        "What it contains",
        tuple(blocks),
        f"{plural(bank.n_total, 'question')} in {plural(n_scenarios, 'scenario')}.{words}",
    )


def _scores_chart(data: Data) -> Chart:
    middle = np.asarray(data.columns["middle"])
    names = data.columns["scenario"]
    order = np.argsort(middle, kind="stable")  # NaN comes last
    known = order[np.isfinite(middle[order])]
    hardest, easiest = (names[int(known[k])] for k in (0, -1))
    least, most = (points(float(middle[k])) for k in (known[0], known[-1]))
    title = f"Past models score least in {hardest} and most in {easiest}"
    if least == most:
        title = f"The median past model scores {least} in every scenario"
    words = f"The median past model scores {least} in {hardest} and {most} in {easiest}."
    x, y = score("middle", "Score"), nominal("scenario", [names[k] for k in order.tolist()])
    tip = tips(
        scenario="Scenario", items=("Questions", ",d"), middle=("Median score", ".1%"), highest=("Highest", ".1%")
    )
    spec = picture(
        marks("rule", span(x, "lowest", "highest"), y, color="@soft"),
        marks("bar", span(x), y, color="@main", opacity=0.35, height=8),
        marks("point", x, y, tip=tip, color="@main", size=45),
        height=ROW * len(names),
    )
    note = "Dot: the median past model; bar: the middle half; line: all of them."
    return Chart(title, spec, (data,), words, note=note)


def _costs(bank: Bank) -> Section | None:
    """Return what a run of all items costs, and of which scenarios; None where no cost is known."""
    costs = costs_of_items(bank.responses) if bank.n_models else {}
    if not costs:
        return None
    index, n = bank.targets.scenario_index, bank.targets.n_scenarios
    totals = {f"cost_{k}": np.bincount(index, cost, minlength=n) for k, cost in enumerate(costs.values())}
    rows = {"scenario": list(bank.targets.scenarios), "items": bank.targets.scenario_sizes, **totals}
    columns = (
        Column("scenario", "Scenario"),
        *heads("items"),
        *(Column(f"cost_{k}", unit_words(unit), "number") for k, unit in enumerate(costs)),
    )
    whole = "; ".join(money(float(cost.sum()), unit_words(unit)) for unit, cost in costs.items())
    lead = f"A run of all {plural(bank.n_items, 'question')} is expected to cost {whole}."
    note = "Sum of each question's mean cost over past models; if unknown, the mean of the other questions."
    return Section("Costs", (Table.of("Cost of a run by scenario", "costs", rows, columns, note=note),), lead)


def _history(bank: Bank) -> Section | None:
    """Return how answers were taken and what changed the bank; None where nothing is known of either."""
    blocks: list[Block] = []
    told: list[Pair] = []
    for table, whose in ((bank.responses.items, "items"), (bank.responses.models, "models")):
        for name in (one for one in table.columns if one in SOURCES):
            values = table[name].cast(pl.String).drop_nulls().unique().sort().to_list()
            more = f" and {count(len(values) - 3)} more" if len(values) > 3 else ""
            if values:
                told.append((f"{name}, of {whose}", ", ".join(one[:80] for one in values[:3]) + more))
    told += told_conditions(bank.responses).items()
    assumed = assumed_questions(bank.responses.items)
    if assumed is not None:
        told.append(("Scores without a number of questions", f"count as {assumed} each, an assumption"))
    if told:
        blocks.append(Facts(tuple(told), "How answers were taken"))
    if bank.history is not None and bank.history.changes:
        columns = (
            *heads("version", "operation", "at", "by", "bank", "items_added", "items_dropped"),
            Column("items_changed", "Items changed", "count"),
            *heads("models_added", "note"),
        )
        changes = bank.history.changes
        rows = {one.name: [getattr(change, one.name) for change in changes] for one in columns}
        rows |= {one.name: [ids.n for ids in rows[one.name]] for one in columns if one.kind == "count"}
        blocks.append(Table.of("Changes of the bank", "changes", rows, columns))
    return Section("How it was made", tuple(blocks)) if blocks else None


def _made(bank: Bank) -> Iterator[Pair]:
    """Tell where the bank comes from, and what its record states of its files; nothing of these in memory."""
    if bank.cache.source:
        yield "Comes from", bank.cache.source
    if bank.published is not None:
        yield "Published from bank", bank.published.whole_bank
    dates = model_dates(bank.responses.models)
    if dates is not None:
        yield f"Models' dates ({dates.name})", f"{dates.min()!s} to {dates.max()!s}"
    if bank.history is not None:
        yield "Version", bank.version
    if bank.cache.folder is None:
        return
    try:
        record = read_record(bank.cache.folder)
    except ItembankError:
        return
    if record.get("bank_id") != bank.bank_id:
        return
    yield "Written by", f"itembank {record.get('itembank_version', 'unknown')}"
    yield "Digest of the responses", str(record.get("data_fingerprint", "unknown"))
    for name, file in sorted(record["files"].items()):
        yield f"SHA-256 of {name}", str(file["sha256"])


def _models_section(bank: Bank) -> Section | None:
    if bank.n_models == 0:
        chart = past_chart(PastScores.of(bank), bank.targets.names[-1])
        return None if chart is None else Section("Past models", (chart,))
    scores = bank.best_known_scores
    rows = np.flatnonzero(np.isfinite(scores[:, -1]))
    if rows.size == 0:
        return Section("Past models", (Text("No past model answered enough questions for an overall score."),))
    rows = rows[np.argsort(-scores[rows, -1], kind="stable")]
    models = bank.responses.models[rows.tolist()]
    told: list[tuple[Column, Any]] = [
        (heads("model")[0], models["model_id"].to_list()),
        (Column("score", "Score", "score", 1, "The overall score"), scores[rows, -1]),
    ]
    if bank.calibration.is_fitted:
        axis, where = AbilityAxis.of(bank), "On the axis of the item map, in standard deviations"
        told += [
            (Column("ability", "Ability", "number", 2, where), axis.positions[rows]),
            (heads("ability_error")[0], axis.errors[rows]),
        ]
    dates = model_dates(models)
    if dates is not None:
        told.append((Column("date", dates.name), dates.cast(pl.String).to_list()))
    most_scenarios = 12  # columns of scenario scores that the table of models has room for
    if 1 < bank.targets.n_scenarios <= most_scenarios:
        names = enumerate(bank.targets.scenarios)
        told += [(Column(f"score_{j}", name, "score"), scores[rows, j]) for j, name in names]
    columns = {column.name: values for column, values in told}
    note = "Scores are of all questions. Answers that are missing count as missing, not as wrong."
    table = Table("Past models", Data("models", columns), tuple(column for column, _ in told), note=note)
    some = f"{count(rows.size)} of " if rows.size < bank.n_models else ""
    lead = (
        f"{some}{plural(bank.n_models, 'past model')}, with {scores_in_words(scores[rows, -1])}. The best is "
        f"{columns['model'][0]}."
    )
    if some:
        lead += " The others answered too few of today's questions for an overall score."
    return Section("Past models", (table,), lead)


def scores_in_words(scores: FloatArray) -> str:
    """Write the range of some scores: 'scores from 45.4 to 83.9 points'."""
    low, high = float(scores.min()), float(scores.max())
    return f"scores from {interval_words(low, high)} points" if high > low else f"a score of {points(low)}"


TITLE = "How good estimates are"
ERROR = Column("error", "Mean error (points)", "number", 1)
USUAL = 100
"""Questions that the page begins with."""


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
        return (Text("The questions to run were drawn by chance: intervals cover the true score whatever a model is."),)
    if not measured:
        return (Text("The bank was published without past models' answers and without errors measured on them."),)
    units = {"error": 100.0, "half_width": 100.0, "coverage": 1.0}
    rows = {name: [unit * one.measured[name] for one in measured] for name, unit in units.items()}
    rows["items"] = [one.selection.n_items for one in measured]
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
