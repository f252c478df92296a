"""Names of banks on the Hugging Face Hub: ``hf:owner/name`` or ``hf:owner/name@revision``."""

import re
from dataclasses import dataclass
from pathlib import Path

from itembank.errors import ParameterError, quoted

PREFIX = "hf:"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"{PREFIX}(?P<repository>{_PART}/{_PART})(?:@(?P<revision>[A-Za-z0-9_][A-Za-z0-9_./-]*))?")
MOST_CHARACTERS = 96
"""Of a repository's name, as the Hub has it."""


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
    """Read a name.

    Raises
    ------
    ParameterError
        When it is not ``hf:owner/name`` or ``hf:owner/name@revision``.
    """
    found = _NAME.fullmatch(str(place))
    if found is None or ".." in str(place) or "--" in found["repository"] or len(found["repository"]) > MOST_CHARACTERS:
        raise ParameterError(
            f"a bank of the Hugging Face Hub must be named hf:owner/name or hf:owner/name@revision, got "
            f"{quoted(place)}."
        )
    return HubName(found["repository"], found["revision"])
