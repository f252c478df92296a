"""One split of one set: errors of every method, and whether the intervals held."""

import warnings
from collections.abc import Iterator
from typing import Literal

import numpy as np

from benchmarks.test_time.sets import SampledSet
from itembank.errors import ItembankWarning
from itembank_scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank_scaling.pass_at_k.results import PassAtKLaw
from itembank_scaling.pass_at_k.specs import PassAtKSpec

SHARES = {"third": 1 / 3, "all": 1.0}
"""Of the models, those asked about."""

N_K = 25
LARGEST_K = 10_000
MINIMUM_PASS_RATE = 0.005
"""Of kept items (IRSL App. E)."""

METHODS = ("plug-in", "jeffreys", "beta-binomial", "irsl-plug-in", "irsl")


def run_split(
    one: SampledSet,
    split: int,
    share: float,
    interval: Literal["calibrated", "model-based"],
    methods: tuple[str, ...] = METHODS,
) -> list[dict[str, object]]:
    """Give a share of the models the budget alone, the others calibrate on all samples; a record a model and method."""
    rng = np.random.default_rng([split, 5])
    n_models = one.responses.n_models
    tested = np.sort(rng.permutation(n_models)[: max(round(share * n_models), 1)])
    ids = [one.responses.model_ids[row] for row in tested.tolist()]
    k = np.unique(np.geomspace(1, min(LARGEST_K, _most_samples(one)), N_K).astype(int))
    spec = PassAtKSpec(
        k=tuple(k.tolist()), methods=methods, budget=one.budget, minimum_pass_rate=MINIMUM_PASS_RATE, interval=interval
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        law = pass_at_k_law(one.responses, spec, models=ids, rng=rng)
    return list(_records(one, split, law))


def _most_samples(one: SampledSet) -> int:
    return int(np.where(one.responses.observed, one.responses.n_trials, 0).max())


def _records(one: SampledSet, split: int, law: PassAtKLaw) -> Iterator[dict[str, object]]:
    trials = np.where(one.responses.observed, one.responses.n_trials, np.iinfo(np.int64).max)
    row_of = {name: row for row, name in enumerate(one.responses.model_ids)}
    for i, model_id in enumerate(law.model_ids):
        for kind, curves in (("all", law.all_items), ("kept", law.kept_items)):
            known = law.k <= trials[row_of[model_id]].min()  # the truth is unbiased up to there
            truth = curves.truth[i][known]
            if not np.all(truth > 0.0):  # not one right sample: -log pass@k has no truth
                continue
            half_width = 0.5 * (curves.high - curves.low)
            inside = (curves.low[i] <= curves.truth[i] + 1e-12) & (curves.truth[i] <= curves.high[i] + 1e-12)
            for m, method in enumerate(law.methods):
                value = curves.values[m, i][known]
                with np.errstate(divide="ignore"):
                    of_logs = np.abs(np.log(value) - np.log(truth))
                has_interval = method == "irsl"
                yield {
                    "set": one.name,
                    "split": split,
                    "model_id": model_id,
                    "items": kind,
                    "method": method,
                    "error": float(np.abs(value - truth).mean()),
                    "log_error": float(of_logs.mean()),
                    "held": float(inside[known].mean()) if has_interval else None,
                    "half_width": float(half_width[i][known].mean()) if has_interval else None,
                }
