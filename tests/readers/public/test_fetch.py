"""Sources fetched from a server on this machine, and read."""

import io
import tarfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from itembank.errors import DataError, ParameterError
from itembank.readers.public import fetch, sources
from itembank.readers.public.fetch import fetch_public, hub_models, public_folder, unpack
from itembank.readers.public.read_public import read_public
from tests.readers.public.loopback import serving
from tests.readers.public.stores import write_bfcl


def packed(folder):
    """The folder as a repository's archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(folder, arcname="repo-main")
    return buffer.getvalue()


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A server that gives bfcl's archive."""
    write_bfcl(tmp_path / "store" / "2024-08-11", {"a": [0], "b": []})
    write_bfcl(tmp_path / "store" / "2024-07-06", {"old": []})
    with serving() as one:
        one.files["/repo.tar.gz"] = packed(tmp_path / "store")
        source = sources.public_source("bfcl")
        local = replace(source, download=replace(source.download, url=f"{one.address}/repo.tar.gz"))
        known = {**sources.stores(), "bfcl": local}
        monkeypatch.setattr(sources, "stores", lambda: known)
        yield one


def test_an_archive_is_fetched_unpacked_and_read(web, tmp_path):
    web.breaks = [200]
    folder = fetch_public("bfcl", tmp_path / "bfcl")
    assert len(web.requests) == 2
    assert not list(folder.rglob(".archive*"))
    found = read_public("bfcl", folder)
    assert found.responses.model_ids == ["a", "b"]
    assert found.check.differing == ()


def test_without_a_folder_it_goes_into_the_cache(web, tmp_path, monkeypatch):
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path / "cache"))
    assert fetch_public("bfcl") == public_folder("bfcl") == tmp_path / "cache" / "public" / "bfcl"


def test_only_some_files(web, tmp_path):
    folder = fetch_public("bfcl", tmp_path / "bfcl", only=("2024-07-06/*",))
    assert {path.name for path in folder.iterdir()} == {"2024-07-06", ".fetched.json"}


def test_what_cannot_be_fetched_is_said(tmp_path):
    with pytest.raises(DataError, match=r"cannot be fetched by itembank. Get the files from https"):
        fetch_public("evalplus", tmp_path)
    with pytest.raises(ParameterError, match="fetched whole"):
        fetch_public("bfcl", tmp_path, models=["a"])
    with pytest.raises(ParameterError, match=r"one repository a model: name them .*got 0"):
        fetch_public("open-llm-leaderboard-v2", tmp_path)
    with pytest.raises(ParameterError, match=r"is one repository: leave out .*got 1"):
        fetch_public("every-eval-ever", tmp_path, models=["a"])


def test_repositories_of_models_are_fetched_by_name(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(fetch, "fetch_repository", lambda *given, **more: asked.append((given, more)) or ("", ""))
    fetch_public("open-llm-leaderboard-v1", tmp_path, models=["org/a", "org/b"])
    assert [given[0] for given, _ in asked] == [f"open-llm-leaderboard-old/details_org__{name}" for name in "ab"]
    assert {given[2] for given, _ in asked} == {("**/details_harness*.parquet",)}


def test_so_many_models_are_chosen_evenly_among_all(monkeypatch):
    ids = [
        f"open-llm-leaderboard/{one}" for one in (*(f"org__m{k}-details" for k in range(8)), "blog", "requests-details")
    ]
    api = SimpleNamespace(list_datasets=lambda author: [SimpleNamespace(id=one) for one in ids])
    monkeypatch.setattr(fetch, "hub_client", lambda need: SimpleNamespace(HfApi=lambda: api))
    source = sources.public_source("open-llm-leaderboard-v2")
    assert hub_models(source, 4) == ("org/m0", "org/m2", "org/m4", "org/m6")
    with pytest.raises(DataError, match="must hold repositories of 9 models, got 8"):
        hub_models(source, 9)


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
    with pytest.raises(DataError, match=r"a.tar.gz: every file must have a name .* got '(x{50}|a/b'|a')"):
        unpack(archive, tmp_path / "out", ("*",), most_bytes=MOST)


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.readers.public.fetch.MOST_FILES", 3)
    files = {f"r/{number}.json": b"" for number in range(4)}
    with pytest.raises(DataError, match="at most 3 files, got more"):
        unpack(make(tmp_path / "a.tar.gz", files), tmp_path / "out", ("*",), most_bytes=MOST)
    assert unpack(make(tmp_path / "b.tar.gz", files), tmp_path / "out", ("[012].json",), most_bytes=MOST) == 3
