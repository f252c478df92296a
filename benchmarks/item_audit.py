"""How well an audit finds bad items: ``python -m benchmarks.item_audit PART``.

learn: the weights of `defect_model.SIMULATED`, from faults planted in simulated answers; no real data.
labels: MMLU-Pro, 33 models, against the 1,336 items that a clean-up excludes; beside it the plain item mean.
planted: wrong keys and noise put into the answers of 14 to 400 models of the Open LLM Leaderboard v1.
duplicates: pairs that MMLU-Pro's table calls the same question; and planted copies.
groups: items that behave differently: with permuted groups, and planted.
speed: 400 models x 28,000 items.

All but learn and speed read data sets that do not come with the package (``--shared``).
"""

import argparse
import itertools
import os
import resource
import time
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.auditing.defect_model import (
    SIMULATED,
    defect_features,
    fit_defect_model,
    out_of_fold,
    rank_quality,
    share_right,
)
from itembank.auditing.differential_items import differential_items
from itembank.auditing.duplicates import find_duplicates
from itembank.auditing.item_audit import audit_items
from itembank.auditing.item_audit_names import REASONS
from itembank.auditing.item_evidence import item_evidence
from itembank.auditing.item_statistics import item_rest_correlations, item_statistics
from itembank.auditing.panel import panel_of
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.frames import responses_from_frame
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix

N_WORLDS, N_ITEMS, N_GROUPS = 40, 2500, 8
FAULTS = {"wrong key": 0.05, "unrelated": 0.01, "nobody": 0.02}
"""Shares of items with each fault in the simulated worlds."""


FRESH = range(1000, 1008)
"""Seeds of draws that no rule or threshold of the audit was chosen on."""


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
        for low, high in itertools.pairwise(EDGES):
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
    matrix = responses_from_frame(frame.select(*(pl.col(name).cast(pl.String) for name in columns), "response"))
    matrix = matrix.take(items=np.flatnonzero(matrix.observed.all(axis=0)))
    bad = pl.read_csv(folder / "known_bad.csv")["item_id"]
    return matrix, matrix.items["item_id"].is_in(bad.implode()).to_numpy(), numbered(matrix, "subscenario")


def numbered(matrix: ResponseMatrix, column: str) -> IntArray:
    """Return the number of each item's group, by a column of the item table."""
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


def core(shared: Path) -> tuple[FloatArray, IntArray]:
    """600 models on the items of the Open LLM Leaderboard v1 that tell models apart (item-rest above 0.1)."""
    matrix = read_responses([shared / "data" / "openllm1_core" / "responses.parquet"])
    scenario = numbered(matrix, "scenario")
    keep = item_rest_correlations(matrix.responses, matrix.observed) > 0.1
    return matrix.responses[:, keep], scenario[keep]


def with_faults(values: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Plant 5 % of wrong keys, half of which hit a distractor, and 25 items of noise; return the kind of each item."""
    values, n_items = values.copy(), values.shape[1]
    n_keys = round(0.05 * n_items)
    order, kind = rng.permutation(n_items), np.zeros(n_items, dtype=np.int64)
    flipped, other, noise = np.split(order[: n_keys + 25], [n_keys // 2, n_keys])
    kind[flipped], kind[other], kind[noise] = 1, 2, 3
    values[:, flipped] = 1.0 - values[:, flipped]
    values[:, other] = (1.0 - values[:, other]) * (rng.random((values.shape[0], other.size)) < 1.0 / 3.0)
    values[:, noise] = rng.permuted(values[:, noise], axis=0)
    return values, kind


def planted(shared: Path) -> None:
    """Measure how many planted faults are found, and how many sound items are flagged."""
    every, scenario = core(shared)
    for n_models in (14, 30, 100, 400):
        found = []
        for seed in FRESH:
            rng = np.random.default_rng(seed)
            values, kind = with_faults(every[rng.choice(every.shape[0], n_models, replace=False)], rng)
            audit = audit_items(named(values, scenario), duplicates=False).table
            kinds = kind[[int(one.removeprefix("item-")) - 1 for one in audit["item_id"]]]
            is_key = (kinds == 1) | (kinds == 2)
            ranks = [audit[name].to_numpy() for name in ("key_ratio", "probability", "suspicion")]
            flagged = (audit["reason"] == "wrong-key").fill_null(value=False).to_numpy()
            found.append(
                [
                    *(share_right(one, is_key, int(is_key.sum())) for one in ranks),
                    *(share_right(one, kinds > 0, 40) for one in ranks),
                    (kinds[flagged] > 0).mean(),
                    flagged[is_key].mean(),
                    flagged[kinds == 0].mean(),
                ]
            )
        means = np.mean(found, axis=0)
        print(
            f"{n_models} models: R-precision of keys by key ratio, probability, suspicion {means[:3].round(3)}, "
            f"first 40 {means[3:6].round(3)}; flags: right {means[6]:.3f}, found {means[7]:.2f}, "
            f"false alarms {means[8]:.4f}"
        )


def named(values: FloatArray, scenario: IntArray, models: pl.DataFrame | None = None) -> ResponseMatrix:
    """Make responses whose scenarios have numbers for names."""
    names = [f"scenario {number}" for number in scenario.tolist()]
    return ResponseMatrix.create(values, scenarios=names, models=models)


def duplicates(shared: Path) -> None:
    """Measure against pairs of MMLU-Pro that hold the same question, and against planted copies."""
    matrix, _, _ = mmlu_pro(shared)
    table = pl.read_csv(shared / "data" / "mmlu-pro" / "items.csv", infer_schema_length=None)
    known = table.select("item_id", "dup_question_group", "subscenario")
    pairs = find_duplicates(matrix, review=20.0).table.join(known, on="item_id", maintain_order="left")
    other = known.rename({"item_id": "duplicate_of"})
    pairs = pairs.join(other, on="duplicate_of", suffix="_of", maintain_order="left")
    same = (pl.col("dup_question_group") == pl.col("dup_question_group_of")).fill_null(value=False)
    pairs = pairs.with_columns(is_true=same)
    for name in ("law", "health"):
        mine = pairs.filter(pl.col("subscenario") == name, pl.col("subscenario_of") == name)["is_true"]
        print(f"{name}: right {mine.head(20).mean():.2f} of 20, {mine.head(50).mean():.2f} of 50")
    flagged = pairs.filter(verdict="duplicate")["is_true"]
    print(f"all: {flagged.len()} flagged, right {flagged.mean():.3f}")
    every, scenario = core(shared)
    for n_models in (30, 100, 400):
        print(
            f"{n_models} models, planted copies:", np.mean([copies(every, scenario, n_models, k) for k in FRESH[:4]], 0)
        )


def copies(every: FloatArray, scenario: IntArray, n_models: int, seed: int) -> tuple[float, float]:
    """Plant 45 copies (0, 3, 10 % other answers); return the shares of right flags and of copies found."""
    rng = np.random.default_rng(seed)
    values = every[rng.choice(every.shape[0], n_models, replace=False)]
    source = rng.choice(values.shape[1], 45, replace=False)
    is_other = rng.random((n_models, 45)) < np.repeat([0.0, 0.03, 0.1], 15)
    copied = np.where(is_other, 1.0 - values[:, source], values[:, source])
    matrix = named(np.concatenate([values, copied], axis=1), np.concatenate([scenario, scenario[source]]))
    found = find_duplicates(matrix).table.filter(verdict="duplicate").select("duplicate_of", "item_id").rows()
    truth = {(f"item-{one + 1}", f"item-{values.shape[1] + k + 1}") for k, one in enumerate(source.tolist())}
    n_right = len(truth & set(found))
    return n_right / max(len(found), 1), n_right / 45


def groups(shared: Path) -> None:
    """Measure flags under permuted groups, and of planted differences."""
    every, scenario = core(shared)
    rng = np.random.default_rng(FRESH[0])
    for n_group in (21, 70, 300):
        flagged = [differing(every, scenario, rng.permutation(600) < n_group).sum() for _ in range(10)]
        print(f"permuted group of {n_group} in 600 models: flags {list(map(int, flagged))}")
    for n_models in (60, 150, 400, 600):
        found = []
        for _ in range(5):
            values = every[rng.choice(600, n_models, replace=False)].copy()
            in_group, is_planted = rng.random(n_models) < 0.5, rng.permutation(values.shape[1]) < 0.05 * values.shape[1]
            turned = in_group[:, None] & is_planted & (rng.random(values.shape) < 0.4)
            flagged = differing(np.where(turned, 1.0, values), scenario, in_group)
            found.append((flagged[is_planted].mean(), is_planted[flagged].mean() if flagged.any() else np.nan))
        recall, precision = np.nanmean(found, axis=0)
        print(f"planted, {n_models} models: found {recall:.2f}, right {precision:.2f}")


def differing(values: FloatArray, scenario: IntArray, in_group: BoolArray) -> BoolArray:
    """Which items are flagged to differ for a group, (n_items,)."""
    models = pl.DataFrame({"model_id": [f"m{row}" for row in range(in_group.size)], "group": in_group})
    found = differential_items(named(values, scenario, models), "group").table.filter(group="true")
    flagged = set(found.filter("is_flagged")["item_id"])
    return np.array([f"item-{number + 1}" in flagged for number in range(values.shape[1])])


def speed() -> None:
    """Time an audit of 400 models x 28,000 items with one thread, without duplicates and of these alone."""
    rng = np.random.default_rng(0)
    p = expit(rng.standard_normal((400, 1)) * rng.lognormal(0.0, 0.4, 28_000) + 1.5 * rng.standard_normal(28_000))
    matrix = named((rng.random(p.shape) < p).astype(np.float64), np.arange(28_000) % 6)
    for name, work in (("audit", partial(audit_items, duplicates=False)), ("duplicates", find_duplicates)):
        start = time.process_time()
        work(matrix)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{name}: {time.process_time() - start:.1f} CPU-s, at most {memory:.2f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"labels": labels, "planted": planted, "duplicates": duplicates, "groups": groups}
    parser.add_argument("part", choices=["learn", *parts, "speed"])
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("ITEMBANK_SHARED", "../shared")))
    given = parser.parse_args()
    if given.part in parts:
        parts[given.part](given.shared)
    else:
        (learn if given.part == "learn" else speed)()
