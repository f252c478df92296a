"""`fetch_public`: the files of a public source, fetched into a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from itembank.errors import DataError, ParameterError, remedy
from itembank.files.atomic import user_cache_folder
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.public.archives import unpack
from itembank.readers.public.download import download
from itembank.readers.public.hub import fetch_repository
from itembank.readers.public.sources import Archive, HubFiles, PublicSource, public_source


def public_folder(name: str) -> Path:
    """Return where a source's files are kept when no folder is named."""
    return user_cache_folder() / "public" / name


def fetch_public(
    name: str,
    folder: str | Path | None = None,
    *,
    models: Sequence[str] = (),
    only: Sequence[str] = (),
    progress: ProgressCallback = silent,
) -> Path:
    """Fetch the files of a public source; an interrupted call goes on where it stopped.

    Parameters
    ----------
    name : str
    folder : path or None
        None: a folder of the user's cache.
    models : list of str
        Ids of the models to fetch, for sources that keep one repository a model.
    only : list of str
        Patterns of file names, in place of the source's own.
    progress : function

    Returns
    -------
    Path
        The folder, for `read_public`.

    Raises
    ------
    DataError
        When the files cannot be fetched, or the source offers none.
    ParameterError
        When models are missing, or given to a source that does not keep them apart.
    """
    source = public_source(name)
    target = Path(folder) if folder is not None else public_folder(name)
    if isinstance(source.download, Archive):
        if models:
            raise ParameterError(f"{name} is fetched whole, so no models can be chosen, got {len(models)}.")
        _from_archive(source.download, target, only, progress)
    elif isinstance(source.download, HubFiles):
        _from_hub(source, target, models, only, progress)
    else:
        put = remedy(f"read_public({name!r}, folder)", f"--from DIR (layout: {source.layout})")
        raise DataError(f"{name}: cannot be fetched by itembank. Get the files from {source.address} and use {put}.")
    return target


def _from_archive(archive: Archive, folder: Path, only: Sequence[str], progress: ProgressCallback) -> None:
    """Fetch an archive, keep the files that are wanted, and remove it."""
    file = folder / ".archive.tar.gz"
    download(archive.url, file, most_bytes=archive.most_bytes, progress=part_of(progress, 0.0, 0.8))
    try:
        unpack(
            file,
            folder,
            only or archive.patterns,
            most_bytes=archive.most_bytes,
            progress=part_of(progress, 0.8, 1.0),
        )
    finally:
        file.unlink()


def _from_hub(
    source: PublicSource, folder: Path, models: Sequence[str], only: Sequence[str], progress: ProgressCallback
) -> None:
    """Fetch the repositories of some models, or the one that holds all."""
    files = cast(HubFiles, source.download)
    if files.is_one_a_model != bool(models):
        option = remedy("models=['org/name']", "--model org/name")
        need = "keeps one repository a model: name them" if files.is_one_a_model else "is one repository: leave out"
        raise ParameterError(f"{source.name} {need} ({option}), got {len(models)} models.")
    names = [files.repository.format(model=model.replace("/", "__")) for model in models] or [files.repository]
    for done, repository in enumerate(names):
        progress(f"fetching {repository}", done / len(names))
        fetch_repository(repository, folder, only or files.patterns, most_bytes=files.most_bytes)
