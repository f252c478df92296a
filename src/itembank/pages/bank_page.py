"""The page of a bank: what it holds, how good estimates from few items are, its models, items and history."""

from collections.abc import Iterator

import numpy as np

from itembank.bank.banks import Bank
from itembank.pages.bank_abilities import abilities_section
from itembank.pages.bank_accuracy import accuracy_answer, accuracy_section
from itembank.pages.bank_audit import audit_section
from itembank.pages.bank_items import items_section
from itembank.pages.bank_models import models_section
from itembank.pages.bank_provenance import costs_section, history_section, provenance
from itembank.pages.blocks import Answer, Answers, Block, Caution, Chart, Column, Data, Section, Table
from itembank.pages.charts import Spec, layer, row_axis, row_height, score_axis, tips
from itembank.pages.common import plural, scores_in_words
from itembank.pages.render import Page
from itembank.pages.theme import count, percent
from itembank.planning.accuracy import Accuracy, kept_accuracy

DENSE = 0.9
"""Share of responses that are there, below which a page says how many are missing."""


def bank_page(bank: Bank, *, accuracy: Accuracy | None = None, title: str = "", command: str = "") -> Page:
    """Return the page of a bank.

    Parameters
    ----------
    bank : Bank
    accuracy : Accuracy, optional
        How good estimates from few items are, as `itembank.planning.accuracy` measures it; by default, what was
        measured before.
    title, command : str
    """
    accuracy = kept_accuracy(bank) if accuracy is None else accuracy
    sections = (
        accuracy_section(bank, accuracy),
        contents_section(bank),
        models_section(bank),
        items_section(bank),
        abilities_section(bank),
        audit_section(bank),
        costs_section(bank),
        history_section(bank),
    )
    return Page(
        title=title or bank.name or f"Bank {bank.bank_id}",
        kind="Item bank",
        lead=(Answers(tuple(bank_answers(bank, accuracy))), *_cautions(bank)),
        sections=tuple(section for section in sections if section is not None),
        provenance=provenance(bank),
        command=command,
    )


def bank_answers(bank: Bank, accuracy: Accuracy | None) -> Iterator[Answer]:
    """Say how good estimates are, where that was measured, and how much the bank holds."""
    if accuracy is not None:
        yield accuracy_answer(accuracy)
    aside = f", {count(bank.n_aside)} more kept aside" if bank.n_aside else ""
    yield Answer("Items", count(bank.n_items), words=f"in {plural(bank.targets.n_scenarios, 'scenario')}{aside}")
    overall = bank.best_known_scores[:, -1]
    overall = overall[np.isfinite(overall)]
    words = f"with {scores_in_words(overall)}" if overall.size else ""
    yield Answer("Past models", count(bank.n_calibration_models), words=words)


def _cautions(bank: Bank) -> Iterator[Block]:
    calibration = bank.calibration
    if not calibration.is_fitted:
        models = plural(bank.n_models, "past model")
        yield Caution(
            f"The bank was begun with {models}, too few for an item model. Estimates from it are means of the items "
            "that were run, with the wide intervals of random draws; they get narrower as models are added."
        )
    elif not calibration.converged:
        yield Caution(f"The calibration did not end where it should: {calibration.message}")
    if bank.published is not None:
        yield Caution(
            f"The bank was published without the answers of its {plural(bank.n_calibration_models, 'past model')}: "
            "this page shows its items only."
        )
    share = float(bank.responses.observed.mean()) if bank.n_models else 1.0
    if share < DENSE:
        yield Caution(f"{percent(share, 0)} of the past models' answers are there; what is missing counts as unknown.")


def contents_section(bank: Bank) -> Section:
    """Show the scenarios with their sizes, weights and the scores of past models."""
    targets = bank.targets
    scores = bank.best_known_scores[:, :-1]
    known: dict[str, object] = {
        "scenario": list(targets.scenarios),
        "items": targets.scenario_sizes,
        "weight": targets.scenario_weights,
        "same": np.bincount(targets.scenario_index, bank.calibration.is_degenerate, targets.n_scenarios).astype(
            np.int64
        ),
    }
    has_scores = bool(np.isfinite(scores).any())
    if has_scores:
        known |= _quantiles(scores)
    if np.isfinite(bank.item_model_bias).any():
        known["bias"] = 100.0 * bank.item_model_bias
    data = Data("scenarios", known)
    columns = (
        Column("scenario", "Scenario"),
        Column("items", "Items", "count"),
        Column("weight", "Weight", "percent", explanation="In the overall score"),
        Column("middle", "Middle score", "percent", explanation="Of past models"),
        Column("lowest", "Lowest", "percent"),
        Column("highest", "Highest", "percent"),
        Column("same", "All answered alike", "count", explanation="Items that tell past models nothing"),
        Column(
            "bias",
            "Error of the item model",
            "number",
            2,
            "Mean error of the score it predicts for models left out, points",
        ),
    )
    table = Table("Scenarios", data, tuple(one for one in columns if one.name in known), n_shown=20)
    blocks: list[Block] = [table]
    if has_scores and targets.n_scenarios > 1:
        blocks.insert(0, _scores_chart(data))
    words = targets.overall_in_words
    lead = f"{plural(bank.n_items, 'item')} in {plural(targets.n_scenarios, 'scenario')}."
    return Section("What it holds", tuple(blocks), lead + (f" The overall score is {words}." if words else ""))


def _quantiles(scores: np.ndarray) -> dict[str, object]:
    """Scores of past models by scenario; of one that no model answered, NaN."""
    names = ("lowest", "low", "middle", "high", "highest")
    found = np.full((len(names), scores.shape[1]), np.nan)
    is_known = np.isfinite(scores).any(axis=0)
    found[:, is_known] = np.nanquantile(scores[:, is_known], [0.0, 0.25, 0.5, 0.75, 1.0], axis=0)
    return dict(zip(names, found, strict=True))


def _scores_chart(data: Data) -> Chart:
    middle = np.asarray(data.columns["middle"])
    names = data.columns["scenario"]
    order = np.argsort(middle, kind="stable")  # NaN comes last
    rows = [names[k] for k in order.tolist()]
    known = order[np.isfinite(middle[order])]
    hardest, easiest = (names[int(known[k])] for k in (0, -1))
    title = f"Past models score least in {hardest} and most in {easiest}"
    least, most = (percent(float(middle[k])) for k in (known[0], known[-1]))
    words = f"The middle past model scores {least} in {hardest} and {most} in {easiest}."
    note = "Dot: the middle past model, bar: the middle half, line: all of them."
    return Chart(title, _scores_spec(rows), (data,), words, note=note)


def _scores_spec(rows: list[str]) -> Spec:
    y = row_axis("scenario", rows)
    tooltip = tips(
        scenario="Scenario", items=("Items", ",d"), middle=("Middle score", ".1%"), highest=("Highest", ".1%")
    )
    return {
        "width": "container",
        "height": row_height(len(rows), 20),
        "layer": [
            layer({"type": "rule", "color": "@soft"}, x=score_axis("lowest", "Score"), x2={"field": "highest"}, y=y),
            layer(
                {"type": "bar", "color": "@main", "opacity": 0.35, "height": 8},
                x=score_axis("low", "Score"),
                x2={"field": "high"},
                y=y,
            ),
            layer(
                {"type": "point", "color": "@main", "size": 45}, x=score_axis("middle", "Score"), y=y, tooltip=tooltip
            ),
        ],
    }
