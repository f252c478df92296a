"""How good forecasts are: fit to the smaller models, forecast the larger ones that exist, compare."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError
from itembank.numerics.arrays import FloatArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.compute import TrainingCompute
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.held_out_results import FORECAST_COLUMNS, HeldOutForecasts
from itembank.scaling.pretraining.law_fits import fit_laws
from itembank.scaling.pretraining.law_inputs import PretrainingData
from itembank.scaling.pretraining.law_results import PretrainingLaw
from itembank.scaling.pretraining.method_specs import BY_HAND, PretrainingSettings
from itembank.scaling.pretraining.runs import SAME_SIZE, Runs


@one_blas_thread()
def held_out_coverage(
    responses: ResponseMatrix,
    compute: TrainingCompute,
    *,
    bank: Bank | None = None,
    loss: FloatArray | None = None,
    actual: ResponseMatrix | None = None,
    largest: Sequence[float] | None = None,
    settings: PretrainingSettings | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> HeldOutForecasts:
    """Fit laws to models up to a size, forecast every larger finished model, and see whether the intervals hold it.

    Nothing of the larger models is used: without a bank or calibration
    recipes the items too are calibrated on the smaller ones alone.

    Parameters
    ----------
    responses, compute, bank, loss, rng, progress
        As for `pretraining_law`.
    actual : ResponseMatrix, optional
        Responses of the same models and items whose means the forecasts are compared with instead: right or wrong,
        say, when the laws are fitted to probabilities. Then only decisions are worth reading.
    largest : sequence of float, optional
        Largest training computes to fit to; by default those between the sizes, from `fewest_sizes` on.
    settings : PretrainingSettings, optional
        Its `largest_flops` is not used.

    Returns
    -------
    HeldOutForecasts

    Raises
    ------
    DataError
        When no size is left to forecast; as `pretraining_law`.
    """
    settings = settings or PretrainingSettings()
    seed = int(as_generator(rng).integers(2**32))
    data = PretrainingData.create(responses, compute, settings, bank=bank, loss=loss, seed=seed)
    _, runs = data.runs(None)
    cuts = size_cuts(runs, settings.fewest_sizes) if largest is None else list(largest)
    checked = held_out_forecasts(data, cuts, actual=actual, seed=seed, progress=progress)
    if checked.table.is_empty():
        raise DataError(
            "a forecast can be checked only with a law, and with larger finished models than it is fitted to; got no "
            "such forecast: finished models are "
            f"of {int(runs.n_sizes.max())} sizes, fitted up to {[f'{cut:.3g}' for cut in cuts]} FLOP. "
            "Fit to fewer sizes, or add larger models."
        )
    return checked


def held_out_forecasts(
    data: PretrainingData,
    cuts: Sequence[float],
    *,
    actual: ResponseMatrix | None = None,
    seed: int,
    progress: ProgressCallback = silent,
) -> HeldOutForecasts:
    """Fit the laws of `data` up to each of some computes, and forecast every larger finished model.

    Raises
    ------
    ParameterError
        When `actual` lacks a model.
    """
    scores = observed_means(data.responses if actual is None else _same_models(actual, data.responses))
    every = data.measured(np.arange(data.responses.n_models)) if data.has_items else None
    parts, by_hand = [pl.DataFrame(schema=FORECAST_COLUMNS)], [pl.DataFrame(schema=FORECAST_COLUMNS)]
    hands = tuple(name for name in BY_HAND if data.settings.law(name) is None)
    for number, cut in enumerate(cuts):
        ends = [(number + fraction) / len(cuts) for fraction in (0.0, 0.5, 1.0)]
        label = f"fitting up to {cut:.2g} FLOP: "
        used, runs = data.runs(cut)
        measured = (
            data.measured(used, progress=part_of(progress, ends[0], ends[1], label))
            if every is None
            else every.take(used)
        )
        settings = replace(data.settings, largest_flops=cut)
        law = fit_laws(measured, runs, settings, cut, seed, progress=part_of(progress, ends[1], ends[2], label))
        parts.extend(_compared(law, data.compute, scores, cut))
        if hands:
            drawn = fit_laws(measured, runs, replace(settings, laws=hands), cut, seed)
            by_hand.extend(_compared(drawn, data.compute, scores, cut))
    progress("held-out forecasts", 1.0)
    level = data.settings.level
    return HeldOutForecasts(pl.concat(parts), level, HeldOutForecasts(pl.concat(by_hand), level) if hands else None)


def size_cuts(runs: Runs, fewest_sizes: int) -> list[float]:
    """Find the computes that part each recipe's k smallest sizes from the larger ones, for every k that leaves some.

    The k-th cut lies midway (in log FLOP) between the k-th and the next size, at the median over recipes that have
    both: recipes seldom spend the very same on a size.
    """
    x = np.where(runs.finals >= 0, runs.log_flops[np.maximum(runs.finals, 0)], np.nan)
    cuts = []
    for k in range(fewest_sizes, x.shape[1]):
        has_more = np.isfinite(x[:, k]) & (x[:, k] - x[:, k - 1] > SAME_SIZE)
        if has_more.any():
            cuts.append(float(np.exp(np.median(0.5 * (x[has_more, k] + x[has_more, k - 1])))))
    return sorted(cuts)


def observed_means(responses: ResponseMatrix) -> dict[str, FloatArray]:
    """Mean response of each model in each scenario, (n_models,) by scenario; NaN without any."""
    index = responses.items["scenario"].to_numpy()
    means = {}
    for name in dict.fromkeys(index.tolist()):
        means[name] = mean_where_known(responses.responses[:, index == name], axis=1)
    return means


def _same_models(actual: ResponseMatrix, responses: ResponseMatrix) -> ResponseMatrix:
    """Rows of the same models, in the same order."""
    scenarios = set(responses.items["scenario"].to_list())
    absent = scenarios - set(actual.items["scenario"].to_list())
    if absent:
        raise ParameterError(f"actual must have items of every scenario, got none of {sorted(absent)}.")
    return actual.take(models=actual.model_indices(responses.model_ids))


def _compared(
    law: PretrainingLaw, compute: TrainingCompute, scores: dict[str, FloatArray], cut: float
) -> Iterator[pl.DataFrame]:
    """Yield the forecasts of every larger finished model beside its score, for each scenario and law."""
    larger = np.flatnonzero(compute.is_final & (compute.flops > cut))
    recipes = ["all" if compute.recipe is None else compute.recipe[row] for row in larger.tolist()]
    index = np.array([law.recipes.index(name) for name in recipes], dtype=np.int64)
    flops = compute.flops[larger]
    models = pl.DataFrame({"recipe": recipes, "flops": flops, "beyond": flops / cut}).with_columns(
        is_largest=pl.col("flops") == pl.col("flops").max().over("recipe")
    )
    for laws in law.scenarios:
        actual = scores[laws.scenario][larger]
        for name in laws.fitted:
            forecast = law.forecast(laws.scenario, name, flops=flops)
            score, low, high = (part[index, np.arange(larger.size)] for part in forecast[:3])
            numbers = {"score": score, "low": low, "high": high, "actual": actual, "error": score - actual}
            table = models.with_columns(
                pl.lit(laws.scenario).alias("scenario"),
                pl.lit(name).alias("law"),
                pl.lit(cut).alias("largest_flops"),
                *(pl.Series(column, values) for column, values in numbers.items()),
                pl.Series("is_covered", (low <= actual) & (actual <= high)),
            )
            yield table.select(*FORECAST_COLUMNS).filter(np.isfinite(score) & np.isfinite(actual))
