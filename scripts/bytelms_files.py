"""Write the files of the built-in data set `bytelms` from the answers of the checkpoints that are there."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from bytelms_packing import as_errors, packed_numbers
from bytelms_tasks import Item, Suite
from bytelms_training import N_SAMPLES, SHARES, Run

STEPS_PER_NAT = 100.0  # log-likelihoods are kept as whole hundredths
MODEL_COLUMNS = (
    "mixture", "size", "share_of_run", "is_final", "params", "params_non_embedding", "train_tokens", "flops", "step",
    "seed", "width", "n_layers", "learning_rate", "batch", "train_bits_per_byte", "validation_bits_per_byte",
    "cpu_seconds", "torch",
)  # fmt: skip


def write_builtin(folder: Path, suite: Suite, runs: Sequence[Run], files: Path) -> None:
    """Write models, items, log-likelihoods and sample counts; only runs that are finished are taken."""
    finished = [run for run in runs if all(run.file(folder, share).exists() for share in SHARES)]
    records, answers = zip(*(_read(run.file(folder, share)) for run in finished for share in SHARES), strict=True)
    models = pl.DataFrame([_model(record, answer) for record, answer in zip(records, answers, strict=True)])
    is_choice = ~np.isnan(answers[0]["choices"])  # (n_items, n_options)
    choices = [_hundredths(answer["choices"][is_choice]) for answer in answers]
    items = pl.DataFrame([_item(item) for item in suite.multiple_choice])
    texts = items["choices"].explode().to_list()
    tables = {
        "models": models,
        "items": items,
        "samples_items": pl.DataFrame([_sampled_item(item) for item in suite.generative]),
    }
    for name, table in tables.items():
        table.write_parquet(
            files / f"bytelms_{name}.parquet",
            compression="brotli",
            compression_level=11,
            statistics=False,
            row_group_size=table.height,
        )
    errors, terms = as_errors(np.array(choices), len(SHARES), texts)
    numbers = {
        "choices": (errors, "<i2"),
        "choices_terms": (terms, "<i2"),
        "samples_counts": (np.array([one["counts"] for one in answers]), "<i2"),
        "samples_exact": (np.array([one["answers"] for one in answers]), "<f4"),
    }
    for name, (values, dtype) in numbers.items():
        (files / f"bytelms_{name}.xz").write_bytes(packed_numbers(values, dtype))
    for path in sorted(files.glob("bytelms_*")):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def _read(path: Path) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    with np.load(path) as content:
        return json.loads(str(content["record"])), {name: content[name] for name in content.files if name != "record"}


def _model(record: dict[str, object], answers: dict[str, np.ndarray]) -> dict[str, object]:
    known = {
        **record,
        "size": record["label"],
        "is_final": record["share_of_run"] == 1.0,
        "validation_bits_per_byte": float(answers["validation"]),
    }
    model_id = f"{record['mixture']}/{record['label']}/{record['share_of_run']:g}"
    return {"model_id": model_id, **{name: known[name] for name in MODEL_COLUMNS}}


def _hundredths(log_likelihoods: np.ndarray) -> np.ndarray:
    return np.round(STEPS_PER_NAT * log_likelihoods).astype(np.int16)


def _item(item: Item) -> dict[str, object]:
    return {
        "item_id": item.item_id,
        "scenario": item.scenario,
        "subscenario": item.subscenario,
        "n_options": len(item.choices),
        "correct": item.correct,
        "prompt": item.prompt,
        "choices": list(item.choices),
        "choice_bytes": [len(choice) for choice in item.choices],
    }


def _sampled_item(item: Item) -> dict[str, object]:
    return {
        "item_id": item.item_id,
        "scenario": item.scenario.removeprefix("sampled-"),
        "subscenario": item.subscenario,
        "prompt": item.prompt,
        "answer": item.choices[item.correct],
        "n_trials": N_SAMPLES,
    }
