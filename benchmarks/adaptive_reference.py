"""One-dimensional adaptive testing as public packages do it: every step works over the whole bank in Python.

Run as a program it prints one JSON object: ``python -m benchmarks.adaptive_reference TOOL N_ITEMS N_STEPS``. Nothing
here imports itembank, so that rivals may live in another environment.
"""

import importlib.metadata
import json
import sys
import time
from collections.abc import Callable

import numpy as np

Answer = Callable[[int], bool]
Steps = tuple[list[float], list[int]]
"""CPU seconds of each step, and the items in the order of asking."""


def run_plain(slope: np.ndarray, difficulty: np.ndarray, answer: Answer, n_steps: int) -> Steps:
    """Fisher information of the whole bank, sorted, the items asked filtered out one by one; MAP by search."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    asked: list[int] = []
    told: list[bool] = []
    theta, seconds = 0.0, []
    for _ in range(n_steps):
        started = time.process_time()
        p = 1.0 / (1.0 + np.exp(-slope * (theta - difficulty)))
        order = np.argsort(-(slope**2) * p * (1.0 - p))
        item = int([index for index in order if index not in asked][0])  # noqa: RUF015 (that is what is measured)
        asked.append(item)
        told.append(answer(item))
        a, b, y = slope[asked], difficulty[asked], np.array(told, dtype=float)

        def loss(value: float, a: np.ndarray = a, b: np.ndarray = b, y: np.ndarray = y) -> float:
            x = a * (value - b)
            return float(0.5 * value**2 - np.sum(y * x - np.logaddexp(0.0, x)))

        theta = float(minimize_scalar(loss, bounds=(-6.0, 6.0), method="bounded").x)
        seconds.append(time.process_time() - started)
    return seconds, asked


def run_catsim(slope: np.ndarray, difficulty: np.ndarray, answer: Answer, n_steps: int) -> Steps:
    """Take catsim's `MaxInfoSelector` and `NumericalSearchEstimator` as they come."""
    from catsim.estimation import NumericalSearchEstimator  # noqa: PLC0415
    from catsim.item_bank import ItemBank  # noqa: PLC0415
    from catsim.selection import MaxInfoSelector  # noqa: PLC0415

    n_items = len(slope)
    bank = ItemBank(np.column_stack([slope, difficulty, np.zeros(n_items), np.ones(n_items)]))
    select, estimate = MaxInfoSelector(), NumericalSearchEstimator()
    asked: list[int] = []
    told: list[bool] = []
    theta, seconds = 0.0, []
    for _ in range(n_steps):
        started = time.process_time()
        item = int(select.select(item_bank=bank, administered_items=asked, est_theta=theta))
        asked.append(item)
        told.append(answer(item))
        theta = float(
            estimate.estimate(item_bank=bank, administered_items=asked, response_vector=told, est_theta=theta)
        )
        seconds.append(time.process_time() - started)
    return seconds, asked


def run_fluid(slope: np.ndarray, difficulty: np.ndarray, answer: Answer, n_steps: int) -> Steps:
    """Take fluid-benchmarking's engine (most information at the MAP ability) as it comes, a clock in its estimator."""
    from fluid_benchmarking import engine, estimators  # noqa: PLC0415

    ended = [time.process_time()]

    def estimate(**known: object) -> float:
        theta = float(estimators.ability_estimate(**known))
        ended.append(time.process_time())
        return theta

    told = np.array([answer(item) for item in range(len(slope))], dtype=float)
    ended[0] = time.process_time()
    found = engine.run_fluid_benchmarking(
        lm_responses=told, irt_model=np.column_stack([slope, difficulty]), n_max=n_steps, estimator=estimate
    )
    return np.diff(ended).tolist(), found["items_fb"]


TOOLS = {"plain Python": run_plain, "catsim": run_catsim, "fluid-benchmarking": run_fluid}


def main(tool: str, n_items: int, n_steps: int) -> dict[str, object]:
    """Time one tool on a made-up bank; the model that answers has ability 0.5."""
    rng = np.random.default_rng(0)
    slope, difficulty = rng.lognormal(0.0, 0.5, n_items), rng.normal(size=n_items)

    def answer(item: int) -> bool:
        return bool(rng.random() < 1.0 / (1.0 + np.exp(-slope[item] * (0.5 - difficulty[item]))))

    try:
        seconds, _ = TOOLS[tool](slope, difficulty, answer, n_steps)
    except ImportError as error:
        return {"skipped": f"not installed ({error})"}
    return {"version": _version(tool), "median_seconds": float(np.median(seconds)), "largest_seconds": max(seconds)}


def _version(tool: str) -> str:
    try:
        return importlib.metadata.version(tool)
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
