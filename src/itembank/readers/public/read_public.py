"""`read_public`: read a folder of a public source, and check it against the scores that the source states."""

from dataclasses import dataclass, replace
from pathlib import Path

from itembank.errors import DataError
from itembank.progress import ProgressCallback, silent
from itembank.readers.layouts import laid_out
from itembank.readers.public.published import Published, PublishedCheck, check_published
from itembank.readers.public.sources import public_source
from itembank.readers.read import read_matrix
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import function
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class PublicResponses:
    """What was read of a public source, and how its scores compare with the published ones.

    `check` is None where the source states no scores.
    """

    responses: ResponseMatrix
    check: PublishedCheck | None


def read_public(
    name: str,
    folder: str | Path,
    *,
    models: str | Path | None = None,
    items: str | Path | None = None,
    spec: ReadingSpec | None = None,
    progress: ProgressCallback = silent,
) -> PublicResponses:
    """Read the files of a public source that stand in a folder.

    Parameters
    ----------
    name : str
        See `itembank.readers.public.sources.SOURCES`.
    folder : path
    models, items : path or None
        As for `read_responses`.
    spec : ReadingSpec, or None
        None: what the source's entry says.
    progress : function

    Raises
    ------
    DataError
        When the folder does not hold what it must.
    ParameterError
        When there is no source of that name.
    """
    source = public_source(name)
    place = Path(folder)
    if not place.is_dir():
        raise DataError(f"{place} must be a folder with the files of {name} ({source.layout}); there is none.")
    chosen = replace(ReadingSpec(), **source.choices) if spec is None else spec
    chosen = replace(chosen, format=source.reader)
    responses = read_matrix([place], chosen, models=models, items=items, progress=progress)
    check = None
    if source.published:
        with laid_out(place, f"{source.name}, with {source.checked}"):
            published: list[Published] = list(function(source.published)(place))
        check = check_published(responses, published, tolerance=source.tolerance)
    return PublicResponses(responses, check)
