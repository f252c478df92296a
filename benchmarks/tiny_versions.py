"""A tiny version of every benchmark there is: ``python -m benchmarks.tiny_versions -o DIR``.

What tinyBenchmarks released for four benchmarks, made of each set in $ITEMBANK_SHARED/data by the commands that a user
types: ``itembank calibrate responses.parquet -o bank`` and ``itembank publish-tiny bank -n 100 -o tiny``. It measures
the size of what would be released, and the error and coverage that the README in it states, of past models left out in
turn. With ``--every-quarter`` it also sets each random quarter of the models aside, which then has no part in anything:
the same two commands run on the others, and ``itembank estimate tiny`` is given what the quarter answered to the chosen
items. The table holds no data.

Left out: `scaling_aggregates`, whose rows are scores of whole tasks; `leaderboard2_factors`, which holds no responses;
and MATH and GSM8K of `llmonkeys_pythia`, which have 128 items each.
"""

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.accuracy import data_sets
from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix

N_ITEMS = 100
N_PARTS = 4
COLUMNS = ("benchmark", "models", "items", "MB", "error", "coverage", "s")
"""Error in points, `s` in CPU seconds of both commands."""
QUARTERS = ("new models", "their error", "their coverage")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark, and what calibrate is told of it."""

    load: Callable[[Path], ResponseMatrix]
    options: tuple[str, ...] = ()


def plain(name: str, *, scenario: str = "") -> Callable[[Path], ResponseMatrix]:
    """Read a set, or one scenario of it, without the models and items that have no responses then."""

    def load(folder: Path) -> ResponseMatrix:
        # scenarios of some sets share items, which are then called by their scenario, too
        spec = ReadingSpec(prefix_scenario=bool(scenario))
        responses = read_responses([folder / name / "responses.parquet"], spec=spec)
        if not scenario:
            return responses
        return whole(responses.take(items=np.flatnonzero((responses.items["scenario"] == scenario).to_numpy())))

    return load


def whole(responses: ResponseMatrix) -> ResponseMatrix:
    """Models that answered any item, and of the items those that all of these answered."""
    responses = responses.take(models=np.flatnonzero(responses.observed.any(axis=1)))
    return responses.take(items=np.flatnonzero(responses.observed.all(axis=0)))


def studied(name: str) -> Callable[[Path], ResponseMatrix]:
    """Read a set as the study of accuracy does: the common core of MMLU-Pro, no adversarial models of AlpacaEval."""
    return lambda folder: data_sets.load(name, folder).responses


FIXED = {name: ("--dims", str(n_dims)) for name, n_dims in data_sets.DIMS.items()}
"""What ``--dims auto`` chooses, fixed where there are many items or models, to keep the run short."""
ONE_ABILITY = ("--dims", "1")
BENCHMARKS = {
    "alpacaeval2": Benchmark(studied("alpacaeval2")),
    "bfcl_v1": Benchmark(plain("bfcl_v1")),
    "lineage_bench, 8 and 16": Benchmark(plain("lineage_bench", scenario="lineage_8_16_32_64")),
    "lineage_bench, 8 to 192": Benchmark(plain("lineage_bench", scenario="lineage_8_64_128_192")),
    "livecodebench, generation": Benchmark(plain("livecodebench", scenario="codegeneration"), ONE_ABILITY),
    "livecodebench, execution": Benchmark(plain("livecodebench", scenario="codeexecution"), ONE_ABILITY),
    "livecodebench, test output": Benchmark(plain("livecodebench", scenario="testoutputprediction"), ONE_ABILITY),
    "livecodebench, self-repair": Benchmark(plain("livecodebench", scenario="selfrepair"), ONE_ABILITY),
    "mmlu-pro": Benchmark(studied("mmlu-pro"), FIXED["mmlu-pro"]),
    "openllm1_core": Benchmark(plain("openllm1_core"), FIXED["openllm1_core"]),
    "openllm1_gsm8k": Benchmark(plain("openllm1_gsm8k"), ONE_ABILITY),
    "swebench_bashonly_cost": Benchmark(plain("swebench_bashonly_cost")),
    "swebench_verified": Benchmark(plain("swebench_verified")),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tiny_versions", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS), metavar="NAME")
    parser.add_argument("--every-quarter", action="store_true", help="set each quarter of the models aside in turn")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/tiny-versions"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    files = [arguments.output / f"{name}{'-quarters' * arguments.every_quarter}.txt" for name in arguments.only]
    for name, kept in zip(arguments.only, files, strict=True):
        if not kept.exists():
            cells = make(name, every_quarter=arguments.every_quarter)
            kept.write_text(f"| {' | '.join(cells)} |\n", encoding="utf-8")
            print(kept.read_text(encoding="utf-8"), flush=True)
    rows = [kept.read_text(encoding="utf-8") for kept in files]
    columns = (*COLUMNS, *QUARTERS) if arguments.every_quarter else COLUMNS
    table = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n{''.join(rows)}"
    (arguments.output / "tiny-versions.md").write_text(table, encoding="utf-8")
    print(table)


def make(name: str, *, every_quarter: bool) -> list[str]:
    """Make the tiny version of one benchmark, measure it, and return the cells of its row."""
    one = BENCHMARKS[name]
    responses = one.load(Path(os.environ["ITEMBANK_SHARED"]) / "data")
    part = np.random.default_rng(0).permutation(responses.n_models) % N_PARTS
    n_tried = N_PARTS if every_quarter else 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        clock = _cpu_seconds()
        stated = publish(responses, folder / "all", one.options)
        seconds = _cpu_seconds() - clock
        tried = [tried_on_others(responses, part == k, folder / f"without-{k}", one.options) for k in range(n_tried)]
        size = sum(file.stat().st_size for file in (folder / "all" / "tiny").rglob("*") if file.is_file())
    return [
        name,
        str(responses.n_models),
        f"{responses.n_items:,}",
        f"{size / 1e6:.1f}",
        f"{100.0 * float(stated['mean_error']):.1f}",
        f"{float(stated['coverage']):.2f}",
        f"{seconds:.0f}",
        *(_errors(pl.concat(tried)) if tried else ()),
    ]


def _errors(tried: pl.DataFrame) -> tuple[str, str, str]:
    """Return how many new models there were, their mean error in points, and how often intervals held."""
    error, coverage = tried.select(pl.col("error").mean(), pl.col("is_covered").mean()).row(0)
    return str(tried.height), f"{100.0 * error:.1f}", f"{coverage:.2f}"


def tried_on_others(
    responses: ResponseMatrix, is_new: np.ndarray, folder: Path, options: tuple[str, ...]
) -> pl.DataFrame:
    """Make the tiny version of the models that are not new, and estimate the new ones with it."""
    publish(responses.take(models=np.flatnonzero(~is_new)), folder, options)
    return measured(responses.take(models=np.flatnonzero(is_new)), folder)


def publish(responses: ResponseMatrix, folder: Path, options: tuple[str, ...]) -> dict[str, str]:
    """Run the two commands, and return what publish-tiny prints."""
    folder.mkdir()
    write_responses(responses, folder / "responses.parquet")
    itembank("calibrate", folder / "responses.parquet", "-o", folder / "bank", *options)
    printed = itembank("publish-tiny", folder / "bank", "-n", N_ITEMS, "-o", folder / "tiny", "--format", "csv")
    return next(csv.DictReader(io.StringIO(printed)))


def measured(new: ResponseMatrix, folder: Path) -> pl.DataFrame:
    """Error of the overall score of each new model of which only chosen items are known, and if its interval held."""
    chosen = Selection.load(folder / "tiny" / "selection.json")
    write_responses(new.take(items=new.item_indices(chosen.item_ids)), folder / "new.parquet")
    printed = itembank("estimate", folder / "tiny", folder / "new.parquet", "--format", "csv")
    rows = pl.read_csv(io.StringIO(printed)).filter(target="overall")
    truth = pl.DataFrame({"model_id": new.model_ids, "truth": true_scores(new, folder / "bank")})
    found = rows.join(truth, on="model_id").filter(pl.col("truth").is_not_nan())
    return found.select(
        error=(pl.col("estimate") - pl.col("truth")).abs(),
        is_covered=pl.col("truth").is_between(pl.col("low"), pl.col("high")),
    )


def true_scores(new: ResponseMatrix, bank: Path) -> np.ndarray:
    """Overall scores over all items of the bank; NaN for a model that did not answer them all."""
    targets = load_bank(bank).targets
    return targets.with_overall(targets.scenario_means(new.responses))[:, -1]


def itembank(*words: object) -> str:
    """Run one command, and return what it prints."""
    line = [sys.executable, "-m", "itembank", "--quiet", *map(str, words)]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout


def _cpu_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    main()
