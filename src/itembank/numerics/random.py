"""One way to turn what a caller gives into a random generator."""

import numpy as np

from itembank.errors import ParameterError


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return `rng` itself, or a new generator seeded with it (None: fresh entropy)."""
    if isinstance(rng, int) and rng < 0:
        raise ParameterError(f"a seed must be a whole number >= 0, got {rng}.")
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
