"""Tables of correlations as charts: what is alike stands side by side."""

from collections.abc import Sequence

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Data
from itembank.pages.charts import Spec, tips
from itembank.pages.panels import in_order

MOST_WRITTEN = 16
"""Names up to which each cell of a matrix states its number."""


def correlation_data(name: str, names: Sequence[str], value: FloatArray, low: FloatArray, high: FloatArray) -> Data:
    """Return the known cells of a table of correlations, each (n_names, n_names), without the diagonal."""
    row, column = np.nonzero(np.isfinite(value) & ~np.eye(len(names), dtype=bool))
    return Data(
        name,
        {
            "row": [names[k] for k in row.tolist()],
            "column": [names[k] for k in column.tolist()],
            "row_place": row,
            "column_place": column,
            "value": value[row, column],
            "low": low[row, column],
            "high": high[row, column],
            "clear": ["clear" if one > 0.0 else "not clear" for one in low[row, column]],
        },
    )


def heat(n_names: int) -> Spec:
    """Return the picture of such a table."""
    step = int(np.clip(620 // n_names, 15, 54))
    shown = tips(
        row="Scenario",
        column="and",
        value=("Correlation", ".2f"),
        low=("From", ".2f"),
        high=("To", ".2f"),
    )
    colour = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [-1, 1], "range": "diverging"},
        "legend": {"title": "Correlation", "orient": "bottom", "gradientLength": 200},
    }
    opacity = {"condition": {"test": "datum.clear === 'clear'", "value": 1}, "value": 0.4}
    parts: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": "@paper"},
            "encoding": {"color": colour, "opacity": opacity, "tooltip": shown},
        }
    ]
    if n_names <= MOST_WRITTEN:
        ink = {
            "condition": {"test": "datum.clear === 'clear' && datum.value > 0.7", "value": "@paper"},
            "value": "@ink",
        }
        text = {"field": "value", "type": "quantitative", "format": ".2f"}
        parts.append({"mark": {"type": "text", "fontSize": 10}, "encoding": {"text": text, "color": ink}})
    look: Spec = {"grid": False, "domain": False, "labelLimit": 130}
    x, y = (
        in_order("column", "column_place", labelAngle=-45, orient="top", **look),
        in_order("row", "row_place", **look),
    )
    return {
        "autosize": "pad",
        "width": {"step": step},
        "height": {"step": min(step, 30)},
        "encoding": {"x": x, "y": y},
        "layer": parts,
    }
