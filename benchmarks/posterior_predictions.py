"""Should predictions integrate over the posterior of ability? ``python -m benchmarks.posterior_predictions`` (minutes).

p-IRT takes each unseen item's probability at the mode of ability. Beside it stand the mean of ability, the expectation
over the posterior (exact by quadrature in one dimension, over its normal approximation in more), and the expectation
over the items' posteriors as well. Banks of few past models; new models answer V-optimal items. Log-likelihood of their
answers to all other items, error of their overall score, and coverage of the item model's own 95 % intervals. Nothing
is tuned. Standard errors are of differences from today's predictions, over splits.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit

import itembank as ib
from itembank.bank.banks import Bank
from itembank.errors import ItembankWarning
from itembank.estimation.basis import ScoreBasis, score_basis
from itembank.estimation.point import target_weights
from itembank.irt.expected_abilities import eap_abilities
from itembank.irt.newton import map_abilities

SETS = ("swebench_verified", "bfcl_v1", "alpacaeval2", "mmlu-pro")
N_PAST = (10, 20, 40, 75)
SIZES = (10, 30, 100)
N_NEW = 25
N_DIMS = (1, 3)
GRID = np.linspace(-6.0, 6.0, 481)
TODAY = "mode (today)"


class Predicted(NamedTuple):
    """Probability of each item (n_models, n_items), and variance of the overall score (n_models,)."""

    probability: np.ndarray
    variance: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--repeats", type=int, default=6)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ItembankWarning)
    rows: list[dict[str, object]] = []
    for name in arguments.only:
        responses = loaded(name)
        for repeat in range(arguments.repeats):
            rows += tried(name, responses, repeat)
    show(pl.DataFrame(rows))


def loaded(name: str) -> ib.ResponseMatrix:
    """Read responses; of MMLU-Pro a tenth of the items that all models answered."""
    matrix = ib.read_responses(Path(os.environ["ITEMBANK_SHARED"]) / "data" / name / "responses.parquet")
    complete = np.flatnonzero(~np.isnan(matrix.responses).any(axis=0))
    return matrix.take(items=complete if complete.size < 2000 else complete[::10])


def tried(name: str, responses: ib.ResponseMatrix, repeat: int) -> Iterator[dict[str, object]]:
    """Calibrate on few models, and predict what others answer."""
    order = np.random.default_rng([14, repeat]).permutation(responses.n_models)
    new = responses.take(models=np.sort(order[-min(N_NEW, responses.n_models // 4) :]))
    for n_past in N_PAST:
        if n_past > responses.n_models - new.n_models:
            continue
        past = responses.take(models=np.sort(order[:n_past]))
        for n_dims in N_DIMS:
            spec = ib.calibrations.Variational("2pl" if n_dims == 1 else "mirt", n_dims)
            bank = ib.build_bank(past, spec)
            for n_items in SIZES:
                selection = ib.select(bank, n_items, method="v-optimal", rng=0)
                known = {"data": name, "past": n_past, "dims": n_dims, "items": n_items, "repeat": repeat}
                for row in judged(bank, new, np.asarray(new.item_indices(selection.item_ids))):
                    yield known | row


def judged(bank: Bank, new: ib.ResponseMatrix, items: np.ndarray) -> Iterator[dict[str, object]]:
    """Predict by every way, and hold the predictions against the answers."""
    basis, weights = score_basis(bank), target_weights(bank)[:, -1]
    unseen = np.setdiff1d(np.arange(bank.n_items), items)
    truth = new.responses @ weights
    answers = basis.answers(new.responses, np.arange(bank.n_items))
    sure = new.responses[:, items] @ weights[items]
    for way, found in ways(bank, basis, answers[:, items], items, unseen):
        p = np.clip(found.probability, 1e-9, 1 - 1e-9)
        right = answers[:, unseen]
        error = sure + p @ weights[unseen] - truth
        yield {
            "way": way,
            "log_likelihood": float(np.mean(right * np.log(p) + (1 - right) * np.log1p(-p))),
            "error": 100.0 * float(np.mean(np.abs(error))),
            "inside": float(np.mean(np.abs(error) <= 1.96 * np.sqrt(found.variance))),
        }


def ways(
    bank: Bank, basis: ScoreBasis, answers: np.ndarray, items: np.ndarray, unseen: np.ndarray
) -> Iterator[tuple[str, Predicted]]:
    """Predict unseen items by every way."""
    seen, rest, prior = basis.parameters.take(items), basis.parameters.take(unseen), basis.prior
    weights, ratio = target_weights(bank)[unseen, -1], float(basis.noise_ratio[0])
    mode, mean = map_abilities(seen, answers, prior), eap_abilities(seen, answers, prior)
    logit = mode.theta @ rest.loadings.T + rest.intercept
    yield TODAY, plugged_in(logit, mode.covariance, rest.loadings, weights, ratio)
    logit_mean = mean.theta @ rest.loadings.T + rest.intercept
    yield "mean", plugged_in(logit_mean, mean.covariance, rest.loadings, weights, ratio)
    of_ability = np.einsum("id,mde,ie->mi", rest.loadings, mean.covariance, rest.loadings)
    if prior.n_dims == 1:
        terms = np.outer(GRID, seen.loadings[:, 0]) + seen.intercept  # (n_quadrature, n_seen)
        logs = answers @ np.log(expit(terms)).T + (1 - answers) @ np.log(expit(-terms)).T - GRID**2 / 2
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        at = expit(np.outer(GRID, rest.loadings[:, 0]) + rest.intercept)
        score = at @ weights
        spread = posterior @ score**2 - (posterior @ score) ** 2
        noise = (posterior @ (at * (1 - at))) @ weights**2
        yield "integrated", Predicted(posterior @ at, spread + ratio * noise)
    else:
        p = normal_mean(logit_mean, of_ability)
        spread = plugged_in(logit_mean, mean.covariance, rest.loadings, weights, ratio).variance
        yield "integrated", Predicted(p, spread)
    extended = np.column_stack([mean.theta, np.ones(len(answers))])
    of_items = np.einsum("mj,ijk,mk->mi", extended, bank.calibration.item_covariance[unseen], extended)
    p = normal_mean(logit_mean, of_ability + of_items)
    slope = np.square(p * (1 - p)) * of_items
    spread = plugged_in(logit_mean, mean.covariance, rest.loadings, weights, ratio).variance + slope @ weights**2
    yield "items too", Predicted(p, spread)


def plugged_in(
    logit: np.ndarray, covariance: np.ndarray, loadings: np.ndarray, weights: np.ndarray, ratio: float
) -> Predicted:
    """Predict at one ability, with the variance to first order."""
    p = expit(logit)
    slope = p * (1 - p)
    gradient = (slope * weights) @ loadings
    return Predicted(p, np.einsum("md,mde,me->m", gradient, covariance, gradient) + ratio * slope @ weights**2)


def normal_mean(logit: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the expectation of the logistic function of normal logits."""
    nodes, weights = hermegauss(15)
    weights = weights / weights.sum()
    return np.asarray(
        sum(weight * expit(logit + node * np.sqrt(variance)) for node, weight in zip(nodes, weights, strict=True))
    )


def show(table: pl.DataFrame) -> None:
    """Print each way's figures, and their differences from today's with standard errors over splits."""
    keys, values = ["data", "past", "dims", "items"], ["log_likelihood", "error", "inside"]
    today = table.filter(pl.col("way") == TODAY).drop("way")
    pairs = table.filter(pl.col("way") != TODAY).join(today, on=[*keys, "repeat"], suffix="_0")
    pairs = pairs.with_columns((pl.col(name) - pl.col(f"{name}_0")).alias(f"d_{name}") for name in values)
    differences = [f"d_{name}" for name in values]
    means = [pl.col(name).mean() for name in ("error_0", "inside_0", "inside", *differences)]
    errors = [pl.col(name).std().truediv(pl.len().sqrt()).alias(f"se_{name[2:]}") for name in differences]
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=4, tbl_width_chars=200):
        for by in (["way", "data"], ["way", "past"], ["way", "items"], ["way", "dims"], ["way"]):
            of_split = pairs.group_by(*dict.fromkeys([*by, "data", "repeat"])).agg(means)
            print(of_split.group_by(by).agg(means + errors).sort(by))


if __name__ == "__main__":
    main()
