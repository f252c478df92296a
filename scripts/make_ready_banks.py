"""Make the banks that come with the package: ``python scripts/make_ready_banks.py SHARED/data``.

Their results are read from the folders there, and the rest is what `itembank bank build` does by the recipe beside each
bank. The same results give the same bytes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import polars as pl

import itembank as ib
from itembank.bank.bank_places import PACKAGED
from itembank.files.atomic import replacing_folder
from itembank_living.publishing.ready_banks import ready_bank
from itembank_living.publishing.recipes import BESIDE_BANK, read_recipe

Results = tuple[ib.ResponseMatrix, list[str]]
"""Responses, and the ids of items that are not to be run."""


def swe_bench_verified(folder: Path) -> Results:
    """All agents on all instances, with the days when they were submitted."""
    models = pl.read_csv(folder / "models.csv").select("model_id", date=pl.col("submission_date"))
    table = pl.read_parquet(folder / "responses.parquet").select(
        "model_id", "item_id", pl.lit("swe-bench-verified").alias("scenario"), "subscenario", "response"
    )
    return ib.read_responses(table, models=models), []


def mmlu_pro(folder: Path) -> Results:
    """All models, by MMLU-Pro's last parser; answers to another version of a question are left out."""
    items = pl.read_csv(folder / "items.csv")
    native = pl.col("question_id").cast(pl.String)
    models = pl.read_csv(folder / "models.csv").select("model_id", date=pl.col("date_added_to_repo"))
    table = (
        pl.read_parquet(folder / "responses.parquet")
        .filter(pl.col("text_variant") == 0)
        .with_columns(pl.col("model_id", "item_id", "scenario", "subscenario").cast(pl.String))
        .join(items.select("item_id", native=native), on="item_id")
        .select("model_id", "scenario", "subscenario", item_id="native", response="response_l3")
    )
    rewritten = pl.any_horizontal(pl.col(name) for name in items.columns if name.startswith("maint_fix"))
    tasks = items.select(item_id=native, task=pl.lit("mmlu_pro"))  # the harness's group, which is searched whole
    changed = items.filter(rewritten | (pl.col("n_text_variants") > 1)).select(native).to_series().to_list()
    return ib.read_responses(table, models=models, items=tasks), changed


BANKS: dict[str, tuple[str, Callable[[Path], Results]]] = {
    "swebench-verified": ("swebench_verified", swe_bench_verified),
    "mmlu-pro": ("mmlu-pro", mmlu_pro),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    data = parser.parse_args().data
    for name, (folder, read) in BANKS.items():
        place = PACKAGED / name
        recipe, (responses, changed) = read_recipe(place / BESIDE_BANK), read(data / folder)
        bank = ready_bank(recipe, responses, excluded=changed)
        with replacing_folder(place) as new:
            bank.save(new)
            (new / BESIDE_BANK).write_bytes((place / BESIDE_BANK).read_bytes())
        print(name, bank, sep="\n")


if __name__ == "__main__":
    main()
