"""Figures, as the commands draw them: matplotlib figures that `save_figure` writes."""

from itembank.pages.figures.canvas import save_figure
from itembank.pages.figures.dimensions import figure_dimensionality
from itembank.pages.figures.figures import PredictionPanel, figure_gain, figure_predicted_against_true
from itembank.pages.figures.homogeneity_figures import figure_homogeneity
from itembank.pages.figures.information import figure_test_information
from itembank.pages.figures.item_prediction_figures import figure_item_predictions
from itembank.pages.figures.pass_at_k_figures import figure_pass_at_k
from itembank.pages.figures.prediction_dims import figure_dims
from itembank.pages.figures.prediction_figures import figure_choices, figure_curves, figure_pair
from itembank.pages.figures.pretraining_figures import (
    figure_abilities,
    figure_decisions,
    figure_item_curves,
    figure_laws,
    figure_score_forecasts,
)
from itembank.pages.figures.selection_figures import figure_selection_weights
from itembank.pages.figures.study_figures import figure_by_size, figure_coverage, figure_error_spread
from itembank.pages.figures.task_figures import figure_tasks
from itembank.pages.figures.transfer_figures import figure_transfer, figure_transfer_errors
from itembank.pages.figures.validity_figures import figure_ability_pair, figure_validity

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
