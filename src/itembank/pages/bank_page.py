"""The page of a bank: what it holds, and what a few of its items tell."""

import numpy as np

from itembank.data.banks import Bank
from itembank.data.score_names import OVERALL
from itembank.pages.blocks import Answer, Answers, Chart, Column, Data, Page, Section, Table
from itembank.pages.common import bank_provenance, plural
from itembank.reports.theme import count, interval_words


def bank_page(bank: Bank, *, title: str = "", command: str = "") -> Page:
    """Return the page of a bank."""
    return Page(
        title=title or bank.name or f"Bank {bank.bank_id}",
        kind="Item bank",
        lead=(_size(bank),),
        sections=(_items(bank),),
        provenance=bank_provenance(bank),
        command=command,
    )


def _size(bank: Bank) -> Answers:
    overall = bank.best_known_scores[:, bank.targets.names.index(OVERALL)]
    scores = interval_words(overall.min(), overall.max())
    return Answers(
        (
            Answer("Items", count(bank.n_items), words=plural(bank.targets.n_scenarios, "scenario")),
            Answer("Past models", count(bank.n_models), words=f"scores from {scores}"),
        )
    )


def _items(bank: Bank) -> Section:
    table = bank.items
    known = {name: table[name].to_list() for name in ("item_id", "scenario", "mean_response")}
    data = Data("items", known | {"discrimination": np.linalg.norm(bank.parameters.loadings, axis=1)})
    columns = (
        Column("item_id", "Item", "id"),
        Column("scenario", "Scenario", has_menu=True),
        Column("mean_response", "Right", "percent", explanation="Share of past models that answer it right"),
        Column("discrimination", "Discrimination", "number", digits=2),
    )
    items = Table("Items", data, columns)
    right = {"field": "mean_response", "type": "quantitative", "axis": {"format": "%"}}
    spec = {
        "width": "container",
        "height": 320,
        "params": [{"name": "brush", "select": "interval"}],
        "mark": {"type": "point", "opacity": 0.5},
        "encoding": {
            "x": {**right, "title": "Past models that answer it right"},
            "y": {"field": "discrimination", "type": "quantitative", "title": "Discrimination"},
            "color": {"condition": {"param": "brush", "value": "@main"}, "value": "@soft"},
            "tooltip": [
                {"field": "item_id", "title": "Item"},
                {"field": "scenario", "title": "Scenario"},
                {"field": "discrimination", "title": "Discrimination", "format": ".2f"},
            ],
        },
    }
    title = "Items by how hard they are and how well they tell models apart"
    return Section("Items", (Chart(title, spec, (data,), "A scatter plot of all items.", filters=items), items))
