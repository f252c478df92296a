"""Runs of a made-up HELM Lite in HELM's own files: ``python -m benchmarks.simulated_helm FOLDER [--seed N]``.

30 models of 11 organisations answer 10 scenarios of about 1,000 instances each, as tinyBenchmarks' HELM experiment has
them (v1.0.0, 30 models with all scores, approx. 10K instances). The runs stand below FOLDER/benchmark_output; they are
read as `itembank import` reads real ones, into FOLDER/helm.parquet, with FOLDER/models.csv beside it. Then

    HELM=FOLDER itembank study run benchmarks/studies/helm.toml -o helm-study

estimates scenarios and the mean win rate. What is made up: abilities have a general part, and parts of scenario,
organisation and subset; right and wrong answers follow a logistic model, with guessing where there are four
options; F1 and BLEU are graded. Scenarios and their metrics are HELM Lite's, numbers of instances like its own.

``--alike S`` lets models of one organisation miss and know the same instances beyond what their ability says: each
organisation has logits of its own on all instances, of this standard deviation. Without it a model left out with its
organisation differs from others in ability alone.

``--coverage N`` writes nothing: on each of N such leaderboards every model is left out in turn (in tenths), and the
error and the 95 % interval of the mean win rate from 100 and 1,000 instances by strata are tabled, each interval by the
errors of the other tenths alone.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from itembank.bank.bank_views import with_target
from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.intervals import half_widths_out_of_fold
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.numerics.arrays import FloatArray
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import WIN_RATE
from itembank.selection.select import select

SCENARIOS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "narrative_qa": ("f1_score", ("",), 355),
    "natural_qa_closed": ("f1_score", ("",), 1000),
    "natural_qa_open": ("f1_score", ("",), 1000),
    "commonsense": ("exact_match", ("",), 500),
    "mmlu": ("exact_match", ("algebra", "chemistry", "security", "econometrics", "foreign_policy"), 114),
    "math": ("math_equiv_chain_of_thought", ("algebra", "counting", "geometry", "number", "precalculus"), 200),
    "gsm": ("final_number_exact_match", ("",), 1000),
    "legalbench": ("quasi_exact_match", ("abercrombie", "corporate", "function", "proa", "international"), 400),
    "med_qa": ("quasi_exact_match", ("",), 1000),
    "wmt_14": ("bleu_4", ("cs-en", "de-en", "fr-en", "hi-en", "ru-en"), 200),
}
"""Metric, subsets, and instances of each subset."""
METRICS = tuple(dict.fromkeys(metric for metric, _, _ in SCENARIOS.values()))
N_MODELS, N_ORGANISATIONS = 30, 11


def draw(
    seed: int, n_models: int = N_MODELS, *, alike: float = 0.0
) -> tuple[list[str], list[str], dict[str, FloatArray]]:
    """Draw models, their organisations, and their answers (n_models, n_instances) to each task.

    `alike` is the standard deviation of what models of an organisation share on an instance, in logits.
    """
    rng, of_organisations = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    organisation = np.sort(np.concatenate([np.arange(N_ORGANISATIONS), rng.integers(0, N_ORGANISATIONS, n_models)]))
    organisation = rng.permutation(organisation)[:n_models]
    general = 0.9 * rng.normal(size=n_models) + 0.5 * rng.normal(size=N_ORGANISATIONS)[organisation]
    answers = {}
    for name, (metric, subsets, n_instances) in SCENARIOS.items():
        own = general + 0.5 * rng.normal(size=n_models)
        for subset in subsets:
            ability = own + 0.3 * rng.normal(size=n_models)
            shared = alike * of_organisations.normal(size=(N_ORGANISATIONS, n_instances))
            logits = ability[:, None] + shared[organisation]
            answers[f"{name}:subset={subset}" if subset else name] = _answers(metric, logits, rng)
    models = [f"organisation-{one}/model-{number}" for number, one in enumerate(organisation.tolist())]
    return models, [f"organisation-{one}" for one in organisation.tolist()], answers


def _answers(metric: str, ability: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw answers by abilities (n_models, n_instances)."""
    n_instances = ability.shape[1]
    slope, difficulty = rng.lognormal(0.0, 0.5, n_instances), rng.normal(0.0, 1.3, n_instances)
    chance = 0.25 if metric in {"exact_match", "quasi_exact_match"} else 0.0
    mean = chance + (1.0 - chance) / (1.0 + np.exp(-slope * (ability - difficulty)))
    if metric == "bleu_4":
        return rng.beta(4.0 * 0.5 * mean, 4.0 * (1.0 - 0.5 * mean))
    is_right = rng.random(mean.shape) < mean
    if metric != "f1_score":
        return is_right.astype(float)
    overlap = np.round(rng.beta(1.5, 3.0, mean.shape), 2) * (rng.random(mean.shape) < 0.5)  # wrong, with common words
    return np.where(is_right, np.where(rng.random(mean.shape) < 0.7, 1.0, 0.7), overlap)


def write_runs(folder: Path, models: list[str], answers: dict[str, FloatArray]) -> None:
    """Write every run as HELM does: its specification, and the statistics of each instance."""
    for task, values in answers.items():
        metric = SCENARIOS[task.partition(":")[0]][0]
        for model, own in zip(models, values, strict=True):
            name = f"{task}{',' if ':' in task else ':'}model={model.replace('/', '_')}"
            place = folder / "benchmark_output" / "runs" / "v1.0.0" / name
            place.mkdir(parents=True, exist_ok=True)
            spec = {"name": name, "adapter_spec": {"model": model, "model_deployment": model}}
            (place / "run_spec.json").write_text(json.dumps(spec), encoding="utf-8")
            stats = [
                {
                    "instance_id": f"id{number}",
                    "train_trial_index": 0,
                    "stats": [{"name": {"name": metric, "split": "test"}, "count": 1, "mean": value}],
                }
                for number, value in enumerate(own.tolist())
            ]
            (place / "per_instance_stats.json").write_text(json.dumps(stats), encoding="utf-8")


def matrix_of(seed: int) -> ResponseMatrix:
    """Draw a leaderboard as one matrix, without files."""
    models, _, answers = draw(seed)
    items = pl.DataFrame(
        {
            "item_id": [f"{task}/{number}" for task, own in answers.items() for number in range(own.shape[1])],
            "scenario": [task.partition(":")[0] for task, own in answers.items() for _ in range(own.shape[1])],
            "subscenario": [task for task, own in answers.items() for _ in range(own.shape[1])],
        }
    )
    known = pl.DataFrame({"model_id": models})
    return ResponseMatrix.create(np.column_stack(list(answers.values())), models=known, items=items)


def left_out(seed: int) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield numbers of items, and errors and half-widths of the win rates of all models of a leaderboard."""
    bank = with_target(build_bank(matrix_of(seed), Variational(n_dims=1), within="macro"), WIN_RATE)
    for n_items in (100, 1000):
        chosen = select(bank, n_items, method="stratified", rng=seed)
        members = try_methods(bank, sample_of(bank, chosen), chosen, Stacked().members)
        found = members.past(Stacked()).estimates
        widths = half_widths_out_of_fold(found.error, found.scale, members.fold, level=0.95)
        yield n_items, found.error[:, -1], widths[:, -1]


def print_coverage(n_leaderboards: int) -> None:
    """Table what was found on all leaderboards together."""
    found: dict[int, list[FloatArray]] = {}
    for seed in range(1, n_leaderboards + 1):
        for n_items, error, width in left_out(seed):
            found.setdefault(n_items, []).append(np.stack([np.abs(error), width]))
            print(f"leaderboard {seed}, {n_items} items: coverage {np.mean(np.abs(error) <= width):.3f}", flush=True)
    print("| instances | leaderboards | mean absolute error, points | coverage | half-width, points |")
    print("|---|---|---|---|---|")
    for n_items, parts in found.items():
        error, width = np.concatenate(parts, axis=1)
        own = np.array([np.mean(one[0] <= one[1]) for one in parts])
        spread = own.std(ddof=1) / np.sqrt(own.size)
        print(
            f"| {n_items} | {own.size} | {100 * error.mean():.2f} | {own.mean():.3f} ± {spread:.3f} | "
            f"{100 * np.median(width):.1f} |"
        )


def main() -> None:
    """Write the runs, read them, and write what a study takes; or table the coverage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--coverage", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=int, default=N_MODELS)
    parser.add_argument("--alike", type=float, default=0.0, metavar="S")
    chosen = parser.parse_args()
    if chosen.coverage:
        print_coverage(chosen.coverage)
        return
    if chosen.folder is None:
        parser.error("name a folder, or --coverage N")
    models, organisations, answers = draw(chosen.seed, chosen.models, alike=chosen.alike)
    write_runs(chosen.folder, models, answers)
    known = pl.DataFrame({"model_id": models, "organisation": organisations})
    known.write_csv(chosen.folder / "models.csv")
    spec = ReadingSpec(format="helm", metric=METRICS)
    read = read_responses(chosen.folder / "benchmark_output", spec=spec, models=chosen.folder / "models.csv")
    write_responses(read, chosen.folder / "helm.parquet")
    print(f"{read.n_models} models, {read.n_items} instances of {read.items['scenario'].n_unique()} scenarios")


if __name__ == "__main__":
    main()
