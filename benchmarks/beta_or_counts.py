"""Item response by rates (Beta) and by counts, at equal samples: ``python -m benchmarks.beta_or_counts [-o DIR]``.

Errors of pass@k by eq. 4 of IRSL. Its own comparison gives Beta 50 samples of the new model and all of the past ones,
and the binary model one of each. Here all have the same: 24 past models with all their samples, four new ones with the
budget (50; 500 on Pythia), in six splits. Items that past models solved in fewer than one of 200 samples are left out.
Rates are kept 1e-4 away from 0 and 1.
"""

import argparse
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.test_time.sets import load_sets
from itembank.bank.banks import Bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ItembankWarning
from itembank.estimation.model_abilities import estimate_abilities
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.pass_at_k.kernels import plug_in_pass_at_k, unbiased_pass_at_k

NAME = "beta-or-counts"
SETS = {"bytelms-samples": 50, "llmonkeys_pythia": 500}
"""Budget of a new model."""
FAMILIES = {"Beta": "beta", "binomial": "binomial", "beta-binomial": "beta-binomial"}
K = np.array([1, 10, 100, 1000])
N_SPLITS, N_PAST, N_NEW, END, LEAST_RATE, MOST_MODELS, MOSTLY, LEAST_ITEMS = 6, 24, 4, 1e-4, 0.005, 40, 0.95, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results") / NAME)
    output: Path = parser.parse_args().output
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
    warnings.simplefilter("ignore", ItembankWarning)
    names = (*FAMILIES, "samples alone")
    lines = ["| error of -log pass@k | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for source, budget in SETS.items():
        for one in load_sets(source, folder):
            known = complete(one.responses, 2 * budget)
            if known is not None:
                errors = np.mean([errors_of(known, budget, split) for split in range(N_SPLITS)], axis=0)
                lines.append(f"| {one.name} | {' | '.join(f'{error:.2f}' for error in errors)} |")
                print(lines[-1], flush=True)
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{NAME}.md").write_text("\n".join(lines), encoding="utf-8")


def complete(responses: ResponseMatrix, least: int) -> ResponseMatrix | None:
    """Return the best models and the items that all of them sampled so often; None of too few models or items."""
    often = np.where(responses.observed, responses.n_trials, 0) >= max(least, K.max())
    models = np.flatnonzero(often.mean(axis=1) > MOSTLY)
    items = np.flatnonzero(often[models].all(axis=0))
    responses = responses.take(models=models, items=items)
    best = responses.take(models=np.argsort(-responses.responses.mean(axis=1))[:MOST_MODELS])
    is_enough = np.sum(best.responses.mean(axis=0) > LEAST_RATE) >= LEAST_ITEMS
    return best if best.n_models >= N_PAST + N_NEW and is_enough else None


def errors_of(responses: ResponseMatrix, budget: int, split: int) -> FloatArray:
    """Mean distance of -log pass@k over K and new models, by each family and by the samples alone."""
    rng = np.random.default_rng(split)
    order = rng.permutation(responses.n_models)
    past, new = order[:N_PAST], order[N_PAST : N_PAST + N_NEW]
    rate = responses.responses[past]
    kept = np.flatnonzero(rate.mean(axis=0) > LEAST_RATE)
    past_answers, new_answers = responses.take(models=past, items=kept), responses.take(models=new, items=kept)
    trials = np.asarray(new_answers.n_trials)
    right = np.rint(new_answers.responses * trials).astype(np.int64)
    truth = unbiased_pass_at_k(trials[..., None], right[..., None], K).mean(axis=1)
    drawn = rng.hypergeometric(right, trials - right, budget)
    counts = replace(new_answers, responses=drawn / budget, n_trials=np.full(drawn.shape, budget))
    found = [by_item_response(past_answers, counts, family) for family in FAMILIES.values()]
    found.append(plug_in_pass_at_k(counts.responses[..., None], K).mean(axis=1))
    with np.errstate(divide="ignore"):
        logs = np.array([np.abs(np.log(np.maximum(one, 1e-9)) - np.log(truth)) for one in found])
    return logs.mean(axis=(1, 2))


def by_item_response(past: ResponseMatrix, new: ResponseMatrix, family: str) -> FloatArray:
    """Mean over items of ``1 - (1 - p)^k`` at the estimated abilities, (n_new, n_k): a 1PL of this family."""
    past, new = (as_rates(one) if family == "beta" else one for one in (past, new))
    bank: Bank = calibrate(past, Variational("1pl", family=family))
    p = probability(bank.parameters, estimate_abilities(bank, new, "map").theta)
    return plug_in_pass_at_k(p[..., None], K).mean(axis=1)


def as_rates(responses: ResponseMatrix) -> ResponseMatrix:
    return replace(responses, responses=np.clip(responses.responses, END, 1.0 - END), n_trials=None)


if __name__ == "__main__":
    main()
