"""CPU time of reading logs of lm-evaluation-harness, as a ratio to that of polars reading the same files.

Simulated runs of several models on several tasks, in the harness's own layout: half of the tasks have four answer
options, half generate text. Both readers take every row; polars makes a table of all columns, itembank a response
matrix.

    python -m benchmarks.reading --rows 200000
"""

import argparse
import hashlib
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from itembank.readers.read import read_lm_eval

DATE = "2026-01-01T10-00-00.000001"
N_MODELS, N_TASKS = 4, 2
WORDS = [
    "the",
    "model",
    "of",
    "a",
    "question",
    "answers",
    "which",
    "number",
    "between",
    "seven",
    "rivers",
    "and",
    "their",
    "old",
    "bridges",
    "is",
    "most",
    "likely",
]


def main() -> None:
    """Write the logs, read them in turn, and print the ratio of CPU times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="rows in all")
    parser.add_argument("--repeats", type=int, default=3, help="times that each reader reads; the least counts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_rows = write_logs(folder, given.rows)
        files = sorted(folder.rglob("samples_*.jsonl"))
        n_bytes = sum(file.stat().st_size for file in files)
        polars = least(lambda: [pl.read_ndjson(file) for file in files], given.repeats)
        own = least(lambda: [read_quietly(folder)], given.repeats)
    print(f"{n_rows:,} rows, {n_bytes / 1e6:,.0f} MB in {len(files)} files")
    print(f"polars   {polars:7.2f} CPU s, {1e6 * polars / n_rows:6.2f} s a million rows")
    print(f"itembank {own:7.2f} CPU s, {1e6 * own / n_rows:6.2f} s a million rows")
    print(f"ratio    {own / polars:7.2f}")


def least(read: Callable[[], list[object]], repeats: int) -> float:
    """Least CPU time of several readings, all threads together."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        read()
        times.append(time.process_time() - start)
    return min(times)


def read_quietly(folder: Path) -> object:
    """Read all logs of a folder; choices made by default are not told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_lm_eval(folder)


def write_logs(folder: Path, n_rows: int) -> int:
    """Write logs of about so many rows, and return how many there are."""
    rng = np.random.default_rng(0)
    n_items = max(1, n_rows // (N_MODELS * N_TASKS))
    for model in range(N_MODELS):
        place = folder / f"org__model-{model}"
        place.mkdir()
        for task in range(N_TASKS):
            rows = (_row(task, number, rng) for number in range(n_items))
            path = place / f"samples_task{task}_{DATE}.jsonl"
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        results = {"results": {}, "configs": {}, "model_name": f"org/model-{model}", "config": {"limit": None}}
        (place / f"results_{DATE}.json").write_text(json.dumps(results), encoding="utf-8")
    return n_items * N_MODELS * N_TASKS


def _row(task: int, number: int, rng: np.random.Generator) -> dict[str, object]:
    """One sample: four options where the task is even, generated text where it is odd."""
    words = np.random.default_rng(1000 * task + number)
    question = f"Question {number}: {_text(words, 60)}?"
    right = float(rng.random() < 0.6)
    row = {"doc_id": number, "doc": {"question": question, "answer": "A"}, "target": "A"}
    if task % 2 == 0:
        options = [_text(words, 6) for _ in range(4)]
        found = [[str(-float(value)), "False"] for value in rng.exponential(5.0, 4)]
        row["doc"] = {**row["doc"], "choices": options}  # type: ignore[dict-item]
        row["arguments"] = {f"gen_args_{k}": {"arg_0": question, "arg_1": f" {one}"} for k, one in enumerate(options)}
        row |= {
            "resps": [[one] for one in found],
            "filtered_resps": found,
            "filter": "none",
            "metrics": ["acc", "acc_norm"],
        }
        scores = {"acc": right, "acc_norm": right}
    else:
        answer = _text(rng, 80)
        row["arguments"] = {"gen_args_0": {"arg_0": question, "arg_1": {"until": ["\n\n"], "do_sample": False}}}
        row |= {"resps": [[answer]], "filtered_resps": [answer], "filter": "none", "metrics": ["exact_match"]}
        scores = {"exact_match": right}
    digests = {name: hashlib.sha256(f"{name}{question}".encode()).hexdigest() for name in ("doc_hash", "prompt_hash")}
    return row | digests | {"target_hash": "t"} | scores


def _text(rng: np.random.Generator, n_words: int) -> str:
    return " ".join(WORDS[k] for k in rng.integers(0, len(WORDS), n_words))


if __name__ == "__main__":
    main()
