"""Files over HTTPS: resumed where they broke off, bounded in size, checked by their SHA-256 where that is known."""

import hashlib
import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from itembank.errors import DataError, IntegrityError, ParameterError
from itembank.files.atomic import check_destination
from itembank.progress import ProgressCallback, silent

BYTES_AT_ONCE = 1 << 18
SECONDS_OF_SILENCE = 60.0
ATTEMPTS = 4
"""Times that a broken connection is made again before the command gives up; what has arrived stays for the next."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
FULL_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class _Partial:
    """What has arrived of a file so far, and the version (ETag) it is of."""

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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be fetched."""

    url: str
    most_bytes: int
    progress: ProgressCallback

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

    Parameters
    ----------
    url : str
        ``https://`` or ``file://``; ``http://`` for this machine only. The same holds for where it is sent on to.
    target : Path
        Where the file stands afterwards.
    most_bytes : int
        A larger file is refused, by what the server says of it or as it arrives.
    sha256 : str or None
        Digest that the file must have.
    progress : function

    Raises
    ------
    DataError
        When the file is too large, or the server does not give it.
    IntegrityError
        When it has another digest; it is removed.
    ParameterError
        When the address is none of these.
    """
    check_address(url)
    check_destination(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _Partial(target.with_name(f".{target.name}.part"), target.with_name(f".{target.name}.tag"))
    wanted = _Wanted(url, most_bytes, progress)
    for attempt in range(ATTEMPTS):
        try:
            _fetch(wanted, partial)
            break
        except (http.client.HTTPException, OSError) as error:
            if attempt == ATTEMPTS - 1 or not _is_passing(error):
                raise DataError(_broken(url, partial, error)) from error
    found = _digest(partial.path)
    if sha256 is not None and found != sha256:
        partial.remove()
        raise IntegrityError(
            f"{url}: the file must have the SHA-256 {sha256}, got {found}. It was removed: fetch it again, and if that "
            "does not help, it was changed at its source."
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


def _fetch(wanted: _Wanted, partial: _Partial) -> None:
    """Ask for what has not arrived yet, and put it behind what has."""
    start = partial.size
    request = urllib.request.Request(wanted.url, headers=_headers(start, partial.tag))  # noqa: S310 (checked)
    try:
        answer = urllib.request.build_opener(_Redirects()).open(request, timeout=SECONDS_OF_SILENCE)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # nothing is left to send, or the file has become shorter
            if _whole_size(error.headers) == start:
                return
            partial.begin("")
            raise _InterruptedError(str(error)) from error
        raise
    with answer:
        headers: Message = answer.headers
        if start and not _goes_on(answer, start):
            start = 0
        if start == 0:
            partial.begin(headers.get("ETag", ""))
        length = headers.get("Content-Length")
        total = start + int(length) if length else None
        try:
            wanted.check_size(total or 0)
            with partial.path.open("ab") as file:
                _copy(answer, file, start, total, wanted)
        except DataError:  # too large: what has arrived is of no use
            partial.remove()
            raise


def _headers(start: int, tag: str) -> Mapping[str, str]:
    """Ask for the rest of the version that the first part is of; without a version, for the whole."""
    rest = {"Range": f"bytes={start}-", "If-Range": tag} if start and tag.startswith('"') else {}
    return {"User-Agent": "itembank", "Accept-Encoding": "identity", **rest}


def _goes_on(answer: Any, start: int) -> bool:
    """Whether a server sends the rest of a file, rather than all of it again."""
    found = FULL_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    return getattr(answer, "status", None) == 206 and found is not None and int(found[1]) == start


def _whole_size(headers: Message) -> int | None:
    """Size that a server says of a file of which it has no more to send."""
    found = re.fullmatch(r"bytes \*/(\d+)", headers.get("Content-Range", ""))
    return int(found[1]) if found else None


def _copy(answer: Any, file: IO[bytes], start: int, total: int | None, wanted: _Wanted) -> None:
    """Write what arrives."""
    done = start
    name = urlsplit(wanted.url).path.rpartition("/")[2]
    while block := answer.read(BYTES_AT_ONCE):
        done += len(block)
        wanted.check_size(done)
        file.write(block)
        wanted.progress(f"fetching {name} ({done / 1e6:,.1f} MB)", done / total if total else 0.0)
    if total is not None and done < total:
        raise _InterruptedError(f"got {done:,} of {total:,} bytes")


def _is_passing(error: Exception) -> bool:
    """Whether an error may be gone the next time: a broken connection, or a server that has trouble."""
    return not isinstance(error, urllib.error.HTTPError) or error.code >= 500 or error.code == 429


def _broken(url: str, partial: _Partial, error: Exception) -> str:
    kept = f" {partial.size:,} bytes have arrived and are kept: run it again to go on." if partial.size else ""
    return f"{url}: could not be fetched: {error}.{kept}"


def _digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
