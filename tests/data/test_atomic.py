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
