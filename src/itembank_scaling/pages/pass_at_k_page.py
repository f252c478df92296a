"""The page of pass@k: how often at least one of k samples is right, with what is forecast first."""

from functools import partial

import numpy as np

from itembank.pages.blocks import Column, Section, Table, Text
from itembank.pages.render import Page
from itembank.pages.theme import count, interval_words, level_words, plural, points
from itembank_scaling.pages.pass_at_k_charts import chosen_curves, middle_model, pass_at_k_chart
from itembank_scaling.pass_at_k.results import PassAtKLaw


def pass_at_k_page(law: PassAtKLaw) -> Page:
    """Return the page of pass@k: a sentence for every scenario of one model, the curves, and all numbers."""
    model = middle_model(law)
    n_models = len(set(law.model_ids))
    curves = [i for i, one in enumerate(law.model_ids) if one == model]
    return Page(
        f"pass@k of {model if n_models == 1 else plural(n_models, 'model')}",
        "pass@k",
        tuple(Text(words) for words in map(partial(_sentence, law), curves) if words),
        (
            Section("Curves", (pass_at_k_chart(law, model),)),
            Section("All numbers", (_table(law),)),
            *([Section("Notes", tuple(Text(f"{one[0].upper()}{one[1:]}.") for one in law.notes))] if law.notes else []),
        ),
        (
            ("Models", count(n_models)),
            ("Scenarios", ", ".join(dict.fromkeys(law.scenarios))),
            ("Samples of an item", "all" if law.budget is None else f"{count(law.budget)}, the budget"),
            ("Methods", ", ".join(law.methods)),
            ("Level", level_words(law.level)),
        ),
    )


def _sentence(law: PassAtKLaw, i: int) -> str:
    """Say what a curve comes to at the first k beyond its samples, or at the largest."""
    n_samples = int(law.fewest_samples[i])
    values = law.values(law.methods[0])[i]
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return ""
    beyond = known[law.k[known] > n_samples]
    j = int(beyond[0] if beyond.size else known[-1])
    low, high = float(law.all_items.low[i, j]), float(law.all_items.high[i, j])
    interval = f" ({interval_words(low, high)})" if np.isfinite(low) else ""
    return (
        f"{law.model_ids[i]} solves {points(float(values[j]))} of {law.scenarios[i]} at k = {law.k[j]:,.0f}{interval}, "
        f"from {plural(n_samples, 'sample')} of each question{': a forecast' if beyond.size else ''}."
    )


def _table(law: PassAtKLaw) -> Table:
    """List every curve of the chart, a column a method."""
    rows, n_k = chosen_curves(law), law.k.size
    truth = law.all_items.truth
    values = {name: law.values(name)[rows].ravel() for name in law.methods}
    intervals = {"low": law.all_items.low[rows].ravel(), "high": law.all_items.high[rows].ravel()}
    seen = {} if truth is None else {"truth": truth[rows].ravel()}
    level = level_words(law.level)
    ends = (Column("low", f"{level} from", "score"), Column("high", "to", "score")) if "irsl" in law.methods else ()
    columns = (
        Column("model_id", "Model", "id", has_menu=True),
        Column("scenario", "Scenario", has_menu=True),
        Column("k", "k", "count"),
        *(Column(name, name, "score") for name in values),
        *ends,
        *(Column(name, "All samples", "score") for name in seen),
    )
    named = {
        "model_id": [law.model_ids[i] for i in rows.tolist() for _ in range(n_k)],
        "scenario": [law.scenarios[i] for i in rows.tolist() for _ in range(n_k)],
        "k": np.tile(law.k, len(rows)),
    }
    return Table.of("pass@k in points", "pass-at-k", {**named, **values, **intervals, **seen}, columns)
