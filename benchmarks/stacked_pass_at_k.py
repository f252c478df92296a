"""Item response and one Beta for all items, weighed by what calibration models say, beside either alone.

The sets, splits and budgets are those of `benchmarks.test_time`: two thirds of the models calibrate with all their
samples, and pass@k of the others is forecast from 50 samples of an item (5 of 10 on livecodebench). Errors are means
over 25 values of k and over models, in points. How the weights are found was chosen on bytelms-samples alone.

    ITEMBANK_SHARED=... python -m benchmarks.stacked_pass_at_k [--sources llmonkeys_pythia,livecodebench] [--splits 3]
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np

from benchmarks.test_time.sets import NAMES, SOURCES, SampledSet, load_sets
from benchmarks.test_time.study import LARGEST_K, N_K, SHARES
from itembank.errors import ItembankWarning
from itembank.numerics.arrays import FloatArray
from itembank.scaling.sampling.pass_at_k_law import pass_at_k_law
from itembank.scaling.sampling.pass_at_k_specs import FEWEST_DRAWS, PassAtKSpec

METHODS = ("beta-binomial", "irsl", "stacked")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", default="llmonkeys_pythia,livecodebench", help=f"of {', '.join(SOURCES)}")
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
    ratios = []
    print("| set | items alike | IRSL | stacked | less than the better one |\n|---|---|---|---|---|", flush=True)
    for source in arguments.sources.split(","):
        for one in load_sets(source, folder):
            errors = 100.0 * np.array([errors_of(one, split) for split in range(arguments.splits)])
            print(row(NAMES.get(one.name, one.name), errors), flush=True)
            means = errors.mean(axis=0)
            ratios.append(means / means[:2].min())
    geometric, worst = np.exp(np.log(ratios).mean(axis=0)), np.max(ratios, axis=0)
    for words, values in (("geometric mean", geometric), ("largest", worst)):
        told = ", ".join(f"{name} {value:.2f}" for name, value in zip(METHODS, values, strict=True))
        print(f"\nRatio to the error of the better of both, {words} over sets: {told}")


def errors_of(one: SampledSet, split: int) -> FloatArray:
    """Mean error of each method in one split, (n_methods,)."""
    rng = np.random.default_rng([split, 5])
    n_models = one.responses.n_models
    tested = np.sort(rng.permutation(n_models)[: max(round(SHARES["third"] * n_models), 1)])
    trials = np.where(one.responses.observed, one.responses.n_trials, np.iinfo(np.int64).max)
    most = int(np.where(one.responses.observed, one.responses.n_trials, 0).max())
    spec = PassAtKSpec(
        k=tuple(np.unique(np.geomspace(1, min(LARGEST_K, most), N_K).astype(int)).tolist()),
        methods=METHODS,
        budget=one.budget,
        interval="model-based",
        n_draws=FEWEST_DRAWS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        law = pass_at_k_law(one.responses, spec, models=[one.responses.model_ids[row] for row in tested], rng=rng)
    truth = law.all_items.truth
    if truth is None:
        raise ValueError("a law with a budget has a truth.")
    fewest = dict(zip(one.responses.model_ids, trials.min(axis=1).tolist(), strict=True))
    is_known = law.k <= np.array([fewest[name] for name in law.model_ids])[:, None]  # the truth is unbiased up to there
    is_known &= (np.where(is_known, truth, 1.0) > 0.0).all(axis=1)[:, None]  # models without one right sample
    away = np.where(is_known, np.abs(law.all_items.values - truth), np.nan)
    of_models = np.nanmean(away[:, is_known.any(axis=1)], axis=2)
    result: FloatArray = of_models.mean(axis=1)
    return result


def row(name: str, errors: FloatArray) -> str:
    """Errors of each method with their standard errors over splits, and how much stacking saves."""
    spread = np.sqrt(errors.shape[0])
    cells = [f"{values.mean():.2f} ± {values.std(ddof=1) / spread:.2f}" for values in errors.T]
    saved = errors[:, :2].mean(axis=0).min() - errors[:, 2].mean()
    return f"| {name} | {' | '.join(cells)} | {saved:+.2f} |"


if __name__ == "__main__":
    main()
