"""What log-likelihoods of answer options say: right or wrong, probability of the right option, bits per byte.

All functions take arrays padded with NaN where an item has fewer options, and work on the last axis.
"""

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


def choice_accuracy(
    log_likelihood: FloatArray,  # (n_models, n_items, n_options) or (n_items, n_options); NaN where there is no option
    correct: IntArray | BoolArray,  # (n_items,): Index of the right option (-1 unknown), or flags that broadcast
    lengths: FloatArray | None = None,  # (n_items, n_options): Characters for `acc_norm`, bytes, tokens
) -> FloatArray:
    """Whether the most likely option is right: the harnesses' `acc`, or with `lengths` their `acc_norm`.

    Natural logarithms of the probability of each option's text are divided by the lengths. Returns 1 or 0, (n_models,
    n_items) or (n_items,); of equally likely options the first counts. NaN where no right option is known.
    """
    is_right = _is_right(log_likelihood, correct)
    scaled = log_likelihood if lengths is None else log_likelihood / lengths
    chosen = np.argmax(np.where(np.isnan(scaled), -np.inf, scaled), axis=-1)
    hit = np.take_along_axis(is_right, chosen[..., np.newaxis], axis=-1)[..., 0]
    return _where_known(hit.astype(np.float32 if log_likelihood.dtype == np.float32 else np.float64), is_right)


def choice_probability(log_likelihood: FloatArray, correct: IntArray | BoolArray) -> FloatArray:
    """Probability of the right option among the options: softmax of the log-likelihoods.

    Parameters and missing values as in `choice_accuracy`; the probabilities of several right options are added.
    """
    is_right = _is_right(log_likelihood, correct)
    top = np.max(np.where(np.isnan(log_likelihood), -np.inf, log_likelihood), axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):  # no option possible: -inf - -inf
        weight = np.exp(log_likelihood - top)
    weight = np.where(np.isnan(log_likelihood), 0.0, weight)
    total = weight.sum(axis=-1)
    right = np.where(is_right, weight, 0.0).sum(axis=-1)
    fraction = np.divide(right, total, out=np.full_like(total, np.nan), where=total > 0)
    return _where_known(np.minimum(fraction, 1.0), is_right)


def probability_per_character(
    log_likelihood: FloatArray, correct: IntArray | BoolArray, n_characters: FloatArray
) -> FloatArray:
    """Probability of the right option's text, the geometric mean over its characters: exp(log-likelihood / length).

    It is not shared out over the options, so guessing has no fixed value (Item Response Scaling Laws, App. A).
    Of several right options the best counts; `n_characters` (n_items, n_options) are the lengths of their texts.
    """
    is_right = _is_right(log_likelihood, correct)
    return _where_known(np.exp(_best(log_likelihood / n_characters, is_right)), is_right)


def bits_per_byte(log_likelihood: FloatArray, correct: IntArray | BoolArray, n_bytes: FloatArray) -> FloatArray:
    """Loss on the right option's text in bits per byte of UTF-8: -log-likelihood / (log 2 x bytes); lower is better.

    Of several right options the best counts; `n_bytes` (n_items, n_options) are the lengths of their texts in UTF-8.
    """
    is_right = _is_right(log_likelihood, correct)
    return _where_known(-_best(log_likelihood / n_bytes, is_right) / np.log(2.0), is_right)


def _is_right(log_likelihood: FloatArray, correct: IntArray | BoolArray) -> BoolArray:
    """Flag of each option that is right and has a log-likelihood, of the shape of `log_likelihood`."""
    flags = np.asarray(correct)
    if flags.dtype != np.bool_:
        flags = flags[..., np.newaxis] == np.arange(log_likelihood.shape[-1])
    result: BoolArray = flags & ~np.isnan(log_likelihood)
    return result


def _best(scaled: FloatArray, is_right: BoolArray) -> FloatArray:
    """Return the largest value among the right options; -inf where none is known."""
    result: FloatArray = np.max(np.where(is_right, scaled, -np.inf), axis=-1)
    return result


def _where_known(values: FloatArray, is_right: BoolArray) -> FloatArray:
    """Put NaN where no right option has a log-likelihood."""
    return np.where(is_right.any(axis=-1), values, values.dtype.type(np.nan))
