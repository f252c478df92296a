import errno

import pytest

from itembank.data.atomic import replacing_file, replacing_folder, write_text


class _StopError(Exception):
    pass


def test_a_file_is_written_whole(tmp_path):
    write_text(tmp_path / "deep" / "file.txt", "content")
    assert (tmp_path / "deep" / "file.txt").read_text() == "content"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file.txt"]


def test_a_file_stays_as_it_was_when_writing_fails(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(_StopError), replacing_file(path) as temporary:
        temporary.write_text("half")
        raise _StopError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_can_be_read_by_others(tmp_path):
    write_text(tmp_path / "file.txt", "content")
    (tmp_path / "plain.txt").write_text("content")
    assert (tmp_path / "file.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


def test_a_folder_is_replaced_whole(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old.txt").write_text("old")
    with replacing_folder(path) as folder:
        (folder / "new.txt").write_text("new")
        assert (path / "old.txt").exists()
    assert [file.name for file in path.iterdir()] == ["new.txt"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_stays_as_it_was_when_filling_fails(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old.txt").write_text("old")
    with pytest.raises(_StopError), replacing_folder(path) as folder:
        (folder / "new.txt").write_text("new")
        raise _StopError
    assert [file.name for file in path.iterdir()] == ["old.txt"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        ValueError("parquet: underlying IO error: No space left on device (os error 28)"),
    ],
)
@pytest.mark.parametrize("replacing", [replacing_file, replacing_folder])
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
