"""Random streams named by what they are for, so that numbers depend on neither order nor on what else runs."""

import zlib

import numpy as np


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return the generator of one place in a study: the same seed and path always give the same numbers.

    Parameters
    ----------
    seed : int
    path : text or whole numbers >= 0
        Such as the split, repeat, fold, draw and method; text enters by its CRC-32.
    """
    key = tuple(zlib.crc32(part.encode()) if isinstance(part, str) else part for part in path)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
