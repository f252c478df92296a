"""What scaling laws read besides responses: training compute, losses, the probabilities of every choice."""

from itembank.readers.builtin import (
    ChoiceLogLikelihoods,
    builtin_bits_per_byte,
    builtin_choices,
    builtin_sample_probabilities,
)
from itembank.readers.choice_table import read_choice_scores, read_losses
from itembank.readers.compute import TrainingCompute, read_model_table, training_compute

__all__ = [
    "ChoiceLogLikelihoods",
    "TrainingCompute",
    "builtin_bits_per_byte",
    "builtin_choices",
    "builtin_sample_probabilities",
    "read_choice_scores",
    "read_losses",
    "read_model_table",
    "training_compute",
]
