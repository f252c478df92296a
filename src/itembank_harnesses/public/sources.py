"""`PublicSource`: what is known of a public store of results, and how its files are fetched."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from itembank.errors import ParameterError, quoted

GIGABYTE = 10**9


@dataclass(frozen=True, slots=True)
class Archive:
    """A compressed archive of a repository, of which only some files are kept; or one file of results."""

    url: str
    # Names to keep, below the archive's one folder; ``*`` stands for any letters, ``/`` too. None: the file itself
    patterns: tuple[str, ...] = ()
    most_bytes: int = 4 * GIGABYTE  # Of the archive, and of what is kept
    sha256: str | None = None  # Of the archive

    @property
    def version(self) -> str:
        """Which state of the repository is fetched: a branch or tag as it is, or a commit."""
        return self.url.partition("/tar.gz/")[2]

    def at(self, revision: str) -> "Archive":
        """Return the archive of another state, a commit or a tag."""
        place, is_github, _ = self.url.partition("/tar.gz/")
        if not is_github:
            raise ParameterError(f"a revision is for archives of GitHub (.../tar.gz/BRANCH), got {self.url!r}.")
        return replace(self, url=f"{place}{is_github}{revision}")


@dataclass(frozen=True, slots=True)
class HubFiles:
    """Files of data-set repositories of the Hugging Face Hub."""

    repository: str  # Its name; ``{model}`` stands for a model's id with ``__`` for ``/``: one repository a model
    patterns: tuple[str, ...]  # Names of the files to fetch
    most_bytes: int = 20 * GIGABYTE  # Of all files together
    revision: str | None = None  # None is the newest commit of its main branch

    @property
    def version(self) -> str:
        """Which state of the repository is fetched."""
        return self.revision or "refs/heads/main"

    def at(self, revision: str) -> "HubFiles":
        """Return the files of another state, a commit or a tag."""
        return replace(self, revision=revision)

    @property
    def is_one_a_model(self) -> bool:
        """Whether each model has a repository of its own."""
        return "{model}" in self.repository


@dataclass(frozen=True, slots=True)
class Fetched:
    """Which state of a source is in a folder."""

    revision: str = ""  # The commit; the SHA-256 of a file or archive that tells none; empty where it is not known
    date: str = ""  # YYYY-MM-DD
    address: str = ""  # Of a bank that was built from it: a page that says what it is
    licence: str = ""  # As that page states it

    def __post_init__(self) -> None:
        """Check that both are what they say, for files tell them."""
        if not (re.fullmatch(r"[A-Za-z0-9._:-]{0,100}", self.revision) and re.fullmatch(r"[0-9-]{0,10}", self.date)):
            raise ParameterError(
                f"the state of a source must be a revision and a day, got {quoted(self.revision)} and "
                f"{quoted(self.date)}."
            )


@dataclass(frozen=True, slots=True)
class PublicSource:
    """A public store of per-item results."""

    name: str
    holds: str
    licence: str  # As the store states it
    address: str
    layout: str  # What a folder of its files looks like
    # The program whose results it holds, a name in `itembank.readers.sources.sources`; or 'long' and what else
    # `itembank import --as` has for tables, whose files are those that the patterns of the download match
    reader: str
    n_models: int | None = None  # About how many it held when this was written; None where it has no fixed number
    n_items: int | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)  # What the reader is told unless the caller says otherwise
    # What the scores are that the store itself states, for the list, '-' where it states none: `X_published` of the
    # reader's module gives them, ``folder -> (model_id, scenario, score)``
    checked: str = "-"
    tolerance: float = 1e-6  # How far a score may be from the published one: their rounding
    download: Archive | HubFiles | None = None  # Archive, HubFiles
