import io
import tarfile

import pytest

from itembank.errors import DataError
from itembank.readers.public.fetch import unpack

MOST = 1_000_000


def make(path, files, *, links=()):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return path


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_wanted_files_are_written_without_the_first_folder(tmp_path):
    files = {"repo-main/a/x.json": b"1", "repo-main/a/y.txt": b"2", "repo-main/b/c/x.json": b"3", "lonely.json": b"4"}
    archive = make(tmp_path / "a.tar.gz", files)
    assert unpack(archive, tmp_path / "out", ("*.json",), most_bytes=MOST) == 2
    assert files_below(tmp_path / "out") == {"a/x.json": b"1", "b/c/x.json": b"3"}
    assert unpack(archive, tmp_path / "again", ("a/*",), most_bytes=MOST) == 2


def test_names_that_lead_out_and_links_are_left_out(tmp_path):
    files = {"r/../../out.json": b"1", "/etc/r/x.json": b"2", "r/good.json": b"3"}
    archive = make(tmp_path / "a.tar.gz", files, links=[("r/link.json", "/etc/hostname")])
    assert unpack(archive, tmp_path / "in" / "out", ("*",), most_bytes=MOST) == 1
    assert files_below(tmp_path / "in") == {"out/good.json": b"3"}


def test_too_much_nothing_and_damage_are_refused(tmp_path):
    archive = make(tmp_path / "a.tar.gz", {"r/x.json": bytes(5000)})
    with pytest.raises(DataError, match="at most 4,000 bytes"):
        unpack(archive, tmp_path / "out", ("*",), most_bytes=4000)
    with pytest.raises(DataError, match=r"must hold files named .*csv, got none"):
        unpack(archive, tmp_path / "out", ("*.csv",), most_bytes=MOST)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(archive.read_bytes()[:-20])
    with pytest.raises(DataError, match="cannot be read"):
        unpack(cut, tmp_path / "out", ("*",), most_bytes=MOST)
    whole = archive.read_bytes()
    cut.write_bytes(whole[:30] + bytes(8) + whole[38:])
    with pytest.raises(DataError, match="cannot be read"):
        unpack(cut, tmp_path / "out", ("*",), most_bytes=MOST)
    cut.write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be read"):
        unpack(cut, tmp_path / "out", ("*",), most_bytes=MOST)


@pytest.mark.parametrize("names", [["r/" + "x" * 300], ["r/a", "r/a/b"], ["r/a/b", "r/a"]])
def test_a_name_that_no_file_can_have_is_named(tmp_path, names):
    archive = make(tmp_path / "a.tar.gz", dict.fromkeys(names, b"1"))
    with pytest.raises(DataError, match=r"a.tar.gz: every file must have a name .* got '(x{99,}|a/b'|a')"):
        unpack(archive, tmp_path / "out", ("*",), most_bytes=MOST)


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.readers.public.fetch.MOST_FILES", 3)
    files = {f"r/{number}.json": b"" for number in range(4)}
    with pytest.raises(DataError, match="at most 3 files, got more"):
        unpack(make(tmp_path / "a.tar.gz", files), tmp_path / "out", ("*",), most_bytes=MOST)
    assert unpack(make(tmp_path / "b.tar.gz", files), tmp_path / "out", ("[012].json",), most_bytes=MOST) == 3
