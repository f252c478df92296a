"""The sets of repeated samples: one scenario of a source each, with the budget that fits how often it was sampled."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from itembank.errors import DataWarning
from itembank.readers.builtin import load_builtin
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class SampledSet:
    """One benchmark.

    Attributes
    ----------
    name : str
    responses : ResponseMatrix
        Of one scenario; only models with samples of nearly all items, and at least twice the budget of each.
    budget : int
        Samples of an item.
    """

    name: str
    responses: ResponseMatrix
    budget: int


SOURCES = {
    "llmonkeys_pythia": (50, ("GSM8K", "MATH")),
    "livecodebench": (
        5,
        ("codegeneration", "codeexecution", "codeexecution_cot", "selfrepair", "testoutputprediction"),
    ),
    "bytelms-samples": (50, None),
}
"""Budget, and scenarios (None: all); livecodebench has ten samples of an item, so that half of them is the budget."""

SPLITS = {"llmonkeys_pythia": 30, "livecodebench": 10, "bytelms-samples": 10}
"""Of each source, unless told."""
NAMES = {
    "llmonkeys_pythia: GSM8K": "Pythia on GSM8K",
    "llmonkeys_pythia: MATH": "Pythia on MATH",
    "livecodebench: codegeneration": "LiveCodeBench, code generation",
    "livecodebench: codeexecution": "LiveCodeBench, code execution",
    "livecodebench: codeexecution_cot": "LiveCodeBench, the same with reasoning",
    "livecodebench: selfrepair": "LiveCodeBench, self-repair",
    "livecodebench: testoutputprediction": "LiveCodeBench, test output",
}
"""What tables call the public sets."""

LEAST_COMPLETE = 0.3
"""Share of a scenario's items a model must have samples of."""


def load_sets(source: str, folder: Path) -> list[SampledSet]:
    """Read the scenarios of a source."""
    budget, names = SOURCES[source]
    responses = _read(source, folder)
    scenarios = responses.items["scenario"].to_numpy()
    chosen = names or tuple(sorted(set(scenarios.tolist())))
    return [_one(source, name, responses.take(items=np.flatnonzero(scenarios == name)), budget) for name in chosen]


def _read(source: str, folder: Path) -> ResponseMatrix:
    if source.startswith("bytelms"):  # checkpoints of one run on both sides would know each other
        samples = load_builtin(source)
        return samples.take(models=np.flatnonzero(samples.models["is_final"].to_numpy()))
    here = folder / source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_responses([here / "responses.parquet"], spec=ReadingSpec(prefix_scenario=True))


def _one(source: str, scenario: str, responses: ResponseMatrix, budget: int) -> SampledSet:
    """Leave out models with too few items or samples, and items nobody of the others was asked."""
    trials = np.where(responses.observed, responses.n_trials, 0)
    fewest = np.where(trials > 0, trials, np.iinfo(np.int64).max).min(axis=1)
    keep = ((trials > 0).mean(axis=1) >= LEAST_COMPLETE) & (fewest >= 2 * budget)
    kept = responses.take(models=np.flatnonzero(keep))
    asked = kept.observed.sum(axis=0) >= 3
    return SampledSet(f"{source}: {scenario}", kept.take(items=np.flatnonzero(asked)), budget)
