"""Data sets that come with the package."""

from typing import Literal

import numpy as np
import polars as pl

from itembank.errors import ParameterError, did_you_mean, shown
from itembank.numerics.arrays import FloatArray
from itembank.readers.builtin_tables import read_builtin_table
from itembank.readers.language_models import multiple_choice, repeated_samples
from itembank.responses.responses import ResponseMatrix

BuiltinResponse = Literal["correct", "probability", "probability_per_byte"]
BUILTIN_RESPONSES: dict[str, tuple[str, ...]] = {
    "classifiers": ("correct", "probability"),
    "bytelms": ("correct", "probability", "probability_per_byte"),
    "bytelms-samples": ("correct",),
}
BUILTIN_NAMES = tuple(BUILTIN_RESPONSES)

_PROBABILITY_STEPS = 1000.0  # the files keep probabilities as whole thousandths


def load_builtin(name: str = "bytelms", *, response: BuiltinResponse = "correct") -> ResponseMatrix:
    """Load a built-in data set: for trying things out, for examples and for tests.

    `bytelms` holds small byte-level language models (data mixtures x sizes x checkpoints) on multiple-choice items of
    16 tasks, `bytelms-samples` the same models on items answered by 10,000 samples each; the training compute of every
    model is known. ``docs/bytelms.md`` says how they were made.

    `classifiers` holds the answers of 242 scikit-learn classifiers to 3,497 test items of four scenarios
    (digits with subscenarios clean, noise, rotation and occlusion; breast cancer; wine; iris). It comes with a checkout
    and with the source distribution, not with the wheel. ``docs/classifiers.md`` says how it was made.

    Parameters
    ----------
    name : {'bytelms', 'bytelms-samples', 'classifiers'}
    response : {'correct', 'probability', 'probability_per_byte'}
        Whether the answer was right (0 or 1; of choices the one of highest log-likelihood per byte; the share of the
        samples in `bytelms-samples`), or the probability of the right answer among the classes or choices, or the
        geometric mean of the probabilities of its bytes (`bytelms` only).

    Returns
    -------
    ResponseMatrix
        Complete. Of `classifiers`, `costs['seconds']` is the CPU time of one prediction, and the model table tells
        family, hyperparameters, training share and, for each scenario, training examples and CPU seconds. Of the
        language models, the model table tells mixture, size, parameters, training tokens, `flops` and `is_final`.

    Raises
    ------
    ParameterError
        For another name or response.
    DataError
        For a set that the wheel leaves out.

    Examples
    --------
    >>> responses = load_builtin("bytelms")
    >>> responses.n_models, responses.n_items
    (280, 1820)
    """
    if name not in BUILTIN_RESPONSES:
        near = did_you_mean(name, BUILTIN_NAMES)
        raise ParameterError(f"built-in data must be one of {shown(BUILTIN_NAMES)}, got {name!r}.{near}")
    if response not in BUILTIN_RESPONSES[name]:
        raise ParameterError(f"response of {name!r} must be one of {shown(BUILTIN_RESPONSES[name])}, got {response!r}.")
    if name == "bytelms":
        return multiple_choice(response)
    return repeated_samples() if name == "bytelms-samples" else _classifiers(response)


def _classifiers(response: str) -> ResponseMatrix:
    models, items, answers = (read_builtin_table("classifiers", part) for part in ("models", "items", response))
    values = answers.select(models["model_id"].to_list()).cast(pl.Float64).to_numpy().T  # (n_models, n_items)
    if response == "probability":
        values = values / _PROBABILITY_STEPS
    costs = {"seconds": _prediction_seconds(models, items)}
    return ResponseMatrix.create(np.ascontiguousarray(values), models=models, items=items, costs=costs)


def _prediction_seconds(models: pl.DataFrame, items: pl.DataFrame) -> FloatArray:
    """CPU seconds of one prediction, (n_models, n_items): the same for all items of a scenario."""
    scenarios = items["scenario"].unique(maintain_order=True)
    by_scenario = models.select(f"{scenario}_prediction_seconds" for scenario in scenarios).to_numpy()
    index = items["scenario"].cast(pl.Enum(scenarios)).to_physical().to_numpy()
    result: FloatArray = by_scenario[:, index]
    return result
