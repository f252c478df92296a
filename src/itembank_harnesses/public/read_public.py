"""`read_public`: read a folder of a public source, and check it against the scores that the source states."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from itembank.errors import DataError, DataWarning, first_few, quoted, warn
from itembank.numerics.arrays import FloatArray, mean_where_known
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import files_below, laid_out
from itembank.readers.read import read_matrix
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import TABLES, matches, reader_function
from itembank.responses.responses import ResponseMatrix
from itembank_harnesses.public.sources import PublicSource
from itembank_harnesses.public.stores import public_source

Published = tuple[str, str | None, float]
"""Model, scenario (None: all items) and score in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A score that is not the published one."""

    model_id: str
    scenario: str | None
    published: float
    read: float


@dataclass(frozen=True, slots=True)
class PublishedCheck:
    """What a comparison with published scores found."""

    n_compared: int  # Scores of models that were read, which the source states too
    largest: float  # Largest difference, NaN when nothing was compared
    differing: tuple[Difference, ...]  # Beyond the tolerance


@dataclass(frozen=True, slots=True)
class PublicResponses:
    """What was read of a public source, and how its scores compare with the published ones.

    `check` is None where the source states no scores.
    """

    responses: ResponseMatrix
    check: PublishedCheck | None


def read_public(
    name: str | PublicSource,  # See `itembank_harnesses.public.sources.stores`
    folder: str | Path,
    *,
    models: str | Path | None = None,  # As for `read_responses`, like items
    items: str | Path | None = None,
    spec: ReadingSpec | None = None,  # None: what the source's entry says
    progress: ProgressCallback = silent,
) -> PublicResponses:
    """Read the files of a public source that are in a folder.

    Raises `DataError` when the folder does not hold what it must; `ParameterError` when there is no source of that
    name.
    """
    source = public_source(name)
    place = Path(folder)
    if not place.is_dir():
        raise DataError(f"{place} must be a folder with the files of {source.name} ({source.layout}); there is none.")
    chosen = replace(ReadingSpec(), **source.choices) if spec is None else spec
    files, patterns = [place], () if source.download is None else source.download.patterns
    if source.reader in TABLES:  # those files that its download would fetch
        files = [path for path in files_below(place, chosen) if not patterns or matches(path, patterns)]
    if not files:
        wanted = ", ".join(patterns) or source.layout
        raise DataError(f"{place} must hold files of {source.name} ({wanted}), got none.")
    chosen = replace(chosen, format=source.reader)
    responses = read_matrix(files, chosen, models=models, items=items, progress=progress)
    check = None
    if source.checked != "-":
        with laid_out(place, f"{source.name}, with {source.checked}"):
            published: list[Published] = list(reader_function(source.reader, "{}_published")(place))
        check = check_published(responses, published, tolerance=source.tolerance)
    return PublicResponses(responses, check)


def check_published(responses: ResponseMatrix, published: Iterable[Published], *, tolerance: float) -> PublishedCheck:
    """Compare mean responses with published scores; scores of models and scenarios that were not read are left out.

    A `DataWarning` names the models whose score differs by more than `tolerance`.
    """
    rows = {name: row for row, name in enumerate(responses.model_ids)}
    scenarios = responses.items["scenario"].to_numpy()
    compared = [
        Difference(
            model,
            scenario,
            score,
            float(mean_where_known(responses.responses[rows[model], _columns(scenarios, scenario)])),
        )
        for model, scenario, score in published
        if model in rows and _columns(scenarios, scenario).any()
    ]
    distances = [abs(one.read - one.published) for one in compared]
    differing = tuple(one for one in compared if not abs(one.read - one.published) <= tolerance)  # NaN differs
    if differing:
        names = [
            f"{quoted(one.model_id)}{f' on {one.scenario}' if one.scenario else ''}: {one.read:.4f}, published "
            f"{one.published:.4f}"
            for one in differing
        ]
        warn(
            f"{len(differing)} of {len(compared)} scores differ from those that the source states: {first_few(names)}. "
            "Leave these models out, or look at their files: a part may be missing, or the table is of another "
            "version.",
            DataWarning,
        )
    return PublishedCheck(len(compared), float(np.max(distances)) if distances else float("nan"), differing)


def _columns(scenarios: FloatArray, scenario: str | None) -> FloatArray:
    return np.ones(scenarios.shape, dtype=bool) if scenario is None else scenarios == scenario
