"""The page of pass@k and its chart: how often at least one of k samples is right, observed and forecast."""

from functools import partial
from typing import Any

import numpy as np

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import IntArray
from itembank.pages.blocks import Chart, Column, Data, Section, Table, Text, heads
from itembank.pages.grammar import marks, menu, number, of, panels, span, tips
from itembank.pages.render import Page
from itembank.pages.theme import count, interval_words, level_words, points
from itembank.tables import plural
from itembank_scaling.pass_at_k.results import PassAtKLaw

MOST_CURVES = 1500
"""Curves that a chart holds; of more, those from the lowest to the highest pass@1, evenly."""
OBSERVED = "unbiased"
METHOD_WORDS = {
    "irsl": "the item response law",
    "irsl-plug-in": "the item response law, plugged in",
    "beta-binomial": "a beta-binomial for all items alike",
    "jeffreys": "Jeffreys' prior for each item",
    "plug-in": "pass rates plugged in",
    "unbiased": "the unbiased estimate",
}


def chosen_curves(law: PassAtKLaw) -> IntArray:
    """Return the curves that the chart holds: all, or some evenly from the lowest to the highest."""
    n_curves = len(law.model_ids)
    if n_curves <= MOST_CURVES:
        return np.arange(n_curves)
    first = np.nan_to_num(law.all_items.values[0, :, 0], nan=-1.0)
    order = np.argsort(first, kind="stable")
    return np.sort(order[np.linspace(0, n_curves - 1, MOST_CURVES).round().astype(int)])


def pass_at_k_chart(law: PassAtKLaw, model: str = "") -> Chart:
    """Draw the curves of one model, a panel a scenario, the model chosen from a menu (the data of IRSL Figure 7).

    Parameters
    ----------
    law : PassAtKLaw
    model : str
        The first one drawn; one whose curves lie in the middle where it is empty.

    Raises
    ------
    ParameterError
        For a model that has no curve.
    """
    if model and model not in law.model_ids:
        raise ParameterError(f"model must be one of {shown(list(dict.fromkeys(law.model_ids)))}, got {model!r}.")
    chosen = chosen_curves(law)
    if model:
        chosen = np.union1d(chosen, [i for i, one in enumerate(law.model_ids) if one == model])
    most_panels = 24
    scenarios = list(dict.fromkeys(law.scenarios))[:most_panels]
    rows = [i for i in chosen.tolist() if law.scenarios[i] in scenarios]
    seen = law.all_items.truth
    if seen is None:  # the unbiased estimate, where it was asked for, is what the samples give by themselves
        seen = law.values(OBSERVED) if OBSERVED in law.methods else np.full(law.all_items.low.shape, np.nan)
    n_k, fewest = law.k.size, law.fewest_samples
    main = law.values(law.methods[0])
    data = Data(
        "curves",
        {
            "model_id": [law.model_ids[i] for i in rows for _ in range(n_k)],
            "scenario": [law.scenarios[i] for i in rows for _ in range(n_k)],
            "place": [scenarios.index(law.scenarios[i]) for i in rows for _ in range(n_k)],
            "k": np.tile(law.k, len(rows)),
            "value": 100.0 * main[rows].ravel(),
            "low": 100.0 * law.all_items.low[rows].ravel(),
            "high": 100.0 * law.all_items.high[rows].ravel(),
            "observed": 100.0 * seen[rows].ravel(),
            "is_forecast": (law.k > fewest[rows][:, None]).ravel(),
        },
    )
    models = list(dict.fromkeys(law.model_ids[i] for i in rows))
    first = model or middle_model(law)
    x = number("k", "Samples k", "~s", log=True, tickCount=4)
    y = number("value", "pass@k (points)", domain=[0.0, 100.0])
    titles = {"value": "pass@k", "low": "From", "high": "To", "observed": "Observed"}
    tip = tips(scenario="Scenario", k=("k", ",d"), **{name: (title, ".1f") for name, title in titles.items()})
    own = "datum.model_id === model"
    look: dict[str, Any] = {"tip": tip, "where": own, "color": "@main", "size": 90, "filled": True, "opacity": 1}
    alone = [] if n_k > 1 else [marks("rule", x, span(y), where=own, color="@main"), marks("point", x, y, **look)]
    spec = panels(
        "scenario",
        "place",
        *alone,
        marks("area", x, span(y), where=own, color="@main", opacity=0.18),
        marks("line", x, y, tip=tip, where=own, color="@main", strokeDash=[5, 3]),
        marks("line", x, y, where=(own, "!datum.is_forecast"), color="@main", strokeWidth=2.6),
        marks("point", x, of(y, "observed"), tip=tip, where=own, color="@ink", size=34, opacity=1),
        n=len(scenarios),
        params=menu("model", models, first),
    )
    told = np.unique(np.linspace(0, n_k - 1, 4).round().astype(int))
    words = "; ".join(
        f"{law.scenarios[i]}: " + ", ".join(f"{points(main[i, j])} at k = {law.k[j]:,.0f}" for j in told)
        for i in rows
        if law.model_ids[i] == first
    )
    cut = (
        f" {count(len(chosen))} of {count(len(law.model_ids))} curves are here."
        if len(chosen) < len(law.model_ids)
        else ""
    )
    of_curve = ("The point in colour", "the bar") if n_k == 1 else ("The line", "the band")
    band = f", {of_curve[1]} its {level_words(law.level)} interval" if "irsl" in law.methods else ""
    dashed = "; it is dashed where k exceeds the samples used, which makes it a forecast" if n_k > 1 else ""
    source = "all samples" if law.budget is not None else "the samples themselves (unbiased)"
    return Chart(
        "How often at least one of k samples is right",
        spec,
        (data,),
        f"pass@k of {first}. {words}.",
        note=f"{of_curve[0]} is {METHOD_WORDS.get(law.methods[0], law.methods[0])}{band}{dashed}. "
        f"{'Points are' if n_k > 1 else 'The other is'} what {source} say.{cut}",
    )


def middle_model(law: PassAtKLaw) -> str:
    """Return a model in the middle: it has curves that neither lie at 0 nor at 1."""
    first = np.nan_to_num(law.all_items.values[0, :, 0], nan=-1.0)
    chosen = chosen_curves(law)
    return law.model_ids[int(chosen[np.argmin(np.abs(first[chosen] - 0.5))])]


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
    """Say what a curve comes to at the first k beyond its samples, and at the largest."""
    n_samples, most = int(law.fewest_samples[i]), int(law.n_trials[i].max())
    values = law.values(law.methods[0])[i]
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return ""
    beyond = known[law.k[known] > n_samples]
    told: list[str] = []
    for j in dict.fromkeys([*beyond[:1].tolist(), int(known[-1])]):
        low, high = float(law.all_items.low[i, j]), float(law.all_items.high[i, j])
        interval = f" ({interval_words(low, high)})" if np.isfinite(low) else ""
        on = "" if told else f" on {law.scenarios[i]}"
        told.append(f"{points(float(values[j]))}{on} at k = {law.k[j]:,.0f}{interval}")
    samples = plural(n_samples, "sample") if n_samples == most else f"{count(n_samples)} to {plural(most, 'sample')}"
    return (
        f"{law.model_ids[i]} reaches {' and '.join(told)}, from {samples} of "
        f"each question{': a forecast' if beyond.size else ''}."
    )


def _table(law: PassAtKLaw) -> Table:
    rows, n_k = chosen_curves(law), law.k.size
    truth = law.all_items.truth
    values = {name: law.values(name)[rows].ravel() for name in law.methods}
    intervals = {"low": law.all_items.low[rows].ravel(), "high": law.all_items.high[rows].ravel()}
    seen = {} if truth is None else {"truth": truth[rows].ravel()}
    level = level_words(law.level)
    ends = (Column("low", f"{level} from", "score"), Column("high", "to", "score")) if "irsl" in law.methods else ()
    columns = (
        Column("model_id", "Model", "id", has_menu=True),
        *heads("scenario", "k"),
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
