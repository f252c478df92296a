import errno
import os
import sys
import time
from pathlib import Path

import pytest

from itembank.errors import ParameterError
from itembank.files import atomic
from itembank.files.atomic import (
    adding_to_folder,
    check_destination,
    kept_aside,
    replacing_file,
    replacing_folder,
    sweep,
    write_text,
)
from tests.readers.reading import refuses


class _StopError(Exception):
    pass


def test_a_file_is_written_whole_for_others_to_read(tmp_path):
    write_text(tmp_path / "deep" / "file.txt", "content")
    assert (tmp_path / "deep" / "file.txt").read_text() == "content"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file.txt"]
    write_text(tmp_path / "file.txt", "content")
    (tmp_path / "plain.txt").write_text("content")
    assert (tmp_path / "file.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


def test_files_and_folders_stay_as_they_were_when_writing_fails(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(_StopError), replacing_file(path) as temporary:
        temporary.write_text("half")
        raise _StopError
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    path = tmp_path / "b" / "folder"
    path.mkdir(parents=True)
    (path / "old.txt").write_text("old")
    with pytest.raises(_StopError), replacing_folder(path) as folder:
        (folder / "new.txt").write_text("new")
        raise _StopError
    assert ([file.name for file in path.iterdir()], list((tmp_path / "b").iterdir())) == (["old.txt"], [path])


def test_a_folder_is_replaced_whole(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old.txt").write_text("old")
    with replacing_folder(path) as folder:
        (folder / "new.txt").write_text("new")
        assert (path / "old.txt").exists()
    assert ([file.name for file in path.iterdir()], list(tmp_path.iterdir())) == (["new.txt"], [path])


def test_a_new_folder_comes_whole(tmp_path):
    path = tmp_path / "folder"
    with adding_to_folder(path) as folder:
        (folder / "new.txt").write_text("new")
        assert not path.exists()
    assert ([file.name for file in path.iterdir()], list(tmp_path.iterdir())) == (["new.txt"], [path])


@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_is_added_to_a_folder_takes_the_place_of_the_same_names_alone(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    path = tmp_path / "folder"
    (path / "inner").mkdir(parents=True)
    for name in ("kept.txt", "replaced.txt", "inner/gone.txt"):
        (path / name).write_text("old")
    with adding_to_folder(path) as folder:
        (folder / "inner").mkdir()
        for name in ("replaced.txt", "inner/new.txt"):
            (folder / name).write_text("new")
        assert (path / "replaced.txt").read_text() == "old"
    found = {str(file.relative_to(path)): file.read_text() for file in path.rglob("*") if file.is_file()}
    assert found == {"kept.txt": "old", "replaced.txt": "new", "inner/new.txt": "new"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [
    OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EDQUOT, "Disk quota exceeded"),
    ValueError("parquet: underlying IO error: No space left on device (os error 28)"),
])  # fmt: skip
@pytest.mark.parametrize("replacing", [replacing_file, replacing_folder, adding_to_folder])
def test_a_full_disk_is_named_with_what_could_not_be_written(tmp_path, replacing, error):
    said = pytest.raises(OSError, match=r"result cannot be written: no space is left .* make room")
    with said as caught, replacing(tmp_path / "result"):
        raise error
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "Permission denied"), ValueError("other")])
def test_other_errors_come_through_as_they_are(tmp_path, error):
    with pytest.raises(type(error)) as caught, replacing_file(tmp_path / "result"):
        raise error
    assert caught.value is error


def leave_behind(path, age=3600.0):
    """Leave what a killed command leaves: a temporary file or folder that nobody writes any more."""
    place = path.parent / f".{path.name}.abcd_123.partial"
    place.mkdir()
    (place / "new").mkdir()
    (place / "new" / "half").write_text("half")
    long_ago = time.time() - age
    os.utime(place, (long_ago, long_ago))
    return place


@pytest.mark.parametrize("replacing", [replacing_file, replacing_folder, adding_to_folder])
def test_the_next_write_removes_what_a_killed_one_left(tmp_path, replacing):
    path = tmp_path / "result"
    leave_behind(path)
    others = leave_behind(tmp_path / "results")
    with replacing(path):
        pass
    assert sorted(tmp_path.iterdir()) == sorted([path, others])


def test_a_repeat_at_once_removes_what_a_killed_command_left_and_not_what_is_being_written(tmp_path):
    # Places younger than a minute stayed, and were still there after a repeat that ended well
    path = tmp_path / "result"
    young = leave_behind(path, age=0.0)
    sweep(path)
    assert not young.exists()
    path = tmp_path / "result"
    with replacing_file(path) as temporary:
        os.utime(temporary, (0.0, 0.0))  # slow work: old, but its writer lives and holds the lock
        sweep(path)
        assert temporary.exists()


@pytest.mark.parametrize("replacing", [replacing_file, adding_to_folder])
def test_a_place_that_is_swept_before_it_is_locked_is_made_anew(tmp_path, monkeypatch, replacing):
    path, held, swept = tmp_path / "result", atomic.held, []

    def swept_once(place):
        if not swept:
            swept.append(place)
            sweep(path)  # by another command, between making a place and locking it
        return held(place)

    monkeypatch.setattr(atomic, "held", swept_once)
    with replacing(path) as temporary:
        assert not swept[0].exists()
        assert temporary.exists()
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_added_to_a_bank(tmp_path):
    (tmp_path / "bank.json").touch()
    with pytest.raises(ParameterError, match="is the folder of a bank"), adding_to_folder(tmp_path):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["bank.json"]


def test_the_only_one_left_of_what_stood_there_stays(tmp_path):
    """As where a command was killed between its two renames, on a system that cannot exchange folders."""
    path = tmp_path / "bank"
    place = leave_behind(path)
    (place / "new").rename(place / "old")
    os.utime(place, (0.0, 0.0))
    assert kept_aside(path) == place / "old"
    sweep(path)
    assert (place / "old" / "half").read_text() == "half"
    path.mkdir()
    assert kept_aside(path) is None
    sweep(path)
    assert not place.exists()


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_is_replaced_with_and_without_exchange(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    test_a_folder_is_replaced_whole(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is Linux's")
def test_there_is_a_folder_at_every_moment(tmp_path, monkeypatch):
    """Killed at any rename: on Linux a whole folder, the old one or the new one, stands at the path."""
    path = tmp_path / "folder"
    path.mkdir()
    (path / "name").write_text("old")
    monkeypatch.setattr(atomic.Path, "replace", None)  # never needed: nothing is moved aside
    monkeypatch.setattr(atomic.shutil, "rmtree", lambda *_, **__: None)  # killed before it tidies up
    with replacing_folder(path) as folder:
        (folder / "name").write_text("new")
        assert (path / "name").read_text() == "old"
    assert (path / "name").read_text() == "new"


@pytest.mark.parametrize(("name", "is_folder", "message"), [
    ("folder", False, "is a folder; give the name of a file"),
    ("file", True, "is a file; give the name of a folder"),
    ("pipe", False, "is a device or a pipe"),
    ("link", True, "is a link to a place that is not there"),
    ("no\udcff", False, "must be a name in UTF-8"),
    ("file/below", False, r"nothing can be made in .*file \(Not a directory\). Choose another place"),
])  # fmt: skip
def test_where_nothing_can_be_written(tmp_path, name, is_folder, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    refuses(message, check_destination, tmp_path / name, is_folder=is_folder, error=ParameterError)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_places_that_can_or_cannot_be_written(tmp_path):
    with pytest.raises(ParameterError, match=r"^/proc/bank .*: nothing can be made in /proc \([^/]*\)\."):
        check_destination(Path("/proc/bank"), is_folder=True)
    check_destination(tmp_path / "deep" / "er" / "file")
    assert not list(tmp_path.iterdir())


def test_a_writer_that_does_not_name_the_full_disk(tmp_path, monkeypatch):
    """As Polars writes Parquet: 'Invalid thrift: transport error'."""
    monkeypatch.setattr(atomic, "_is_full", lambda _: True)
    with pytest.raises(OSError, match="no space is left on the disk"), replacing_file(tmp_path / "result"):
        raise ValueError("parquet: File out of specification: Invalid thrift: transport error")
