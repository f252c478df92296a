"""How far off transfers are, by method: ``python -m benchmarks.transfer_methods [--shared FOLDER]``.

Models are left out by organisation, family, mixture or size, and predicted from the others.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from itembank.errors import DataError, DataWarning
from itembank.readers.builtin import load_builtin
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.transfers.transfer_specs import TransferSpec
from itembank.scaling.transfers.transfers import transfer

RESULTS = Path(__file__).parent / "results" / "transfer_methods.csv"
METHODS = ("calibrated", "common-scale", "scores")
SAMPLES = (1, 3, 10, 30, 100)


class Job(NamedTuple):
    """One data set and the transfers to make in it."""

    name: str
    responses: ResponseMatrix
    group: str
    pairs: tuple[tuple[str, str | None], ...]
    k: tuple[int, ...] = (1,)


def jobs(shared: Path | None) -> Iterator[Job]:
    """All data sets; `shared` is a folder of those that do not come with the package."""
    within = tuple((name, None) for name in ("digits", "breast_cancer", "wine"))
    across = (("digits", "wine"), ("wine", "digits"), ("digits", "breast_cancer"))
    yield Job("classifiers", load_builtin("classifiers"), "family", (*within, *across))
    if shared is None:
        return
    names = ("arc", "gsm8k", "hellaswag", "mmlu", "truthfulqa", "winogrande")
    across = (("arc", "hellaswag"), ("arc", "gsm8k"), ("hellaswag", "truthfulqa"), ("gsm8k", "arc"),
              ("winogrande", "arc"), ("gsm8k", "mmlu"), ("arc", "mmlu"))  # fmt: skip
    yield Job("openllm1_core", _read(shared / "openllm1_core"), "org", (*((name, None) for name in names), *across))
    pairs = (("GSM8K", None), ("MATH", None), ("GSM8K", "MATH"), ("MATH", "GSM8K"))
    yield Job("llmonkeys_pythia", _read(shared / "llmonkeys_pythia"), "params", pairs, SAMPLES)


def _read(folder: Path) -> ResponseMatrix:
    return read_responses([folder / "responses.parquet"], models=folder / "models.csv")


def rows_of(job: Job) -> Iterator[dict[str, Any]]:
    """One row for each transfer and method."""
    groups = [str(name) for name in job.responses.models[job.group].to_list()]
    for source, target in job.pairs:
        head = {"data": job.name, "source": source, "target": target or f"{source} (hard)"}
        try:
            found = transfer(job.responses, source, target, groups=groups, spec=TransferSpec(METHODS, job.k))
        except DataError as error:
            print(f"{source} to {target}: {error}", flush=True)
            yield {**head, "method": "refused"}
            continue
        record = found.to_dict()
        told = {name: record[name] for name in ("correlation", "correlation_lower", "disattenuated")}
        for row in found.method_rows():
            yield {**head, **told, **row}
        print(head, round(found.correlation, 2), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, help="Folder with openllm1_core and llmonkeys_pythia.")
    warnings.simplefilter("ignore", DataWarning)
    table = pl.DataFrame(
        [row for job in jobs(parser.parse_args().shared) for row in rows_of(job)], infer_schema_length=None
    )
    RESULTS.parent.mkdir(exist_ok=True)
    table.with_columns(pl.col(pl.Float64).round(4)).write_csv(RESULTS)
    with pl.Config(tbl_rows=-1):
        print(table.filter(pl.col("error").is_not_null()).group_by("data", "method", maintain_order=True).agg(
            pl.col("error").log().mean().exp(), pl.col("coverage").mean()
        ))  # fmt: skip
