"""What kernels are held against: differences of a function, and the parts of two results side by side."""

import numpy as np
from numpy.testing import assert_allclose


def alike(found, expected, names, **tolerance):
    """Compare the attributes of two results whose names are given in one text."""
    for name in names.split():
        assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name, **tolerance)


def slopes(function, at, step=1e-5):
    """Central differences by every element of an array: its shape, then that of the function's values."""
    moves = step * np.eye(at.size).reshape(at.size, *at.shape)
    found = [(function(at + move) - function(at - move)) / (2.0 * step) for move in moves]
    return np.reshape(found, (*at.shape, *np.shape(found[0])))


def slopes_by_column(function, at, step=1e-5):
    """Central differences of values (n_rows, ...) by every column of all rows at once: (n_rows, n_columns, ...)."""
    moves = step * np.eye(at.shape[1])
    return np.stack([(function(at + move) - function(at - move)) / (2.0 * step) for move in moves], axis=1)
