"""One way to turn what a caller gives into a random generator."""

import numpy as np

from itembank.checks import check_whole


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return `rng` itself, or a new generator seeded with it (None: fresh entropy)."""
    if isinstance(rng, int):
        check_whole("a seed", rng, least=0)
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
