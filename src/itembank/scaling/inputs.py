"""What scaling laws read besides responses: training compute, losses, the probabilities of every choice."""

from itembank.readers.choice_table import read_choice_scores
from itembank.readers.compute import TrainingCompute, read_model_table, training_compute
from itembank.readers.language_models import (
    ChoiceLogLikelihoods,
    builtin_bits_per_byte,
    builtin_choices,
    builtin_sample_probabilities,
)
from itembank.readers.losses import read_losses

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
