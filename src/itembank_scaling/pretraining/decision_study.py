"""Decision accuracy against the fraction of the target compute, for laws of several metrics, over splits of recipes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import polars as pl

from itembank.errors import DataError, ParameterError, shown
from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import TrainingCompute
from itembank_scaling.pretraining.law_specs import (
    LAWS,
    ItemResponseLaw,
    PretrainingLawSpec,
    PretrainingSettings,
    TwoStep,
)
from itembank_scaling.pretraining.pretraining_law import held_out_coverage


def mean_over_splits(
    decisions: pl.DataFrame,  # As `decision_curves` returns it
    by: Sequence[str] = ("scenario", "law"),
) -> pl.DataFrame:
    """Mean decision accuracy over splits, for each share of the target's compute, grouped by names of columns.

    Shares differ a little from split to split: the k-th of each split go together.

    Returns table: Columns `by`, `share_of_target`, `decision_accuracy`, `n`.
    """
    share, accuracy = pl.col("share_of_target"), pl.col("decision_accuracy")
    place = share.rank("min").over("split", "scenario", "law")
    known = accuracy.filter(accuracy.is_not_nan()).mean().fill_null(float("nan"))
    groups = decisions.with_columns(place=place).group_by(*by, "place", maintain_order=True)
    return groups.agg(share.log().mean().exp(), decision_accuracy=known, n=pl.len()).drop("place")


def mean_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Mean decision accuracy over scenarios by law and share of the target's compute, which rises with `place`.

    Returns table: Columns `law`, `place`, `share`, `mean`, `standard_error` (over scenarios; NaN for a single one),
    `n` (scenarios).
    """
    accuracy = pl.col("decision_accuracy")
    known = decisions.filter(accuracy.is_not_nan() & accuracy.is_not_null())
    place = pl.col("share_of_target").rank("dense").over("scenario", "law")
    return (
        known.with_columns(place=place)
        .group_by("law", "place", maintain_order=True)
        .agg(
            share=pl.col("share_of_target").log().mean().exp(),
            mean=accuracy.mean(),
            standard_error=(accuracy.std() / pl.len().sqrt()).fill_null(float("nan")),
            n=pl.len(),
        )
        .sort("place", maintain_order=True)
    )


ACCURACY = "accuracy"
PROBABILITY = "probability"


DecisionMethod: TypeAlias = tuple[str, PretrainingLawSpec]
"""One way to forecast which recipe will be best: a metric, whose responses are fitted, and a law."""
SIX_METHODS: Mapping[str, DecisionMethod] = {
    f"{name} {metric}": (metric, law)
    for metric in (ACCURACY, PROBABILITY)
    for name, law in (
        ("traditional", TwoStep()),
        ("1PL", ItemResponseLaw("1pl", pooling="none", shape="line", gap="none")),
        ("2PL", ItemResponseLaw("2pl", pooling="none", shape="line", gap="none")),
    )
}
"""The methods of IRSL 4.2; item response laws are its eq. 3."""

OUR_METHODS: Mapping[str, DecisionMethod] = {
    f"{name} {metric}": (metric, law)
    for name, law in (
        ("2PL with gap", ItemResponseLaw("2pl", pooling="none", shape="line")),
        ("2PL pooled", ItemResponseLaw("2pl")),
    )
    for metric in (ACCURACY, PROBABILITY)
}
"""Eq. 3 with the gap of the largest size carried on; and with lines that lean on each other and bend, our default."""

EVERY_METHOD = {**SIX_METHODS, **OUR_METHODS}


def decision_curves(
    responses: Mapping[str, ResponseMatrix],
    compute: TrainingCompute,
    *,
    methods: Mapping[str, DecisionMethod] = SIX_METHODS,
    loss: FloatArray | None = None,
    actual: str = ACCURACY,
    n_splits: int = 5,
    n_calibration: int = 2,
    settings: PretrainingSettings | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> pl.DataFrame:
    """Find how often each method orders two recipes as the largest size does, by the compute spent on smaller sizes.

    In every split a few recipes, drawn at random, calibrate the items with all their models; the laws are fitted to
    the others up to each size in turn (IRSL 4.2 and Figure 3).

    Parameters
    ----------
    responses : mapping of metric to ResponseMatrix
        Of the same models and items: 'accuracy', 'probability'.
    compute : TrainingCompute
    methods : mapping of label to (metric, law)
        Metrics are keys of `responses`, laws are specs.
    loss : (n_models, n_items), optional
        Bits per byte of the right answer, for the two-step law.
    actual : str
        Metric whose mean at the largest size is the truth.
    n_splits, n_calibration : int
        Splits, and recipes in each that calibrate the items.
    settings : PretrainingSettings, optional
        `fewest_sizes` (2 by default here, a line's points), `n_items` (50: IRSL's budget) and `level` count.
    rng : Generator, int or None
    progress : ProgressCallback

    Returns
    -------
    table
        `split`, `scenario`, `law` (the label), `share_of_target`, `decision_accuracy`, `n_recipes`, `metric`.

    Raises
    ------
    DataError
        When fewer than two recipes are left to order; as `held_out_coverage`.
    ParameterError
        When a metric has no responses.
    """
    settings = settings or PretrainingSettings(fewest_sizes=2, n_items=50, n_checked=0)
    rng = as_generator(rng)
    wanted = dict.fromkeys([actual, *(metric for metric, _ in methods.values())])
    absent = [name for name in wanted if name not in responses]
    if absent:
        raise ParameterError(f"responses must hold every metric of the methods, got none for {shown(absent)}.")
    if len(compute.recipes) - n_calibration < 2:
        raise DataError(
            f"two recipes at least must be left to order when {n_calibration} calibrate the items, got "
            f"{len(compute.recipes)} in all."
        )
    for _, law in methods.values():
        LAWS.resolve(law)
    parts = []
    steps = [(split, label) for split in range(n_splits) for label in methods]
    splits = [tuple(rng.permutation(compute.recipes)[:n_calibration].tolist()) for _ in range(n_splits)]
    seed = int(rng.integers(2**32))
    for number, (split, label) in enumerate(steps):
        progress(f"{label}, split {split + 1}", number / len(steps))
        metric, law = methods[label]
        of_split = replace(settings, laws=(law,), calibration_recipes=splits[split])
        decisions = held_out_coverage(
            responses[metric],
            compute,
            loss=loss if isinstance(law, TwoStep) else None,
            actual=responses[actual],
            settings=of_split,
            rng=seed,
        ).decisions()
        labels = {"law": pl.lit(label), "metric": pl.lit(metric)}
        parts.append(decisions.select(pl.lit(split).alias("split"), pl.all()).with_columns(**labels))
    progress("decisions", 1.0)
    return pl.concat(parts)
