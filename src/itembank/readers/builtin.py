"""Data sets that come with the package."""

import importlib.resources
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.files.atomic import replacing_file
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.choice_scores import choice_accuracy, choice_probability, probability_per_character
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Compact

IN_CHECKOUT_ONLY = ("classifiers_", "bytelms_samples_exact")
"""How the names of files begin that the wheel leaves out, to stay small; ``pyproject.toml`` names them too."""
HALF_BYTE = 128


def read_builtin_table(name: str, part: str) -> pl.DataFrame:
    """Read one file of a data set, such as the `items` of `classifiers`."""
    return pl.read_parquet(_content(f"{name}_{part}.parquet"))


def _content(file: str) -> bytes:
    source = importlib.resources.files("itembank.readers").joinpath("builtin_files", file)
    if source.name.startswith(IN_CHECKOUT_ONLY) and not source.is_file():
        raise DataError(
            f"{source.name} must be in the package to read these built-in data, and the wheel leaves it out to stay "
            "small. Install from a checkout or from the source distribution, or take what is there: "
            "load_builtin('bytelms')."
        )
    return source.read_bytes()


def read_builtin_numbers(name: str, part: str, dtype: str, n_rows: int) -> np.ndarray[Any, Any]:
    """Read numbers from a file whose content `packed_numbers` of `scripts/bytelms_packing.py` made.

    `dtype` names the order of bytes, too: '<i2', '<f4'.
    """
    try:
        import lzma  # noqa: PLC0415 (a Python that was built without it can do all else)
    except ImportError as error:
        raise DataError(
            "the built-in language models need Python's module lzma, and this Python was built without it. Install "
            "the headers of xz (Debian: liblzma-dev) and build Python again, or take another Python."
        ) from error
    content = np.frombuffer(lzma.decompress(_content(f"{name}_{part}.xz")), dtype=np.uint8)
    kept = content.reshape(np.dtype(dtype).itemsize, -1)
    planes = np.empty_like(kept)  # (n_bytes, n_numbers), the low bytes first
    order = np.arange(kept.shape[1])
    for i in reversed(range(len(kept))):
        planes[i, order] = kept[i]
        order = np.argsort(planes[i], kind="stable")
    return np.ascontiguousarray(planes.T).view(dtype).reshape(n_rows, -1)


def from_errors(
    errors: np.ndarray[Any, Any], terms: np.ndarray[Any, Any], n_checkpoints: int, choices: Sequence[str]
) -> np.ndarray[Any, Any]:
    """Add the predictions that `scripts/bytelms_packing.py` took away again, (n_models, n_choices)."""
    order, first = by_text(choices)
    steps = errors.reshape(n_checkpoints, len(choices), -1) - HALF_BYTE
    sums = np.cumsum(steps, axis=1, dtype=errors.dtype)
    found = (sums - (sums - steps)[:, first]).swapaxes(1, 2).reshape(-1, len(choices))
    for row, (models, weights) in enumerate(terms.reshape(len(found), 2, -1).astype(np.int64)):
        found[row] += ((weights @ found[models].astype(np.int64)) >> 8).astype(errors.dtype)
    by_run: np.ndarray[Any, Any] = np.empty_like(found)
    by_run[:, order] = found.reshape(n_checkpoints, -1, len(choices)).swapaxes(0, 1).reshape(found.shape)
    return by_run


def by_text(choices: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Order of choices by length and text; in that order, the place of the first choice with the same text."""
    texts = np.array(choices)
    order = np.lexsort((texts, np.char.str_len(texts)))
    is_first = np.append(True, texts[order][1:] != texts[order][:-1])
    return order, np.maximum.accumulate(np.where(is_first, np.arange(order.size), 0))


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
    errors = read_builtin_numbers("bytelms", "choices", "<i2", n_checkpoints)
    terms = read_builtin_numbers("bytelms", "choices_terms", "<i2", models.height)
    choices = from_errors(errors, terms, n_checkpoints, items["choices"].explode().to_list())
    n_options = items["n_options"].to_numpy()
    is_choice = np.arange(n_options.max()) < n_options[:, None]  # (n_items, n_options)
    log_likelihoods = np.full((models.height, *is_choice.shape), np.nan)
    log_likelihoods[:, is_choice] = choices / 100.0  # files keep whole hundredths
    n_bytes = np.full(is_choice.shape, np.nan)
    n_bytes[is_choice] = items["choice_bytes"].explode().to_numpy()
    return ChoiceLogLikelihoods(models, items, log_likelihoods, n_bytes, items["correct"].to_numpy())


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


BuiltinResponse = Literal["correct", "probability", "probability_per_byte"]
BUILTIN_RESPONSES: dict[str, tuple[str, ...]] = {
    "classifiers": ("correct", "probability"),
    "bytelms": ("correct", "probability", "probability_per_byte"),
    "bytelms-samples": ("correct",),
}
BUILTIN_NAMES = tuple(BUILTIN_RESPONSES)


def load_builtin(name: str = "bytelms", *, response: BuiltinResponse = "correct") -> ResponseMatrix:
    """Load a built-in data set: for trying things out, for examples and for tests.

    `bytelms` holds small byte-level language models (data mixtures x sizes x checkpoints) on multiple-choice items of
    16 tasks, `bytelms-samples` the same models on items answered by 10,000 samples each; the training compute of every
    model is known. ``contributing/bytelms.md`` says how they were made.

    `classifiers` holds the answers of 242 scikit-learn classifiers to 3,497 test items of four scenarios
    (digits with subscenarios clean, noise, rotation and occlusion; breast cancer; wine; iris). It comes with a checkout
    and with the source distribution, not with the wheel. ``contributing/classifiers.md`` says how it was made.

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
        values = values / 1000.0  # files keep whole thousandths
    scenarios = items["scenario"].unique(maintain_order=True)
    by_scenario = models.select(f"{scenario}_prediction_seconds" for scenario in scenarios).to_numpy()
    index = items["scenario"].cast(pl.Enum(scenarios)).to_physical().to_numpy()
    costs = {"seconds": by_scenario[:, index]}  # the same for all items of a scenario
    return ResponseMatrix.create(np.ascontiguousarray(values), models=models, items=items, costs=costs)


PAST, NEW = "past.csv", "new-model.csv"
TASKS = ("addition", "comparison", "copying", "spelling", "code")
CHECKPOINTS = (0.5, 1.0)
"""Of each training run: half way, and at its end."""
NEW_MODEL = "balanced/1.2M/1"
"""The end of a run of which no other checkpoint is among the past models."""


def sample_data() -> tuple[ResponseMatrix, ResponseMatrix]:
    """Return past models and a new one: part of the built-in small language models."""
    everyone = load_builtin("bytelms")
    models = everyone.models
    items = np.flatnonzero(everyone.items["scenario"].is_in(list(TASKS)).to_numpy())
    run = models["model_id"].str.replace(r"/[^/]*$", "")
    new_run = NEW_MODEL.rpartition("/")[0]
    is_past = models["share_of_run"].is_in(list(CHECKPOINTS)) & (run != new_run)
    past = everyone.take(models=np.flatnonzero(is_past.to_numpy()), items=items)
    return past, everyone.take(models=everyone.model_indices([NEW_MODEL]), items=items)


def write_sample_data(folder: str | Path) -> tuple[ResponseMatrix, ResponseMatrix]:
    """Write `past.csv` and `new-model.csv` into a folder, each with columns model_id, item_id, scenario, response."""
    past, new = sample_data()
    content = {Path(folder) / name: _csv(responses) for name, responses in ((PAST, past), (NEW, new))}
    others = [str(path) for path, text in content.items() if path.exists() and path.read_bytes() != text]
    if others:
        raise DataError(f"{shown(others)} must not be there yet, or be as this writes it. Choose another folder (-o).")
    for path, text in content.items():
        with replacing_file(path) as temporary:
            temporary.write_bytes(text)
    return past, new


def _csv(responses: ResponseMatrix) -> bytes:
    """Write one row an answer."""
    names = ("model_id", "item_id", "scenario")
    return responses.to_polars().select(*names, pl.col("response").cast(pl.Int64)).write_csv().encode()
