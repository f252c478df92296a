"""Whether a bank that learns from adaptive tests gives better or worse ones after that, on real data.

    python -m benchmarks.growing SHARED/data/openllm1_core/responses.parquet

600 models are split at random: 30 with complete answers make the bank, 310 follow as a stream and answer 60 items each,
260 are judged: each takes a test of 100 items with most information about its ability. Printed is the mean absolute
error, in points, of its mean score on all 1,537 items (answers given, and the curves of the other items), for a bank
that never learns and for banks that learnt from the stream in several ways, which the ratio compares.
"""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from itembank.bank.banks import Bank
from itembank.calibration.build import build_bank
from itembank.calibration.calibrate import calibrate
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.living.add_models import add_models
from itembank.living.recalibrate import recalibrate
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix

N_BANK, N_STREAM, N_ASKED, N_TEST = 30, 310, 60, 100
GRID = np.linspace(-5.0, 5.0, 201)


def adaptive_test(
    items: ItemParameters, prior: AbilityPrior, answers: np.ndarray, n_items: int, *, fraction_random: float, seed: int
) -> np.ndarray:
    """Ask every model (n_models, n_all_items) for the items with most information at its expected ability.

    Returns the answers given, NaN elsewhere. Some items are drawn at random instead.
    """
    rng = np.random.default_rng(seed)
    theta = prior.mean[0] + np.sqrt(prior.covariance[0, 0]) * GRID
    p = np.clip(probability(items, theta[:, None]), 1e-9, 1.0 - 1e-9)  # (n_nodes, n_items)
    information = (p * (1.0 - p)) * items.loadings[:, 0] ** 2
    log_posterior = np.tile(-0.5 * GRID**2, (len(answers), 1))
    given, rows = np.full(answers.shape, np.nan), np.arange(len(answers))
    for _ in range(n_items):
        weights = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
        at = np.abs(theta - (weights @ theta / weights.sum(axis=1))[:, None]).argmin(axis=1)
        value = np.where(np.isnan(given), information[at], -1.0)
        drawn = np.where(np.isnan(given), rng.random(given.shape), -1.0)
        item = np.where(rng.random(len(rows)) < fraction_random, drawn.argmax(axis=1), value.argmax(axis=1))
        given[rows, item] = answers[rows, item]
        right = given[rows, item][:, None] > 0.5
        log_posterior += np.where(right, np.log(p[:, item].T), np.log1p(-p[:, item].T))
    return given


def error(items: ItemParameters, prior: AbilityPrior, answers: np.ndarray, seed: int) -> float:
    """Mean absolute error, in points, of the scores that tests of these items estimate."""
    given = adaptive_test(items, prior, answers, N_TEST, fraction_random=0.0, seed=seed)
    theta = prior.mean[0] + np.sqrt(prior.covariance[0, 0]) * GRID
    p = np.clip(probability(items, theta[:, None]), 1e-9, 1.0 - 1e-9)
    asked = ~np.isnan(given)
    right = np.where(asked, given, 0.0)
    values = right @ np.log(p).T + (asked - right) @ np.log1p(-p).T - 0.5 * GRID**2
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    expected = (weights / weights.sum(axis=1, keepdims=True)) @ p
    return 100.0 * float(np.abs(np.where(asked, right, expected).mean(axis=1) - answers.mean(axis=1)).mean())


def learnt(bank: Bank, stream: ResponseMatrix, how: str) -> dict[str, tuple[ItemParameters, AbilityPrior]]:
    """Let a bank learn from a stream in every way, by name: items and prior."""
    grown = recalibrate(add_models(bank, stream, how=how)).calibration
    found = {"difficulties": (grown.parameters, grown.prior)}
    both = np.concatenate([bank.responses.responses, stream.responses])
    anew = calibrate(ResponseMatrix.create(both))
    return {**found, "everything": (anew.parameters, anew.prior)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses", type=Path)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    responses = read_responses(options.responses)
    errors: dict[str, list[float]] = {}
    for seed in range(options.splits):
        order = np.random.default_rng(seed).permutation(responses.n_models)
        bank = build_bank(responses.take(models=order[:N_BANK]))
        items, prior = bank.parameters, bank.calibration.prior
        stream = responses.take(models=order[N_BANK : N_BANK + N_STREAM])
        judged = responses.responses[order[N_BANK + N_STREAM :]]
        errors.setdefault("frozen", []).append(error(items, prior, judged, seed))
        for name, fraction in (("adaptive", 0.0), ("adaptive, 30 % random", 0.3), ("random", 1.0)):
            asked = adaptive_test(items, prior, stream.responses, N_ASKED, fraction_random=fraction, seed=seed)
            way = "random" if fraction == 1.0 else "adaptive"
            for what, (its_items, its_prior) in learnt(bank, replace(stream, responses=asked), way).items():
                errors.setdefault(f"{name}: {what}", []).append(error(its_items, its_prior, judged, seed))
        for name, found in errors.items():
            ratio = float(np.mean(np.array(found) / np.array(errors["frozen"])))
            print(f"{name:<36} MAE {np.mean(found):.2f}  {ratio:.3f} of frozen  splits {len(found)}", flush=True)


if __name__ == "__main__":
    main()
