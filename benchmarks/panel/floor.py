"""What a linear predictor could reach that knew how the tested models vary, too: ``python -m benchmarks.panel.floor``.

The factor model is fitted to all models, tested ones included; items are chosen V-optimally for the overall score; the
error is what this model says of itself, ``sqrt(2 Var(Z | y_S) / pi)``, the mean absolute error of a normal one. No
split, so no sampling error of the fit counts: real predictors are worse.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.panel.studies import STUDIES, panel_study
from benchmarks.panel.table import NAMES
from itembank.calibration.build import build_bank
from itembank.data.bank_factors import bank_factor_model
from itembank.estimation.regression.factor import predict_factor
from itembank.selection.select import select
from itembank.selection.specs import VOptimal
from itembank.studies.data_sets import load_data


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.floor", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/floor"))
    output = parser.parse_args().output
    floors: dict[int, list[float]] = {}
    for name in STUDIES:
        spec = panel_study(name)
        bank = build_bank(load_data(spec.data))
        model = bank_factor_model(bank)
        for n_items in spec.n_items:
            chosen = select(bank, n_items, method=VOptimal(target="overall", discrepancy=0.0), rng=0)
            positions = bank.responses.item_indices(chosen.item_ids)
            weights = bank.targets.overall_weights[:, None]
            predicted = predict_factor(model, positions, weights, model.mean[None, positions])
            floors.setdefault(n_items, []).append(100.0 * float(np.sqrt(2.0 * predicted.variance[0, 0] / np.pi)))
    output.mkdir(parents=True, exist_ok=True)
    (output / "floor.md").write_text(markdown(floors), encoding="utf-8")
    print(markdown(floors))


def markdown(floors: dict[int, list[float]]) -> str:
    """Return a table: a row for each number of items, a column for each set."""
    lines = [f"| items | {' | '.join(NAMES[name] for name in STUDIES)} |", "|---" * (len(STUDIES) + 1) + "|"]
    lines += [f"| {n_items} | {' | '.join(f'{one:.2f}' for one in row)} |" for n_items, row in floors.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
