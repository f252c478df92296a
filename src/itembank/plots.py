"""Figures, as the commands draw them: matplotlib figures that `save_figure` writes."""

from itembank.reports.canvas import save_figure
from itembank.reports.dimensions import figure_dimensionality
from itembank.reports.figures import PredictionPanel, figure_gain, figure_predicted_against_true
from itembank.reports.homogeneity_figures import figure_homogeneity
from itembank.reports.information import figure_test_information
from itembank.reports.item_prediction_figures import figure_item_predictions
from itembank.reports.pass_at_k_figures import figure_pass_at_k
from itembank.reports.prediction_dims import figure_dims
from itembank.reports.prediction_figures import figure_choices, figure_curves, figure_pair
from itembank.reports.pretraining_figures import (
    figure_abilities,
    figure_decisions,
    figure_item_curves,
    figure_laws,
    figure_score_forecasts,
)
from itembank.reports.selection_figures import figure_selection_weights
from itembank.reports.study_figures import figure_by_size, figure_coverage, figure_error_spread
from itembank.reports.task_figures import figure_tasks
from itembank.reports.transfer_figures import figure_transfer, figure_transfer_errors
from itembank.reports.validity_figures import figure_ability_pair, figure_validity

__all__ = [
    "PredictionPanel",
    "figure_abilities",
    "figure_ability_pair",
    "figure_by_size",
    "figure_choices",
    "figure_coverage",
    "figure_curves",
    "figure_decisions",
    "figure_dimensionality",
    "figure_dims",
    "figure_error_spread",
    "figure_gain",
    "figure_homogeneity",
    "figure_item_curves",
    "figure_item_predictions",
    "figure_laws",
    "figure_pair",
    "figure_pass_at_k",
    "figure_predicted_against_true",
    "figure_score_forecasts",
    "figure_selection_weights",
    "figure_tasks",
    "figure_test_information",
    "figure_transfer",
    "figure_transfer_errors",
    "figure_validity",
    "save_figure",
]
