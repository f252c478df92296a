"""Makes files in the layout of tinyBenchmarks.pkl."""

import pickle

import numpy as np


def tiny_benchmarks(n_tiny=10, n_dims=3, sizes=None):
    """Return two benchmarks, lb of two scenarios and mmlu of one, each scenario in two parts of unequal size."""
    rng = np.random.default_rng(3)
    return {
        name: _benchmark(rng, scenarios, n_tiny, n_dims)
        for name, scenarios in (sizes or {"lb": {"truthfulqa": 30, "arc": 40}, "mmlu": {"mmlu": 50}}).items()
    }


def write_tiny_benchmarks(path, protocol=4, **choices):
    """Write them as the authors wrote theirs, and return them."""
    content = tiny_benchmarks(**choices)
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return content


def _benchmark(rng, scenarios, n_tiny, n_dims):
    ends = np.cumsum([*scenarios.values()])
    places = {name: [*range(end - n, end)] for (name, n), end in zip(scenarios.items(), ends.tolist(), strict=True)}
    weights = {name: rng.dirichlet(np.ones(n_tiny)) for name in scenarios}
    return {
        "seen_examples": [int(one) for where in places.values() for one in rng.permutation(where)[:n_tiny]],
        "examples_weights": weights,
        "irt_parameters": {"A": np.asfortranarray(rng.lognormal(-0.5, 0.4, (1, n_dims, int(ends[-1])))),
            "B": rng.normal(0.0, 0.6, (1, n_dims, int(ends[-1])))},
        "optimal_lambdas": {name: np.float64(rng.uniform(0.2, 0.8)) for name in scenarios},
        "scenarios_position": places,
        "subscenarios_position": {name: {"small": where[: len(where) // 3], "large": where[len(where) // 3 :]} for name,
            where in places.items()},
    }  # fmt: skip
