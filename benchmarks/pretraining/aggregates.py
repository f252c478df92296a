"""Task-level scores of public models: forecasts of the largest from the smaller ones."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import ItembankWarning
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import TrainingCompute, training_compute
from itembank_scaling.pretraining.law_fitting import Forecast
from itembank_scaling.pretraining.law_results import PretrainingLaw
from itembank_scaling.pretraining.law_specs import ItemResponseLaw, PretrainingSettings
from itembank_scaling.pretraining.pretraining_law import pretraining_law

SOURCES = ("pythia_lm_eval_zero", "pythia_lm_eval_five", "gadre_openlm", "obsscaling_base")
HELD_OUT = (0.25, 0.5)
"""Share of the finished models, the largest by training compute, that is held out."""
NAMES = {
    "pythia_lm_eval_zero": "Pythia, zero-shot",
    "pythia_lm_eval_five": "Pythia, five-shot",
    "gadre_openlm": "Gadre et al.",
    "obsscaling_base": "ObsScaling, 47 families",
}
"""What tables call the sources."""
TASK_LAWS = {"sigmoid of each task": "sigmoid", "trends": "trend", "line through three": "last-line"}
"""Laws that are fitted to tasks as scenarios, by what the table calls them."""
SHOWN = ("item response", *TASK_LAWS, "largest smaller model")
FEWEST_SIZES = 3
LAWS = {
    "item response": ItemResponseLaw("2pl", family="beta"),
    "item response, no pooling": ItemResponseLaw("2pl", family="beta", pooling="none"),
}
"""Laws of tasks as items of one scenario."""


def run(folder: Path, output: Path | None) -> None:
    """Print and keep the errors of every source and law."""
    here = folder / "scaling_aggregates"
    rows: list[dict[str, object]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        whole = read_responses([here / "responses.parquet"], models=here / "models.csv", items=here / "items.csv")
        for source in SOURCES:
            responses, compute = _of_source(whole, source)
            for share in HELD_OUT:
                rows += _one(source, responses, compute, share)
                print(f"{source}: {share:.0%} held out", file=sys.stderr)
    summary = (
        pl.DataFrame(rows)
        .group_by("source", "held_out", "law", maintain_order=True)
        .agg(pl.col("task_error", "mean_error").mean() * 100.0, pl.col("held").mean(), pl.len().alias("n_models"))
    )
    print(_table(summary))
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / "aggregates.md").write_text(_table(summary), encoding="utf-8")
        summary.write_csv(output / "aggregates.csv", float_precision=5)


def _table(summary: pl.DataFrame) -> str:
    """Give a row for each source and share: error over tasks; error of the mean (share of intervals that held it)."""
    lines = [f"| models | held out | {' | '.join(SHOWN)} |", "|---" * (2 + len(SHOWN)) + "|"]
    for source, held_out in summary.select("source", "held_out").unique(maintain_order=True).rows():
        part = summary.filter(source=source, held_out=held_out)
        rows = [part.filter(law=law).row(0, named=True) for law in SHOWN]
        n_models = max(row["n_models"] for row in rows)
        lines.append(
            f"| {NAMES[source]} | {held_out:.0%} ({n_models} models) | {' | '.join(_cell(row) for row in rows)} |"
        )
    return "\n".join(lines)


def _cell(row: dict[str, float]) -> str:
    held = "" if row["held"] is None else f" ({row['held']:.2f})"
    return f"{row['task_error']:.1f}; {row['mean_error']:.1f}{held}"


def _of_source(whole: ResponseMatrix, source: str) -> tuple[ResponseMatrix, TrainingCompute]:
    """Take one source's models and tasks; a recipe is a family, or training data."""
    table = whole.models.with_row_index("row").filter((pl.col("source") == source) & (pl.col("flops") > 0.0))
    recipe = pl.col("family_or_data")
    if source.startswith("pythia"):  # two recipes; variants of one size are neither
        table = table.filter(recipe.str.contains(r"^pythia-[0-9.]+[mb](-deduped)?$"))
        recipe = pl.when(recipe.str.ends_with("-deduped")).then(pl.lit("deduped")).otherwise(pl.lit("pythia"))
    table = table.with_columns(recipe=recipe)
    if source == "gadre_openlm":  # every run is a finished one
        table = table.with_columns(is_final=pl.lit(value=True))
    items = np.flatnonzero((whole.items["scenario"] == source).to_numpy())
    is_complete = ~np.isnan(whole.responses[:, items]).any(axis=1)  # all but a few models have every task
    table = table.filter(pl.Series(is_complete[table["row"].to_numpy()]))
    responses = whole.take(models=table["row"].to_numpy().astype(np.int64), items=items)
    compute = training_compute(table.drop("row"), responses.model_ids)
    # shares of questions: how many there were says nothing of how much tasks differ beyond the item model
    plain = ResponseMatrix(responses.responses, responses.models, responses.items)
    return plain, compute


def _one(source: str, responses: ResponseMatrix, compute: TrainingCompute, share: float) -> list[dict[str, object]]:
    """Errors of every law on the finished models above the cut."""
    finished = compute.flops[compute.is_final]
    cut = float(np.quantile(finished, 1.0 - share))
    tested = _tested(compute, cut)
    rows: list[dict[str, object]] = []
    for name, one in LAWS.items():
        settings = PretrainingSettings(laws=(one,), largest_flops=cut, n_checked=0)
        fitted = pretraining_law(responses, compute, settings=settings)
        rows += list(_errors(fitted, responses, compute, tested, {"source": source, "held_out": share, "law": name}))
    rows += list(_by_task(responses, compute, tested, cut, {"source": source, "held_out": share}))
    return rows


def _tested(compute: TrainingCompute, cut: float) -> IntArray:
    """Finished models above the cut whose recipe has enough sizes below it for a law."""
    recipes = np.array(compute.recipe)
    is_smaller = compute.is_final & (compute.flops <= cut)
    n_sizes = {name: np.unique(compute.flops[is_smaller & (recipes == name)]).size for name in compute.recipes}
    has_law = np.array([n_sizes[name] >= FEWEST_SIZES for name in recipes.tolist()])
    return np.flatnonzero(compute.is_final & (compute.flops > cut) & has_law)


def _errors(
    law: PretrainingLaw, responses: ResponseMatrix, compute: TrainingCompute, tested: IntArray, head: dict[str, object]
) -> Iterator[dict[str, object]]:
    """Of one law over all tasks, for every held-out model of a recipe that has a line."""
    (scenario,) = law.scenarios
    for model in tested.tolist():
        recipe = law.recipes.index(compute.recipe[model])
        flops = compute.flops[model : model + 1]
        theta = scenario.ability_laws.predict(np.log(flops))[0][recipe, 0]
        forecast = law.forecast(scenario.scenario, flops=flops)
        actual = responses.responses[model]
        known = ~np.isnan(actual[scenario.abilities.items])
        tasks = probability(scenario.abilities.parameters, np.array([[theta]]))[0][known]
        own = actual[scenario.abilities.items][known]
        yield {**head, **_record(tasks, own), "held": _held(forecast, recipe, float(own.mean()))}


def _held(forecast: Forecast, recipe: int, truth: float) -> float:
    return float(forecast.low[recipe, 0] <= truth <= forecast.high[recipe, 0])


def _record(predicted: FloatArray, actual: FloatArray) -> dict[str, object]:
    """Mean error over tasks, and error of the mean."""
    return {
        "task_error": float(np.mean(np.abs(predicted - actual))),
        "mean_error": float(abs(np.mean(predicted) - np.mean(actual))),
    }


def _by_task(
    responses: ResponseMatrix, compute: TrainingCompute, tested: IntArray, cut: float, head: dict[str, object]
) -> Iterator[dict[str, object]]:
    """Of laws of tasks as scenarios, and of no growth beyond the recipe's largest smaller model."""
    spread = np.nanstd(responses.responses[compute.flops <= cut], axis=0)
    varied = responses.take(items=np.flatnonzero(spread > 0.0))  # a law needs something to fit
    own_scenario = varied.items.with_columns(scenario=pl.col("item_id"), subscenario=pl.lit(None, dtype=pl.String))
    alone = ResponseMatrix.create(varied.responses, models=varied.models, items=own_scenario)
    settings = PretrainingSettings(laws=tuple(TASK_LAWS.values()), largest_flops=cut, n_checked=0)
    law = pretraining_law(alone, compute, settings=settings)
    names = [one.scenario for one in law.scenarios]
    columns = alone.item_indices(names)
    recipes = np.array(compute.recipe)
    for model in tested.tolist():
        smaller = np.flatnonzero((recipes == recipes[model]) & compute.is_final & (compute.flops <= cut))
        recipe = law.recipes.index(recipes[model])
        actual = alone.responses[model, columns]
        last = alone.responses[smaller[np.argmax(compute.flops[smaller])], columns]
        for shown, law_name in TASK_LAWS.items():
            forecasts = [law.forecast(name, law_name, flops=[float(compute.flops[model])]) for name in names]
            predicted = np.array([one.score[recipe, 0] for one in forecasts])
            known = ~np.isnan(actual) & ~np.isnan(predicted) & ~np.isnan(last)
            held = [_held(one, recipe, truth) for one, truth in zip(forecasts, actual, strict=True)]
            record = _record(predicted[known], actual[known])
            yield {**head, "law": shown, **record, "held": float(np.mean(np.array(held)[known]))}
        known = ~np.isnan(actual) & ~np.isnan(last)
        yield {**head, "law": "largest smaller model", **_record(last[known], actual[known]), "held": None}
