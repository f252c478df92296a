"""What is it worth to know items beforehand? ``ITEMBANK_SHARED=... python -m benchmarks.item_covariates`` (an hour).

Banks of 10, 20, 40 and 75 past models, calibrated with and without columns of the item table (`item_covariates`). The
columns were fixed before any error was seen. New models answer the same V-optimal items for both banks: log-likelihood
of their answers to all other items, and errors of their overall score by p-IRT and by `auto`. Then a third of the items
keeps the answers of three past models only: log-likelihood of new models' answers to these items, after 100 others, and
the same with a column of noise in the place of the covariates. Standard errors are of differences from banks without,
over splits.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.bank.banks import Bank
from itembank.calibration.item_regression import item_regression
from itembank.errors import ItembankWarning
from itembank.estimation.basis import score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities

COVARIATES = {
    "mmlu-pro": ("subscenario", "source", "n_options", "question_chars", "options_chars"),
    "swebench_verified": ("subscenario",),
    "bfcl_v1": ("subscenario",),
    "alpacaeval2": ("subscenario", "input_chars", "baseline_gpt4_1106_chars"),
    "openllm1_core": ("subscenario",),
}
"""Of each data set; that of the scenario comes by itself."""
N_PAST = (10, 20, 40, 75)
SIZES = (10, 30, 100)
N_NEW, MOST_ITEMS = 25, 2000
FEW = 3
WITHOUT, WITH, NOISE = "without", "with", "noise"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(COVARIATES), default=list(COVARIATES))
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/item_covariates.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ItembankWarning)
    rows: list[dict[str, object]] = []
    for repeat in range(arguments.repeats):
        for name in arguments.only:
            rows += tried(name, loaded(name), repeat)
            pl.DataFrame(rows, infer_schema_length=None).write_parquet(arguments.output)
            print(repeat, name, flush=True)
    show(pl.DataFrame(rows, infer_schema_length=None))


def loaded(name: str) -> ib.ResponseMatrix:
    """Read responses with what is known of the items; of many items a part, all of them answered by all models."""
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / name
    matrix = ib.read_responses(folder / "responses.parquet")
    about = pl.read_csv(folder / "items.csv", infer_schema_length=None).cast({"item_id": pl.String})
    known = about.select("item_id", *(one for one in COVARIATES[name] if one not in matrix.items.columns))
    items = matrix.items.join(known, on="item_id", how="left", maintain_order="left")
    items = items.with_columns(noise=pl.Series(np.random.default_rng(5).normal(size=items.height)))
    complete = np.flatnonzero(~np.isnan(matrix.responses).any(axis=0))
    complete = complete[:: -(-complete.size // MOST_ITEMS)]
    return ib.ResponseMatrix.create(matrix.responses[:, complete], models=matrix.models, items=items[complete.tolist()])


def tried(name: str, responses: ib.ResponseMatrix, repeat: int) -> Iterator[dict[str, object]]:
    """Calibrate on few models, with and without covariates, and predict what others answer."""
    order = np.random.default_rng([141, repeat]).permutation(responses.n_models)
    n_new = min(N_NEW, responses.n_models // 4)
    new = responses.take(models=np.sort(order[-n_new:]))
    ways = {
        WITHOUT: ib.calibrations.Variational(),
        WITH: ib.calibrations.Variational(item_covariates=COVARIATES[name]),
    }
    for n_past in N_PAST:
        if n_past > responses.n_models - n_new:
            continue
        past = responses.take(models=np.sort(order[:n_past]))
        for way, spec in ways.items():
            known = {"data": name, "past": n_past, "repeat": repeat, "way": way}
            bank = ib.build_bank(past, spec)
            explained = item_regression(bank).explained if way == WITH else None
            for n_items in SIZES:
                yield known | {"items": n_items, "explained": explained} | judged(bank, new, n_items)
        some, rare = with_few_answers(past, repeat)
        noise = ib.calibrations.Variational(item_covariates=("noise",))
        for way, spec in (ways | {NOISE: noise}).items():
            sparse = ib.calibrations.calibrate(some, spec)
            known = {"data": name, "past": n_past, "repeat": repeat, "way": way, "items": 0}
            yield known | {"log_likelihood": likelihood_of_rare(sparse, new, rare)}


def with_few_answers(past: ib.ResponseMatrix, seed: int) -> tuple[ib.ResponseMatrix, np.ndarray]:
    """Let a third of the items keep the answers of a few models."""
    rng = np.random.default_rng([142, seed])
    rare = rng.permutation(past.n_items)[: past.n_items // 3]
    values = np.array(past.responses)
    for item in rare:
        values[rng.permutation(past.n_models)[FEW:], item] = np.nan
    return ib.ResponseMatrix.create(values, models=past.models, items=past.items), np.sort(rare)


def judged(bank: Bank, new: ib.ResponseMatrix, n_items: int) -> dict[str, object]:
    """Predict from the answers to a few items, and hold the predictions against the rest."""
    selection = ib.select(bank, n_items, method="v-optimal", rng=0)
    answers = new.take(items=new.item_indices(selection.item_ids))
    truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses))[:, -1]
    p_irt = ib.estimate(bank, answers, selection=selection, method="p-irt", interval="model-based")
    auto = ib.estimate(bank, answers, selection=selection)
    seen = np.asarray(new.item_indices(selection.item_ids))
    unseen = np.setdiff1d(np.arange(bank.n_items), seen)
    binary = score_basis(bank).answers(new.responses, np.arange(bank.n_items))
    return {
        "log_likelihood": log_likelihood(bank.calibration, binary, seen, unseen),
        "p_irt": 100.0 * float(np.mean(np.abs(p_irt.value[:, -1] - truth))),
        "auto": 100.0 * float(np.mean(np.abs(auto.value[:, -1] - truth))),
        "inside": float(np.mean((auto.low[:, -1] <= truth + 1e-9) & (truth <= auto.high[:, -1] + 1e-9))),
    }


def likelihood_of_rare(calibration: ib.calibrations.Calibration, new: ib.ResponseMatrix, rare: np.ndarray) -> float:
    """Predict items of few answers from a hundred of the others."""
    others = np.setdiff1d(np.arange(new.n_items), rare)
    shown = others[np.linspace(0, others.size - 1, 100).astype(int)]
    binary = new.responses
    if calibration.thresholds:
        levels = np.array([calibration.thresholds[name] for name in new.items["scenario"]])
        binary = (new.responses >= levels).astype(np.float64)
    return log_likelihood(calibration, binary, shown, rare)


def log_likelihood(
    calibration: ib.calibrations.Calibration, answers: np.ndarray, seen: np.ndarray, unseen: np.ndarray
) -> float:
    """Mean log-likelihood of answers to unseen items, at the ability that the seen ones tell."""
    parameters = calibration.parameters
    ability = map_abilities(parameters.take(seen), answers[:, seen], calibration.prior).theta
    rest = parameters.take(unseen)
    p = np.clip(probability(rest, ability), 1e-9, 1 - 1e-9)
    right = answers[:, unseen]
    return float(np.mean(right * np.log(p) + (1 - right) * np.log1p(-p)))


def show(table: pl.DataFrame) -> None:
    """Print figures without covariates, and differences with them, with standard errors over splits."""
    keys, values = ["data", "past", "items"], ["log_likelihood", "p_irt", "auto", "inside"]
    base = table.filter(pl.col("way") == WITHOUT).select(*keys, "repeat", *values)
    pairs = table.filter(pl.col("way") != WITHOUT).join(base, on=[*keys, "repeat"], suffix="_0")
    pairs = pairs.with_columns((pl.col(name) - pl.col(f"{name}_0")).alias(f"d_{name}") for name in values)
    differences = [f"d_{name}" for name in values]
    means = [pl.col(name).mean() for name in ("explained", *(f"{name}_0" for name in values), *differences)]
    errors = [pl.col(name).std().truediv(pl.len().sqrt()).alias(f"se_{name[2:]}") for name in differences]
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=4, tbl_width_chars=250):
        for by in (["way", *keys], ["way", "past", "items"]):
            of_split = pairs.group_by(*dict.fromkeys([*by, "data", "repeat"])).agg(means)
            print(of_split.group_by(by).agg(means + errors).sort(by))


if __name__ == "__main__":
    main()
