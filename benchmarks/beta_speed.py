"""Time and peak memory of a Beta 2PL of simulated probabilities: ``python -m benchmarks.beta_speed [--large]``.

The small size is 400 models by 28,000 items, the large one the 6,612 by 37,682 of the scaling-law paper. Responses
are drawn in chunks into one float32 array, and calibrated as a user would calibrate them.
"""

import argparse
import json
import resource
import time
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from itembank.bank.calibrations import Calibration
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix

SMALL, LARGE = (400, 28_000), (6_612, 37_682)
TARGETS = {SMALL: "60 CPU-s", LARGE: "15 minutes on two cores and 6 GB"}
N_SCENARIOS = 5
CHUNK = 500
LEAST_SHAPE = 1e-6
"""Of a Beta draw: a smaller one is zero in double precision."""


class Truth(NamedTuple):
    """What the responses are drawn from; precision is that of each scenario."""

    theta: FloatArray
    slope: FloatArray
    intercept: FloatArray
    precision: FloatArray
    scenario: FloatArray


def draw_truth(n_models: int, n_items: int, rng: np.random.Generator) -> Truth:
    """Draw abilities and items; each scenario has a precision of its own."""
    theta = rng.normal(size=n_models)
    slope = rng.lognormal(0.0, 0.4, n_items)
    scenario = np.sort(rng.integers(N_SCENARIOS, size=n_items))
    precision = np.geomspace(8.0, 80.0, N_SCENARIOS)
    standard = (theta - theta.mean()) / theta.std()
    return Truth(standard, slope, -slope * rng.normal(size=n_items), precision, scenario)


def draw_responses(truth: Truth, rng: np.random.Generator) -> FloatArray:
    """Draw probabilities, (n_models, n_items) in float32, some items at a time."""
    responses = np.empty((truth.theta.size, truth.slope.size), dtype=np.float32)
    for first in range(0, truth.slope.size, CHUNK):
        part = slice(first, first + CHUNK)
        chances = expit(truth.theta[:, None] * truth.slope[part] + truth.intercept[part])
        precision = truth.precision[truth.scenario[part]]
        first_shape = np.maximum(chances * precision, LEAST_SHAPE)
        responses[:, part] = rng.beta(first_shape, np.maximum((1.0 - chances) * precision, LEAST_SHAPE))
    # float32 rounds what is close to one
    return np.clip(responses, np.float32(1e-6), np.float32(1.0 - 1e-6), out=responses)


def measure(shape: tuple[int, int]) -> dict[str, object]:
    """Simulate, calibrate, and say what it cost and how close it came."""
    rng = np.random.default_rng(0)
    truth = draw_truth(*shape, rng)
    names = [f"scenario-{number}" for number in truth.scenario]
    responses = ResponseMatrix.create(draw_responses(truth, rng), scenarios=names)
    before = _peak_gigabytes()
    cpu, wall = time.process_time(), time.perf_counter()
    found = calibrate(responses, Variational("2pl", family="beta"), progress=_say)
    return {
        "n_models": shape[0],
        "n_items": shape[1],
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "wall_seconds": round(time.perf_counter() - wall, 1),
        "peak_gigabytes": round(_peak_gigabytes(), 2),
        "peak_gigabytes_before": round(before, 2),
        "converged": found.converged,
        "n_iterations": found.n_iterations,
        **_errors(found, truth),
    }


def _errors(found: Calibration, truth: Truth) -> dict[str, object]:
    """Compare with the truth: root mean square errors, and the largest relative error of a precision."""
    precision = np.asarray(found.parameters.precision)[np.searchsorted(truth.scenario, np.arange(N_SCENARIOS))]
    away = {"slope": found.parameters.loadings[:, 0] - truth.slope, "intercept": found.parameters.intercept}
    away["intercept"] = away["intercept"] - truth.intercept
    errors = {f"rmse_{name}": round(float(np.sqrt(np.mean(value**2))), 4) for name, value in away.items()}
    correlation = float(np.corrcoef(found.abilities[:, 0], truth.theta)[0, 1])
    worst = float(np.abs(precision / truth.precision - 1.0).max())
    return {**errors, "r_ability": round(correlation, 6), "worst_precision": round(worst, 5)}


def _peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _say(message: str, share: float) -> None:
    print(f"{share:5.0%} {message}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also the large size: 4 GB, minutes")
    options = parser.parse_args()
    for shape in (SMALL, LARGE) if options.large else (SMALL,):
        print(json.dumps(measure(shape)), f"target: {TARGETS[shape]}")


if __name__ == "__main__":
    main()
