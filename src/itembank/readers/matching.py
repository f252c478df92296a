"""Which document of a harness is which item of a bank: one rule for runs, and for the logs that come of them.

A rule is ``place`` (the id is ``task/number``, as the harness's logs have it), ``hash`` (the same content),
``doc.FIELD`` (a field of the document holds the item's own id), or ``auto``: the first that finds every item once.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl

from itembank.errors import (
    DataError,
    DataWarning,
    IntegrityError,
    did_you_mean,
    quoted,
    remedy,
    shell_word,
    shown,
    warn,
)
from itembank.readers.collecting import find_sources
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import CONTENT_FIELDS, content_digest
from itembank.readers.sources import TABLES, reader_function, sources
from itembank.responses.how_read import CONTENT

AUTO: Final = "auto"
PLACE: Final = "place"
HASH: Final = "hash"
NATIVE: Final = "native_id"
"""Column of the item table: what the item is called where it comes from, if that is not its id."""
MADE_BY: Final[Mapping[str, str]] = {"lm-eval": "doc_id", "inspect": "sample_id"}
"""Column of the item table that says in which harness an item has its place, and so who made its content hash."""
WELL_KNOWN: Final = (
    *("question_id", "instance_id", "task_id", "problem_id", "example_id", "sample_id"),
    *("uid", "qid", "uuid", "key", "id"),
)
"""Fields that are tried by themselves, in this order."""
MOST_FIELDS: Final = 8
"""Fields of a document that a message names."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a harness asks: a document of lm_eval, a sample of Inspect."""

    task: str  # As the harness calls it
    name: str  # Its number or id in the task, as logs tell it
    fields: Mapping[str, Any]
    own_hash: Callable[[], str | None]  # As this harness hashes contents
    is_whole: bool = True  # Whether the fields hold their whole texts, which logs of Inspect cut

    @property
    def place(self) -> str:
        """Id of the item that the reader of the harness's logs makes of it."""
        return f"{self.task}/{self.name}"

    def content(self, fields: str | None) -> str | None:
        """Return the digest of these fields (a JSON list), or the harness's own hash where none are named.

        None where it cannot be known.
        """
        if fields is None or not self.is_whole:
            return self.own_hash() if fields is None else None
        return content_digest(*(value_at(self.fields, name) for name in _field_names(fields)))


def _field_names(text: str) -> list[str]:
    """Return the names in a bank's column of fields, which may be a stranger's."""
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(
            f"{CONTENT_FIELDS} of a bank must hold lists of names, got {quoted(text)}. Import its results again."
        )
    return names


def value_at(fields: Any, path: str) -> Any:
    """Return the value of a field, or of one inside another (``meta.id``); None where there is none."""
    if not isinstance(fields, Mapping):
        return None
    name, _, rest = path.partition(".")
    return fields[path] if path in fields else value_at(fields.get(name), rest) if rest else None


def native_ids(items: pl.DataFrame) -> list[str]:
    """Return what each item is called where it comes from, (n_items,).

    That is its `native_id` or `sample_id`; else its id, without the task before it.
    """
    ids = pl.col("item_id")
    known = [pl.col(name).cast(pl.String) for name in (NATIVE, MADE_BY["inspect"]) if name in items.columns]
    if "task" in items.columns:
        start = pl.col("task") + "/"
        known.append(pl.when(ids.str.starts_with(start)).then(ids.str.slice(start.str.len_chars())))
    return items.select(pl.coalesce(*known, ids)).to_series().to_list()


def plain(task: str) -> str:
    """Name of a task without its package, case and what joins its words."""
    return task.rpartition("/")[2].casefold().replace("_", "").replace("-", "")


@dataclass(slots=True)
class _Tried:
    """What one rule finds."""

    rule: str
    found: dict[str, Document] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)  # Found twice, or where another item is found, too


@dataclass(frozen=True, slots=True)
class _Asked:
    """One item, with all it can be found by."""

    item_id: str
    task: str  # Empty where unknown
    native: str | None
    content: str | None
    content_fields: str | None
    number: str | None  # Its place in a task of lm_eval, which names nothing elsewhere

    def keys(self, rule: str) -> tuple[object, ...]:
        """Return what it must be called under a rule, the best name first."""
        if rule == PLACE:
            return (self.item_id,)
        if rule == HASH:
            return () if self.content is None else ((self.content_fields, self.content),)
        if self.native is not None or self.number is not None:
            return (self.item_id if self.native is None else self.native,)
        return (self.item_id, self.item_id.rpartition("/")[2])


def _asked(items: pl.DataFrame, wanted: Iterable[str]) -> list[_Asked]:
    names = ("task", NATIVE, CONTENT, CONTENT_FIELDS, MADE_BY["lm-eval"])
    columns = [pl.col(name).cast(pl.String) if name in items.columns else pl.lit(None).alias(name) for name in names]
    found = {
        item: _Asked(item, task or item.rpartition("/")[0], *rest)
        for item, task, *rest in items.select("item_id", *columns).iter_rows()
    }
    return [found[item] if item in found else _Asked(item, item.rpartition("/")[0], *[None] * 4) for item in wanted]


def _names(document: Document, rule: str, kinds: Collection[str | None]) -> Iterator[object]:
    """Give what a document is called under a rule; its content by the fields of each of these kinds."""
    if rule == HASH:
        yield from ((fields, document.content(fields)) for fields in kinds)
    elif rule == PLACE:
        yield document.place
    else:
        value = value_at(document.fields, rule.removeprefix("doc."))
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield str(value)


def _try(
    rule: str, asked: Sequence[_Asked], documents: Sequence[Document], groups: Mapping[str, Collection[str]]
) -> _Tried:
    """Look for each item; in the tasks that are called as its own, or are in a group called so, where there are any."""
    kinds = {one.content_fields for one in asked if one.content is not None}
    index: dict[object, list[Document]] = defaultdict(list)
    for document in documents:
        for key in _names(document, rule, kinds):
            index[key].append(document)
    members: dict[str, set[str]] = defaultdict(set)
    for name in {document.task for document in documents}:
        members[plain(name)].add(name)
    for group, tasks in groups.items():
        members[plain(group)].update(tasks)
    tried = _Tried(rule)
    for one in asked:
        own = members.get(plain(one.task)) if one.task else None
        named = (
            [document for document in index.get(key, ()) if not own or document.task in own] for key in one.keys(rule)
        )
        found = next(filter(None, named), [])
        if len(found) == 1:
            tried.found[one.item_id] = found[0]
        else:
            (tried.double if found else tried.absent).append(one.item_id)
    counts = Counter(document.place for document in tried.found.values())
    shared = [item for item, document in tried.found.items() if counts[document.place] > 1]
    tried.double += shared
    for item in shared:
        del tried.found[item]
    return tried


def _attempts(
    rule: str, asked: Sequence[_Asked], documents: Sequence[Document], groups: Mapping[str, Collection[str]]
) -> Iterator[_Tried]:
    """Try the rule; of ``auto`` one after the other."""
    fields = dict.fromkeys(name for document in documents for name in document.fields)
    if rule == AUTO:
        rules = [PLACE, *([HASH] if any(one.content for one in asked) else [])]
        rules += [f"doc.{name}" for name in WELL_KNOWN if name in fields]
    else:
        rules = [rule]
        name = rule.removeprefix("doc.")
        if rule not in {PLACE, HASH} and all(value_at(one.fields, name) is None for one in documents):
            raise DataError(
                f"{remedy('match', '--match')} must name a field of the documents, 'hash' or 'auto', got {rule!r}; "
                f"they have the fields {shown(list(fields), MOST_FIELDS)}.{did_you_mean(name, fields)}"
            )
    return (_try(one, asked, documents, groups) for one in rules)


def find_items(
    items: pl.DataFrame,
    wanted: Sequence[str],
    documents: Sequence[Document],
    rule: str = AUTO,
    groups: Mapping[str, Collection[str]] | None = None,  # Tasks of each group of tasks
) -> dict[str, Document]:
    """Return the document of each wanted item of a bank.

    Raises `IntegrityError` when an item is not there, or twice: it says which rules were tried, and what ids look like
    on both sides; `DataError` when no document has the field that the rule names.
    """
    asked = _asked(items, wanted)
    tried = []
    for one in _attempts(rule, asked, documents, groups or {}):
        if len(one.found) == len(asked):
            return one.found
        tried.append(one)
    raise IntegrityError(_not_found(asked, documents, tried))


def _not_found(asked: Sequence[_Asked], documents: Sequence[Document], tried: Sequence[_Tried]) -> str:
    best = max(tried, key=lambda one: (len(one.found), len(one.double)))
    tasks = list(dict.fromkeys(document.task for document in documents))
    n = len(asked)
    parts = [f"{len(best.absent)} of {n} that are in none: {shown(best.absent)}"] if best.absent else []
    parts += [f"{len(best.double)} of {n} that are there more than once: {shown(best.double)}"] if best.double else []
    words = (
        f"every item must be one of the {len(documents)} documents of {shown(tasks)}, got {'; '.join(parts)}. Looked "
        f"for by {', '.join(one.rule for one in tried)}"
    )
    words += f" (these are by {best.rule})" if len(tried) > 1 else ""
    if best.found:
        return f"{words}. No request was sent. Run the benchmark that the bank was made of, with the same arguments."
    helping = _best_field(asked, documents)
    if helping:
        how = remedy(f"match={f'doc.{helping}'!r}", f"--match {shell_word(f'doc.{helping}')}")
        return f"{words}. The ids of the bank are in the field {helping!r} of the documents: add {how}."
    first = {} if not documents else documents[0].fields
    told = [f"{name}={quoted(str(value)[:40])}" for name, value in first.items() if isinstance(value, str | int)]
    how = remedy("match='doc.FIELD'", "--match doc.FIELD")
    return (
        f"{words}. Ids of the bank look like {quoted(asked[0].item_id)}; the first document has "
        f"{', '.join(told[:MOST_FIELDS]) or 'no field that could be an id'}. Name the tasks that hold the items, or "
        f"the field of their ids ({how})."
    )


def _best_field(asked: Sequence[_Asked], documents: Sequence[Document]) -> str:
    """Return the field by which most items are found, if any is."""
    names = dict.fromkeys(
        name for document in documents for name, value in document.fields.items() if value is not None
    )
    counts = {name: len(_try(f"doc.{name}", asked, documents, {}).found) for name in names}
    best = max(counts, key=lambda name: counts[name], default="")
    return best if counts.get(best) else ""


def find_logged(items: pl.DataFrame, documents: Sequence[Document], rule: str = AUTO) -> dict[str, Document]:
    """Return the documents of logs that are items of a bank, by the items' ids.

    The first rule counts that makes every document an item, else the one that does so for most of them, where it is
    nine in ten of ten or more, or all items are found. Where none does, logs keep their own ids (nothing is returned),
    unless the rule was named.
    """
    asked = _asked(items, items["item_id"])
    attempts = list(_attempts(rule, asked, documents, {}))
    for tried in attempts:
        if rule != AUTO or len(tried.found) == len(documents):
            if tried.double:
                raise DataError(
                    f"an item must be one document of the logs, got {len(tried.double)} that {tried.rule} finds more "
                    f"than once: {shown(tried.double)}. Read the logs of one benchmark alone, or name another field."
                )
            return tried.found
    best = max(attempts, key=lambda one: len(one.found), default=None)
    if best is None or best.double or len(documents) < 10:
        return {}
    return best.found if len(best.found) >= min(len(asked), 0.9 * len(documents)) else {}


def logged_documents(paths: Sequence[Path], spec: ReadingSpec, items: pl.DataFrame | None = None) -> list[Document]:
    """Return the documents that logs hold, each once; of the sources whose modules have ``X_documents``.

    That is given files, `spec` and the tasks of these items. It leaves out logs whose ids are the items' own, or
    returns None where nothing is to be matched for them.
    """
    known = set() if items is None else {one.task for one in _asked(items, items["item_id"])}
    found: dict[str, Document] = {}
    programs = {name: own for name, own in find_sources(paths, spec).paths.items() if name not in TABLES}
    for name in (one for one in sources() if one in programs) if programs else ():
        documents_of = reader_function(name, "{}_documents")
        documents = () if documents_of is None else documents_of(programs[name], spec, known)
        if documents is None:
            return []
        for one in documents:
            found.setdefault(one.place, one)
    return list(found.values())


def in_harness(items: pl.DataFrame, found: Mapping[str, tuple[str, str]]) -> pl.DataFrame:
    """Return the items that were found, by the ids and tasks that a harness has for them: the task, the name in it.

    Their content hashes are left out: contents were compared where items were found.
    """
    table = items.filter(pl.col("item_id").is_in(list(found)))
    places = [found[item] for item in table["item_id"]]
    table = table.with_columns(
        pl.Series("item_id", [f"{task}/{name}" for task, name in places], dtype=pl.String),
        pl.Series("task", [task for task, _ in places], dtype=pl.String),
    )
    return table.drop(CONTENT, CONTENT_FIELDS, strict=False)


def changed_contents(items: pl.DataFrame, found: Mapping[str, Document], harness: str) -> list[str]:
    """Return the items whose document is not what past models were asked, as content hashes tell.

    Hashes that another harness made say nothing. Warns where no document has the fields that a hash is of.
    """
    says = MADE_BY[harness] in items.columns or {*MADE_BY.values(), "task"}.isdisjoint(items.columns)
    changed, unknown = [], set()
    for one in _asked(items.filter(pl.col("item_id").is_in(list(found))), found):
        if one.content is None or (one.content_fields is None and not says):
            continue
        names = _field_names(one.content_fields or "[]")
        lacking = [name for name in names if value_at(found[one.item_id].fields, name) is None]
        if names and len(lacking) == len(names):
            unknown.update(lacking)
        elif found[one.item_id].content(one.content_fields) not in {None, one.content}:
            changed.append(one.item_id)
    if unknown:
        message = f"contents cannot be compared: documents have no field {shown(sorted(unknown))}"
        warn(f"{message}, of which the bank has a digest.", DataWarning)
    return changed
