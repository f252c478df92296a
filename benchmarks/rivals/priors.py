"""What the prior of the items does to predictions of hidden responses: ``python -m benchmarks.rivals.priors``.

torch_measure's `jml` maximises the joint density of all parameters, with one normal prior for abilities, difficulties
and logarithms of slopes. Here another program maximises that objective, and one part of the prior after the other is
replaced by what itembank's variational method takes: normal slopes, and intercepts in place of difficulties. Simulated
items are drawn in both ways; real ones are those of leaderboards in ``ITEMBANK_SHARED``. Six CPU-minutes in all.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.accuracy.data_sets import load
from benchmarks.problems import MASKED_SHARE, held_out_log_likelihood, simulate
from itembank.bank.banks import Calibration
from itembank.calibration.calibration_specs import CalibrationSpec, ItemPrior, MarginalML, Variational
from itembank.calibration.fit_item_model import fit_item_model
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix

N_NODES = 15
SHARED = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
LEADERBOARDS = ("openllm1_core", "swebench_verified")


@dataclass(frozen=True, slots=True)
class Hidden:
    """Responses of which some are hidden, and the true probabilities where they are known, (n_models, n_items) each."""

    responses: np.ndarray
    masked: np.ndarray
    chances: np.ndarray | None


@dataclass(frozen=True, slots=True)
class JointPrior:
    """Normal priors of all parameters of the 2PL model.

    Attributes
    ----------
    ability_sd, location_sd, slope_sd : float
        Standard deviations; locations have the mean 0.
    slope_mean : float
    is_log_slope : bool
        Whether the prior is that of the logarithm of a slope.
    is_difficulty : bool
        Whether the location is the difficulty b of ``a (theta - b)``, or the intercept c of ``a theta + c``.
    """

    ability_sd: float = 1.0
    location_sd: float = 1.0
    slope_sd: float = 0.5
    slope_mean: float = 0.0
    is_log_slope: bool = True
    is_difficulty: bool = True


# What slopes exp(N(0, 0.5^2)) and intercepts -a N(0, 1) have for moments.
SLOPE_MEAN, SLOPE_SD, INTERCEPT_SD = np.exp(0.125), np.exp(0.125) * np.sqrt(np.expm1(0.25)), np.exp(0.25)
PRIORS = {
    "log slopes, difficulties": JointPrior(),
    "normal slopes, difficulties": JointPrior(slope_mean=SLOPE_MEAN, slope_sd=SLOPE_SD, is_log_slope=False),
    "log slopes, intercepts": JointPrior(location_sd=INTERCEPT_SD, is_difficulty=False),
    "normal slopes, intercepts": JointPrior(1.0, INTERCEPT_SD, SLOPE_SD, SLOPE_MEAN, False, False),
}


def torch_measure_prior(responses: np.ndarray, regularization: float = 0.01) -> JointPrior:
    """Return the prior of `jml`, which adds ``regularization * mean(parameters^2)`` to the mean loss of a cell."""
    n_models, n_items = responses.shape
    n_observed = int((~np.isnan(responses)).sum())
    sd = float(np.sqrt((n_models + 2 * n_items) / (2.0 * regularization * n_observed)))
    return JointPrior(sd, sd, sd)


def joint_map(responses: np.ndarray, prior: JointPrior) -> tuple[np.ndarray, np.ndarray]:
    """Maximise the joint density of all parameters.

    Parameters
    ----------
    responses : (n_models, n_items)
        NaN where missing.
    prior : JointPrior

    Returns
    -------
    abilities : (n_models, 1)
    chances : (n_models, n_items)
    """
    n_models, n_items = responses.shape
    start = np.zeros(n_models + 2 * n_items)
    score = np.nanmean(responses, axis=1)
    start[:n_models] = prior.ability_sd * (score - score.mean()) / score.std()
    start[n_models + n_items :] = prior.slope_mean
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-10, "gtol": 1e-3}
    found = minimize(
        lambda point: loss_and_gradient(point, responses, prior), start, jac=True, method="L-BFGS-B", options=options
    )
    theta, location, slope = _divided(found.x, n_models, prior)
    return theta[:, None], expit(_logits(theta, location, slope, prior))


def loss_and_gradient(point: np.ndarray, responses: np.ndarray, prior: JointPrior) -> tuple[float, np.ndarray]:
    """Minus the log of the joint density, up to a constant, and its gradient.

    Parameters
    ----------
    point : (n_models + 2 n_items,)
        Abilities, locations, and slopes or their logarithms.
    responses : (n_models, n_items)
        NaN where missing.
    prior : JointPrior
    """
    n_models, n_items = responses.shape
    observed = ~np.isnan(responses)
    theta, location, slope = _divided(point, n_models, prior)
    logits = _logits(theta, location, slope, prior)
    known = np.where(observed, responses, 0.0)
    excess = np.where(observed, expit(logits) - known, 0.0)
    of_slope = excess.T @ theta - (excess.sum(axis=0) * location if prior.is_difficulty else 0.0)
    gradient = np.concatenate(
        [
            excess @ slope,
            -slope * excess.sum(axis=0) if prior.is_difficulty else excess.sum(axis=0),
            of_slope * slope if prior.is_log_slope else of_slope,
        ]
    )
    precision = np.repeat([prior.ability_sd, prior.location_sd, prior.slope_sd], [n_models, n_items, n_items]) ** -2.0
    centred = point - np.repeat([0.0, 0.0, prior.slope_mean], [n_models, n_items, n_items])
    loss = float(np.sum(np.where(observed, np.logaddexp(0.0, logits) - known * logits, 0.0)))
    return loss + 0.5 * float(precision @ centred**2), gradient + precision * centred


def _divided(point: np.ndarray, n_models: int, prior: JointPrior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    theta, location, slope = np.split(point, [n_models, n_models + (len(point) - n_models) // 2])
    return theta, location, np.exp(slope) if prior.is_log_slope else slope


def _logits(theta: np.ndarray, location: np.ndarray, slope: np.ndarray, prior: JointPrior) -> np.ndarray:
    if prior.is_difficulty:
        return slope * (theta[:, None] - location)
    return slope * theta[:, None] + location


def averaged_chances(found: Calibration) -> np.ndarray:
    """Probabilities averaged over the normal posteriors of items and abilities, (n_models, n_items)."""
    n_dims = found.parameters.n_dims
    x = np.column_stack([found.abilities, np.ones(len(found.abilities))])
    loadings, of_items = found.parameters.loadings, found.item_covariance
    mean = x @ np.column_stack([loadings, found.parameters.intercept]).T
    variance = np.einsum("la,iab,lb->li", x, of_items, x)
    squares = np.einsum("ia,ib->iab", loadings, loadings) + of_items[:, :n_dims, :n_dims]
    variance += np.einsum("iab,lab->li", squares, found.ability_covariance)
    nodes, weights = hermegauss(N_NODES)
    spread = np.sqrt(variance)
    chances: np.ndarray = sum(w * expit(mean + node * spread) for node, w in zip(nodes, weights, strict=True))
    return chances / weights.sum()


def lognormal_slopes(seed: int, n_models: int, n_items: int) -> Hidden:
    """Draw items as `benchmarks.problems` does: lognormal slopes, normal difficulties."""
    problem = simulate(n_models, n_items, 1, seed=seed)
    return Hidden(problem.hidden, problem.masked, problem.chances)


def normal_slopes(seed: int, n_models: int, n_items: int) -> Hidden:
    """Draw items whose slopes are normal, of the same mean and spread, none below 0.1, and whose intercepts are."""
    problem = simulate(n_models, n_items, 1, seed=seed)
    rng = np.random.default_rng((seed, 1))
    slope = np.maximum(rng.normal(SLOPE_MEAN, SLOPE_SD, n_items), 0.1)
    chances = expit(slope * problem.theta + rng.normal(0.0, INTERCEPT_SD, n_items))
    return Hidden((rng.random(chances.shape) < chances).astype(np.float64), problem.masked, chances)


def leaderboard(name: str, folder: Path, seed: int) -> Hidden:
    """Hide a tenth of the responses of a leaderboard."""
    responses = load(name, folder).responses
    if not (responses.is_complete and responses.is_binary):
        raise SystemExit(f"{name} must have complete responses of 0 and 1")
    masked = np.random.default_rng((seed, 2)).random(responses.responses.shape) < MASKED_SHARE
    masked &= ~_is_constant(np.where(masked, np.nan, responses.responses))
    return Hidden(responses.responses, masked, None)


def _is_constant(responses: np.ndarray) -> np.ndarray:
    """Tell which items all models answered alike: the methods differ in what they make of them."""
    result: np.ndarray = np.nanmin(responses, axis=0) == np.nanmax(responses, axis=0)
    return result


def rows(problem: Hidden) -> Iterator[tuple[str, float]]:
    """Give the name of each way, and the held-out log-likelihood a cell."""
    responses = np.where(problem.masked, np.nan, problem.responses)

    def judged(chances: np.ndarray) -> float:
        return held_out_log_likelihood(problem.responses, problem.masked, chances)

    if problem.chances is not None:
        yield "truth", judged(problem.chances)
    specs: dict[str, CalibrationSpec] = {
        "itembank": Variational(),
        "itembank mml": MarginalML(),
        "itembank mml, log slopes": MarginalML(prior=ItemPrior()),
    }
    for name, spec in specs.items():
        found = fit_item_model(ResponseMatrix.create(responses), spec)
        yield name, judged(probability(found.parameters, found.abilities))
        if isinstance(spec, Variational):
            yield f"{name}, averaged over the posterior", judged(averaged_chances(found))
    yield "joint MAP, prior of jml", judged(joint_map(responses, torch_measure_prior(responses))[1])
    for name, prior in PRIORS.items():
        yield f"joint MAP, {name}", judged(joint_map(responses, prior)[1])


def main() -> None:
    """Print a table for each kind of data: the mean of the seeds, and how far above ours it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=400)
    parser.add_argument("--items", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=3, help="how many matrices, or draws of the hidden tenth")
    parser.add_argument("--only", help="one kind of data alone")
    options = parser.parse_args()
    kinds: dict[str, Callable[[int], Hidden]] = {
        "lognormal slopes": partial(lognormal_slopes, n_models=options.models, n_items=options.items),
        "normal slopes": partial(normal_slopes, n_models=options.models, n_items=options.items),
    }
    if SHARED.is_dir():
        kinds |= {name: partial(leaderboard, name, SHARED) for name in LEADERBOARDS}
    for kind, make in kinds.items():
        if options.only in (None, kind):
            _print_table(kind, [dict(rows(make(seed))) for seed in range(options.seeds)])


def _print_table(kind: str, found: list[dict[str, float]]) -> None:
    print(f"\n{kind}, {len(found)} seeds: held-out log-likelihood a cell, above itembank's in 1e-5 (each seed)")
    for name in found[0]:
        values = np.array([one[name] for one in found])
        gains = 1e5 * (values - [one["itembank"] for one in found])
        each = ", ".join(f"{gain:.0f}" for gain in gains)
        print(f"  {name:42s} {values.mean():.5f} {gains.mean():8.1f}   ({each})", flush=True)


if __name__ == "__main__":
    main()
