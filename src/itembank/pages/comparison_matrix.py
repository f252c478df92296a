"""Heat maps of comparisons: every pair of models, and every model on every scenario."""

from collections.abc import Sequence

import numpy as np

from itembank.comparison.comparisons import Comparison
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Chart, Column, Data, Table
from itembank.pages.charts import Spec, tips
from itembank.pages.common import plural
from itembank.pages.comparison_charts import MOST_MODELS, order_of
from itembank.pages.comparison_pairs import square
from itembank.pages.panels import in_order

MOST_WRITTEN = 10
"""Models up to which each cell of a matrix states its number."""
CLIPPED_AT = 0.95
"""Quantile of the sizes of differences that takes the strongest colour: a few extreme ones hide no others."""


def matrix_chart(comparison: Comparison, target: int) -> Chart:
    """Draw the probability that the model of a row is better than that of a column."""
    order = order_of(comparison, target)[:MOST_MODELS]
    names = [comparison.model_ids[row] for row in order.tolist()]
    probability = comparison.tests.probability_b_better[:, target]
    value = 100.0 * comparison.difference.value[:, target]
    tied = (comparison.tests.p_holm[:, target] >= 1.0 - comparison.spec.level).astype(np.float64)
    tables = {
        "probability": square(comparison, probability, 1.0 - probability),
        "difference": square(comparison, value, -value),
        "tied": square(comparison, tied, tied),
    }
    chosen = {name: one[np.ix_(order, order)] for name, one in tables.items()}
    row, column = np.nonzero(np.isfinite(chosen["difference"]))
    data = Data(
        "pairs-shown",
        {
            "row": [names[k] for k in row],
            "column": [names[k] for k in column],
            "row_place": row,
            "column_place": column,
            **{name: one[row, column] for name, one in chosen.items() if name != "tied"},
            "tied": ["tied" if one else "told apart" for one in chosen["tied"][row, column]],
        },
    )
    n_pairs = len(data) // 2
    n_apart = sum(one == "told apart" for one in data.columns["tied"]) // 2
    cut = (
        f" The {len(names)} best of {len(comparison.model_ids)} models are drawn."
        if len(names) < len(comparison.model_ids)
        else ""
    )
    return Chart(
        f"{n_apart} of {plural(n_pairs, 'pair')} can be told apart",
        _matrix(len(names)),
        (data,),
        f"A matrix of {len(names)} models in the order of their scores; {n_apart} of {n_pairs} pairs can be told "
        f"apart. {_neighbours(chosen['probability'], names)}",
        note="Blue: the model of the row is better, orange: worse. Pale: the two cannot be told apart, once the "
        f"number of pairs is taken into account (Holm), even where each pair by itself looks clear.{cut}",
    )


def _neighbours(probability: FloatArray, names: Sequence[str]) -> str:
    """Say of the first models how surely each is better than the next."""
    found = [
        f"{names[k]} better than {names[k + 1]}: {probability[k, k + 1]:.2f}" for k in range(min(len(names) - 1, 5))
    ]
    return f"Probability that one is better than the next: {'; '.join(found)}."


def _matrix(n_models: int) -> Spec:
    step = int(np.clip(620 // max(n_models, 1), 15, 54))
    x = {**in_order("column", "column_place", labelAngle=-60, orient="top"), "scale": {"padding": 0}}
    y = {**in_order("row", "row_place"), "scale": {"padding": 0}}
    for one in (x, y):
        one["axis"] = {**one["axis"], "labelLimit": 130, "grid": False, "domain": False}
    shown = tips(
        row="Row",
        column="Column",
        difference=("Points ahead", "+.1f"),
        probability=("Probability better", ".2f"),
        tied="Pair",
    )
    colour = {
        "field": "probability",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": "diverging"},
        "legend": {
            "title": "Probability that the row is better",
            "titleLimit": 320,
            "orient": "bottom",
            "format": ".0%",
            "gradientLength": 200,
        },
    }
    opacity = {"condition": {"test": "datum.tied === 'tied'", "value": 0.35}, "value": 1}
    encoding: Spec = {"color": colour, "opacity": opacity, "tooltip": shown}
    parts: list[Spec] = [{"mark": {"type": "rect", "stroke": "@paper"}, "encoding": encoding}]
    if n_models <= MOST_WRITTEN:
        dark = "datum.tied !== 'tied' && (datum.probability < 0.12 || datum.probability > 0.88)"
        ink = {"condition": {"test": dark, "value": "@paper"}, "value": "@ink"}
        number = {"field": "difference", "type": "quantitative", "format": "+.1f"}
        parts.append({"mark": {"type": "text", "fontSize": 11}, "encoding": {"text": number, "color": ink}})
    return {
        "autosize": "pad",
        "width": {"step": step},
        "height": {"step": step},
        "encoding": {"x": x, "y": y},
        "layer": parts,
    }


def profile_chart(comparison: Comparison, target: int) -> Chart:
    """Draw every model's score in each scenario less the mean of all models compared."""
    order = order_of(comparison, target)[:MOST_MODELS]
    places = np.flatnonzero(np.arange(len(comparison.targets)) != target)
    centred = 100.0 * (comparison.ranking.score - np.nanmean(comparison.ranking.score, axis=0))
    cells = centred[np.ix_(order, places)]
    row, column = np.nonzero(np.isfinite(cells))
    size = np.abs(cells[row, column])
    limit = float(np.quantile(size, CLIPPED_AT)) if size.size else 1.0
    names = [comparison.model_ids[k] for k in order.tolist()]
    scenarios = [comparison.targets[k] for k in places.tolist()]
    data = Data(
        "profiles",
        {
            "model_id": [names[k] for k in row],
            "place": row,
            "scenario": [scenarios[k] for k in column],
            "scenario_place": column,
            "points": cells[row, column],
            "score": comparison.ranking.score[order][:, places][row, column],
        },
    )
    shown = tips(
        model_id="Model",
        scenario="Scenario",
        score=("Score", ".1%"),
        points=("Against the mean", "+.1f"),
    )
    colour = {
        "field": "points",
        "type": "quantitative",
        "scale": {"domain": [-limit, limit], "clamp": True, "range": "diverging"},
        "legend": {"title": "Points above the mean", "titleLimit": 320, "orient": "bottom", "gradientLength": 200},
    }
    spec = {
        "autosize": "pad",
        "width": {"step": int(np.clip(640 // max(len(places), 1), 18, 54))},
        "height": {"step": 16},
        "mark": {"type": "rect", "stroke": "@paper"},
        "encoding": {
            "x": in_order(
                "scenario", "scenario_place", labelAngle=-60, orient="top", grid=False, domain=False, labelLimit=130
            ),
            "y": in_order("model_id", "place", grid=False, domain=False, labelLimit=150),
            "color": colour,
            "tooltip": shown,
        },
    }
    best = [names[int(np.nanargmax(cells[:, k]))] for k in range(len(places)) if np.isfinite(cells[:, k]).any()]
    words = "; ".join(f"{scenario}: {name}" for scenario, name in zip(scenarios, best, strict=False))
    return Chart(
        "Where each model is above (blue) and below (orange) the mean of the models compared",
        spec,
        (data,),
        f"The best model by scenario: {words}.",
        table=Table(
            "Scores by model and scenario",
            data,
            (
                Column("model_id", "Model", "id"),
                Column("scenario", "Scenario", has_menu=True),
                Column("score", "Score", "percent"),
                Column("points", "Against the mean (points)", "number"),
            ),
        ),
        note=f"The strongest colours stand for {limit:.0f} points and more. Estimates, without their intervals.",
    )
