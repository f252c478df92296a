"""The page of pass@k: how often at least one of k samples is right, observed and forecast."""

import numpy as np

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Answer, Answers, Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.grammar import marks, menu, number, of, panels, span, tips
from itembank.pages.render import Page
from itembank.pages.theme import count, interval_words, level_words, percent, plural, points
from itembank.scaling.pass_at_k.results import PassAtKLaw

MOST_CURVES = 1500
"""Curves that a page holds; of more, those from the lowest to the highest pass@1, evenly."""
MOST_PANELS = 24
MOST_ANSWERS = 3
OBSERVED = "unbiased"
METHOD_WORDS = {
    "irsl": "the item response law",
    "irsl-plug-in": "the item response law, plugged in",
    "beta-binomial": "a beta-binomial for all items alike",
    "jeffreys": "Jeffreys' prior for each item",
    "plug-in": "pass rates plugged in",
    "unbiased": "the unbiased estimate",
}


def pass_at_k_page(law: PassAtKLaw, *, title: str = "", command: str = "") -> Page:
    """Return the page of pass@k curves."""
    chosen = _chosen(law)
    names = dict.fromkeys(law.model_ids)
    sections = [Section("Curves", (pass_at_k_chart(law), _table(law, chosen)))]
    if law.budget is not None:
        words = f"Estimates use {plural(law.budget, 'sample')} of each item; the truth is what all samples say."
        rows = law.errors() + (law.errors(kept=True) if law.minimum_pass_rate else [])
        columns = (
            Column("method", "Method"),
            Column("items", "Items", explanation="All, or those of at least the minimum pass rate"),
            Column("error", "Mean error (points)", "number", 2),
            Column("coverage", "Held", "percent", 1, f"Share of {level_words(law.level)} intervals with the truth"),
            Column("share_known", "Has a value", "percent", 1, "Share of curves and k"),
        )
        named = [row | {"method": METHOD_WORDS.get(row["method"], row["method"])} for row in rows]
        in_points = [row | {"error": 100.0 * row["error"]} for row in named]
        table = Table.of("Errors against all samples", "errors", in_points, columns)
        sections.append(Section("Errors", (table,), words))
    sections.append(Section("Items that fail most", (_tail(law),), f"What is left to gain at k = {law.k[-1]:,.0f}."))
    if law.notes:
        remarks = tuple(Text(f"{note[0].upper()}{note[1:]}.") for note in law.notes)
        sections.append(Section("Remarks", remarks))
    return Page(
        title=title
        or (f"pass@k of {next(iter(names))}" if len(names) == 1 else f"pass@k of {count(len(names))} models"),
        kind="pass@k",
        lead=_lead(law),
        sections=tuple(sections),
        provenance=(
            ("Method shown", METHOD_WORDS.get(law.methods[0], law.methods[0])),
            ("Other methods", ", ".join(METHOD_WORDS.get(name, name) for name in law.methods[1:]) or "none"),
            ("Samples used", "all there are" if law.budget is None else f"{count(law.budget)} of each item"),
            ("Level", level_words(law.level)),
            ("Curves", count(len(law.model_ids))),
        ),
        command=command,
    )


def _chosen(law: PassAtKLaw) -> IntArray:
    """Return the curves that the page holds: all, or some evenly from the lowest to the highest."""
    n_curves = len(law.model_ids)
    if n_curves <= MOST_CURVES:
        return np.arange(n_curves)
    first = np.nan_to_num(law.all_items.values[0, :, 0], nan=-1.0)
    order = np.argsort(first, kind="stable")
    result: IntArray = np.sort(order[np.linspace(0, n_curves - 1, MOST_CURVES).round().astype(int)])
    return result


def _lead(law: PassAtKLaw) -> tuple[Block, ...]:
    """Say what more samples bring, of the first curves or of all of them."""
    main = law.methods[0]
    value, first, last = law.values(main), f"{law.k[0]:,.0f}", f"{law.k[-1]:,.0f}"
    n_curves = len(law.model_ids)
    ends = [percent(float(np.nanmean(value[:, at]))) for at in (0, -1)]
    of_all = (
        f"Over {count(n_curves)} curves (a model on a scenario each), pass@{first} is {ends[0]} and pass@{last} "
        f"{ends[1]} "
        if n_curves > 1
        else f"From pass@{first} to pass@{last} the share of items solved goes from {ends[0]} to {ends[1]} "
    )
    average = "on average, by" if n_curves > 1 else "by"
    words = f"{of_all}{average} {METHOD_WORDS.get(main, main)}."
    few = n_curves <= MOST_ANSWERS
    answers = [_answer(law, value, i) for i in range(n_curves)] if few else _mean_answers(law, ends)
    return (Text(words), Answers(tuple(answers)))


def _answer(law: PassAtKLaw, value: FloatArray, curve: int) -> Answer:
    """Return pass@k of one curve at the largest k."""
    interval, last = "", f"{law.k[-1]:,.0f}"
    low, high = float(law.all_items.low[curve, -1]), float(law.all_items.high[curve, -1])
    if np.isfinite(low):
        interval = f"{interval_words(low, high)}, {level_words(law.level)} interval"
    name = f"{law.model_ids[curve]} on {law.scenarios[curve]}, pass@{last}"
    shown = percent(float(value[curve, -1]))
    words = f"pass@{law.k[0]:,.0f} is {percent(float(value[curve, 0]))}; {_from_samples(law.fewest_samples[curve])}"
    method = METHOD_WORDS.get(law.methods[0], law.methods[0])
    return Answer(name, shown, interval, words, f"{name}: {shown} ({interval or 'no interval'}), by {method}, itembank")


def _mean_answers(law: PassAtKLaw, ends: list[str]) -> list[Answer]:
    """Return the means over all curves at the smallest and the largest k, and how far off they were."""
    fewest = law.fewest_samples
    answers = [
        Answer(f"Mean pass@{law.k[0]:,.0f}", ends[0]),
        Answer(f"Mean pass@{law.k[-1]:,.0f}", ends[1], words=_from_samples(fewest.min())),
    ]
    errors = next((row for row in law.errors() if row["method"] == law.methods[0]), None)
    if errors is not None:
        held = f"{level_words(law.level)} intervals held {percent(errors['coverage'])} of the truths"
        known = held if np.isfinite(errors["coverage"]) else ""
        answers.append(Answer("Mean error against all samples", points(errors["error"]), words=known))
    return answers


def _from_samples(fewest: int) -> str:
    return f"from {plural(int(fewest), 'sample')} an item or more; beyond that it is a forecast"


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
    chosen = _chosen(law)
    if model:
        chosen = np.union1d(chosen, [i for i, one in enumerate(law.model_ids) if one == model])
    scenarios = list(dict.fromkeys(law.scenarios))[:MOST_PANELS]
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
            "value": main[rows].ravel(),
            "low": law.all_items.low[rows].ravel(),
            "high": law.all_items.high[rows].ravel(),
            "observed": seen[rows].ravel(),
            "is_forecast": (law.k > fewest[rows][:, None]).ravel(),
        },
    )
    models = list(dict.fromkeys(law.model_ids[i] for i in rows))
    first = model or _middle(law, rows)
    x = number("k", "Samples k", "~s", log=True, tickCount=4)
    y = number("value", "pass@k", ".1f", domain=[0.0, 1.0])
    told = {"value": "pass@k", "low": "From", "high": "To", "observed": "Observed"}
    tip = tips(scenario="Scenario", k=("k", ",d"), **{name: (title, ".3f") for name, title in told.items()})
    own = "datum.model_id === model"
    spec = panels(
        "scenario",
        "place",
        marks("area", x, span(y), where=own, color="@main", opacity=0.18),
        marks("line", x, y, tip=tip, where=own, color="@main", strokeDash=[5, 3]),
        marks("line", x, y, where=(own, "!datum.is_forecast"), color="@main", strokeWidth=2.6),
        marks("point", x, of(y, "observed"), tip=tip, where=own, color="@ink", size=34, opacity=1),
        n=len(scenarios),
        params=menu("model", models, first),
    )
    words = "; ".join(
        f"{law.scenarios[i]}: {_steps(law.k[::4], main[i, ::4])}" for i in rows if law.model_ids[i] == first
    )
    cut = (
        f" {count(len(chosen))} of {count(len(law.model_ids))} curves are here."
        if len(chosen) < len(law.model_ids)
        else ""
    )
    band = f", the band its {level_words(law.level)} interval" if "irsl" in law.methods else ""
    source = "all samples" if law.budget is not None else "the samples themselves (unbiased)"
    return Chart(
        "How often at least one of k samples is right",
        spec,
        (data,),
        f"pass@k of {first}. {words}.",
        note=f"The line is {METHOD_WORDS.get(law.methods[0], law.methods[0])}{band}; it is dashed where k exceeds the "
        f"samples used, which makes it a forecast. Points are what {source} say.{cut}",
    )


def _steps(k: FloatArray, values: FloatArray) -> str:
    return ", ".join(f"{value:.2f} at k = {at:,.0f}" for at, value in zip(k, values, strict=True))


def _middle(law: PassAtKLaw, rows: list[int]) -> str:
    """Return a model in the middle: it has curves that neither lie at 0 nor at 1."""
    first = law.all_items.values[0, :, 0]
    known = sorted(rows, key=lambda i: abs(float(np.nan_to_num(first[i], nan=-1.0)) - 0.5))
    return law.model_ids[known[0]]


def _table(law: PassAtKLaw, chosen: IntArray) -> Table:
    """Return a row a curve: pass@k at the first, a middle and the last k."""
    places = sorted({0, law.k.size // 2, law.k.size - 1})
    main = law.values(law.methods[0])
    level = level_words(law.level)
    columns = [Column("model_id", "Model", "id"), Column("scenario", "Scenario", has_menu=True)]
    values: dict[str, object] = {
        "model_id": [law.model_ids[i] for i in chosen.tolist()],
        "scenario": [law.scenarios[i] for i in chosen.tolist()],
    }
    for place in places:
        columns.append(Column(f"k{place}", f"pass@{law.k[place]:,.0f}", "percent"))
        values[f"k{place}"] = main[chosen, place]
    values |= {
        "low": law.all_items.low[chosen, -1],
        "high": law.all_items.high[chosen, -1],
        "n_items": law.all_items.n_items[chosen],
        "n_samples": law.fewest_samples[chosen],
    }
    columns += [
        Column("low", f"{level} from", "percent", 1, f"Of pass@{law.k[-1]:,.0f}"),
        Column("high", "to", "percent"),
        Column("n_items", "Items", "count"),
        Column("n_samples", "Samples an item", "count", explanation="Fewest; a larger k is a forecast"),
    ]
    return Table.of("pass@k of every model and scenario", "pass-at-k", values, columns)


def _tail(law: PassAtKLaw) -> Table:
    rows = law.tail(2 if len(law.model_ids) > MOST_ANSWERS else 10)[:MOST_CURVES]
    columns = (
        Column("model_id", "Model", "id"),
        Column("scenario", "Scenario", has_menu=True),
        Column("item_id", "Item", "id"),
        Column("n_correct", "Right", "count"),
        Column("n_trials", "of samples", "count"),
        Column("failure", "Still fails", "percent", 1, f"Probability that all of {law.k[-1]:,.0f} samples fail"),
        Column("share", "Share of all that fail", "percent"),
    )
    return Table.of("Items", "tail", rows, columns)
