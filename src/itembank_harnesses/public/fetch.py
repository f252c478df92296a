"""`fetch_public`: the files of a public source, fetched into a folder."""

import datetime
import errno
import hashlib
import http.client
import json
import re
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from itembank.errors import DataError, IntegrityError, ItembankError, ParameterError, quoted, remedy
from itembank.files.atomic import check_destination, replacing_file, user_cache_folder, write_text
from itembank.files.documents import read_json
from itembank.files.hub import hub_client, hub_errors
from itembank.progress import ProgressCallback, part_of, silent
from itembank.tables import plural
from itembank_harnesses.public.sources import Archive, Fetched, HubFiles, PublicSource
from itembank_harnesses.public.stores import public_source


def public_folder(name: str) -> Path:
    """Return where a source's files are kept when no folder is named."""
    return user_cache_folder() / "public" / name


STATE = ".fetched.json"


def fetched_state(folder: Path) -> Fetched | None:
    """Return the state that `fetch_public` put into a folder; None where something else did."""
    try:
        return Fetched(**read_json(folder / STATE))
    except (OSError, ItembankError, TypeError):
        return None


def hub_models(source: PublicSource, n_models: int) -> tuple[str, ...]:
    """Choose models of a source that keeps one repository a model: evenly among all, in the order of their names."""
    if not isinstance(source.download, HubFiles):
        raise ParameterError(f"{source.name} keeps no repository a model, so none can be chosen. Leave n_models out.")
    owner, _, pattern = source.download.repository.partition("/")
    before, _, after = pattern.partition("{model}")
    with hub_errors(owner, "listed", DataError):
        listed = hub_client("files of the Hugging Face Hub need huggingface_hub").HfApi().list_datasets(author=owner)
        names = sorted(str(one.id).partition("/")[2] for one in listed)
    own = [one for one in names if one.startswith(before) and one.endswith(after) and "__" in one]
    models = [one.removeprefix(before).removesuffix(after).replace("__", "/", 1) for one in own]
    if len(models) < n_models:
        raise DataError(f"{owner} must hold repositories of {n_models} models, got {len(models)}.")
    return tuple(models[len(models) * k // n_models] for k in range(n_models))


def fetch_public(
    name: str | PublicSource,
    folder: str | Path | None = None,  # None: a folder of the user's cache
    *,
    models: Sequence[str] = (),  # Ids of the models to fetch, for sources that keep one repository a model
    only: Sequence[str] = (),  # Patterns of file names, in place of the source's own
    progress: ProgressCallback = silent,
) -> Path:
    """Fetch the files of a public source; an interrupted call goes on where it stopped.

    Returns the folder, for `read_public`.

    Raises `DataError` when the files cannot be fetched, or the source offers none; `ParameterError` when models are
    missing, or given to a source that does not keep them apart.
    """
    source = public_source(name)
    name = source.name
    target = Path(folder) if folder is not None else public_folder(name)
    (target / STATE).unlink(missing_ok=True)  # of what was fetched before
    revision = ""
    if isinstance(source.download, Archive):
        if models:
            raise ParameterError(f"{name} is fetched whole, so no models can be chosen, got {len(models)}.")
        revision = _from_archive(source.download, target, only, progress)
    elif isinstance(source.download, HubFiles):
        files = source.download
        if files.is_one_a_model != bool(models):
            option = remedy("models=['org/name']", "--model org/name")
            need = "keeps one repository a model: name them" if files.is_one_a_model else "is one repository: leave out"
            raise ParameterError(f"{source.name} {need} ({option}), got {plural(len(models), 'model')}.")
        names = [files.repository.format(model=model.replace("/", "__")) for model in models] or [files.repository]
        for done, repository in enumerate(names):
            progress(f"fetching {repository}", done / len(names))
            _, commit = fetch_repository(
                repository, target, only or files.patterns, most_bytes=files.most_bytes, revision=files.revision
            )
            revision = "" if files.is_one_a_model else commit
    else:
        put = remedy(f"read_public({name!r}, folder)", f"--from DIR (layout: {source.layout})")
        raise DataError(f"{name}: cannot be fetched by itembank. Get the files from {source.address} and use {put}.")
    state = Fetched(revision, datetime.datetime.now(datetime.UTC).date().isoformat())
    write_text(target / STATE, json.dumps(asdict(state)))
    return target


def _from_archive(archive: Archive, folder: Path, only: Sequence[str], progress: ProgressCallback) -> str:
    """Fetch an archive, keep the files that are wanted, and remove it; return the commit, or the digest, of it."""
    file = folder / (".archive.tar.gz" if archive.patterns else urlsplit(archive.url).path.rpartition("/")[2])
    report = part_of(progress, 0.0, 0.8)
    download(archive.url, file, most_bytes=archive.most_bytes, sha256=archive.sha256, progress=report)
    if not archive.patterns:
        return f"sha256:{_digest(file)}"
    try:
        unpack(
            file, folder, only or archive.patterns, most_bytes=archive.most_bytes, progress=part_of(progress, 0.8, 1.0)
        )
        with tarfile.open(file) as tar:  # git writes the commit into what is before the first file
            commit = tar.pax_headers.get("comment", "")
        return commit if COMMIT.fullmatch(commit) else f"sha256:{_digest(file)}"
    finally:
        file.unlink()


ATTEMPTS = 4
"""Times that a broken connection is made again before the command gives up; what has arrived stays for the next."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
COMMIT = re.compile(r"[0-9a-f]{40}")
FULL_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class _Download:
    """A file that is fetched: what has arrived of it so far, and the version (ETag) that is of."""

    url: str
    most_bytes: int
    progress: ProgressCallback
    path: Path
    tag_path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def tag(self) -> str:
        return self.tag_path.read_text(encoding="utf-8") if self.tag_path.exists() else ""

    def begin(self, tag: str) -> None:
        """Forget what has arrived: the next bytes are the first of this version."""
        self.path.unlink(missing_ok=True)
        self.tag_path.write_text(tag, encoding="utf-8")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.tag_path.unlink(missing_ok=True)

    def check_size(self, n_bytes: int) -> None:
        """Raise `DataError` when a file is larger than it may be."""
        if n_bytes > self.most_bytes:
            raise DataError(
                f"{self.url}: must have at most {self.most_bytes:,} bytes, got {n_bytes:,} or more. Is it the right "
                "address?"
            )


def download(
    url: str, target: Path, *, most_bytes: int, sha256: str | None = None, progress: ProgressCallback = silent
) -> Path:
    """Fetch a file whole, or leave what has arrived beside `target` for the next call to go on with.

    What has arrived is checked: against `most_bytes` by what the server says and as it comes, and against `sha256`,
    where it is given, when all is there. Addresses are ``https://`` or ``file://``, or ``http://`` for this machine;
    the same holds for where they are sent on to.
    """
    check_address(url)
    check_destination(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    paths = (target.with_name(f".{target.name}.part"), target.with_name(f".{target.name}.tag"))
    partial = _Download(url, most_bytes, progress, *paths)
    for attempt in range(ATTEMPTS):
        try:
            _fetch(partial)
            break
        except (http.client.HTTPException, OSError) as error:
            is_refused = isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code != 429
            if is_refused or attempt == ATTEMPTS - 1:
                n_kept = partial.size
                kept = f" {n_kept:,} bytes have arrived and are kept: run it again to go on." if n_kept else ""
                raise DataError(f"{url}: could not be fetched: {error}.{kept}") from error
    found = _digest(partial.path)
    if sha256 is not None and found != sha256:
        partial.remove()
        raise IntegrityError(
            f"{url}: the file must have the SHA-256 {sha256}, got {found}. It was removed: fetch it again, and if that "
            "does not help, it was changed at its source: look at it, and name its SHA-256 in a recipe of your own."
        )
    partial.path.replace(target)
    partial.remove()
    return target


def check_address(url: str) -> None:
    """Raise `ParameterError` unless an address is https, file, or http to this machine."""
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
    if parts.scheme not in {"https", "file"} and not is_local:
        raise ParameterError(f"an address must begin with https:// (or file://), got {url!r}.")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to addresses that may be fetched; urllib itself follows none to files of this machine."""

    def redirect_request(  # noqa: PLR0917 (as urllib calls it)
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        check_address(newurl)
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise ParameterError(f"{req.full_url} must lead to https:// addresses only, got {newurl!r}.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _InterruptedError(OSError):
    """The connection ended before the file did."""


def _fetch(partial: _Download) -> None:
    """Ask for what has not arrived yet, and put it behind what has."""
    start = partial.size
    rest = {"Range": f"bytes={start}-", "If-Range": partial.tag} if start and partial.tag.startswith('"') else {}
    headers = {"User-Agent": "itembank", "Accept-Encoding": "identity", **rest}
    request = urllib.request.Request(partial.url, headers=headers)  # noqa: S310 (checked)
    try:
        answer = urllib.request.build_opener(_Redirects()).open(request, timeout=60.0)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # nothing is left to send, or the file has become shorter
            found = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", ""))
            if (int(found[1]) if found else None) == start:
                return
            partial.begin("")
            raise _InterruptedError(str(error)) from error
        raise
    with answer:
        sent = FULL_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if getattr(answer, "status", None) != 206 or sent is None or int(sent[1]) != start:
            start = 0  # the server sends all of the file again
        if start == 0:
            partial.begin(answer.headers.get("ETag", ""))
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length else None
        try:
            partial.check_size(total or 0)
            with partial.path.open("ab") as file:
                done = start
                name = urlsplit(partial.url).path.rpartition("/")[2]
                while block := answer.read(1 << 18):
                    done += len(block)
                    partial.check_size(done)
                    file.write(block)
                    partial.progress(f"fetching {name} ({done / 1e6:,.1f} MB)", done / total if total else 0.0)
                if total is not None and done < total:
                    raise _InterruptedError(f"got {done:,} of {total:,} bytes")
        except DataError:  # too large: what has arrived is of no use
            partial.remove()
            raise


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


MOST_FILES = 100_000
"""More than any store holds several times over."""
UNFIT_NAME = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY}
"""Of names that the system cannot make a file of: too long, or of a file that is also a folder."""


def unpack(
    archive: Path, folder: Path, patterns: Sequence[str], *, most_bytes: int, progress: ProgressCallback = silent
) -> int:
    """Write the files of a tar archive whose names match, without the archive's own first folder.

    Links, devices and names that lead out of the folder are left out. Each file is written whole or not at all.

    A `DataError` says that the archive is damaged, holds none of these files, gives too much, or names one as no file
    can be named.
    """
    n_files = n_bytes = 0
    try:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                name = _name(member, patterns)
                content = tar.extractfile(member) if name else None
                if name is None or content is None:
                    continue
                n_bytes += member.size
                if n_bytes > most_bytes:
                    raise DataError(f"{archive}: its files must have at most {most_bytes:,} bytes, got more.")
                n_files += 1
                if n_files > MOST_FILES:
                    raise DataError(f"{archive}: must hold at most {MOST_FILES:,} files, got more.")
                with _named(archive, name), replacing_file(folder / name) as temporary, temporary.open("wb") as file:
                    shutil.copyfileobj(content, file)
                progress(f"unpacking ({n_files} files)", 0.0)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{archive}: the archive cannot be read: {error}. Fetch it again.") from error
    if n_files == 0:
        raise DataError(f"{archive}: must hold files named {', '.join(patterns)}, got none: its layout has changed.")
    return n_files


@contextmanager
def _named(archive: Path, name: PurePosixPath) -> Iterator[None]:
    """Name a file of an archive that cannot be made."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno not in UNFIT_NAME:
            raise
        raise DataError(
            f"{archive}: every file must have a name that a file can have here, got {quoted(name)} "
            f"({getattr(error, 'strerror', None) or error}). The archive was not made as its store makes them."
        ) from error


def _name(member: tarfile.TarInfo, patterns: Sequence[str]) -> PurePosixPath | None:
    """Name of a file below the archive's first folder; None when it is not partial."""
    parts = PurePosixPath(member.name).parts[1:]
    if not member.isreg() or not parts or ".." in parts or member.name.startswith("/"):
        return None
    name = PurePosixPath(*parts)
    return name if any(fnmatchcase(str(name), pattern) for pattern in patterns) else None


def fetch_repository(
    repository: str, folder: Path, patterns: Sequence[str], *, most_bytes: int, revision: str | None = None
) -> tuple[Path, str]:
    """Fetch the files of a data-set repository whose names match; return their folder and the commit.

    They are in ``folder/name`` afterwards, and have at most `most_bytes` together by what the Hub says of them.
    """
    client = hub_client("files of the Hugging Face Hub need huggingface_hub")
    with hub_errors(repository, "fetched", DataError):
        info = client.HfApi().dataset_info(repository, revision=revision, files_metadata=True)
        sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
        names = list(client.utils.filter_repo_objects(sizes, allow_patterns=list(patterns)))
        n_bytes = sum(sizes[name] for name in names)
        if not names:
            raise DataError(
                f"{repository}: must hold files named {', '.join(patterns)}, got none: its layout has changed."
            )
        if n_bytes > most_bytes:
            most = f"{most_bytes:,} bytes, got {n_bytes:,}"
            raise DataError(f"{repository}: its files must have at most {most}. Choose fewer: --only.")
        target = folder / repository.rpartition("/")[2]
        client.snapshot_download(
            repository, repo_type="dataset", revision=info.sha, allow_patterns=names, local_dir=target
        )
    return target, str(info.sha)
