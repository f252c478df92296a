"""Attack: one bit turned over in every file that itembank writes. No number may change without a word."""

import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection
from itembank.errors import DataWarning, ItembankError
from itembank.readers.read import read_responses
from itembank.sessions.journal_sessions import read_session
from itembank_studies.results import PredictionResult, StudyResult
from itembank_studies.simulation.simulate import load_truth
from tests.attacks.killed import folder_with
from tests.attacks.mutating import flip_bit
from tests.attacks.running import run_here

SAME, REFUSED, SAID = "same numbers", "refused", "other numbers, with a warning"
DEFECTS = ("other numbers, without a word", "another error")


@dataclass(frozen=True, slots=True)
class Kept:
    """A kind of file that itembank writes: files by their pattern in the workplace, and all that they say."""

    pattern: str
    read: Callable[[Path], Any]
    beside: tuple[str, ...] = ()


def _estimates(folder: Path) -> str:
    words = ("estimate", "cached", "new.csv", "--selection", "selection.json", "--method", "p-irt", "--format", "csv")
    outcome = run_here(words, folder=folder)
    if outcome.code:
        raise ItembankError(outcome.err) if "--debug" not in outcome.err else RuntimeError(outcome.err)
    return outcome.out


def _session(folder: Path) -> Any:
    session = read_session(folder / "run.jsonl")
    return session.history, session.pool.spec, session.estimate().scores.rows()


def _prediction(folder: Path) -> Any:
    result = PredictionResult.load(folder / "prediction")
    tables = (result.predictions, result.runs, result.choices, result.seconds)
    return result, [table.collect() for table in tables]


KINDS = {
    "response file": Kept("responses.parquet", lambda folder: read_responses(folder / "responses.parquet")),
    "bank": Kept("bank/*", lambda folder: load_bank(folder / "bank")),
    "cache": Kept("cached/cache/*", _estimates, ("new.csv", "selection.json")),
    "selection": Kept("selection.json", lambda folder: Selection.load(folder / "selection.json")),
    "journal": Kept("run.jsonl", _session, ("bank",)),
    "study": Kept("study/*.*", lambda folder: StudyResult.load(folder / "study")),
    "prediction study": Kept("prediction/**/*.*", _prediction),
    "simulated truth": Kept("made.truth.safetensors", lambda folder: load_truth(folder / "made.truth.safetensors")),
}


@dataclass(frozen=True, slots=True)
class Flip:
    kind: str
    file: str
    position: int
    verdict: str
    detail: str = ""


def expected(kind: str, workplace: Path) -> list[Any]:
    return _plain(KINDS[kind].read(workplace))


def flip(kind: str, workplace: Path, right: list[Any], rng: np.random.Generator) -> Flip:
    """Turn over one bit of one file of a kind, each byte as likely as another, and read what it says."""
    files = [path for path in sorted(workplace.glob(KINDS[kind].pattern)) if path.is_file()]
    sizes = np.array([path.stat().st_size for path in files])
    file = files[int(rng.choice(len(files), p=sizes / sizes.sum()))].relative_to(workplace)
    position = int(rng.integers(8 * (workplace / file).stat().st_size))
    with folder_with({file.parts[0], *KINDS[kind].beside}, workplace) as folder:
        (folder / file).write_bytes(flip_bit((folder / file).read_bytes(), position))
        return Flip(kind, str(file), position, *_judged(KINDS[kind], folder, right))


def _judged(kept: Kept, folder: Path, right: list[Any]) -> tuple[str, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = _plain(kept.read(folder))
        except (ItembankError, OSError) as error:
            return REFUSED, str(error)
        except BaseException:  # noqa: BLE001 (panics of Polars are no exceptions)
            return "another error", traceback.format_exc(limit=-3)
    if found == right:
        return SAME, ""
    told = [str(one.message) for one in caught if issubclass(one.category, DataWarning)]
    return (SAID, told[0]) if told else ("other numbers, without a word", "")


def _plain(value: Any) -> Any:
    """Return what can be compared: every number, name and table of a result, but the time its work took."""
    if is_dataclass(value):
        left_out = {"cache", "folder"}
        return [_plain(getattr(value, one.name)) for one in fields(value) if one.name not in left_out]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, pl.DataFrame):
        return value.columns, repr(value.to_dict(as_series=False))
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items() if name != "sha256"}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else repr(value)
