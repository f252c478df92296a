"""Built-in data with few items: for tests of what is done with them, which all items would only make slower."""

import numpy as np

from itembank.readers.builtin import load_builtin


def load_few(name="classifiers", *, every_item=7, every_model=1, **choices):
    """Every seventh item, or as many items and models as asked for."""
    whole = load_builtin(name, **choices)
    return whole.take(models=np.arange(0, whole.n_models, every_model), items=np.arange(0, whole.n_items, every_item))
