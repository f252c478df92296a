"""Can random items tell what all new models have in common? ``ITEMBANK_SHARED=... python -m benchmarks.common_shift``.

Open LLM Leaderboard v1, its newest models and random splits. Of 100 items some are drawn at random with known
probabilities, for each model its own; the others are chosen by the default. The difference estimator of the group's
mean error, from the predictions by the chosen items alone, is unbiased whatever the item model is; its standard error
is the spread of the models' own estimates over the root of their number, as draws are independent. Printed, in points:

    today        all items chosen by the default: error, bias and coverage
    same items   standard error if all models were asked the same random items
    own items    standard error where each model has its own
    corrected    error, bias and coverage after the correction, shrunk to 0 by ``max(0, 1 - se^2 / b^2)``
    known        the same if the group's mean error were known exactly: no random items can do better
    kinds        coverage and half-width with intervals from past models left out by kind instead of at random

About ten CPU-minutes.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import ndtri

import itembank as ib
from benchmarks.panel.studies import panel_study
from itembank.bank.bank_factors import bank_factor_model
from itembank.bank.banks import Bank
from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ItembankWarning
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.expectations import Expectations
from itembank.estimation.intervals import calibrated_half_widths
from itembank.estimation.members_out_of_fold import Past
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.estimation.observations import observe
from itembank.estimation.point import Known, calibration_scores, point_scores
from itembank.estimation.stacking import combined
from itembank.irt.linear_gaussian import factor_posterior
from itembank.numerics.kmeans import weighted_kmeans
from itembank.numerics.threads import one_blas_thread
from itembank.responses.responses import ResponseMatrix
from itembank.selection.allocation import expected_counts, random_counts
from itembank.studies.data_sets import load_data
from itembank.studies.fold_runs import prepare_fold
from itembank.studies.splits import make_folds

N_ITEMS = 100
SHARES = (0.1, 0.2)
LEVEL = 0.95
N_KINDS = 6
N_FACTORS = 10
"""Kinds of past models are clusters of their leading factors."""
KIND_SEED = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2, help="random splits")
    parser.add_argument("--draws", type=int, default=20, help="draws of the random items")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/common_shift.parquet"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ItembankWarning)
    table = pl.DataFrame(list(rows(arguments.repeats, arguments.draws)))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(arguments.output)
    print(table)


@one_blas_thread()
def rows(n_repeats: int, n_draws: int) -> Iterator[dict[str, object]]:
    """One row for each split and share of random items."""
    spec = panel_study("openllm1_core")
    responses = load_data(spec.data)
    for split in spec.splits:
        for fold in make_folds(split, responses.models, n_repeats, spec.seed):
            prepared = prepare_fold(spec, responses, fold)
            today = Group(prepared.bank, prepared.new, prepared.truth[:, -1], N_ITEMS)
            for share in SHARES:
                n_random = round(share * N_ITEMS)
                group = Group(prepared.bank, prepared.new, prepared.truth[:, -1], N_ITEMS - n_random)
                print(split.name, fold.repeats[0], share, flush=True)
                yield {
                    "split": split.name,
                    "share": share,
                    **named("today", *today.judged(0.0, 0.0)),
                    **group.corrected(n_random, n_draws),
                    **named("known", *group.judged(-group.error.mean(), 0.0)),
                    **(today.by_kind() if share == SHARES[0] else {}),
                }


class Group:
    """New models with estimates from items chosen by the default, and their true scores."""

    def __init__(self, bank: Bank, new: ResponseMatrix, truth: np.ndarray, n_items: int) -> None:
        self.bank, self.new, self.truth = bank, new, truth
        self.selection = ib.select(bank, n_items, rng=0)
        self.past = past_of(bank, self.selection)
        self.value, self.scale, self.positions = scored(bank, new, self.selection, self.past)
        self.half = half_widths(self.past.estimates.error, self.past.estimates.scale, self.scale)
        self.error = self.value - truth

    def judged(self, correction: float, variance: float) -> tuple[float, float, float]:
        """Mean absolute error and bias in points, and coverage, after a correction with this variance."""
        error = self.error + correction
        half = np.sqrt(self.half**2 + ndtri(0.5 + LEVEL / 2.0) ** 2 * variance)
        return 100.0 * float(np.abs(error).mean()), 100.0 * float(error.mean()), float(np.mean(np.abs(error) <= half))

    def corrected(self, n_random: int, n_draws: int) -> dict[str, float]:
        """Draw random items again and again, and correct by what they say."""
        model = bank_factor_model(self.bank, discrepancy="auto")
        factors = factor_posterior(model, self.positions, self.new.responses[:, self.positions]).mean
        predicted = np.clip(model.mean + factors @ model.loadings.T, 0.0, 1.0)
        others = np.setdiff1d(np.arange(self.bank.n_items), self.positions)
        omega = self.bank.targets.overall_weights
        residual = omega[others] * (self.new.responses - predicted)[:, others]
        known = self.new.responses[:, self.positions] @ omega[self.positions] + predicted[:, others] @ omega[others]
        spread = np.sqrt(np.mean(predicted * (1.0 - predicted), axis=0))[others]
        size = omega[others] * spread
        base = 0.5 * size / size.sum() + 0.5 * omega[others] / omega[others].sum()
        pi = expected_counts(n_random, base, np.ones(base.size, dtype=np.int64))
        found, corrections = [], []
        for draw in range(n_draws):
            rng = np.random.default_rng(draw)
            drawn = np.stack([random_counts(pi, rng) > 0 for _ in range(self.truth.size)])
            # known + sum of residuals / pi is the model's score, estimated without bias; less the estimate, its error
            shift = known + (drawn * residual / pi).sum(axis=1) - self.value
            mean, variance = shift.mean(), shift.var(ddof=1) / shift.size
            shrunk = max(0.0, 1.0 - variance / mean**2)
            corrections.append((mean, np.sqrt(variance)))
            found.append(self.judged(shrunk * mean, shrunk * variance))
        of_same = drawn_variance(residual.mean(axis=0), pi) ** 0.5
        mean, error = np.mean(corrections, axis=0)
        return {
            "true": -100.0 * self.error.mean(),
            "found": 100.0 * mean,
            "se_same_items": 100.0 * of_same,
            "se_own_items": 100.0 * error,
            "sd_of_draws": 100.0 * float(np.std(corrections, axis=0)[0]),
            **named("corrected", *np.mean(found, axis=0).tolist()),
        }

    def by_kind(self) -> dict[str, float]:
        """Coverage and half-width where past errors come from whole kinds of models left out."""
        model = bank_factor_model(self.bank, discrepancy="auto")
        factors = factor_posterior(model, np.arange(self.bank.n_items), self.bank.responses.responses).mean[
            :, :N_FACTORS
        ]
        rng = np.random.default_rng(KIND_SEED)
        kind = weighted_kmeans(factors, np.ones(factors.shape[0]), N_KINDS, rng).labels
        error, scale = np.full((2, kind.size), np.nan)
        for number in range(N_KINDS):
            left_out = np.flatnonzero(kind == number)
            rest = self.bank.responses.take(models=np.flatnonzero(kind != number))
            bank = build_bank(rest, Variational(n_dims=1))
            selection = ib.select(bank, N_ITEMS, method=self.selection.method, rng=0)
            value, scale[left_out], _ = scored(bank, self.bank.responses.take(models=left_out), selection, self.past)
            error[left_out] = value - calibration_scores(self.bank)[left_out, -1]
        half = half_widths(error[:, None], scale[:, None], self.scale)
        return {"kinds_coverage": float(np.mean(np.abs(self.error) <= half)), "kinds_half": 100.0 * float(half.mean())}


def past_of(bank: Bank, selection: ib.Selection) -> Past:
    return try_methods(bank, sample_of(bank, selection), selection, Stacked().members).past(Stacked())


def scored(
    bank: Bank, models: ResponseMatrix, selection: ib.Selection, past: Past
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stacked overall scores with the weights of `past`, the scale of their errors, and where the items stand."""
    answers = models.take(items=models.item_indices(selection.item_ids))
    known = Known.of(bank, observe(bank, answers, selection))
    value = combined(np.stack([point_scores(known, member) for member in Stacked().members]), past.weights)
    scale = Expectations.of(known).error_scale(value, past.tail)
    return value[:, -1], scale[:, -1], known.observations.positions


def half_widths(errors: np.ndarray, scale: np.ndarray, new_scale: np.ndarray) -> np.ndarray:
    """Half-widths of the last target, as `estimate` gives them."""
    return calibrated_half_widths(errors[:, -1:], scale[:, -1:], new_scale[:, None], level=LEVEL)[:, 0]


def drawn_variance(values: np.ndarray, probabilities: np.ndarray) -> float:
    """Variance of ``sum values / probabilities`` over draws of independent items, each taken with its probability."""
    return float(np.sum((1.0 - probabilities) / probabilities * values**2))


def named(name: str, error: float, bias: float, coverage: float) -> dict[str, float]:
    return {f"{name}_mae": error, f"{name}_bias": bias, f"{name}_coverage": coverage}


if __name__ == "__main__":
    pl.Config.set_tbl_cols(40)
    pl.Config.set_tbl_width_chars(240)
    main()
