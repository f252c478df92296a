"""The bank folder: open formats, checked on load, written whole or not at all.

``bank.json`` (what it is, family of responses, prior, calibration record, targets, checksums), ``items.parquet``,
``models.parquet``, ``responses.parquet`` (packed, model after model), ``arrays.safetensors`` (covariances, history).
What later work derives from the bank may lie in ``cache/``, see `BankCache`.
"""

import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensors_to_bytes

from itembank.bank.bank_checks import bank_problems
from itembank.bank.bank_history import check_history, history_arrays, history_record, read_history
from itembank.bank.bank_places import is_bank_name, ready_folder
from itembank.bank.bank_records import FILES, RECORD, SCHEMA_VERSION, pull, read_record, record_digest
from itembank.bank.bank_views import view_of, whole_bank
from itembank.bank.banks import KNOWN_PARAMETERS, Bank, Calibration, data_fingerprint
from itembank.bank.past_models import read_published
from itembank.errors import N_SHOWN, BankError, DataError, IntegrityError, ParameterError, quoted, remedy
from itembank.files.atomic import check_destination, replacing_folder, user_cache_folder
from itembank.files.documents import digest_of, regular_size
from itembank.files.hub import is_hub_name
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.responses.opening import read_parquet
from itembank.responses.response_files import pack_responses, unpack_responses
from itembank.responses.targets import ScoreTargets

Value = TypeVar("Value")

PARAMETERISATION = (
    "probability = lower_asymptote + (upper_asymptote - lower_asymptote) * sigmoid(loadings . ability + intercept)"
)
# Columns the bank adds to the caller's tables; a caller's column of the same name gives way.
OWN = "bank."
DAMAGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, SafetensorError, pl.exceptions.PolarsError)
"""What putting a bank together may raise when its files are not those of one bank."""


def save_bank(bank: Bank, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a bank folder: `Bank.save`."""
    path = Path(path)
    check_bank_destination(path, overwrite=overwrite)
    if bank.headline is not None:
        raise BankError(
            f"a bank must be written with the score of its items, got one with the score {bank.headline.name!r}. Write "
            "the bank itself, which gives that score, too."
        )
    if bank.history is not None and not bank.history.gives_what_counts:
        raise BankError(
            f"a bank must be written with the items that count, got one with its earlier score {bank.target_id!r}. "
            "Write the bank itself, which gives that score, too; or restore the retired items and write that."
        )
    whole = replace(whole_bank(bank), history=bank.history, whole=bank.whole)  # with the items that are kept aside
    with replacing_folder(path) as folder:
        _item_table(whole).write_parquet(folder / "items.parquet")
        abilities = whole.calibration.abilities
        own = {
            **{f"ability_{k + 1}": abilities[:, k] for k in range(abilities.shape[1])},
            **{f"score:{name}": one for name, one in zip(whole.targets.names, whole.known_scores.value.T, strict=True)},
        }
        _with_own(whole.responses.models, own).write_parquet(folder / "models.parquet")
        pack_responses(whole.responses).write_parquet(folder / "responses.parquet")
        arrays = {
            **({} if whole.published is None else whole.published.arrays()),
            **({} if whole.history is None else history_arrays(whole.history)),
        }
        for name in ("item_covariance", "ability_covariance", "history"):
            kind = np.float64 if whole.published is None else np.float32
            arrays[name] = np.ascontiguousarray(getattr(whole.calibration, name), dtype=kind)
        (folder / "arrays.safetensors").write_bytes(tensors_to_bytes(arrays))
        record = {
            **_record(whole),
            "bank_id": bank.bank_id,
            "files": {name: _checksum(folder / name) for name in FILES},
        }
        record["record_sha256"] = record_digest(record)
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / RECORD).write_text(text + "\n", encoding="utf-8")
        bank.cache.write_to(folder, bank.bank_id)


def check_bank_destination(path: Path, *, overwrite: bool = False) -> None:
    """Raise `BankError` or `ParameterError` when a bank cannot be written at `path`; worth asking before long work."""
    if is_bank_name(path):
        raise ParameterError(f"a bank must be written to a folder, got the name {quoted(path)}. Name another place.")
    check_destination(path, is_folder=True)
    if not path.exists():
        return
    if path.is_dir() and not any(path.iterdir()):
        return
    if not (path / RECORD).is_file():
        raise BankError(f"{path} exists and is not a bank; choose another place or move it away.")
    if not overwrite:
        how = remedy("overwrite=True", "--force")
        raise BankError(f"{path} is a bank already; replace it ({how}), or choose another place.")


def load_bank(path: str | Path) -> Bank:
    """Read a bank folder, the ready bank ``bank:name``, or ``hf:owner/name[@revision]`` of the Hugging Face Hub.

    Raises
    ------
    BankError
        When there is no bank at `path`, it has a schema version or features that this release cannot read, it cannot be
        pulled, or it is a ready bank that is not built yet.
    ParameterError
        When there is no ready bank of the name.
    IntegrityError
        When a file is missing, is not the one that was written, or holds numbers that no calibration gives.
    MissingDependencyError
        For a bank of the Hub, when huggingface_hub is not installed.
    """
    if is_hub_name(path):
        folder, name = pull(path)
        bank = load_bank(folder)
        bank.cache.source = str(name)
        return bank
    if is_bank_name(path):
        bank = load_bank(ready_folder(path))
        bank.cache.source = str(path)
        return bank
    path = Path(path)
    record = read_record(path)
    content = {name: _checked_bytes(path / name, record["files"].get(name)) for name in FILES}
    try:
        bank = _assemble(record, content)
    except DAMAGED as error:
        raise IntegrityError(f"{path}: the bank's files do not fit together ({error}). Calibrate it again.") from error
    whole = whole_bank(bank)
    problems = bank_problems(whole) or ([] if whole is bank else bank_problems(bank))
    if problems:
        raise IntegrityError(
            f"{path} holds what no calibration gives: {' '.join(problems[:N_SHOWN])} Its files match its record, "
            "so another program wrote them. Calibrate the bank again, or get it from another place."
        )
    bank.cache.folder, bank.cache.bank_id = path, bank.bank_id
    # by the digest of all that the bank is, not by the name it gives itself: a stranger's bank may claim another's
    bank.cache.user_folder = user_cache_folder() / str(record["record_sha256"])[:32]
    return bank


def _record(bank: Bank) -> dict[str, Any]:
    """Everything of a bank that is not an array over items or models."""
    calibration, targets = bank.calibration, bank.targets
    has = {  # of `FEATURES`, in their order
        "family": bank.parameters.family != "bernoulli",
        "items-aside": bank.whole is not None,
        "few-models": not bank.calibration.is_fitted,
        "known-parameters": bank.calibration.method == KNOWN_PARAMETERS,
        "published": bank.published is not None,
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "features": [name for name, is_so in has.items() if is_so],
        "bank_id": bank.bank_id,
        "itembank_version": importlib.metadata.version("itembank"),
        "data_fingerprint": data_fingerprint(bank.responses),
        "n_models": bank.n_models,
        "n_items": bank.n_items,
        **({} if bank.rest is None else {"n_total": bank.n_total}),
        "n_dims": calibration.n_dims,
        "parameterisation": PARAMETERISATION,
        "family": calibration.parameters.family,
        "ability_prior": {"mean": calibration.prior.mean.tolist(), "covariance": calibration.prior.covariance.tolist()},
        "calibration": {
            "method": calibration.method,
            "item_model": calibration.item_model,
            "converged": calibration.converged,
            "n_iterations": calibration.n_iterations,
            "message": calibration.message,
            "tolerance": calibration.tolerance,
            "score_correlation": calibration.score_correlation,
            "options": dict(calibration.options),
            "thresholds": dict(calibration.thresholds),
        },
        "targets": {
            "within": targets.within,
            "across": targets.across,
            "scenarios": list(targets.scenarios),
            "scenario_weights": targets.scenario_weights.tolist(),
        },
        "item_model_bias": _with_null(bank.item_model_bias),
        "response_variance": _with_null(bank.response_variance),
        **({} if bank.published is None else {"published": bank.published.record()}),
        **({} if bank.history is None else {"history": history_record(bank.history)}),
    }


def parameter_columns(bank: Bank) -> dict[str, FloatArray]:
    """Columns of the items' weights in the score and of their parameters, each (n_items,)."""
    parameters = bank.parameters
    return {
        "score_weight": bank.targets.weights,
        "intercept": parameters.intercept,
        **{f"loading_{k + 1}": parameters.loadings[:, k] for k in range(parameters.n_dims)},
        "lower_asymptote": parameters.lower_asymptote,
        "upper_asymptote": parameters.upper_asymptote,
        **({} if parameters.precision is None else {"precision": parameters.precision}),
    }


def _item_table(bank: Bank) -> pl.DataFrame:
    """Item table with parameters, score weights and expected cost."""
    error, history = bank.calibration.log_precision_error, bank.history
    own = {
        **parameter_columns(bank),
        **({} if error is None else {"log_precision_error": error}),
        "is_degenerate": bank.calibration.is_degenerate,
        **({} if history is None else {name: getattr(history, name).astype(np.int64) for name in ("status", "since")}),
        **{f"expected_{name}": cost for name, cost in bank.responses.expected_costs().items()},
    }
    if bank.published is not None:
        single = {name: np.asarray(value) for name, value in own.items() if name != "score_weight"}
        own |= {name: value.astype(np.float32) for name, value in single.items() if value.dtype == np.float64}
    return _with_own(bank.responses.items, own)


def _with_own(table: pl.DataFrame, own: Mapping[str, Any]) -> pl.DataFrame:
    """Add the bank's columns, marked so that they never meet the caller's."""
    return table.with_columns(**{f"{OWN}{name}": pl.Series(np.ascontiguousarray(value)) for name, value in own.items()})


def _assemble(record: dict[str, Any], content: Mapping[str, bytes]) -> Bank:
    items = read_parquet(content["items.parquet"])
    models = read_parquet(content["models.parquet"])
    for name, table in (("n_items", items), ("n_models", models)):
        if record[name] != table.height:
            raise ValueError(f"{name} is {quoted(record[name])} and the table has {table.height} rows")
    responses = unpack_responses(read_parquet(content["responses.parquet"]), _theirs(models), _theirs(items))
    arrays = {name: _doubled(array) for name, array in load_tensors(content["arrays.safetensors"]).items()}
    calibration = _calibration(record, _ours(items), _ours(models), arrays)
    about = record["targets"]
    names = tuple(about["scenarios"])
    index = items["scenario"].cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
    weights = _floats(about["scenario_weights"])
    published = read_published(record["published"], arrays) if "published" in record else None
    targets = ScoreTargets(names, index, _ours(items)["score_weight"], weights, about["within"], about["across"])
    if published is not None and published.rest is not None:
        targets = replace(targets, rest_sizes=published.rest.sizes)
    whole = Bank(
        str(record["bank_id"]),
        responses,
        calibration,
        targets,
        _without_null(record["item_model_bias"]),
        _without_null(record["response_variance"]),
        published,
    )
    if "history" not in record:
        return whole
    history = read_history(record["history"], _ours(items), arrays)
    check_history(history, items["scenario"].to_list())
    bank = view_of(whole, history)
    if bank.target_digest != history.targets[history.current].digest:
        raise ValueError("the digest of its target is not that of its items and weights")
    return bank


def _calibration(
    record: dict[str, Any], items: dict[str, Any], models: dict[str, Any], arrays: dict[str, FloatArray]
) -> Calibration:
    dims = range(1, record["n_dims"] + 1)
    parameters = ItemParameters(
        np.column_stack([items[f"loading_{k}"] for k in dims]),
        items["intercept"],
        items["lower_asymptote"],
        items["upper_asymptote"],
        record["family"],
        items.get("precision"),
    )
    prior = record["ability_prior"]
    about = record["calibration"]
    return Calibration(
        parameters,
        arrays["item_covariance"],
        np.column_stack([models[f"ability_{k}"] for k in dims]),
        arrays["ability_covariance"],
        AbilityPrior(_floats(prior["mean"]), _floats(prior["covariance"])),
        items["is_degenerate"],
        dict(zip(about["thresholds"], _floats(list(about["thresholds"].values())).tolist(), strict=True)),
        _of_type(str, about, "method"),
        _of_type(str, about, "item_model"),
        _of_type(bool, about, "converged"),
        _of_type(int, about, "n_iterations"),
        _of_type(str, about, "message"),
        arrays["history"],
        None if about["tolerance"] is None else float(_floats(about["tolerance"])),
        about["options"],
        items.get("log_precision_error"),
        None if about.get("score_correlation") is None else float(_floats(about["score_correlation"])),
    )


def _theirs(table: pl.DataFrame) -> pl.DataFrame:
    return table[[name for name in table.columns if not name.startswith(OWN)]]


def _ours(table: pl.DataFrame) -> dict[str, Any]:
    """Return the bank's columns as arrays; none of them holds text."""
    own = [name for name in table.columns if name.startswith(OWN)]
    for name in own:
        if not (table.schema[name].is_numeric() or table.schema[name] == pl.Boolean):
            raise TypeError(f"column {name} must hold numbers, got {table.schema[name]}")
    return {name.removeprefix(OWN): _doubled(table[name].to_numpy()) for name in own}


def _doubled(array: np.ndarray) -> np.ndarray:
    """Return numbers of single precision, as published banks have them, in double; others as they are."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _with_null(values: FloatArray) -> list[float | None]:
    """JSON has no NaN."""
    return [None if np.isnan(value) else float(value) for value in values]


def _without_null(values: list[float | None]) -> FloatArray:
    return _floats([np.nan if value is None else value for value in values])


def _floats(values: Any) -> FloatArray:
    """Return numbers of a record as an array; text is none, though numpy would take '1' for one."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "fiu":
        raise TypeError(f"there must be numbers, got {quoted(values)}")
    return array.astype(np.float64)


def _of_type(kind: type[Value], about: Mapping[str, Any], name: str) -> Value:
    """Return an entry of a record that must be of one type."""
    value = about[name]
    if type(value) is not kind:
        raise TypeError(f"{name} must be {kind.__name__}, got {quoted(value)}")
    return value


def _checksum(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": digest_of(content)}


def _checked_bytes(path: Path, expected: Any) -> bytes:
    """Read one file of a bank and compare it with the record; its size first, which may be endless."""
    try:
        n_bytes = regular_size(path)
        is_as_long = isinstance(expected, dict) and expected.get("bytes") == n_bytes
        content = path.read_bytes() if is_as_long else b""
    except OSError as error:
        raise IntegrityError(f"{path} cannot be read: {error.strerror}. Copy the whole bank folder again.") from error
    except DataError as error:
        raise IntegrityError(f"{error} Better copy the whole bank folder again.") from error
    if not is_as_long or expected.get("sha256") != digest_of(content):
        raise IntegrityError(
            f"{path} is not the file that was written with this bank ({n_bytes} bytes). Copy the whole bank folder "
            "again, or calibrate it again."
        )
    return content
