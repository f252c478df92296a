"""Banks whose digests are right and whose content cannot be: what a hostile or a broken program might hand over."""

import json
import struct

import numpy as np
import polars as pl
from safetensors.numpy import load_file, save_file

from itembank.bank import bank_files
from itembank.bank.bank_files import save_bank
from itembank.bank.bank_records import record_digest
from tests.bank.banks import make_bank


def sign(folder, record):
    """Write the record with the digests of the files as they are now."""
    record["files"] = {name: bank_files._checksum(folder / name) for name in bank_files.FILES}
    record["record_sha256"] = record_digest(record)
    (folder / bank_files.RECORD).write_text(json.dumps(record), encoding="utf-8")


def of_items(**columns):
    """Change columns of items.parquet, by name without 'bank.' for ours."""
    own = {"item_id", "scenario", "subscenario"}

    def change(folder, _record):
        table = pl.read_parquet(folder / "items.parquet")
        named = {name if name in own else f"bank.{name}": value for name, value in columns.items()}
        table.with_columns(**named).write_parquet(folder / "items.parquet")

    return change


def first(column, value):
    """Change the first item's number in a column."""
    return of_items(**{column: pl.when(pl.int_range(pl.len()) == 0).then(value).otherwise(pl.col(f"bank.{column}"))})


def of_record(*keys, value):
    """Change one entry of bank.json."""

    def change(_folder, record):
        *parents, last = keys
        for key in parents:
            record = record[key]
        record[last] = value

    return change


def of_arrays(**arrays):
    """Change arrays of arrays.safetensors by functions of what is there."""

    def change(folder, _record):
        held = load_file(folder / "arrays.safetensors")
        save_file(held | {name: make(held[name]) for name, make in arrays.items()}, folder / "arrays.safetensors")

    return change


def of_bytes(name, make):
    """Change the bytes of a file."""

    def change(folder, _record):
        (folder / name).write_bytes(make((folder / name).read_bytes()))

    return change


def responses_of(value):
    """Make all responses one number."""

    def change(folder, _record):
        table = pl.read_parquet(folder / "responses.parquet")
        table.with_columns(response=pl.lit(value)).write_parquet(folder / "responses.parquet")

    return change


REVIEWED = {
    "an intercept that is NaN": first("intercept", float("nan")),
    "an intercept that is null": first("intercept", None),
    "an infinite loading": first("loading_1", float("inf")),
    "an asymptote of 7": first("lower_asymptote", 7.0),
    "weights of -5": of_items(score_weight=pl.lit(-5.0)),
    "a prior of negative variance": of_record("ability_prior", "covariance", value=[[-1.0, 0.0], [0.0, -1.0]]),
    "ids twice": of_items(item_id=pl.lit("the same")),
    "an intercept of text": of_items(intercept=pl.lit("text")),
    "a covariance of the wrong shape": of_arrays(item_covariance=lambda _: np.zeros((2, 2))),
    "more dimensions than there are": of_record("n_dims", value=9),
    "no dimension": of_record("n_dims", value=0),
    "an unknown family": of_record("family", value="cauchy"),
    "a family without its precision": of_record("family", value="beta"),
    "other scenarios": of_record("targets", "scenarios", value=["math", "code", "art"]),
    "too few scenario weights": of_record("targets", "scenario_weights", value=[0.5, 0.5]),
    "a header of 2^62 bytes": of_bytes("arrays.safetensors", lambda old: struct.pack("<Q", 2**62) + old[8:]),
    "a broken Parquet file": of_bytes("items.parquet", lambda old: old[:200] + bytes(200) + old[400:]),
}
"""The seventeen of the review of reliability."""

FURTHER = {
    "asymptotes the wrong way round": of_items(lower_asymptote=pl.lit(0.6), upper_asymptote=pl.lit(0.4)),
    "weights that sum to two": of_items(score_weight=pl.col("bank.score_weight") * 2.0),
    "scenario weights that sum to two": of_record("targets", "scenario_weights", value=[1.0, 0.5, 0.5]),
    "a prior that is not symmetric": of_record("ability_prior", "covariance", value=[[1.0, 0.5], [0.0, 1.0]]),
    "a singular prior": of_record("ability_prior", "covariance", value=[[1.0, 1.0], [1.0, 1.0]]),
    "a mean of text": of_record("ability_prior", "mean", value=["0", "0"]),
    "a mean of 400 digits": of_record("ability_prior", "mean", value=[10**400, 0]),
    "a mean of one dimension": of_record("ability_prior", "mean", value=[0.0]),
    "a negative bias": of_record("item_model_bias", value=[0.1, -0.1, 0.1]),
    "an infinite bias": of_record("item_model_bias", value=[0.1, float("inf"), 0.1]),
    "converged by a word": of_record("calibration", "converged", value="false"),
    "an unknown method": of_record("calibration", "method", value="oracle"),
    "an unknown item model": of_record("calibration", "item_model", value="9pl"),
    "a threshold of no scenario": of_record("calibration", "thresholds", value={"art": 0.5}),
    "an infinite threshold": of_record("calibration", "thresholds", value={"math": float("inf")}),
    "another way of scoring": of_record("targets", "within", value="anyhow"),
    "fewer models than it says": of_record("n_models", value=3),
    "ids that are numbers": of_items(item_id=pl.int_range(pl.len())),
    "items without a scenario": of_items(scenario=pl.lit(None, dtype=pl.String)),
    "infinite covariances": of_arrays(ability_covariance=lambda held: np.full_like(held, np.inf)),
    "negative variances": of_arrays(item_covariance=lambda held: -held),
    "arrays of truth values": of_arrays(item_covariance=lambda held: held > 0.0),
    "responses of 2": responses_of(2.0),
    "responses of text": responses_of("one"),
    "calibration as a list": of_record("calibration", value=[]),
    "targets as text": of_record("targets", value="overall"),
    "a degenerate number": of_items(is_degenerate=pl.lit(0.5)),
}


_FIRST, _CHANGE = ("history", "targets", 0), ("history", "changes", 0)
_LINK = {"method": "x", "n_models": 1, "n_items": 1, "linking_error": 0.0}
HISTORIES = {
    "a version of words": of_record(*_CHANGE, "version", value="latest"),
    "a note of a megabyte": of_record(*_CHANGE, "note", value="x" * 1_000_000),
    "a note that is a number": of_record(*_CHANGE, "note", value=7),
    "ten thousand changes": of_record("history", "changes", value=[{}] * 10_000),
    "changes as text": of_record("history", "changes", value="none"),
    "a change without a time": of_record(*_CHANGE, value={"version": "1.0.0"}),
    "arguments without end": of_record(*_CHANGE, "arguments", value={str(k): k for k in range(1000)}),
    "parents as text": of_record(*_CHANGE, "parents", value="me"),
    "less than no items": of_record(*_CHANGE, "items_dropped", "n", value=-3),
    "a link of infinite error": of_record(*_CHANGE, "link", value=_LINK | {"linking_error": float("inf")}),
    "a name that is a path": of_record("history", "name", value="../../etc"),
    "a target that drives the terminal": of_record(*_FIRST, "name", value="\x1b[2J"),
    "a target with another digest": of_record("history", "targets", 1, "digest", value="0" * 12),
    "one target twice": of_record("history", "targets", 1, "name", value="quiz@1"),
    "a current target that is not there": of_record("history", "current", value=7),
    "a target of other scenarios": of_record("history", "targets", 1, "scenarios", value=["a", "b", "c"]),
    "an earlier target of other scenarios": of_record(*_FIRST, "scenarios", value=["code", "code", "law"]),
    "a target scored anyhow": of_record(*_FIRST, "within", value="anyhow"),
    "weights of too few items": of_arrays(**{"target.0.weights": lambda held: held[:5]}),
    "weights of a target that sum to two": of_arrays(**{"target.1.weights": lambda held: held * 2.0}),
    "a target of no items": of_arrays(**{"target.0.weights": lambda held: held * np.nan}),
    "biases of another number": of_arrays(**{"target.1.item_model_bias": lambda held: held[:1]}),
    "an unknown status": of_items(status=pl.lit(9)),
    "a status of half": of_items(status=pl.lit(0.5)),
    "a retired item that counts": of_items(status=pl.lit(0)),
    "items of the future": of_items(since=pl.lit(99)),
    "no marks on items": lambda folder, _: _drop(folder / "items.parquet", "bank.status"),
}
"""Histories that no change wrote; made of a bank that retired an item."""


def _drop(path, column):
    pl.read_parquet(path).drop(column).write_parquet(path)


def craft(folder, change, bank=None):
    """Write a small bank into `folder`, change it, and sign it as if it had been written so."""
    save_bank(make_bank() if bank is None else bank, folder)
    record = json.loads((folder / bank_files.RECORD).read_text(encoding="utf-8"))
    change(folder, record)
    sign(folder, record)
    return folder
