"""The built-in data sets `bytelms` and `bytelms-samples`: small language models with known training compute."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.builtin_tables import from_differences, read_builtin_numbers, read_builtin_table
from itembank.responses.choice_scores import (
    bits_per_byte,
    choice_accuracy,
    choice_probability,
    probability_per_character,
)
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Compact

_STEPS_PER_NAT = 100.0  # the files keep log-likelihoods as whole hundredths


@dataclass(frozen=True, slots=True, repr=False)
class ChoiceLogLikelihoods(Compact):
    """Log-likelihood of every choice of every item under every model.

    Attributes
    ----------
    models : table of n_models rows
    items : table of n_items rows
        With the prompts and choices.
    log_likelihoods : (n_models, n_items, n_options)
        In nats; NaN where an item has fewer choices.
    n_bytes : (n_items, n_options)
        Length of each choice; a byte is a token. NaN where there is no choice.
    correct : (n_items,)
        Index of the right choice.
    """

    models: pl.DataFrame
    items: pl.DataFrame
    log_likelihoods: FloatArray
    n_bytes: FloatArray
    correct: IntArray


def builtin_choices() -> ChoiceLogLikelihoods:
    """Return the log-likelihoods of all choices of `bytelms`, from which its responses are made."""
    models, items = (read_builtin_table("bytelms", part) for part in ("models", "items"))
    n_checkpoints = models["share_of_run"].n_unique()
    differences = read_builtin_numbers("bytelms", "choices", "<i2", n_checkpoints)
    choices = from_differences(differences, n_checkpoints, items["choices"].explode().to_list())
    n_options = items["n_options"].to_numpy()
    is_choice = np.arange(n_options.max()) < n_options[:, None]  # (n_items, n_options)
    log_likelihoods = np.full((models.height, *is_choice.shape), np.nan)
    log_likelihoods[:, is_choice] = choices / _STEPS_PER_NAT
    n_bytes = np.full(is_choice.shape, np.nan)
    n_bytes[is_choice] = items["choice_bytes"].explode().to_numpy()
    return ChoiceLogLikelihoods(models, items, log_likelihoods, n_bytes, items["correct"].to_numpy())


def builtin_bits_per_byte() -> FloatArray:
    """Bits per byte of the right choice of `bytelms`, (n_models, n_items): the loss of the two-step law.

    Rows and columns are those of ``load_builtin("bytelms")``. Lower is better; it is no response, since it is not in
    [0, 1].

    Examples
    --------
    >>> from itembank.scaling import builtin_bits_per_byte
    >>> bool((builtin_bits_per_byte() > 0.0).all())
    True
    """
    known = builtin_choices()
    result: FloatArray = np.maximum(bits_per_byte(known.log_likelihoods, known.correct, known.n_bytes), 1e-3)
    return result


def multiple_choice(response: str) -> ResponseMatrix:
    """Responses of `bytelms`: 'correct', 'probability' or 'probability_per_byte'."""
    known = builtin_choices()
    if response == "correct":
        values = choice_accuracy(known.log_likelihoods, known.correct, known.n_bytes)
    elif response == "probability":
        values = choice_probability(known.log_likelihoods, known.correct)
    else:
        values = probability_per_character(known.log_likelihoods, known.correct, known.n_bytes)
    return ResponseMatrix.create(values, models=known.models, items=known.items)


def repeated_samples() -> ResponseMatrix:
    """Responses of `bytelms-samples`: right answers of n_trials samples an item."""
    models, items = (read_builtin_table("bytelms", part) for part in ("models", "samples_items"))
    n_correct = read_builtin_numbers("bytelms", "samples_counts", "<i2", models.height).astype(np.int64)
    n_trials = np.broadcast_to(items["n_trials"].to_numpy(), n_correct.shape)
    return ResponseMatrix.from_counts(n_correct, n_trials, models=models, items=items.drop("n_trials"))


def builtin_sample_probabilities() -> FloatArray:
    """Probability that one sample is right in `bytelms-samples`, (n_models, n_items): the truth behind its counts.

    An answer is one string, so its probability at temperature 1 is known exactly, and with it pass@k for every k.
    The file comes with a checkout and with the source distribution, not with the wheel.

    Raises
    ------
    DataError
        In an installation from the wheel.
    """
    n_models = read_builtin_table("bytelms", "models").height
    log_probability = read_builtin_numbers("bytelms", "samples_exact", "<f4", n_models)
    result: FloatArray = np.exp(log_probability.astype(np.float64))
    return np.minimum(result, 1.0)
