"""Files of the made-up world that commands of scaling laws read."""

import numpy as np
import polars as pl

from itembank.responses.response_files import write_responses
from tests.scaling.samples import known_bank, simulated_samples
from tests.scaling.simulated_suite import simulated_suite
from tests.scaling.two_scenarios import simulated

N_PAST = 10  # Of the models of two scenarios, the first ones, which calibrate

COMMANDS = (
    "calibrate suite.parquet -o suite-bank --dims 1 --family beta --no-folds",
    "import samples.csv --repeats last -o samples-gaps.parquet",
    "calibrate two-past.parquet -o two-bank --method map --dims 1 --no-folds",
)  # Banks of these files


def make_files(folder):
    """Models of known training compute, repeated samples, and two scenarios of correlated abilities."""
    _suite(folder)
    samples = simulated_samples(n_models=8, n_items=12, n_trials=30, scenarios=("math", "code"))
    write_responses(samples.responses, folder / "samples.parquet")
    known_bank(samples).save(folder / "samples-bank")
    is_kept = (pl.col("model_id") != "model-1") | (pl.col("item_id") != "item-2")
    _long(samples.responses).filter(is_kept).write_csv(folder / "samples.csv")
    two = simulated(np.random.default_rng(4), n_models=16, n_items=12)[0]
    write_responses(two, folder / "two.parquet")
    write_responses(two.take(models=np.arange(N_PAST)), folder / "two-past.parquet")
    write_responses(two.take(models=np.arange(N_PAST, 16)), folder / "two-new.parquet")
    kinds = two.models.with_columns(kind=pl.Series(["x", "y"] * 8))
    write_responses(two.with_tables(models=kinds), folder / "two-known.parquet")


def _suite(folder):
    """Four recipes, the fewest whose lines are drawn to each other, of four sizes."""
    suite = simulated_suite(np.random.default_rng(3), n_recipes=4, n_items=12, n_sizes=4, n_checkpoints=1)
    matrix, models = suite.probability, suite.models
    known = matrix.with_tables(models=models.with_columns(kind="kind " + pl.col("recipe")))
    write_responses(known, folder / "suite.parquet")
    items = matrix.items.with_columns(n_options=2 + pl.int_range(12) % 3)
    write_responses(known.with_tables(items=items), folder / "suite-known.parquet")
    is_known = pl.col("model_id") != matrix.model_ids[0]
    unknown = models.with_columns(pl.when(is_known).then(name).alias(name) for name in ("flops", "params"))
    write_responses(matrix.with_tables(models=unknown), folder / "suite-unknown.parquet")
    loss, answers = 0.5 - pl.col("response").log(2), _long(matrix).tail(matrix.responses.size)
    answers.select("model_id", "item_id", bits_per_byte=loss).write_csv(folder / "losses.csv")


def _halves(item_ids):
    """A table of items in two scenarios, one after the other in turn."""
    return pl.DataFrame({"item_id": item_ids, "scenario": [("one", "two")[j % 2] for j in range(len(item_ids))]})


def _long(matrix):
    """Responses as a table without scenarios in which every model answered twice, and a column of other responses."""
    n_models, n_items = matrix.responses.shape
    rows = pl.DataFrame(
        {
            "model_id": np.repeat(matrix.model_ids, n_items),
            "item_id": np.tile(matrix.item_ids, n_models),
            "response": matrix.responses.ravel(),
            **({} if matrix.n_trials is None else {"n_trials": matrix.n_trials.ravel()}),
        }
    )
    is_odd = pl.int_range(pl.len()) % n_items % 2 == 1
    other = pl.when(is_odd).then(1.0 - pl.col("response")).otherwise("response")
    return pl.concat([rows.with_columns(other=other, response=other), rows.with_columns(other=other)])
