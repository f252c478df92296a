"""The journal: what was appended is read again, whatever happens between."""

import errno
import json
import os
import stat
import subprocess
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning, IntegrityError, JournalError
from itembank.sessions.journal import Journal, encode_line, parse_journal, read_journal

HEADER = {"bank_id": "b" * 16, "settings": {"seed": 3}}
EVENTS = [
    {"event": "asked", "item_ids": ["a", "b"]},
    {"event": "told", "item_id": "été \u2028 日本", "response": 0.1 + 0.2, "costs": {"tokens": 1e-300}},
    {"event": "told", "item_id": "b", "response": 1.0, "costs": {}},
]


@pytest.fixture
def path(tmp_path):
    with Journal.create(tmp_path / "run.jsonl", HEADER) as journal:
        for event in EVENTS:
            journal.append(event)
    return tmp_path / "run.jsonl"


def refuse(number, message):
    """A function of the system that fails."""

    def fail(*_):
        raise OSError(number, message)

    return fail


def run_program(source, path, **choices):
    """Start a process that works on a journal."""
    command = [sys.executable, "-c", textwrap.dedent(source), str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **choices)


def test_what_was_appended_is_read_again(path):
    content = read_journal(path)
    assert (list(content.events), content.n_torn, content.header["kind"]) == (EVENTS, 0, "itembank session")
    assert {name: content.header[name] for name in HEADER} == HEADER
    no_text = {"reason": b"caf\xe9".decode("utf-8", "surrogateescape")}
    with Journal.open(path) as journal:
        assert list(journal.content.events) == EVENTS
        journal.append(no_text)
    assert list(read_journal(path).events) == [*EVENTS, no_text]


def test_a_second_name_that_a_killed_start_left_goes_when_the_session_goes_on(path):
    second = path.with_name(f".{path.name}.abcd_123.partial")
    os.link(path, second)
    os.utime(path, (0.0, 0.0))
    with Journal.open(path) as journal:
        assert list(journal.content.events) == EVENTS
    assert list(path.parent.iterdir()) == [path]


def test_it_is_an_ordinary_file_of_json_lines_that_other_tools_read(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    records = [json.loads(line) for line in lines]
    assert records[0]["schema_version"] == 1
    assert all(record.pop("time").endswith("Z") for record in records)
    assert all(len(record.pop("check")) == 16 for record in records)
    assert records[1:] == EVENTS
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    assert list(path.parent.iterdir()) == [path]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values=st.lists(json_values, max_size=4))
def test_every_event_round_trips_to_the_bit(values):
    content, check = encode_line({"kind": "itembank session", "schema_version": 1}, "")
    for value in values:
        line, check = encode_line({"time": "now", "event": "told", "response": value}, check)
        content += line
    assert repr([event["response"] for event in parse_journal(content, "j").events]) == repr(values)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_has_not_is_refused_and_nothing_written(path, value):
    before = path.read_bytes()
    with Journal.open(path) as journal, pytest.raises(DataError, match="NaN"):
        journal.append({"response": value})
    assert path.read_bytes() == before


def test_a_line_torn_at_any_byte_is_left_out_and_cut_off(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # hundreds of journals, and no power fails
    whole = path.read_bytes()
    starts = [0, *(place + 1 for place, byte in enumerate(whole) if byte == ord("\n"))]
    for length in range(starts[1] + 1, len(whole)):
        n_whole = sum(start <= length for start in starts) - 2
        path.write_bytes(whole[:length])
        with nullcontext() if length in starts else pytest.warns(DataWarning, match="torn"):
            journal = Journal.open(path)
        with journal:
            assert (list(journal.content.events), path.read_bytes()) == (EVENTS[:n_whole], whole[:length])
            journal.append({"event": "later"})
        content = read_journal(path)
        assert (list(content.events), content.n_torn) == ([*EVENTS[:n_whole], {"event": "later"}], 0)


def test_a_header_torn_at_any_byte_is_said(path):
    header = path.read_bytes().split(b"\n")[0]
    for length in range(len(header) + 1):
        path.write_bytes(header[:length])
        with pytest.raises(DataError, match="no whole line" if length else "empty"):
            Journal.open(path)


def test_any_changed_byte_is_found(path):
    whole = path.read_bytes()
    n_header = whole.index(b"\n") + 1
    for place in range(len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(bytes(changed))
        # in the header the kind or version may be what is wrong: still an error, and no other
        with pytest.raises((DataError, IntegrityError) if place < n_header else IntegrityError):
            read_journal(path)


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 3), (0, 1, 1, 2, 3), (0, 2, 3)])
def test_lines_moved_removed_or_repeated_are_found(path, order):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[place] for place in order))
    with pytest.raises(IntegrityError, match=r"line [23] of"):
        read_journal(path)


def test_damage_says_which_line_and_how_to_rescue_the_rest(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"told", b"tolt"), lines[3]]))
    with pytest.raises(IntegrityError, match=r"line 3 of 4 .*head -n 2"):
        Journal.open(path)
    path.write_bytes(b"".join(lines[:2]))
    assert list(read_journal(path).events) == EVENTS[:1]
    path.write_bytes(b"".join([lines[0][:-31], b"\n", *lines[1:]]))
    with pytest.raises(IntegrityError, match=r"line 1 \(the header\) is not what was written"):
        read_journal(path)
    line, _ = encode_line({"kind": "itembank session", "schema_version": 2, "itembank_version": "9.9"}, "")
    path.write_bytes(line)
    with pytest.raises(DataError, match=r"schema_version must be 1, got 2.*9\.9"):
        Journal.open(path)


@pytest.mark.parametrize(
    "content", [b"hello\n", b"[1]\n", b'{"kind":"other"}\n', b"\x00\xff\n", b"[" * 100_000 + b"\n"]
)
def test_other_files_are_no_journal(path, content):
    path.write_bytes(content)
    with pytest.raises(DataError, match="not the journal of a session"):
        Journal.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("reading", [Journal.open, read_journal])
def test_nothing_there_and_a_folder_are_said(tmp_path, reading):
    with pytest.raises(DataError, match="no journal at"):
        reading(tmp_path / "absent.jsonl")
    with pytest.raises(JournalError, match="cannot be opened"):
        reading(tmp_path)


@pytest.mark.parametrize("has_links", [True, False])
def test_a_journal_is_never_written_over(path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr("pathlib.Path.hardlink_to", refuse(errno.EPERM, "Operation not permitted"))
    before, names = path.read_bytes(), {path, path.with_name("new.jsonl")}
    with pytest.raises(DataError, match="exists already"):
        Journal.create(path, HEADER)
    with Journal.create(path.with_name("new.jsonl"), HEADER) as journal:
        journal.append({"event": "told"})
    assert len(read_journal(path.with_name("new.jsonl")).events) == 1
    assert (path.read_bytes(), set(path.parent.iterdir())) == (before, names)


def test_a_second_writer_is_refused_from_the_start_or_waits_and_a_reader_is_not(path, monkeypatch):
    with Journal.create(path.with_name("new.jsonl"), HEADER), pytest.raises(JournalError, match="another process"):
        Journal.open(path.with_name("new.jsonl"))
    with Journal.open(path) as journal:
        with pytest.raises(JournalError, match="another process"):
            Journal.open(path)
        journal.append({"event": "later"})
        assert len(read_journal(path).events) == len(EVENTS) + 1
    first = Journal.open(path)
    monkeypatch.setattr("itembank.sessions.journal.time.sleep", lambda seconds: first.close())
    Journal.open(path, wait=60.0).close()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(JournalError, match="POSIX"):
        Journal.open(path)
    assert len(read_journal(path).events) == len(EVENTS) + 1


def test_another_process_is_refused_until_the_first_is_killed(path):
    hold = """
        import sys
        from itembank.sessions.journal import Journal
        journal = Journal.open(sys.argv[1])
        print("held", flush=True)
        sys.stdin.read()
    """
    with run_program(hold, path) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(JournalError, match="another process"):
            Journal.open(path)
        holder.kill()
        holder.wait()
        Journal.open(path).close()


@pytest.fixture
def full_disk(monkeypatch):
    """Make the disk take only so many bytes more, as a full one does."""
    left = [0]
    write = os.pwrite

    def write_what_fits(handle, content, offset):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(handle, content[: left[0]], offset)
        left[0] -= done
        return done

    monkeypatch.setattr(os, "pwrite", write_what_fits)
    return left


@pytest.mark.parametrize("room", [0, 1, 40])
def test_a_full_disk_changes_nothing_and_the_session_goes_on(path, full_disk, room):
    before, new = path.read_bytes(), path.with_name("new.jsonl")
    with Journal.open(path) as journal:
        full_disk[0] = room
        with pytest.raises(JournalError, match=r"No space left.*not kept; everything before it is"):
            journal.append({"event": "lost"})
        assert path.read_bytes() == before
        with pytest.raises(JournalError, match="No session was started"):
            Journal.create(new, HEADER)
        assert list(path.parent.iterdir()) == [path]
        full_disk[0] = 1000
        journal.append({"event": "kept"})
    assert list(read_journal(path).events) == [*EVENTS, {"event": "kept"}]


def test_what_cannot_be_cut_back_at_once_is_cut_later(path, full_disk, monkeypatch):
    with Journal.open(path) as journal:
        full_disk[0] = 10
        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", refuse(errno.EIO, "Input/output error"))
            with pytest.raises(JournalError, match="No space left"):
                journal.append({"event": "lost"})
            assert read_journal(path).n_torn == 10
        full_disk[0] = 1000
        journal.append({"event": "kept"})
    assert list(read_journal(path).events) == [*EVENTS, {"event": "kept"}]


def test_an_interrupt_while_writing_loses_nothing(path, monkeypatch):
    def interrupt(handle):
        raise KeyboardInterrupt

    with Journal.open(path) as journal:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, "fsync", interrupt)
            journal.append({"event": "interrupted"})
        journal.append({"event": "kept"})
    assert list(read_journal(path).events) == [*EVENTS, {"event": "kept"}]
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        journal.append({"event": "late"})


def test_a_limit_of_the_system_on_file_size_is_a_full_disk(path):
    fill = """
        import resource, signal, sys
        from itembank.sessions.journal import Journal
        from itembank.errors import JournalError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        journal = Journal.open(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (journal.content.n_bytes + 200, resource.RLIM_INFINITY))
        kept = 0
        try:
            while True:
                journal.append({"number": kept})
                kept += 1
        except JournalError as error:
            print(kept, error)
    """
    with run_program(fill, path, text=True) as program:
        kept, _, message = program.communicate()[0].partition(" ")
    assert "File too large" in message
    content = read_journal(path)
    assert (content.n_torn, int(kept) >= 1) == (0, True)
    assert list(content.events) == [*EVENTS, *({"number": number} for number in range(int(kept)))]


def test_events_are_on_the_disk_before_append_returns_and_a_new_journal_before_it_has_its_name(path, monkeypatch):
    synced, done = [], []
    sync, link = os.fsync, Path.hardlink_to

    def record_sync(handle):
        sync(handle)
        synced.append(os.fstat(handle).st_size)
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")

    def record_link(self, target):
        link(self, target)
        done.append("name")

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "hardlink_to", record_link)
    with Journal.open(path) as journal:
        journal.append({"event": "later"})
        assert synced[-1] == path.stat().st_size
    done.clear()
    Journal.create(path.with_name("new.jsonl"), HEADER).close()
    assert done == ["file", "name", "folder"]


def test_programs_and_processes_that_a_session_starts_do_not_hold_its_journal(path):
    with Journal.open(path):
        program = run_program("input()", path)
    with program:
        Journal.open(path).close()
        program.communicate(b"\n")
    journal = Journal.open(path)
    inherited = os.dup(journal._handle)  # as a forked process has it
    journal.close()
    Journal.open(path).close()
    os.close(inherited)


def test_a_journal_removed_replaced_or_changed_meanwhile_is_noticed(path):
    content = path.read_bytes()
    with Journal.open(path) as journal:
        path.rename(path.with_suffix(".aside"))
        with pytest.raises(JournalError, match="removed"):
            journal.append({"event": "lost"})
        path.write_bytes(content)
        with pytest.raises(JournalError, match="replaced"):
            journal.append({"event": "lost"})
        path.with_suffix(".aside").rename(path)
        journal.append({"event": "kept"})
        with path.open("ab") as other:
            other.write(b"scribble\n")
        with pytest.raises(JournalError, match="changed by something else"):
            journal.append({"event": "lost"})
