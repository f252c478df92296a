"""The verbs `pretraining_law` and `held_out_coverage`: forecast training runs too large to try, and check forecasts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, shown, warned_once
from itembank.numerics.arrays import FloatArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import TrainingCompute
from itembank_scaling.pretraining.law_fitting import FittedLaw, LawData, LawFit
from itembank_scaling.pretraining.law_inputs import SAME_SIZE, Measured, PretrainingData, Runs, checked_target
from itembank_scaling.pretraining.law_results import FORECAST_COLUMNS, HeldOutForecasts, PretrainingLaw, ScenarioLaws
from itembank_scaling.pretraining.law_specs import BY_HAND, LAWS, PretrainingSettings


def fit_laws(
    measured: Measured,
    runs: Runs,
    settings: PretrainingSettings,
    target: float,
    seed: int,
    *,
    progress: ProgressCallback = silent,
) -> PretrainingLaw:
    """Fit every law that is wanted to every scenario of the models of `runs`, as far as it can be fitted."""
    specs = tuple(map(LAWS.resolve, settings.laws))
    every = []
    for number, scores in enumerate(measured.scores):
        losses = None if measured.losses is None else measured.losses[:, number]
        own_runs = runs.among(scores.is_present, settings.fewest_sizes)
        every.append(LawData(scores.observed, measured.abilities[number], losses, own_runs, seed))
    # a joint law is fitted to all scenarios together that have a recipe with enough sizes
    together = [number for number, data in enumerate(every) if data.runs.is_enough.any()]
    joint: dict[str, dict[int, LawFit | None]] = {}
    for spec in specs if together else ():
        if spec.is_joint:
            found = LAWS.kernel(spec)(tuple(every[number] for number in together), spec)
            joint[LAWS.name_of(spec)] = dict(zip(together, found, strict=True))
    scenarios = []
    for number, (scores, data) in enumerate(zip(measured.scores, every, strict=True)):
        progress(f"laws of {scores.scenario} ({number + 1} of {len(measured.scores)})", number / len(measured.scores))
        own = {name: fits.get(number) for name, fits in joint.items()}
        fitted: dict[str, FittedLaw] = {}
        notes: dict[str, tuple[str, ...]] = {}
        for spec in specs if data.runs.is_enough.any() else ():
            short = LAWS.name_of(spec)
            fit: LawFit | None = own[short] if spec.is_joint else LAWS.kernel(spec)(data, spec)
            if fit is not None:
                fitted[short], notes[short] = fit
        scenarios.append(ScenarioLaws(scores, fitted, notes))
    counts = [
        f"{scenario.scenario} ({int(np.sum(~scenario.is_present))})"
        for scenario in measured.scores
        if not scenario.is_present.all()
    ]
    parts = []
    if counts:
        parts.append(f"Models without responses do not count in a scenario (how many): {shown(counts)}.")
    lacking = [scenario.scenario for scenario in scenarios if not scenario.fitted]
    if lacking:
        parts.append(f"Scenarios without a law: {shown(lacking)}.")
    texts = [runs.message, measured.message, " ".join(parts)]
    return PretrainingLaw(
        recipes=runs.recipes,
        scenarios=tuple(scenarios),
        model_ids=measured.model_ids,
        log_flops=runs.log_flops,
        recipe_index=runs.recipe_index,
        is_final=runs.is_final,
        target_flops=target,
        level=settings.level,
        message=" ".join(text for text in texts if text),
    )


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
    """Fit laws to models up to a size, forecast every larger finished model, and see whether the intervals cover it.

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
    """Fit the laws of `data` up to each of some computes, and forecast every larger finished model."""
    if actual is not None:
        absent = set(data.responses.items["scenario"].to_list()) - set(actual.items["scenario"].to_list())
        if absent:
            raise ParameterError(f"actual must have items of every scenario, got none of {sorted(absent)}.")
        actual = actual.take(models=actual.model_indices(data.responses.model_ids))
    scores = observed_means(data.responses if actual is None else actual)
    every = None  # abilities hang on who takes part where the models calibrate their own items
    if data.bank is not None or data.calibration is not None:
        every = data.measured(np.arange(data.responses.n_models))
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
    sizes = []
    for rows in runs.finals:
        x = runs.log_flops[rows[rows >= 0]]
        sizes.append(x[np.diff(x, prepend=-np.inf) > SAME_SIZE])
    between = [
        [0.5 * (x[k] + x[k - 1]) for x in sizes if len(x) > k] for k in range(fewest_sizes, max(map(len, sizes)))
    ]
    return sorted(float(np.exp(np.median(logs))) for logs in between)


def observed_means(responses: ResponseMatrix) -> dict[str, FloatArray]:
    """Mean response of each model in each scenario, (n_models,) by scenario; NaN without any."""
    index = responses.items["scenario"].to_numpy()
    means = {}
    for name in dict.fromkeys(index.tolist()):
        means[name] = mean_where_known(responses.responses[:, index == name], axis=1)
    return means


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


@one_blas_thread()
@warned_once()
def pretraining_law(
    responses: ResponseMatrix,
    compute: TrainingCompute,
    *,
    target_flops: float | None = None,
    bank: Bank | None = None,
    loss: FloatArray | None = None,
    settings: PretrainingSettings | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> PretrainingLaw:
    """Fit how scores grow with training compute, for every recipe and scenario, and forecast a larger run.

    The item response scaling law measures an ability for every finished model, fits ``theta = s log FLOP + t`` for
    each recipe, and turns a forecast ability into a score through the items (IRSL eq. 3). The traditional two-step law
    and a direct sigmoid in log FLOP are fitted to the same models, and the largest sizes are held out one after the
    other to see what each law's forecasts are worth (`PretrainingLaw.comparison`).

    Parameters
    ----------
    responses : ResponseMatrix
        Of checkpoints of several recipes and sizes: right or wrong, counts, or probabilities of the right choice.
    compute : TrainingCompute
        Of every model in `responses`, and maybe of others. Lines are fitted to finished models; checkpoints on the
        way help to calibrate items and to fit the second step of the two-step law.
    target_flops : float, optional
        Training compute to forecast for; ten times the largest of the models fitted by default.
    bank : Bank, optional
        One-dimensional bank calibrated on other models. Without it the items are calibrated on `responses`.
    loss : (n_models, n_items), optional
        Bits per byte of the right answer, for the two-step law; with probabilities ``-log2`` of them by default.
    settings : PretrainingSettings, optional
    rng : Generator, int or None
        Places the starts of the curves.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When a model has no known compute; when no recipe has enough sizes; when a loss is not positive or of another
        shape; when no law can be fitted to any scenario.
    ParameterError
        For a target that is not a positive number or a million times off the models' compute, or a bank of several
        dimensions.

    Examples
    --------
    >>> law = pretraining_law(responses, compute, target_flops=1e16)  # doctest: +SKIP
    >>> law.rows()[0]["score"]  # doctest: +SKIP
    """
    settings = settings or PretrainingSettings()
    seed = int(as_generator(rng).integers(2**32))
    data = PretrainingData.create(responses, compute, settings, bank=bank, loss=loss, seed=seed)
    used, runs = data.runs(settings.largest_flops)
    target, doubt = checked_target(target_flops, runs)
    own_share = 0.3  # share of the work that is the laws themselves; the rest is their check
    measured = data.measured(used, progress=part_of(progress, 0.0, 0.5 * own_share))
    law = fit_laws(measured, runs, settings, target, seed, progress=part_of(progress, 0.5 * own_share, own_share))
    law = replace(law, message=" ".join(text for text in (data.message, law.message, doubt) if text))
    if not law.names:
        raise DataError(f"a law needs a scenario that it can be fitted to, got none. {law.message}")
    cuts = size_cuts(runs, settings.fewest_sizes)[-settings.n_checked :]
    if settings.n_checked == 0:
        return law
    if not cuts:
        needed = f"A forecast is checked only if a recipe has at least {settings.fewest_sizes + 1} sizes."
        return replace(law, message=f"{law.message} {needed}".lstrip())
    checked = held_out_forecasts(data, cuts, seed=seed, progress=part_of(progress, own_share, 1.0))
    return replace(law, held_out=checked)
