"""Print tables of the built-in data `bytelms`: sizes, tasks, mixtures and samples.

.venv/bin/python scripts/bytelms_card.py
"""

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from itembank.readers.builtin import load_builtin
from itembank.responses.responses import ResponseMatrix
from itembank_scaling import builtin_sample_probabilities

K = 100


def main() -> None:
    correct, shares = load_builtin("bytelms"), load_builtin("bytelms", response="probability")
    final = np.flatnonzero(correct.models["is_final"].to_numpy())
    print_sizes(correct.models)
    print_tasks(correct.take(models=final), shares.take(models=final))
    print_mixtures(correct.take(models=final))
    print_samples(load_builtin("bytelms-samples").take(models=final), builtin_sample_probabilities()[final])


def sizes_of(models: pl.DataFrame) -> list[str]:
    return models["size"].unique(maintain_order=True).to_list()


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def header(*cells: object) -> str:
    return row(*cells) + "\n" + "|" + "---|" * len(cells)


def print_sizes(models: pl.DataFrame) -> None:
    print(header("size", "width", "layers", "parameters", "without embedding", "tokens", "FLOP", "learning rate",
                 "tokens a step", "validation loss, bits a byte"))  # fmt: skip
    for (size,), one in models.filter(pl.col("is_final")).group_by("size", maintain_order=True):
        first = one.row(0, named=True)
        loss = one["validation_bits_per_byte"]
        print(row(f"`{size}`", first["width"], first["n_layers"], f"{first['params']:,}",
                  f"{first['params_non_embedding']:,}", f"{first['train_tokens']:,}", f"{first['flops']:.2g}",
                  first["learning_rate"], 128 * first["batch"], f"{loss.min():.2f} to {loss.max():.2f}"))  # fmt: skip
    print()


def by_size(values: np.ndarray, models: pl.DataFrame, digits: int = 2) -> list[str]:
    """Mean of values (n_models,) over the mixtures, for each size."""
    labels = models["size"].to_numpy()
    return [f"{values[labels == size].mean():.{digits}f}" for size in sizes_of(models)]


def range_over_mixtures(values: np.ndarray, models: pl.DataFrame, digits: int = 2) -> str:
    """Worst and best mixture at the largest size that all mixtures have."""
    largest = np.flatnonzero(models["size"].to_numpy() == sizes_of(models)[-1])
    names = models["mixture"].to_numpy()[largest]
    order = np.argsort(values[largest], kind="stable")
    low, high = values[largest][order[[0, -1]]]
    return f"{low:.{digits}f} `{names[order[0]]}` to {high:.{digits}f} `{names[order[-1]]}`"


def print_tasks(correct: ResponseMatrix, shares: ResponseMatrix) -> None:
    models, items = correct.models, correct.items
    flops = models["flops"].to_numpy()
    print(header("task", "items", "chance", *sizes_of(models), "mixtures at the largest size", "rank correlation"))
    scenarios = items["scenario"].to_numpy()
    for name in dict.fromkeys(scenarios):
        inside = scenarios == name
        score, share = (one.responses[:, inside].mean(axis=1) for one in (correct, shares))
        chance = (1.0 / items["n_options"].to_numpy()[inside]).mean()
        rises = f"{spearmanr(flops, score).statistic:.2f} ({spearmanr(flops, share).statistic:.2f})"
        print(row(f"`{name}`", inside.sum(), f"{chance:.2f}", *by_size(score, models),
                  range_over_mixtures(score, models), rises))  # fmt: skip
    print()


def print_mixtures(correct: ResponseMatrix) -> None:
    models = correct.models.with_columns(score=correct.responses.mean(axis=1))
    print(header("mixture", *sizes_of(models)))
    for (name,), one in models.group_by("mixture", maintain_order=True):
        known = dict(zip(one["size"], one["score"], strict=True))
        print(row(f"`{name}`", *(f"{known[size]:.2f}" if size in known else "" for size in sizes_of(models))))
    print()


def print_samples(samples: ResponseMatrix, probability: np.ndarray) -> None:
    models, scenarios = samples.models, samples.items["scenario"].to_numpy()
    largest = sizes_of(models)[-1]
    print(header("task", "items", *sizes_of(models), f"mixtures at `{largest}`", f"pass@{K} of these"))
    for name in dict.fromkeys(scenarios):
        inside = scenarios == name
        rate = samples.responses[:, inside].mean(axis=1)
        passed = (-np.expm1(K * np.log1p(-np.minimum(probability[:, inside], 1.0 - 1e-12)))).mean(axis=1)
        print(row(f"`{name}`", inside.sum(), *by_size(rate, models, 3), range_over_mixtures(rate, models, 3),
                  range_over_mixtures(passed, models)))  # fmt: skip


if __name__ == "__main__":
    main()
