"""Fingerprints: short names that change when the numbers behind them change."""

import hashlib
from collections.abc import Sequence

import numpy as np

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets

BANK_ID_LENGTH = 12


def data_fingerprint(responses: ResponseMatrix) -> str:
    """SHA-256 of the ids, scenarios and responses, as hexadecimal text."""
    digest = hashlib.sha256()
    for names in (responses.model_ids, responses.item_ids, responses.items["scenario"].to_list()):
        _add_names(digest, names)
    digest.update(np.array([responses.n_models, responses.n_items], dtype="<i8").tobytes())
    for part in responses.parts():
        digest.update(_canonical(part.responses))
    if responses.n_trials is not None:
        _add_array(digest, responses.n_trials.astype(np.float64))
    return digest.hexdigest()


def bank_fingerprint(
    responses: ResponseMatrix, parameters: ItemParameters, targets: ScoreTargets, *others: FloatArray
) -> str:
    """Id of a bank: the first digits of a SHA-256 over its data and all numbers that estimates depend on.

    `others` are what else an estimate is made of: the ability prior, the item model's bias, the responses' variance.
    """
    digest = hashlib.sha256(data_fingerprint(responses).encode())
    for array in (
        parameters.loadings,
        parameters.intercept,
        parameters.lower_asymptote,
        parameters.upper_asymptote,
        targets.weights,
        targets.scenario_weights,
        *others,
    ):
        _add_array(digest, array)
    if parameters.family != "bernoulli":
        _add_names(digest, [parameters.family])
        _add_array(digest, np.zeros(0) if parameters.precision is None else parameters.precision)
    if parameters.steps is not None:
        _add_array(digest, parameters.steps.levels)
        _add_array(digest, parameters.steps.places)
    return digest.hexdigest()[:BANK_ID_LENGTH]


def _add_names(digest: "hashlib._Hash", names: Sequence[str]) -> None:
    """Add names with their lengths, so that ['ab', 'c'] and ['a', 'bc'] differ."""
    encoded = [str(name).encode() for name in names]
    digest.update(np.array([len(encoded), *map(len, encoded)], dtype="<i8").tobytes())
    digest.update(b"".join(encoded))


def _add_array(digest: "hashlib._Hash", array: FloatArray) -> None:
    """Add shape and numbers."""
    digest.update(np.array(array.shape, dtype="<i8").tobytes())
    digest.update(_canonical(array))


def _canonical(array: FloatArray) -> bytes:
    """Return the bytes of numbers, every NaN and zero in its one canonical form."""
    values = np.ascontiguousarray(array, dtype="<f8") + 0.0  # turns -0.0 into 0.0
    values[np.isnan(values)] = np.nan
    return values.tobytes()
