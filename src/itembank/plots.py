"""Charts that take more than a result: each shows itself in a notebook and writes itself with `.save("file.png")`.

The charts of a result's own page are in ``itembank.show(result).charts``.
"""

from itembank.pages.paper_charts import homogeneity_chart, item_predictions_chart
from itembank.pages.pass_at_k_charts import pass_at_k_chart
from itembank.pages.prediction_charts import prediction_chart
from itembank.pages.pretraining_charts import (
    ability_chart,
    decision_chart,
    forecast_chart,
    item_curves_chart,
    laws_chart,
)
from itembank.pages.study_charts import study_chart
from itembank.pages.transfer_charts import ability_pair_chart
from itembank.pages.truth_charts import PredictionPanel, predicted_against_true_chart

__all__ = [
    "PredictionPanel",
    "ability_chart",
    "ability_pair_chart",
    "decision_chart",
    "forecast_chart",
    "homogeneity_chart",
    "item_curves_chart",
    "item_predictions_chart",
    "laws_chart",
    "pass_at_k_chart",
    "predicted_against_true_chart",
    "prediction_chart",
    "study_chart",
]
