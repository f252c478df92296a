"""Metrics made of the answer options in samples of lm-evaluation-harness, beside those it logged itself."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from itembank.errors import remedy
from itembank.numerics.arrays import FloatArray
from itembank.readers.lm_eval_options import Options
from itembank.readers.lm_eval_samples import Metric, Samples
from itembank.readers.reading_specs import ReadingSpec, Response
from itembank.responses.choice_scores import (
    bits_per_byte,
    choice_accuracy,
    choice_probability,
    probability_per_character,
)

METRIC_OF_RESPONSE: Mapping[Response, str] = {
    "accuracy": "choice_accuracy",
    "accuracy-per-character": "choice_accuracy_per_character",
    "probability": "choice_probability",
    "probability-per-character": "choice_probability_per_character",
}
"""Name that each response goes by among the metrics of a task, and in the item table."""
COMPARING = ("choice_accuracy", "choice_accuracy_per_character", "choice_probability")
"""Those that compare options, and need two at least."""

SCORES: Mapping[str, Callable[[Options], FloatArray]] = {
    "choice_accuracy": lambda one: choice_accuracy(one.log_likelihood, one.is_right),
    "choice_accuracy_per_character": lambda one: choice_accuracy(one.log_likelihood, one.is_right, one.n_characters),
    "choice_probability": lambda one: choice_probability(one.log_likelihood, one.is_right),
    "choice_probability_per_character": lambda one: probability_per_character(
        one.log_likelihood, one.is_right, one.n_characters
    ),
    "bits_per_byte": lambda one: bits_per_byte(one.log_likelihood, one.is_right, one.n_bytes),
}


def needs_options(spec: ReadingSpec) -> bool:
    """Whether the response of some task is made of log-likelihoods."""
    chosen = {name.partition("=")[2] or name for name in spec.metric}
    return spec.response != "metric" or not chosen.isdisjoint(METRIC_OF_RESPONSE.values())


def with_choice_metrics(samples: Samples) -> Samples:
    """Add the metrics that are made of answer options; those that cannot be made say why."""
    options = samples.options
    if options is None:
        return samples
    made = {name: _metric(name, options) for name in METRIC_OF_RESPONSE.values()}
    return replace(samples, metrics={**samples.metrics, **made})


def _metric(name: str, options: Options) -> Metric:
    """One metric of the options, or why there is none."""
    problem = options.problem
    if not problem and name in COMPARING and not options.has_alternatives:
        one_alone = remedy(
            "response='probability-per-character'", "response = 'probability-per-character' in the file of --spec"
        )
        problem = f"compares options, and some samples have only one; {one_alone} needs one alone"
    if problem:
        return Metric(np.full(options.log_likelihood.shape[0], np.nan), None, problem)
    return Metric(SCORES[name](options))
