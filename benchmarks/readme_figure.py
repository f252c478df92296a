"""Draw the figure of the README: ``ITEMBANK_SHARED=... python -m benchmarks.readme_figure`` (two CPU-minutes).

A random quarter of the models of Open LLM Leaderboard v1 is held out; the others calibrate a bank. Scores of the
held-out models are estimated from 100 items: random ones, items drawn by the bank, anchor points, and V-optimal ones.
"""

import argparse
import os
from pathlib import Path

import numpy as np

import itembank as ib
from benchmarks.accuracy.data_sets import load
from itembank.pages.theme import points
from itembank.plots import PredictionPanel, predicted_against_true_chart

SHARED = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
N_ITEMS = 100
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/figures/readme.png"))
    output = parser.parse_args().output
    data = load("openllm1_core", SHARED)
    order = np.random.default_rng(SEED).permutation(data.responses.n_models)
    n_new = data.responses.n_models // 4
    new, past = data.responses.take(models=order[:n_new]), data.responses.take(models=order[n_new:])
    bank = ib.calibrate(past, data.spec)
    truth = ib.estimate(bank, new, method="mean", interval="model-based").column("overall")
    panels = [
        panel("random sampling", bank, new, truth, selector="stratified", method="mean"),
        panel("itembank, drawn", bank, new, truth, selector="drawn", method="auto"),
        panel("tinyBenchmarks (IRT++)", bank, new, truth, selector="anchor-irt", method="gp-irt"),
        panel("itembank, V-optimal", bank, new, truth, selector="v-optimal", method="auto"),
    ]
    chance, drawn, _, optimal = panels
    title = (
        f"{N_ITEMS} of {bank.n_items:,} questions: random sampling errs by {points(chance.error)} on average, items "
        f"drawn by the bank by {points(drawn.error)}, V-optimal ones by {points(optimal.error)}"
    )
    predicted_against_true_chart(panels, title=title).save(output)
    for one in panels:
        held = np.mean((one.low <= one.true) & (one.true <= one.high))
        print(f"{one.title}: mean error {100 * np.mean(np.abs(one.estimate - one.true)):.2f} points, held {held:.0%}")


def panel(
    name: str, bank: ib.Bank, new: ib.ResponseMatrix, truth: np.ndarray, *, selector: str, method: str
) -> PredictionPanel:
    """Estimate all new models from the items of one way to choose them."""
    selection = ib.select(bank, N_ITEMS, method=selector, rng=SEED)
    answers = new.take(items=new.item_indices(selection.item_ids))
    found = ib.estimate(bank, answers, selection=selection, method=method)
    column = found.targets.index("overall")
    return PredictionPanel(
        name, truth, found.value[:, column], found.low[:, column], found.high[:, column], found.typicality.is_flagged
    )


if __name__ == "__main__":
    main()
