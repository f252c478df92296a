"""Put the numbers of the built-in data set `bytelms` into few bytes, which `itembank.readers.builtin` reads again."""

import lzma
from collections.abc import Sequence

import numpy as np

from itembank.readers.builtin import HALF_BYTE, by_text

N_TERMS = 8
"""Models that predict one: 16 would save four thousand bytes more."""
N_CANDIDATES = 120


def packed_numbers(numbers: np.ndarray, dtype: str) -> bytes:
    """Return numbers as bytes in an order that compresses well.

    The low bytes of all numbers are together, then the next ones. Bytes of one plane are in the order of the bytes
    above them, since low bytes below equal high bytes are alike. Each plane is a stream of its own.
    """
    how = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 0}
    planes = np.ascontiguousarray(numbers, dtype=dtype).view(np.uint8).reshape(numbers.size, -1).T
    above = [np.argsort(plane, kind="stable") for plane in planes[1:]] + [np.arange(numbers.size)]
    return b"".join(
        lzma.compress(plane[order].tobytes(), filters=[how]) for plane, order in zip(planes, above, strict=True)
    )


def as_errors(log_likelihoods: np.ndarray, n_checkpoints: int, choices: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Errors of predictions by other models, and differences of these between choices of the same text, pack well.

    Of whole numbers (n_models, n_choices), in which the checkpoints of a run follow one another, come errors
    (n_checkpoints, n_choices, n_runs), less that of the choice before where it has the same text. The choices are
    ordered by length and text, as errors grow with the length. 128 is added, half of what a low byte holds, so that
    small errors of both signs have the same high byte. And `terms` (n_models, 2 N_TERMS), checkpoint by checkpoint:
    places of the models that predict each, before it in this order, and their weights, times 256.
    """
    order, first = by_text(choices)
    is_first = first == np.arange(first.size)
    in_order = log_likelihoods.reshape(-1, n_checkpoints, len(choices))[:, :, order].swapaxes(0, 1).astype(np.int64)
    values = in_order.reshape(-1, len(choices))
    differences = _between_choices(values, is_first)
    errors, terms = values.copy(), np.zeros((len(values), 2, N_TERMS), dtype=np.int64)
    for i in range(1, len(values)):
        nearest = max(0, i - N_CANDIDATES)
        chosen, weights = _best(differences[i] / 100.0, differences[nearest:i] / 100.0)
        terms[i, 0, : chosen.size], terms[i, 1, : chosen.size] = chosen + nearest, np.round(256.0 * weights)
        errors[i] -= (terms[i, 1] @ values[terms[i, 0]]) >> 8
    errors = _between_choices(errors, is_first).reshape(in_order.shape).swapaxes(1, 2)
    return np.ascontiguousarray(errors) + HALF_BYTE, terms.reshape(len(values), -1)


def _between_choices(values: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    return np.where(is_first, values, np.diff(values, axis=1, prepend=0))


def _best(target: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose rows one by one, and fit the weights that leave small absolute errors."""
    chosen: list[int] = []
    error, weights = target, np.zeros(0)
    for _ in range(min(N_TERMS, len(known))):
        size = 1.0 / np.sqrt(np.abs(error) + 0.3)
        basis, _ = np.linalg.qr((known[chosen] * size).T)
        apart = known * size
        apart = apart - (apart @ basis) @ basis.T
        gain = np.abs(apart @ (error * size)) / np.sqrt((apart**2).sum(axis=1) + 1e-6)
        gain[chosen] = -1.0
        chosen.append(int(np.argmax(gain)))
        weights = np.linalg.lstsq((known[chosen] * size).T, target * size, rcond=None)[0]
        error = target - weights @ known[chosen]
    return np.array(chosen), np.clip(weights, -100.0, 100.0)
