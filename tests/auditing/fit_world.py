"""A bank of sixty made-up models, and new models of its kind."""

import functools

from tests.estimation.simulated import new_models, small_bank


@functools.cache
def bank():
    return small_bank(n_models=60, n_items=120, seed=3)


@functools.cache
def clean(n_models=6, seed=4):
    return new_models(bank(), n_models, seed)
