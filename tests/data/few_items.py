"""Built-in data with few items: for tests of what is done with them, which all items would only make slower."""

import numpy as np

from itembank.data.builtin import load_builtin


def load_few(name="classifiers", **choices):
    """Every seventh item."""
    whole = load_builtin(name, **choices)
    return whole.take(items=np.arange(0, whole.n_items, 7))
