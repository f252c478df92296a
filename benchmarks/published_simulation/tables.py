"""Tables of the two studies in benchmarks/tables/tables.md: errors of difficulty, numbers of models across."""

from collections.abc import Callable

import polars as pl

from benchmarks.published_simulation.ways import PUBLISHED

METHODS = {PUBLISHED: "published objective", "variational": "default (variational)", "map": "joint MAP"}
KINDS = {"beta": "probabilities", "bernoulli": "single answers"}
FITTED_AS = {"binomial": "counts, `binomial`", "beta": "rates, `beta`"}
SIGNIFICANT = 3


def recovery_tables(summary: pl.DataFrame) -> dict[str, str]:
    """Return one table for each item model; of 2PL the published objective as IRSL reports it, too."""
    return {f"published-{name}": _recovery(summary.filter(item_model=name)) for name in ("1pl", "2pl")}


def _recovery(summary: pl.DataFrame) -> str:
    has_slopes = summary["item_model"][0] == "2pl"
    sizes = summary["n_models"].unique().sort().to_list()
    rows = []
    for family, kind in KINDS.items():
        for way, method in METHODS.items():
            part = summary.filter(family=family, way=way)
            if way == PUBLISHED and has_slopes:
                rows.append([kind, f"{method}, as IRSL reports it", *_cells(part, "n_models", sizes, "rmse_centred")])
                method = "the same on the common scale"  # noqa: PLW2901
            if part.height:
                rows.append([kind, method, *_cells(part, "n_models", sizes, "rmse")])
    return _markdown(["responses", "method", *map(str, sizes)], rows)


def budget_tables(summary: pl.DataFrame) -> dict[str, str]:
    """Return the table of counts and rates at equal budgets, by the default method."""
    summary = summary.filter(way="variational")
    sizes = summary["n_samples"].unique().sort().to_list()
    rows = []
    for item_model, n_models in summary.select("item_model", "n_models").unique().sort("item_model", "n_models").rows():
        for family, label in FITTED_AS.items():
            part = summary.filter(item_model=item_model, n_models=n_models, family=family)
            rows.append([item_model, str(n_models), label, *_cells(part, "n_samples", sizes, "rmse")])
    heads = ["item model", "models", "fitted as", *(f"{size:,}" for size in sizes)]
    return {"published-budgets": _markdown(heads, rows)}


TABLES: dict[str, Callable[[pl.DataFrame], dict[str, str]]] = {"recovery": recovery_tables, "budgets": budget_tables}


def _cells(part: pl.DataFrame, by: str, sizes: list[int], column: str) -> list[str]:
    found = dict(part.select(by, column).iter_rows())
    return [f"{found[size]:#.{SIGNIFICANT}g}".rstrip(".") if size in found else "–" for size in sizes]


def _markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
