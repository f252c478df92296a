"""What a linear predictor could reach that knew how the tested models vary, too: ``python -m benchmarks.panel.floor``.

The factor model is fitted to all models, tested ones included; items are chosen V-optimally for the overall score; the
error is what this model says of itself, ``sqrt(2 Var(Z | y_S) / pi)``, the mean absolute error of a normal one. No
split, so no sampling error of the fit counts: real predictors are worse.
"""

from pathlib import Path

import numpy as np

from benchmarks.panel.__main__ import HERE, NAMES
from itembank.calibration.build import build_bank
from itembank.data.bank_factors import bank_factor_model
from itembank.estimation.regression.factor import predict_factor
from itembank.selection.select import select
from itembank.selection.specs import VOptimal
from itembank.studies.data_sets import load_data
from itembank.studies.study_files import load_study


def main() -> None:
    print("| data | items | floor, points |\n|---|---|---|")
    for name in NAMES:
        spec = load_study(Path(HERE) / f"{name}.toml")
        bank = build_bank(load_data(spec.data))
        model = bank_factor_model(bank)
        for n_items in spec.n_items:
            chosen = select(bank, n_items, method=VOptimal(target="overall", discrepancy=0.0), rng=0)
            positions = bank.responses.item_indices(chosen.item_ids)
            weights = bank.targets.overall_weights[:, None]
            predicted = predict_factor(model, positions, weights, model.mean[None, positions])
            print(f"| {name} | {n_items} | {100.0 * float(np.sqrt(2.0 * predicted.variance[0, 0] / np.pi)):.2f} |")


if __name__ == "__main__":
    main()
