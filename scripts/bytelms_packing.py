"""Put the numbers of the built-in data set `bytelms` into few bytes, which `itembank.readers.builtin` reads again."""

import lzma
from collections.abc import Sequence

import numpy as np

from itembank.readers.builtin import HALF_BYTE, by_text


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


def as_differences(log_likelihoods: np.ndarray, n_checkpoints: int, choices: Sequence[str]) -> np.ndarray:
    """Differences between checkpoints, and between choices of the same text: they compress well.

    Of whole numbers (n_models, n_choices), in which the checkpoints of a run follow one another, comes
    (n_checkpoints, n_choices, n_runs): the change since the checkpoint before, less that of the choice before where it
    has the same text. The choices are ordered by length and text, as changes grow with the length. 128 is added, half
    of what a low byte holds, so that small differences of both signs have the same high byte.
    """
    order, first = by_text(choices)
    runs = log_likelihoods.reshape(-1, n_checkpoints, len(choices))
    changes = np.diff(runs, axis=1, prepend=0)[:, :, order].transpose(1, 2, 0)
    own = first == np.arange(first.size)  # the first of its text
    differences = np.diff(changes, axis=1, prepend=0)
    differences[:, own] = changes[:, own]
    return np.ascontiguousarray(differences) + HALF_BYTE
