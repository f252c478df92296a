"""The pages of this package's results, which `itembank.show` finds by an entry point."""

from itembank.pages.blocks import Chart
from itembank.pages.shown import Shown, of_charts
from itembank_studies.charts.paper_charts import (
    dimensionality_chart,
    homogeneity_chart,
    item_predictions_chart,
    selection_weights_chart,
    task_correlations_chart,
    task_costs_chart,
)
from itembank_studies.charts.prediction_charts import charts_of_prediction
from itembank_studies.charts.study_charts import charts_of_study
from itembank_studies.papers.dimensions import Dimensionality
from itembank_studies.papers.item_predictions import ItemPredictions
from itembank_studies.papers.scenario_homogeneity import Homogeneity
from itembank_studies.papers.selection_weights import SelectionWeights
from itembank_studies.papers.task_overview import TaskOverview
from itembank_studies.results import PredictionResult, StudyResult


def _task_charts(found: TaskOverview) -> tuple[Chart, ...]:
    """Draw how tasks correlate, and what they cost where that is known."""
    has_costs = bool((found.cost > 0.0).any())
    return (*((task_costs_chart(found),) if has_costs else ()), task_correlations_chart(found))


PAGES: dict[type, Shown] = {
    StudyResult: of_charts("Study", charts_of_study),
    PredictionResult: of_charts("Prediction study", charts_of_prediction),
    Dimensionality: of_charts("Dimensions", dimensionality_chart),
    Homogeneity: of_charts("Homogeneity", homogeneity_chart),
    ItemPredictions: of_charts("Predicted responses", item_predictions_chart),
    SelectionWeights: of_charts("Weights", selection_weights_chart),
    TaskOverview: of_charts("Tasks", _task_charts),
}
