"""Where a bank comes from: files and checksums, how answers were taken, its history, what a run costs."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from itembank.auditing.run_conditions import told_conditions
from itembank.bank.bank_records import read_record
from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.errors import ItembankError
from itembank.pages.blocks import Block, Column, Data, Facts, Section, Table
from itembank.pages.common import Pair, bank_provenance, plural, unit_words
from itembank.pages.model_columns import date_column, iso_day
from itembank.pages.theme import count, money

MOST_VALUES = 3
"""Values of a column that are told."""
MOST_CHARACTERS = 80
SOURCES = ("source", "url", "dataset", "revision", "license")


def provenance(bank: Bank) -> tuple[Pair, ...]:
    """Return the bank, its release, its source and the checksums of its files."""
    return (*bank_provenance(bank), *_made(bank), *_files(bank))


def history_section(bank: Bank) -> Section | None:
    """Return how answers were taken and what changed the bank; None where nothing is known of either."""
    blocks: list[Block] = []
    told = (*_sources(bank), *told_conditions(bank.responses).items())
    if told:
        blocks.append(Facts(told, "How answers were taken"))
    if bank.history is not None and bank.history.changes:
        blocks.append(_changes(bank))
    return Section("How it came about", tuple(blocks)) if blocks else None


def costs_section(bank: Bank) -> Section | None:
    """Return what a run of all items costs, and of which scenarios; None where no cost is known."""
    costs = costs_of_items(bank.responses) if bank.n_models else {}
    if not costs:
        return None
    index, n = bank.targets.scenario_index, bank.targets.n_scenarios
    totals = {f"cost_{k}": np.bincount(index, cost, minlength=n) for k, cost in enumerate(costs.values())}
    sizes = bank.targets.scenario_sizes
    data = Data("costs", {"scenario": list(bank.targets.scenarios), "items": sizes, **totals})
    columns = (
        Column("scenario", "Scenario"),
        Column("items", "Items", "count"),
        *(Column(f"cost_{k}", unit_words(unit), "number") for k, unit in enumerate(costs)),
    )
    whole = "; ".join(money(float(cost.sum()), unit_words(unit)) for unit, cost in costs.items())
    lead = f"A run of all {plural(bank.n_items, 'item')} is expected to cost {whole}."
    note = "Sums of each item's mean cost over past models; where it is not known, the mean of the other items."
    return Section("Costs", (Table("Cost of a run by scenario", data, columns, note=note),), lead)


def _made(bank: Bank) -> Iterator[Pair]:
    if bank.cache.source:
        yield "Pulled from", bank.cache.source
    if bank.published is not None:
        yield "Published from bank", bank.published.whole_bank
    if bank.n_models:
        date = date_column(bank.responses.models)
        if date is not None:
            days = date.values[np.isfinite(date.values)]
            yield f"Models' dates ({date.name})", f"{iso_day(days.min())} to {iso_day(days.max())}"
    if bank.history is not None:
        yield "Version", bank.version


def _files(bank: Bank) -> Iterator[Pair]:
    """Tell what the bank's record states of its files; nothing of a bank in memory."""
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


def _sources(bank: Bank) -> Iterator[Pair]:
    """Where items and answers are from, as far as the tables have columns of it."""
    for table, whose in ((bank.responses.items, "items"), (bank.responses.models, "models")):
        for name in (one for one in table.columns if one in SOURCES):
            values = table[name].cast(pl.String).drop_nulls().unique().sort().to_list()
            more = f" and {count(len(values) - MOST_VALUES)} more" if len(values) > MOST_VALUES else ""
            if values:
                yield f"{name}, of {whose}", ", ".join(one[:MOST_CHARACTERS] for one in values[:MOST_VALUES]) + more


def _changes(bank: Bank) -> Table:
    changes = () if bank.history is None else bank.history.changes
    data = Data(
        "changes",
        {
            "version": [one.version for one in changes],
            "operation": [one.operation for one in changes],
            "at": [one.at for one in changes],
            "by": [one.by for one in changes],
            "bank": [one.bank for one in changes],
            "items_added": [one.items_added.n for one in changes],
            "items_dropped": [one.items_dropped.n for one in changes],
            "models_added": [one.models_added.n for one in changes],
            "note": [one.note for one in changes],
        },
    )
    columns = (
        Column("version", "Version"),
        Column("operation", "Change"),
        Column("at", "When (UTC)"),
        Column("by", "By"),
        Column("bank", "Bank", "id"),
        Column("items_added", "Items added", "count"),
        Column("items_dropped", "Items dropped", "count"),
        Column("models_added", "Models added", "count"),
        Column("note", "Why"),
    )
    return Table("Changes of the bank", data, columns)
