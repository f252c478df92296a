"""The Hugging Face Hub: names ``hf:owner/name[@revision]``, its client, and the client's errors in our words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itembank.errors import BankError, ItembankError, ParameterError, missing_package, quoted

PREFIX = "hf:"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"{PREFIX}(?P<repository>{_PART}/{_PART})(?:@(?P<revision>[A-Za-z0-9_][A-Za-z0-9_./-]*))?")


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository of the Hub, and a revision of it."""

    repository: str  # ``owner/name``
    revision: str | None = None  # A branch, tag or commit; None is the newest

    def __str__(self) -> str:
        """Return the name as users write it."""
        return f"{PREFIX}{self.repository}" + (f"@{self.revision}" if self.revision else "")


def is_hub_name(place: str | Path) -> bool:
    """Whether a bank's place is a name of the Hub and not a folder."""
    return str(place).startswith(PREFIX)


def parse_hub_name(place: str | Path) -> HubName:
    """Read a name."""
    found = _NAME.fullmatch(str(place))
    if found is None or ".." in str(place) or "--" in found["repository"] or len(found["repository"]) > 96:
        raise ParameterError(
            f"a bank of the Hugging Face Hub must be named hf:owner/name or hf:owner/name@revision, got "
            f"{quoted(place)}."
        )
    return HubName(found["repository"], found["revision"])


KIND = "dataset"
"""Of repository that a bank is on the Hub."""

_CLIENTS = {"huggingface_hub", "httpx", "httpx2", "requests", "hf_xet"}
"""Packages whose errors say that something is wrong with the connection; which one it is depends on the release."""


def hub_client(need: str = "banks named hf:owner/name need huggingface_hub") -> Any:
    """Import `huggingface_hub`; `need` begins the message where it is not installed."""
    try:
        import huggingface_hub  # noqa: PLC0415
    except ImportError as error:
        raise missing_package(need, "huggingface_hub", error) from error
    return huggingface_hub


def quieten() -> None:
    """Let the client show no progress."""
    hub_client()
    from huggingface_hub.utils import disable_progress_bars  # noqa: PLC0415

    disable_progress_bars()


def is_unreachable(error: Exception) -> bool:
    """Whether an error says that the Hub gave no answer, so that a copy on this machine will have to do."""
    response = getattr(error, "response", None)
    return (_is_of_client(error) and response is None) or isinstance(error, ConnectionError)


@contextmanager
def hub_errors(name: HubName | str, deed: str, kind: type[ItembankError] = BankError) -> Iterator[None]:
    """Turn errors of the client into one that says what could not be done.

    `deed` ends the sentence '... cannot be', as 'downloaded'.
    """
    try:
        yield
    except ItembankError:
        raise
    except Exception as error:
        if not _is_of_client(error) and not isinstance(error, ConnectionError):
            raise
        raise kind(f"{name} cannot be {deed}: {_reason(error)}") from error


def _is_of_client(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in _CLIENTS


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    if kind == "OfflineModeIsEnabled":
        return "HF_HUB_OFFLINE is set. Unset it to reach the Hub."
    if kind in {"LocalEntryNotFoundError", "IncompleteSnapshotError", "CachedRepoTreeNotFoundError"}:
        return "the Hub gave no answer, and this machine holds no whole copy. Try again when it can be reached."
    if kind == "RevisionNotFoundError":
        return "the repository has no such revision. Name a branch, tag or commit of it."
    if kind == "GatedRepoError":
        return "its owner must give you access first. Ask on its page, then log in with hf auth login."
    status = getattr(getattr(error, "response", None), "status_code", None)
    if kind in {"RepositoryNotFoundError", "LocalTokenNotFoundError"} or status in {401, 403}:
        return (
            "the Hub shows you no such dataset, or does not let you do this. Check the name; for a private one, or to "
            "write, log in with hf auth login."
        )
    text = str(error).strip().partition("\n")[0] or kind
    return f"{text.rstrip('.')}. Try again: the client goes on where it stopped."
