"""Runs of Inspect: the logs of one run and of its retries, put together."""

import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from itembank.errors import DataError, ItembankError, quoted, shown
from itembank.files.documents import parse_json, regular_size
from itembank.files.memory import most_in_object, most_text, refuse_object, refuse_text
from itembank.readers.json_files import Record, first_record, listed, mapping
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import Zstandard, open_binary
from itembank.responses.prompts import ROLES, entries_text, short_digest
from itembank.responses.secrets import arguments_text, without_homes
from itembank_harnesses.readers.inspect_samples import OWN_SCORER, Sample, sample_of
from itembank_harnesses.readers.runs import Run, SampleFile, oldest_first

ARCHIVE = ".eval"
_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:version|status)":\s*[^,]{1,20},.{0,80}?"eval":\s*\{', re.DOTALL)
_SUMMARIES = re.compile(r"_journal/summaries/(\d+)\.json")


@dataclass(frozen=True, slots=True)
class LogFile:
    """What is read of one log."""

    path: Path
    header: Mapping[str, Any]  # Its `eval`, and `status` and `results` where the run came to its end
    samples: Sequence[Record]  # One a sample and epoch, without messages and events


def is_inspect_file(path: Path) -> bool:
    """Whether a file is a log of Inspect, by its name or its first bytes."""
    if path.suffix.lower() == ARCHIVE:
        return True
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with open_binary(path) as file:
        return _START.match(file.read(4096)) is not None


def inspect_files(paths: Sequence[Path], spec: ReadingSpec) -> list[Path]:
    """Find the logs at these places: files as they are given, and those inside folders; none twice."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = [file for file in sorted(path.rglob("*")) if not spec.leaves_out(file)]
            found.update(dict.fromkeys(file for file in inside if is_inspect_file(file)))
        else:
            found[path] = None
    return list(found)


def read_log(path: Path) -> LogFile:
    """Read a log, finished or not."""
    if path.suffix.lower() == ARCHIVE:
        header, samples = _archived(path)
    else:
        header = first_record(path)
        samples = _listed(path, header.get("samples") or [])
    if not isinstance(header.get("eval"), dict) or not all(isinstance(one, dict) for one in samples):
        raise DataError(f"{path}: is no log of Inspect: it must have an object 'eval' and samples that are objects.")
    return LogFile(path, header, samples)


def _archived(path: Path) -> tuple[Record, list[Record]]:
    """Read an `.eval` log; of a run that was killed there is a journal only."""
    regular_size(path)
    with _translated(path), zipfile.ZipFile(path) as archive, path.open("rb") as file:
        members = {one.filename: one for one in archive.infolist()}  # of two with one name, the last counts

        def document(name: str) -> Any:
            member = members[name]
            most = min(most_text(member.compress_size), most_in_object())
            with _opened(file, archive, member) as stream:
                content = stream.read(int(most) + 1)
            if len(content) > most:
                raise refuse_object(path, most) if most == most_in_object() else refuse_text(path, most)
            if zlib.crc32(content) != member.CRC:
                raise DataError(f"{path}: {member.filename} is damaged (its checksum differs). Copy the file again.")
            try:
                return parse_json(content.decode("utf-8"))
            except ValueError as error:
                raise DataError(f"{path}: {name} cannot be read as JSON: {error}.") from error

        header = document("header.json" if "header.json" in members else "_journal/start.json")
        if not isinstance(header, dict):
            raise DataError(f"{path}: the header must be an object, got {type(header).__name__}.")
        names = ["summaries.json"]
        if header.get("invalidated") is True:  # summaries do not say which samples are
            names = [name for name in members if name.startswith("samples/")]
            return header, [one if isinstance(one := document(name), dict) else {} for name in names]
        if "summaries.json" not in members:
            parts = sorted((int(found[1]), name) for name in members if (found := _SUMMARIES.fullmatch(name)))
            names = [name for _, name in parts]
        return header, [one for name in names for one in _listed(path, document(name))]


def _listed(path: Path, samples: Any) -> list[Record]:
    if not isinstance(samples, list):
        raise DataError(f"{path}: the samples must be a list, got {type(samples).__name__}.")
    return samples


def _opened(file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    zstandard, local_header = 93, 30  # a method of newer archives, which `zipfile` reads from Python 3.14 on; bytes
    if member.compress_type != zstandard or sys.version_info >= (3, 14):
        return archive.open(member)
    file.seek(member.header_offset)
    start = file.read(local_header)
    # The local header has names of its own length, in two bytes each.
    lengths = int.from_bytes(start[26:28], "little") + int.from_bytes(start[28:30], "little")
    file.seek(member.header_offset + local_header + lengths)
    packed = io.BytesIO(file.read(member.compress_size))
    return cast(IO[bytes], io.BufferedReader(Zstandard(packed)))


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what unpacking raises into a `DataError` that names the file."""
    try:
        yield
    except (ItembankError, MemoryError):
        raise
    except Exception as error:
        # A damaged archive raises many things: errors of zipfile and of Zstandard, struct.error, KeyError, ...
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = f"there is no {error}" if isinstance(error, KeyError) else (str(error) or type(error).__name__)
        raise DataError(
            f"{path}: the log cannot be read: {reason.splitlines()[0][:300]}. Copy it again; of a run that was "
            "killed, 'inspect log recover' may save more."
        ) from error


SYSTEM = "system_message"
"""Solver that puts a system prompt before the question."""
NO_PROMPT = frozenset(
    {"kwargs", "max_tokens", "temperature", "top_p", "top_k", "seed", "timeout", "cache", "tool_calls"}
)
"""Arguments of solvers that change no prompt."""
_WORD = re.compile(r"[\w .+-]{0,24}")
"""Arguments that are kept: words. Of paths, keys and longer texts it is the digest, as settings are published."""
_MODEL = re.compile(r"[\w.+:@-]{1,60}(/[\w.+:@-]{1,60}){0,3}")
"""Names of models that are kept; of others, such as paths, it is the digest."""
TELLS_ROLES = (0, 3, 100)
"""A release whose logs tell the models of roles: where one of it, or a newer one, tells none, there were none."""


@dataclass(frozen=True, slots=True)
class InspectRun(SampleFile):
    """One model on one task, with the path of the last log."""

    run_id: str  # The same for a run and its retries
    is_finished: bool
    samples: Mapping[tuple[str, int], Sample]  # mapping of (id, epoch) to Sample
    ended: str  # Status of the log, and the first error or limit in it; empty where there is none


def run_of(log: LogFile, spec: ReadingSpec) -> InspectRun:
    """Make a run of one log."""
    about = log.header["eval"]
    ours = mapping(mapping(about.get("metadata")).get(OWN_SCORER))
    task, name = str(ours.get("task") or about.get("task") or ""), str(about.get("model") or "")
    if not task or not name:
        raise DataError(f"{log.path}: a log must name its task and its model, got {quoted(task)} and {quoted(name)}.")
    arguments = arguments_text(dict(sorted(mapping(about.get("model_args")).items())))
    ids = {"name": name, "args": f"{name},{arguments}" if arguments else name, "folder": log.path.parent.name}
    size = ours.get("n_items_full", mapping(about.get("dataset")).get("samples"))
    version = mapping(about.get("packages")).get("inspect_ai")
    told = Run(
        model_name=name,
        n_items={task: size} if isinstance(size, int) and not isinstance(size, bool) and size > 0 else {},
        settings={task: _settings(log.header, about, is_ours=bool(ours))},
        about={
            "run_date": about.get("created") and str(about["created"]),
            "model_args": without_homes(arguments) or None,
            "inspect_version": version if isinstance(version, str) and version else None,
        },
    )
    return InspectRun(
        *(log.path, task, str(about.get("created") or ""), told, spec.model_id or ids[spec.model_id_from]),
        run_id=str(about.get("task_id") or log.path),
        is_finished=log.header.get("status") == "success",
        samples=_by_id(log),
        ended=_ended(log),
    )


def release_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a release of Inspect, up to three."""
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])


def together(runs: Sequence[InspectRun]) -> list[InspectRun]:
    """Put retries together with what they retried, oldest run first.

    A retry takes over what was scored before. Of a sample and epoch that several logs of one run hold, the last log's
    counts, unless only an earlier one was scored: a retry may have been killed in its turn.
    """
    merged: dict[tuple[str, str, str], InspectRun] = {}
    for run in oldest_first(runs):
        key = (run.run_id, run.task, run.model_id)
        samples = dict(merged[key].samples) if key in merged else {}
        for place, sample in run.samples.items():
            if sample.is_scored or place not in samples or not samples[place].is_scored:
                samples[place] = sample
        merged[key] = replace(run, samples=samples)
    return list(merged.values())


def _settings(header: Mapping[str, Any], about: Mapping[str, Any], *, is_ours: bool) -> dict[str, Any]:
    """Say how a run asked: version and arguments of the task, its solvers and theirs, system prompts, roles, scorers.

    In a run that itembank started, the arguments of the task itself are one argument of ours.
    """
    arguments = mapping(about.get("task_args"))
    arguments = mapping(arguments.get("task_args")) if is_ours else arguments
    version, plan = about.get("task_version"), mapping(header.get("plan"))
    settings = {
        "version": str(version) if isinstance(version, int | str) else None,
        "task_args": entries_text({_short(name): _short(value) for name, value in arguments.items()}) or None,
        "scorer_args": entries_text(_scorer_arguments(about)) or None,
    }
    roles, release = mapping(about.get("model_roles")), mapping(about.get("packages")).get("inspect_ai")
    if roles or release_of(str(release)) >= TELLS_ROLES:
        settings[ROLES] = entries_text(
            {_short(role): _name(mapping(one).get("model", one)) for role, one in roles.items()}
        )
    steps = [one for one in plan.get("steps") or () if isinstance(one, dict)]
    # characters; of longer names of solvers the digest is kept
    most_names = 60
    if steps:
        given = [(str(one.get("solver")), mapping(one.get("params"))) for one in steps]
        configs = (mapping(plan.get("config")), mapping(about.get("model_generate_config")))
        system = [str(one["system_message"]) for one in configs if one.get("system_message")]
        system += [str(params.get("template", "")) for name, params in given if name.endswith(SYSTEM)]
        names = " > ".join(name for name, _ in given)
        settings["solver"] = names if len(names) <= most_names else short_digest(names)
        settings["system_prompt"] = short_digest("\n".join(system))
        own = {
            f"{_short(name)}.{_short(key)}": _short(value)
            for name, params in given
            for key, value in params.items()
            if key not in NO_PROMPT and not (name.endswith(SYSTEM) and key == "template")
        }
        settings["solver_args"] = entries_text(own) or None
    return {name: value for name, value in settings.items() if value is not None}


def _short(value: Any) -> str:
    """Return an argument as a log's settings keep it: words and numbers, of anything else the digest."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if _WORD.fullmatch(text) else short_digest(text)


def _name(value: Any) -> str:
    """Return the name of a model as a log's settings keep it."""
    return value if isinstance(value, str) and _MODEL.fullmatch(value) else _short(value)


def _scorer_arguments(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments of a run's scorers, but those of ours, as ``scorer.name``."""
    scorers = [
        (str(one.get("name")), mapping(one.get("options"))) for one in map(mapping, listed(about.get("scorers")))
    ]
    return {
        f"{_short(name)}.{_short(key)}": _name(value) if key == "model" else _short(value)
        for name, options in scorers
        for key, value in options.items()
        if name.rpartition("/")[2] != OWN_SCORER
    }


def _ended(log: LogFile) -> str:
    """Say how a log ended, and in which error or at which limit first; empty where it tells none."""
    most = 200  # letters of an error
    told = (one.get(name) for name in ("error", "limit") for one in (*log.samples, log.header) if one.get(name))
    first = next(told, None)
    words = mapping(first).get("message") or mapping(first).get("type") or first
    return f"status {quoted(log.header.get('status'))}: {str(words).splitlines()[0][:most]}" if words else ""


def _by_id(log: LogFile) -> dict[tuple[str, int], Sample]:
    """Return the samples by their ids as text."""
    samples: dict[tuple[str, int], Sample] = {}
    alike: set[str] = set()
    twice: set[str] = set()
    for record in log.samples:
        try:
            sample = sample_of(record)
        except DataError as error:
            raise DataError(f"{log.path}: {error}") from error
        place = (str(sample.id), sample.epoch)
        if place in samples and type(samples[place].id) is not type(sample.id):
            alike.add(place[0])
        elif place in samples and samples[place].scores != sample.scores:
            twice.add(place[0])
        samples[place] = sample
    if twice:
        raise DataError(
            f"{log.path}: a sample must be once in each epoch, got {len(twice)} that have other scores the second "
            f"time: {shown(sorted(twice))}. Read the logs that Inspect wrote."
        )
    if alike:
        raise DataError(
            f"{log.path}: ids of samples must differ as text, got {len(alike)} that are a whole number and text too: "
            f"{shown(sorted(alike))}."
        )
    return samples
