"""Files of data-set repositories of the Hugging Face Hub, by its own client: resumed, cached, checked by it."""

from collections.abc import Sequence
from pathlib import Path

from itembank.errors import DataError
from itembank.files.hub import hub_client, hub_errors


def fetch_repository(repository: str, folder: Path, patterns: Sequence[str], *, most_bytes: int) -> Path:
    """Fetch the files of a data-set repository whose names match.

    Parameters
    ----------
    repository : str
        ``owner/name``.
    folder : Path
        The files stand in ``folder/name`` afterwards.
    patterns : list of str
    most_bytes : int
        Of all these files together, by what the Hub says of them.

    Raises
    ------
    DataError
        When there is no such repository, it may not be read, holds none of the files or too much.
    MissingDependencyError
        Without huggingface_hub (extra ``hub``).
    """
    client = hub_client("files of the Hugging Face Hub need huggingface_hub")
    with hub_errors(repository, "fetched", DataError):
        info = client.HfApi().dataset_info(repository, files_metadata=True)
        sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
        names = list(client.utils.filter_repo_objects(sizes, allow_patterns=list(patterns)))
        _check_size(repository, patterns, names, sum(sizes[name] for name in names), most_bytes)
        target = folder / repository.rpartition("/")[2]
        client.snapshot_download(
            repository, repo_type="dataset", revision=info.sha, allow_patterns=names, local_dir=target
        )
    return target


def _check_size(repository: str, patterns: Sequence[str], names: Sequence[str], n_bytes: int, most_bytes: int) -> None:
    """Refuse a repository without the files, or with too much."""
    if not names:
        raise DataError(f"{repository}: must hold files named {', '.join(patterns)}, got none: its layout has changed.")
    if n_bytes > most_bytes:
        raise DataError(
            f"{repository}: its files must have at most {most_bytes:,} bytes, got {n_bytes:,}. Choose fewer: --only."
        )
