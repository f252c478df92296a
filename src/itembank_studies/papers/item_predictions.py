"""The verbs `item_predictions` and `law_predictions`: predicted against observed responses, cross-validated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.auditing.fit_statistics import why_not_examined
from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.banks import Bank
from itembank.errors import DataError
from itembank.estimation.folds import Fold, folds
from itembank.estimation.model_abilities import answered_responses, estimate_abilities
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular
from itembank_scaling.compute import TrainingCompute
from itembank_scaling.pretraining.law_results import PretrainingLaw, ScenarioLaws
from itembank_scaling.pretraining.law_specs import ItemResponseLaw, PretrainingSettings
from itembank_scaling.pretraining.pretraining_law import pretraining_law

EDGES = np.linspace(0.0, 1.0, 11)
"""Of the bins of predicted values."""
CHANCE = float(np.sqrt(2.0 / np.pi))
"""Mean absolute value of a standard normal variable."""


def calibration_error(bins: pl.DataFrame) -> float:
    """Mean distance of observed from predicted means over cells (ECE)."""
    away = (bins["observed"] - bins["predicted"]).abs()
    return float(np.average(away, weights=bins["n_cells"]))


def by_chance(bins: pl.DataFrame) -> float:
    """`calibration_error` that the standard errors alone would lead to, if every prediction were right."""
    return float(np.average(CHANCE * np.nan_to_num(bins["standard_error"]), weights=bins["n_cells"]))


def binned(
    predicted: FloatArray,  # (n_cells,): In [0, 1]
    observed: FloatArray,  # (n_cells,)
    model: IntArray,  # (n_cells,): Number of the model of each cell, from 0
) -> pl.DataFrame:
    """Average predictions and responses by predicted value.

    Returns one row a bin, those without any left out: `n_cells`, means `predicted` and `observed`, and the
    `standard_error` of observed less predicted, over models as clusters; NaN where one model has them all.

    The standard error of a mean difference r, of models m with n_m cells and sums s_m of differences, is that of a
    ratio: ``sqrt(M / (M - 1) sum_m (s_m - n_m r)^2) / n`` (Cochran 1977, eq. 2.39).
    """
    n_bins, n_models = EDGES.size - 1, int(model.max()) + 1
    place = np.clip(np.searchsorted(EDGES, predicted, side="right") - 1, 0, n_bins - 1) * n_models + model
    shape = (n_bins, n_models)
    n = np.bincount(place, minlength=n_bins * n_models).reshape(shape).astype(np.float64)
    sums = [np.bincount(place, part, minlength=n_bins * n_models).reshape(shape) for part in (predicted, observed)]
    kept = n.sum(axis=1) > 0.0
    n, expected, seen = n[kept], sums[0][kept], sums[1][kept]
    total = n.sum(axis=1)
    differences = seen - expected
    mean = differences.sum(axis=1) / total
    spread = np.sum((differences - n * mean[:, None]) ** 2, axis=1)
    present = np.sum(n > 0.0, axis=1)
    factor = np.divide(present, present - 1.0, out=np.full(present.shape, np.nan), where=present > 1)
    return pl.DataFrame(
        {
            "n_cells": total.astype(np.int64),
            "predicted": expected.sum(axis=1) / total,
            "observed": seen.sum(axis=1) / total,
            "standard_error": np.sqrt(factor * spread) / total,
        }
    )


def association(predicted: FloatArray, observed: FloatArray, model: IntArray) -> tuple[float, float, float]:
    """Correlate responses with predictions over cells; arguments as of `binned`.

    Returns Pearson's correlation, its standard error, and the slope of responses on predictions.

    The standard error is the jackknife's over the M models, ``sqrt((M - 1) / M sum_m (r_(m) - mean)^2)`` with r_(m) the
    correlation without model m (Efron and Tibshirani 1993, eq. 11.5): a model's cells share its ability and err
    together.
    """
    x, y = predicted - predicted.mean(), observed - observed.mean()
    terms = (np.ones(x.shape), x, y, x * x, y * y, x * y)
    of_models = np.stack([np.bincount(model, term) for term in terms])  # (6, n_models)
    of_models = of_models[:, of_models[0] > 0.0]
    total = of_models.sum(axis=1)
    left_out = _correlation(total[:, None] - of_models)
    n_models = left_out.size
    spread = np.sum((left_out - left_out.mean()) ** 2)
    error = float(np.sqrt((n_models - 1) / n_models * spread)) if n_models > 2 else float("nan")
    variance, covariance = total[3] - total[1] ** 2 / total[0], total[5] - total[1] * total[2] / total[0]
    slope = float(covariance / variance) if variance > 0.0 else float("nan")
    return float(_correlation(total[:, None])[0]), error, slope


def _correlation(sums: FloatArray) -> FloatArray:
    """Pearson's r from sums of 1, x, y, x^2, y^2, xy, (6, n): (n,); NaN where either does not vary."""
    n, x, y, xx, yy, xy = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((xx - x * x / n) * (yy - y * y / n))
        varies: BoolArray = spread > 1e-12 * np.sqrt(xx * yy)
        result: FloatArray = np.where(varies, (xy - x * y / n) / spread, np.nan)
    return result


CELLS = ("predicted", "observed", "item_mean", "model", "item")
"""Of each response: its prediction, itself, the mean response of other models to the item; its row and its column."""


@dataclass(frozen=True, slots=True, repr=False)
class ItemPredictions(Tabular):
    """Result of `item_predictions`.

    Attributes
    ----------
    table : table of one row a scenario, the last of all items if there are several
        `scenario`, `n_models`, `n_items`, `n_cells`; `correlation` of observed with predicted responses, its
        `standard_error` over models, and the `slope`; the correlation `by_item_means`, by the item's mean response over
        other models, which knows nothing of the model; `bias`, `root_mean_square` difference, `calibration_error` and
        what that would be `by_chance`.
    bins : table of one row a scenario and bin of predicted values
        `scenario`, and what `binned` gives.
    cells : mapping of scenario to table
        `predicted`, what the item model gives each response, and `observed`, the response as the item model takes it.
    family : str
        Of the responses.
    bank_id : str
    """

    schema = "predictions"
    header = ("bank_id", "family")

    table: pl.DataFrame
    bins: pl.DataFrame
    cells: Mapping[str, pl.DataFrame]
    family: str
    bank_id: str


def law_predictions(
    responses: ResponseMatrix,
    compute: TrainingCompute,
    *,
    largest_flops: float,
    law: ItemResponseLaw | None = None,
    progress: ProgressCallback = silent,
) -> ItemPredictions:
    """Compare each response of larger finished models with its probability at the ability that their compute forecasts.

    Items are calibrated and laws fitted with the models of at most `largest_flops`; nothing of the larger ones is used
    but their compute.

    Parameters
    ----------
    responses, compute
        As for `pretraining_law`.
    largest_flops : float
        Training compute of the largest models that are fitted.
    law : ItemResponseLaw, optional
    progress : ProgressCallback

    Returns
    -------
    ItemPredictions
        A part for each scenario with a law, and one for all.

    Raises
    ------
    DataError
        When no finished model is larger; as `pretraining_law`.
    """
    larger = np.flatnonzero(compute.is_final & (compute.flops > largest_flops))
    if not larger.size:
        raise DataError(
            f"finished models of more than {largest_flops:.3g} FLOP must be left to predict, got none: the largest has "
            f"{compute.flops.max():.3g}. Fit to smaller models."
        )
    settings = PretrainingSettings(laws=(law or ItemResponseLaw(),), largest_flops=largest_flops, n_checked=0)
    fitted = pretraining_law(responses, compute, settings=settings, progress=progress)
    found = {one.scenario: _cells(fitted, one, responses, compute, larger) for one in fitted.scenarios if one.fitted}
    family = next(one.abilities.parameters.family for one in fitted.scenarios if one.fitted)
    return summarised(found, family, "")


def _cells(
    law: PretrainingLaw, one: ScenarioLaws, responses: ResponseMatrix, compute: TrainingCompute, larger: IntArray
) -> pl.DataFrame:
    """Predict the responses of the larger models to one scenario's items."""
    recipes = ["all" if compute.recipe is None else compute.recipe[row] for row in larger.tolist()]
    abilities, _ = one.ability_laws.predict(np.log(compute.flops[larger]))
    theta = abilities[[law.recipes.index(name) for name in recipes], np.arange(larger.size)]
    items = one.abilities.items
    smaller = responses.model_indices(np.asarray(law.model_ids)[law.is_final].tolist())
    rows = responses.model_indices([compute.model_ids[row] for row in larger.tolist()])
    observed = responses.responses[np.ix_(rows, items)]
    expected = probability(one.abilities.parameters, theta[:, None])
    known = np.nonzero(~np.isnan(observed) & ~np.isnan(expected))
    item_mean = mean_where_known(responses.responses[np.ix_(smaller, items)])
    found = (expected[known], observed[known], item_mean[known[1]], known[0], items[known[1]])
    return pl.DataFrame(dict(zip(CELLS, found, strict=True)))


ALL_ITEMS = "all items"
"""Stands in the place of a scenario's name for all of them together."""


@one_blas_thread()
def item_predictions(
    bank: GivenBank, *, rng: np.random.Generator | int | None = 0, progress: ProgressCallback = silent
) -> ItemPredictions:
    """Compare the probability that the item model gives every response with the response, by cross-validation.

    The items are calibrated anew without each fold of the models (`estimation.folds`). The ability of such a model
    comes from a random half of the items and predicts its responses to the other half, and the other way round. No
    response has a part in its own prediction. (IRSL's Figures 4, 9, 16 and 24 take the ability from all items; on sets
    of a hundred items and more that changes the third digit of a correlation.)

    Parameters
    ----------
    bank : Bank or path
        With its responses, of at least ten models.
    rng : Generator, int or None
        Draws the halves.
    progress : ProgressCallback

    Returns
    -------
    ItemPredictions
        A part for each scenario, and one for all items where there are several.

    Raises
    ------
    DataError
        When models cannot be cross-validated.

    Examples
    --------
    >>> item_predictions("bank").rows()  # doctest: +SKIP
    """
    bank = as_bank(bank)
    reason = why_not_examined(bank, progress)
    if reason:
        raise DataError(
            f"predictions are compared with responses of models that a fit has not seen: {reason}. Take a bank of more "
            "models, with their responses."
        )
    half = as_generator(rng).permutation(bank.n_items) % 2
    cells = pl.concat([cells for fold in folds(bank, progress=progress) for cells in _of_fold(bank, fold, half)])
    scenario = bank.targets.scenario_index[cells["item"].to_numpy()]
    parts = {name: cells.filter(scenario == number) for number, name in enumerate(bank.targets.scenarios)}
    known = {name: part for name, part in parts.items() if part.height}
    return summarised(known, bank.parameters.family, bank.bank_id)


def _of_fold(bank: Bank, fold: Fold, half: IntArray) -> Iterator[pl.DataFrame]:
    """Predict each half of the items for the models that the fold left out, by their abilities on the other."""
    responses = bank.responses.take(models=fold.held_out)
    known, past = answered_responses(fold.bank, fold.bank.responses)
    item_mean = np.full(bank.n_items, np.nan)
    item_mean[known] = mean_where_known(past)
    for number in range(2):
        asked, others = np.flatnonzero(half == number), np.flatnonzero(half != number)
        theta = estimate_abilities(fold.bank, responses.take(items=others)).theta
        expected = probability(fold.bank.parameters.take(asked), theta)
        columns, observed = answered_responses(fold.bank, responses.take(items=asked))
        expected = expected[:, np.searchsorted(asked, columns)]
        rows, places = np.nonzero(~np.isnan(observed) & ~np.isnan(item_mean[columns]))
        found = (
            expected[rows, places],
            observed[rows, places],
            item_mean[columns[places]],
            fold.held_out[rows],
            columns[places],
        )
        yield pl.DataFrame(dict(zip(CELLS, found, strict=True)))


def summarised(cells: Mapping[str, pl.DataFrame], family: str, bank_id: str) -> ItemPredictions:
    """Summarise the cells of each scenario, then all of them where there are several scenarios."""
    parts = {**cells, ALL_ITEMS: pl.concat(cells.values())} if len(cells) > 1 else cells
    rows, bins = [], []
    for scenario, part in parts.items():
        predicted, observed, item_mean, model, item = (part[name].to_numpy() for name in CELLS)
        correlation, standard_error, slope = association(predicted, observed, model)
        own = binned(predicted, observed, model)
        bins.append(own.select(pl.lit(scenario).alias("scenario"), pl.all()))
        rows.append(
            {
                "scenario": scenario,
                "n_models": np.unique(model).size,
                "n_items": np.unique(item).size,
                "n_cells": predicted.size,
                "correlation": correlation,
                "standard_error": standard_error,
                "by_item_means": association(item_mean, observed, model)[0],
                "slope": slope,
                "bias": float(np.mean(predicted - observed)),
                "root_mean_square": float(np.sqrt(np.mean((observed - predicted) ** 2))),
                "calibration_error": calibration_error(own),
                "by_chance": by_chance(own),
            }
        )
    return ItemPredictions(pl.DataFrame(rows), pl.concat(bins), parts, family, bank_id)
