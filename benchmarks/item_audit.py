"""How well an audit finds bad items: ``python -m benchmarks.item_audit [learn|labels|planted|duplicates|groups|speed]``.

learn: the weights of `defect_model.SIMULATED`, from faults planted in simulated answers; no real data.
labels: MMLU-Pro, 33 models, against the 1,336 items that a clean-up excludes; beside it the plain item mean.
planted: wrong keys and noise put into the answers of 14 to 400 models of the Open LLM Leaderboard v1.
duplicates: pairs that MMLU-Pro's table calls the same question; and planted copies.
groups: items that behave differently: with permuted groups, and planted.
speed: 400 models x 28,000 items.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.data.readers.read import read_responses
from itembank.data.responses import ResponseMatrix
from itembank.diagnostics.defect_model import (
    SIMULATED,
    defect_features,
    fit_defect_model,
    out_of_fold,
    rank_quality,
    share_right,
)
from itembank.diagnostics.item_audit import audit_items
from itembank.diagnostics.item_audit_names import REASONS
from itembank.diagnostics.item_evidence import item_evidence
from itembank.diagnostics.item_statistics import item_statistics
from itembank.diagnostics.panel import panel_of
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

N_WORLDS, N_ITEMS, N_GROUPS = 40, 2500, 8
FAULTS = {"wrong key": 0.05, "unrelated": 0.01, "nobody": 0.02}
"""Shares of items with each fault in the simulated worlds."""


def features_of(values: FloatArray, group: IntArray) -> FloatArray:
    """Features of items, as an audit computes them."""
    names = [f"group {number}" for number in group.tolist()]
    panel = panel_of(ResponseMatrix.create(values, scenarios=names))
    return defect_features(item_evidence(panel), item_statistics(panel))


def world(rng: np.random.Generator) -> tuple[FloatArray, IntArray, BoolArray]:
    """Simulate answers (n_models, n_items) with faults; the group of each item, and whether it has a fault."""
    n_models = int(rng.choice([15, 20, 30, 50, 100, 200, 400]))
    group = rng.integers(0, N_GROUPS, N_ITEMS)
    ability = rng.uniform(0.8, 1.5) * rng.standard_normal((n_models, 1)) + rng.uniform(-0.5, 0.8)
    own = 0.3 * rng.standard_normal((n_models, N_GROUPS))[:, group]
    slope = np.exp(-0.1 + 0.45 * rng.standard_normal(N_ITEMS))
    ease = rng.standard_normal(N_GROUPS)[group] + rng.choice([1.0, 1.5, 2.0]) * rng.standard_normal(N_ITEMS)
    floor = rng.choice([0.0, 0.1, 0.25])
    p = floor + (1.0 - floor) * expit(slope * (ability + own) + ease)
    hit = rng.choice([0.5, 1.0 / 3.0, 0.15, 0.1], N_ITEMS)
    kind = rng.choice(4, N_ITEMS, p=[1.0 - sum(FAULTS.values()), *FAULTS.values()])
    p = np.select([kind == 1, kind == 2, kind == 3], [hit * (1.0 - p), p.mean(axis=0), 0.3 * hit], p)
    return (rng.random(p.shape) < p).astype(np.float64), group, kind > 0


def learn() -> None:
    """Fit the weights, and say how good they are in worlds that they were not learnt in."""
    rng = np.random.default_rng(20260515)
    features, labels, worlds = [], [], []
    for number in range(N_WORLDS):
        values, group, is_bad = world(rng)
        features.append(features_of(values, group))
        labels.append(is_bad)
        worlds.append(np.full(is_bad.size, number))
    every, is_bad, fold = np.concatenate(features), np.concatenate(labels), np.concatenate(worlds)
    model = fit_defect_model(every, is_bad)
    print("intercept", round(model.intercept, 3), "weights", model.weights.round(3).tolist())
    say("worlds left out", out_of_fold(every, is_bad, fold), is_bad)


def say(name: str, score: FloatArray, is_bad: BoolArray, *, is_probability: bool = True) -> None:
    """Print how well a score ranks, and how far a probability is from what came true."""
    first = ", ".join(f"{share_right(score, is_bad, n):.2f} of {n}" for n in (50, 200, int(is_bad.sum())))
    print(f"{name}: AUC {rank_quality(score, is_bad):.3f}, right {first}")
    if is_probability:
        for low, high in zip(EDGES[:-1], EDGES[1:], strict=True):
            inside = (score >= low) & (score < high)
            if inside.any():
                print(f"    said {score[inside].mean():.3f}, real {is_bad[inside].mean():.3f}, n {inside.sum()}")


EDGES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.85, 1.01)


def mmlu_pro(shared: Path) -> tuple[ResponseMatrix, BoolArray, IntArray]:
    """33 models that answered the same 11,965 items; which are known to be bad, and the category of each."""
    folder = shared / "data" / "mmlu-pro"
    frame = pl.read_parquet(folder / "responses.parquet").with_columns(response=pl.col("response_l3"))
    frame = frame.filter(pl.col("model_id").cast(pl.String) != "DeepSeek-Coder-V2")
    columns = ["model_id", "item_id", "scenario", "subscenario"]
    from itembank.data.readers.frames import responses_from_frame  # noqa: PLC0415

    matrix = responses_from_frame(frame.select(*(pl.col(name).cast(pl.String) for name in columns), "response"))
    matrix = matrix.take(items=np.flatnonzero(matrix.observed.all(axis=0)))
    bad = pl.read_csv(folder / "known_bad.csv")["item_id"]
    return matrix, matrix.items["item_id"].is_in(bad.implode()).to_numpy(), numbered(matrix, "subscenario")


def numbered(matrix: ResponseMatrix, column: str) -> IntArray:
    """Number the groups of a column of the item table."""
    return np.unique(matrix.items[column].to_numpy(), return_inverse=True)[1].astype(np.int64)


def labels(shared: Path) -> None:
    """Measure against MMLU-Pro's list of bad items."""
    matrix, is_bad, category = mmlu_pro(shared)
    panel = panel_of(matrix)
    found, statistics = item_evidence(panel), item_statistics(panel)
    scores = {"low item mean": -statistics.mean, "low item-rest correlation": -statistics.item_rest}
    scores |= {"low slope": -found.slope, "low top_logit": -found.top_logit, "suspicion": found.suspicion}
    for name, score in {**scores, "key_lr": found.key_lr, "noise_lr": found.noise_lr}.items():
        say(name, score, is_bad, is_probability=False)
    features = defect_features(found, statistics)
    say("probability as shipped", SIMULATED.probability(features), is_bad)
    say("probability learnt from the other categories", out_of_fold(features, is_bad, category), is_bad)
    audit = audit_items(matrix, duplicates=False).table
    for reason in REASONS:
        flagged = audit.filter(pl.col("reason") == reason)["item_id"]
        right = matrix.items["item_id"].is_in(flagged.implode()).to_numpy() & is_bad
        print(f"flagged {reason}: {flagged.len()}, right {right.sum() / max(flagged.len(), 1):.2f}")


if __name__ == "__main__":
    import os, sys

    SH = Path(os.environ["ITEMBANK_SHARED"])
    learn() if sys.argv[1] == "learn" else labels(SH)
