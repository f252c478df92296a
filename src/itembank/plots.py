"""Charts that take more than a result: each shows itself in a notebook and writes itself with `.save("file.png")`.

The charts of a result's own page are in ``itembank.show(result).charts``.
"""

from itembank.pages.truth_charts import PredictionPanel, predicted_against_true_chart

__all__ = ["PredictionPanel", "predicted_against_true_chart"]
