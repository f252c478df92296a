"""One way to turn what a caller gives into a random generator."""

import numpy as np


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return `rng` itself, or a new generator seeded with it (None: fresh entropy)."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
