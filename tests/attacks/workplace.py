"""A folder with one small good file of every kind that itembank reads or writes."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl

from itembank.bank.bank_files import load_bank, save_bank
from itembank.estimation.estimate import estimate
from itembank.responses.response_files import write_responses
from tests.attacks.running import run_well
from tests.bank.banks import make_bank
from tests.cli.contract import foreign, harness_world, inspect_world
from tests.cli.session.loops import FAST as FAST_SESSION
from tests.readers.logs import sample, write_run
from tests.scaling.simulated_suite import simulated_suite
from tests.studies.files import PREDICTION, STUDY, write_toml
from tests.studies.prediction import simulated as prediction_data
from tests.studies.simulated import make_responses

A_STUDY = {
    "selectors": ["random"],
    "estimators": ["weighted", "p-irt"],
    "n_items": [4, 8],
    "level": 0.9,
    "data": {"responses": "study-data.parquet", "drop_models": {"column": "org", "value": "org-4"}},
    "calibration": {"method": "map", "n_dims": 1, "item_model": "2pl"},
    "splits": [{"kind": "random", "test_share": 0.25}],
}
A_PREDICTION = {
    "cost": "output_tokens",
    "smallest_task": 8,
    "n_test": 3,
    "n_calibration_tasks": [1, 2],
    "data": {"responses": "prediction-data.parquet"},
    "assessors": [{"predictor": ["2pl", "task-mean"]}],
}
"""What differs from the small studies of all tests."""
FAST = ("--method", "p-irt", "--interval", "model-based")
GATE_ANSWERS = "m.62c66a7a5dd7.answers.jsonl"
"""Where a gate keeps what model m answered."""


def make_workplace(folder: Path) -> None:
    _tables(folder)
    _logs(folder)
    for tools in (foreign, harness_world, inspect_world):
        tools.make_files(folder)
    _bank(folder)
    _around_a_bank(folder)
    _studies(folder)
    _compute(folder)


def _run(*words: object) -> None:
    run_well(["--quiet", *words])


def _tables(folder: Path) -> None:
    """Tables of ten models and eight items, in every form."""
    rng = np.random.default_rng(1)
    models, items = [f"m-{i}" for i in range(10)], [f"q{j}" for j in range(8)]
    rows = [
        {"model_id": model, "item_id": item, "response": round(float(rng.random()), 3), "output_tokens": 10 + j}
        for model in models
        for j, item in enumerate(items)
    ]
    long = pl.DataFrame(rows)
    long.write_csv(folder / "long.csv")
    long.write_parquet(folder / "long.parquet")
    long.write_ndjson(folder / "long.jsonl")
    long.pivot("item_id", index="model_id", values="response").write_csv(folder / "wide.csv")
    counts = [{**row, "n_correct": int(rng.integers(5)), "n_trials": 4 + row["output_tokens"] % 3} for row in rows]
    pl.DataFrame(counts).drop("response").write_csv(folder / "counts.csv")
    for name in ("long.csv", "long.jsonl"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes(), mtime=0))
    subjects = [{"subject_id": m, "responses": {i: int(rng.integers(2)) for i in items}} for m in models]
    (folder / "py-irt.jsonl").write_text("".join(json.dumps(one) + "\n" for one in subjects), encoding="utf-8")
    pl.DataFrame({"model_id": models, "size": range(10), "org": ["a", "b"] * 5}).write_csv(folder / "models.csv")
    pl.DataFrame({"item_id": items, "scenario": ["x", "y"] * 4, "n_options": [4] * 8}).write_csv(folder / "items.csv")


def _logs(folder: Path) -> None:
    """Logs of lm-evaluation-harness: two models, a task of options and one of exact matches."""
    rng = np.random.default_rng(2)
    for model in ("org/one", "org/two"):
        tasks = {"capitals": [_choice_sample(number, rng) for number in range(4)]}
        tasks["digits"] = [sample(number, exact_match=float(rng.integers(2))) for number in range(4)]
        write_run(folder / "logs", model, tasks, arguments=f"pretrained={model}")


def _choice_sample(number, rng):
    """Make a question of three options, the second of which is right."""
    values = -9.0 * rng.random(3)
    replies = [[f"{value:.3f}", "False"] for value in values]
    options = {f"gen_args_{k}": {"arg_0": "The capital is", "arg_1": f" city {k}"} for k in range(3)}
    document = {"question": f"question {number}", "choices": [f"city {k}" for k in range(3)], "answer": 1}
    answered = {"resps": [[one] for one in replies], "filtered_resps": replies}
    row = sample(number, acc=float(values.argmax() == 1)) | answered
    return row | {"doc": document, "target": "1", "arguments": options}


def _bank(folder: Path) -> None:
    bank = make_bank(n_models=12, n_items=18, n_dims=1)
    save_bank(bank, folder / "bank")
    answers = bank.responses.responses[0]
    new = pl.DataFrame({"model_id": "new", "item_id": bank.responses.item_ids, "response": answers})
    new.write_csv(folder / "new.csv")
    new.with_columns(model_id=pl.lit("other"), response=1.0 - pl.col("response")).write_csv(folder / "other.csv")
    write_responses(bank.responses, folder / "responses.parquet")
    _run("select", folder / "bank", "-n", 9, "--method", "random", "-o", folder / "selection.json")
    start = ("session", "start", folder / "bank", "--model-id", "new", "--max-items", 9, *FAST_SESSION)
    _run(*start, "-o", folder / "run.jsonl")
    for item, response in list(zip(bank.responses.item_ids, answers, strict=True))[:3]:
        _run("session", "ask", folder / "run.jsonl")
        told = ("--response", response, "--cost", "output_tokens=7")
        _run("session", "tell", folder / "run.jsonl", item, *told)
    told = [{"item_id": item, "response": 1} for item in bank.responses.item_ids[3:6]]
    (folder / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told), encoding="utf-8")
    (folder / "excluded.txt").write_text("\n".join(bank.responses.item_ids[:3]) + "\n", encoding="utf-8")
    _run("bank", "note", folder / "bank", "as it was", "--name", "quiz", "-o", folder / "named")
    _run("bank", "retire", folder / "named", "math/0", "--reason", "wrong key", "-o", folder / "retired")
    # another bank beside it whose cache is full, so that the first stays without
    save_bank(bank, folder / "cached")
    cached = load_bank(folder / "cached")
    estimate(cached, folder / "new.csv", selection=folder / "selection.json", method="p-irt")
    cached.cache.keep_in_bank()
    _run("simulate", "-o", folder / "made.parquet", "--n-models", 6, "--n-items", 12, "--n-tasks", 2, "--n-dims", 1)


def _around_a_bank(folder: Path) -> None:
    """Results that a bank is audited by and grows with, and the items of one to begin."""
    bank, rng = load_bank(folder / "bank"), np.random.default_rng(4)
    items = bank.responses.items.select("item_id", "scenario")
    items.write_csv(folder / "begin.csv")
    models = pl.DataFrame({"model_id": bank.responses.model_ids})
    right = pl.Series(bank.responses.responses.ravel())
    past = models.join(items, how="cross", maintain_order="left_right").with_columns(response=right)
    past.write_csv(folder / "past.csv")
    options = pl.Series("choice", ["A", "B"]).gather(rng.integers(0, 2, past.height))
    choice = pl.when(right == 1.0).then(pl.lit("C")).otherwise(options)
    past.select("model_id", "item_id", choice=choice).write_csv(folder / "choices.csv")
    late = models.join(pl.DataFrame({"item_id": [f"late/{k}" for k in range(6)], "scenario": "law"}), how="cross")
    late.with_columns(response=pl.Series(rng.integers(0, 2, late.height))).write_csv(folder / "late.csv")
    _run("gate", "start", folder / "new.csv", "--margin", 0.4, "-o", folder / "gate")
    _run("gate", "next", folder / "gate", "--command", "echo 1", "--model-id", "m")


def _studies(folder: Path) -> None:
    write_responses(make_responses(n_models=16, n_items=16, n_scenarios=1), folder / "study-data.parquet")
    data = prediction_data.make_responses(n_models=12, n_tasks=4, n_per_task=8)
    write_responses(data, folder / "prediction-data.parquet")
    write_toml(folder / "study.toml", STUDY | A_STUDY)
    write_toml(folder / "prediction.toml", PREDICTION | A_PREDICTION)
    write_toml(folder / "unchecked.toml", {"n_checked": 0})
    write_toml(folder / "probability.toml", {"response": "probability"})
    _run("study", "run", folder / "study.toml", "-o", folder / "study", "--jobs", 1)
    _run("study", "run", folder / "prediction.toml", "-o", folder / "prediction", "--jobs", 1)


def _compute(folder: Path) -> None:
    suite = simulated_suite(np.random.default_rng(3), n_recipes=2, n_items=12, n_sizes=4, n_checkpoints=1)
    write_responses(suite.probability.with_tables(models=suite.models), folder / "suite.parquet")
    suite.models.write_csv(folder / "compute.csv")
    models, items = suite.probability.model_ids, suite.probability.item_ids
    rows = {"model_id": [m for m in models for _ in items], "item_id": items * len(models)}
    losses = pl.DataFrame(rows | {"bits_per_byte": suite.bits_per_byte.ravel()})
    losses.write_csv(folder / "losses.csv")
    losses.write_parquet(folder / "losses.parquet")
