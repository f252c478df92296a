"""The page of the quickstart: estimates of held-out models against the truth, by chance and by itembank."""

from collections.abc import Sequence

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Answer, Answers, Chart, Column, Data, Facts, Section, Table, Text
from itembank.pages.charts import tips
from itembank.pages.common import bank_provenance, plural
from itembank.pages.interval_charts import PRECISE
from itembank.pages.quickstart import DEFAULT, STRATEGIES, QuickstartResult, StrategyErrors
from itembank.pages.render import Page
from itembank.pages.theme import ATYPICAL_WORDS, count, level_words, percent, points
from itembank.pages.truth_charts import against_truth
from itembank.responses.score_names import OVERALL

BY_CHANCE = STRATEGIES[0]
"""What everybody can do without a bank."""
SHOWN = (BY_CHANCE, DEFAULT)


def quickstart_page(result: QuickstartResult, *, title: str = "", command: str = "") -> Page:
    """Return the page of what `run_quickstart` found.

    Examples
    --------
    >>> quickstart_page(run_quickstart("quickstart", rng=0)).save("report.html")  # doctest: +SKIP
    """
    data = _estimates(result)
    return Page(
        title=title or _title(result),
        kind="Quickstart",
        lead=(_errors_first(result), Text(_what_was_done(result))),
        sections=(
            Section("Estimated against true", (_chart(result, data), _models(data))),
            Section("Four ways to do it", (_strategies(result),)),
            Section("What to do next", (_next(result),)),
        ),
        provenance=bank_provenance(result.first.bank),
        command=command,
    )


def _of(result: QuickstartResult, name: str) -> StrategyErrors:
    return next(one for one in result.errors if one.strategy.name == name)


def _n_items(result: QuickstartResult) -> int:
    return result.first.selections[DEFAULT.selection].n_items


def _title(result: QuickstartResult) -> str:
    ours, chance = (_mean_error(result, one.name) for one in (DEFAULT, BY_CHANCE))
    n_total = count(result.first.bank.n_items)
    return f"{_n_items(result)} of {n_total} questions: {chance} off by chance, {ours} by itembank"


def _errors_first(result: QuickstartResult) -> Answers:
    ours, chance = (_of(result, one.name) for one in (DEFAULT, BY_CHANCE))
    return Answers(
        (
            *(
                Answer(f"Mean error, {one.strategy.name}", _mean_error(result, one.strategy.name), words=_worst(one))
                for one in (chance, ours)
            ),
            Answer(
                "True scores inside the intervals",
                percent(ours.coverage, 0),
                words=f"Of {level_words(ours.level)} intervals by {ours.strategy.name}.",
            ),
        )
    )


def _worst(errors: StrategyErrors) -> str:
    return f"At worst {points(errors.worst_error / 100.0)}."


def _what_was_done(result: QuickstartResult) -> str:
    first, flagged = result.first, result.flagged
    repeats = f" Errors are over {result.n_repeats} such splits, the picture is of one." if result.n_repeats > 1 else ""
    words = (
        f"{plural(first.held_out.n_models, 'model')} that the bank had never seen were estimated from "
        f"{_n_items(result)} of {count(first.bank.n_items)} questions, and compared with their full runs. The models "
        f"are tiny language models of our own; no checkpoint of a held-out training run is in the bank.{repeats}"
    )
    if not 0 < flagged.n_flagged < flagged.n_models:
        return words
    return (
        f"{words} {flagged.n_flagged} of {flagged.n_models} estimates are of models that {ATYPICAL_WORDS}: their mean "
        f"error is {flagged.flagged:.1f} points, that of the others {flagged.others:.1f}."
    )


def _column(result: QuickstartResult, strategy_name: str, field: str) -> FloatArray:
    """Of the overall scores by a strategy: 'value', 'low' or 'high', (n_models,)."""
    number = [one.name for one in STRATEGIES].index(strategy_name)
    estimates = result.first.estimates[number]
    values: FloatArray = getattr(estimates, field)[:, estimates.targets.index(OVERALL)]
    return values


def _estimates(result: QuickstartResult) -> Data:
    """One row a model and way that is drawn."""
    first = result.first
    true = first.true[:, first.bank.targets.names.index(OVERALL)]
    flagged = first.estimates[STRATEGIES.index(DEFAULT)].typicality.is_flagged
    value = np.concatenate([_column(result, one.name, "value") for one in SHOWN])
    truth = np.tile(true, len(SHOWN))
    low, high = (np.concatenate([_column(result, one.name, name) for one in SHOWN]) for name in ("low", "high"))
    ends = float(np.nanmin([truth, low])), float(np.nanmax([truth, high]))
    # the line of equality is drawn once in each panel: by the first row
    first_rows = [k % true.size == 0 for k in range(truth.size)]
    return Data(
        "estimates",
        {
            "way": [one.name for one in SHOWN for _ in true],
            "panel": [_panel_name(result, one.name) for one in SHOWN for _ in true],
            "model": [*first.held_out.model_ids] * len(SHOWN),
            "true": truth,
            "estimate": value,
            "low": low,
            "high": high,
            "error": value - truth,
            "is_flagged": np.tile(flagged, len(SHOWN)),
            "from": [ends[0] if one else None for one in first_rows],
            "to": [ends[1] if one else None for one in first_rows],
        },
    )


def _mean_error(result: QuickstartResult, strategy_name: str) -> str:
    return points(_of(result, strategy_name).mean_absolute_error / 100.0)


def _panel_name(result: QuickstartResult, strategy_name: str) -> str:
    return f"{strategy_name.capitalize()}: off by {_mean_error(result, strategy_name)}"


def _chart(result: QuickstartResult, data: Data) -> Chart:
    """Draw estimates with their intervals against the truth, by chance and by the default."""
    told = tips(
        model="Model",
        true=("True", PRECISE),
        estimate=("Estimated", PRECISE),
        low=("From", PRECISE),
        high=("To", PRECISE),
    )
    names = [_panel_name(result, one.name) for one in SHOWN]
    domain = [data.columns["from"][0], data.columns["to"][0]]
    spec = against_truth(names, ("True score", "Estimated score"), domain, told, n_columns=len(SHOWN))
    level = f"{100.0 * _of(result, DEFAULT.name).level:g} %"
    ours, chance = (_mean_error(result, one.name) for one in (DEFAULT, BY_CHANCE))
    title = f"On average {BY_CHANCE.name} is off by {chance}, {DEFAULT.name} by {ours}"
    return Chart(
        title,
        spec,
        (data,),
        f"Two pictures of estimated against true scores of {plural(len(data) // len(SHOWN), 'model')}. {title}.",
        note=f"Dashed: where the estimate is the truth. Bars: {level} intervals. Hollow: {ATYPICAL_WORDS}.",
    )


def _models(data: Data) -> Table:
    return Table(
        "Held-out models",
        data,
        (
            Column("model", "Model", "id"),
            Column("way", "Way", has_menu=True),
            Column("true", "True", "percent"),
            Column("estimate", "Estimated", "percent"),
            Column("low", "From", "percent"),
            Column("high", "To", "percent"),
            Column("error", "Error", "points", explanation="Estimated less true, in points"),
            Column("is_flagged", "Unlike past", "flag", explanation=ATYPICAL_WORDS.capitalize(), has_menu=True),
        ),
        n_shown=10,
    )


def _strategies(result: QuickstartResult) -> Table:
    found: Sequence[StrategyErrors] = result.errors
    data = Data(
        "strategies",
        {
            "way": [one.strategy.name for one in found],
            "items_by": [", ".join(one.selections_used) for one in found],
            "score_by": [", ".join(one.methods_used) for one in found],
            "mean": [one.mean_absolute_error for one in found],
            "worst": [one.worst_error for one in found],
            "order": [one.spearman for one in found],
            "coverage": [one.coverage for one in found],
        },
    )
    return Table(
        "Errors of the overall score, in points",
        data,
        (
            Column("way", "Way"),
            Column("items_by", "Items by"),
            Column("score_by", "Score by"),
            Column("mean", "Mean error", "number"),
            Column("worst", "Worst error", "number"),
            Column("order", "Rank correlation", "number", 3, "Of estimated and true scores"),
            Column("coverage", "Inside intervals", "percent", 0, "True scores that lie inside their intervals"),
        ),
    )


def _next(result: QuickstartResult) -> Facts:
    bank, selection, responses = (str(result.files[name]) for name in ("bank", "selection", "responses"))
    return Facts(
        (
            ("Look at the bank", f"itembank report {bank} -o bank.html"),
            ("Look at the estimates", f"itembank estimate {bank} {responses} --selection {selection} --report e.html"),
            ("Take your own results", "itembank import LOGS -o responses.parquet"),
        )
    )
