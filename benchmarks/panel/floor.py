"""Between what the panel's errors stand: ``python -m benchmarks.panel.floor``.

Above, random sampling: `N_DRAWS` draws of items as in the panel (stratified, counts by weight), estimated by their
weighted mean, for the models that each split of the panel tests. No model is fitted.

Below, what a linear predictor could reach that knew how the tested models vary, too. The factor model is fitted to
all models, tested ones included; items are chosen V-optimally for the overall score; the error is what this model says
of itself, ``sqrt(2 Var(Z | y_S) / pi)``, the mean absolute error of a normal one. No split, so no sampling error of the
fit counts: real predictors are worse.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.panel.studies import STUDIES, panel_study
from benchmarks.panel.table import NAMES
from itembank.bank.banks import Bank
from itembank.bank.norms import bank_factor_model
from itembank.calibration.build import calibrate
from itembank.estimation.regressions import predict_factor
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection.select import select
from itembank.selection.selector_specs import Stratified, VOptimal
from itembank_studies.splits import Fold, folds_of
from itembank_studies.study_files import load_data

N_DRAWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.panel.floor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/floor"))
    output = parser.parse_args().output
    floors: dict[int, list[float]] = {}
    sampled = []
    for name in STUDIES:
        spec = panel_study(name)
        responses = load_data(spec.data)
        bank = calibrate(responses)
        errors = {n_items: sampling_errors(bank, n_items, N_DRAWS) for n_items in spec.n_items}
        for split in spec.splits:
            tests = times_tested(folds_of((split,), responses, spec.repeats, spec.seed), bank.n_models)
            for n_items, error in errors.items():
                sampled.append((NAMES[name], split.name, n_items, 100.0 * float(np.average(error, weights=tests))))
        for n_items in spec.n_items:
            floors.setdefault(n_items, []).append(100.0 * linear_floor(bank, n_items))
    output.mkdir(parents=True, exist_ok=True)
    for name, text in (("random-sampling", sampled_markdown(sampled)), ("floor", markdown(floors))):
        (output / f"{name}.md").write_text(text, encoding="utf-8")
        print(text)


def sampling_errors(bank: Bank, n_items: int, n_draws: int) -> FloatArray:
    """Return the mean absolute error of random items' weighted mean, by calibration model, (n_models,)."""
    responses, targets = bank.responses.responses, bank.targets
    truth = targets.with_overall(targets.scenario_means(responses, missing=True))[:, -1]
    total = np.zeros(bank.n_models)
    for draw in range(n_draws):
        chosen = select(bank, n_items, method=Stratified("proportional"), rng=draw)
        positions = bank.responses.item_indices(chosen.item_ids)
        weights = chosen.weights * targets.scenario_weights[targets.scenario_index[positions]]
        asked = np.ma.masked_invalid(responses[:, positions])  # (n_models, n_items); a missing answer does not count
        total += np.abs(np.ma.average(asked, axis=1, weights=weights).filled(np.nan) - truth)
    return total / n_draws


def times_tested(folds: Iterable[Fold], n_models: int) -> IntArray:
    """Count how often the splits of a study test each model, (n_models,)."""
    times = np.zeros(n_models, dtype=np.int64)
    for fold in folds:
        times[fold.test] += len(fold.repeats)
    return times


def linear_floor(bank: Bank, n_items: int) -> float:
    """Return the mean absolute error of the best linear predictor, by the factor model of all models."""
    model = bank_factor_model(bank)
    chosen = select(bank, n_items, method=VOptimal(target="overall", discrepancy=0.0), rng=0)
    positions = bank.responses.item_indices(chosen.item_ids)
    weights = bank.targets.overall_weights[:, None]
    predicted = predict_factor(model, positions, weights, model.mean[None, positions])
    return float(np.sqrt(2.0 * predicted.variance[0, 0] / np.pi))


def markdown(floors: dict[int, list[float]]) -> str:
    """Return a table of the floor: a row for each number of items, a column for each set."""
    lines = [f"| items | {' | '.join(NAMES[name] for name in STUDIES)} |", "|---" * (len(STUDIES) + 1) + "|"]
    lines += [f"| {n_items} | {' | '.join(f'{one:.2f}' for one in row)} |" for n_items, row in floors.items()]
    return "\n".join(lines)


def sampled_markdown(sampled: Iterable[tuple[str, str, int, float]]) -> str:
    """Return a table of random sampling's errors: a row for each set, split and number of items."""
    lines = ["| data | split | items | random sampling |", "|---|---|---|---|"]
    lines += [f"| {name} | {split} | {n_items} | {error:.2f} |" for name, split, n_items, error in sampled]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
