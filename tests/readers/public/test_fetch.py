"""Files and archives fetched from a server on this machine: resumed, bounded, checked, led astray, and read."""

import hashlib
import io
import tarfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from itembank.errors import DataError, IntegrityError, ParameterError
from itembank_harnesses.public import fetch, stores
from itembank_harnesses.public.fetch import (
    ATTEMPTS,
    check_address,
    download,
    fetch_public,
    hub_models,
    public_folder,
    unpack,
)
from itembank_harnesses.public.read_public import read_public
from itembank_harnesses.public.stores import public_source
from tests.readers.public.loopback import serving
from tests.readers.public.stores import write_bfcl
from tests.readers.reading import refuses


def packed(folder):
    """The folder as a repository's archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(folder, arcname="repo-main")
    return buffer.getvalue()


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A server that gives bfcl's archive."""
    write_bfcl(tmp_path / "shop" / "2024-08-11", {"a": [0], "b": []})
    write_bfcl(tmp_path / "shop" / "2024-07-06", {"old": []})
    with serving() as one:
        one.files["/repo.tar.gz"] = packed(tmp_path / "shop")
        source = public_source("bfcl")
        local = replace(source, download=replace(source.download, url=f"{one.address}/repo.tar.gz"))
        monkeypatch.setitem(stores.SOURCES, "bfcl", local)
        yield one


def test_an_archive_is_fetched_unpacked_and_read_into_a_folder_or_the_cache(store, tmp_path, monkeypatch):
    store.breaks = [200]
    folder = fetch_public("bfcl", tmp_path / "bfcl")
    assert len(store.requests) == 2
    assert not list(folder.rglob(".archive*"))
    found = read_public("bfcl", folder)
    assert found.responses.model_ids == ["a", "b"]
    assert found.check.differing == ()
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path / "b" / "cache"))
    assert fetch_public("bfcl") == public_folder("bfcl") == tmp_path / "b" / "cache" / "public" / "bfcl"


def test_only_some_files(store, tmp_path):
    folder = fetch_public("bfcl", tmp_path / "bfcl", only=("2024-07-06/*",))
    assert {path.name for path in folder.iterdir()} == {"2024-07-06", ".fetched.json"}


def test_what_cannot_be_fetched_is_said(tmp_path):
    refuses(r"cannot be fetched by itembank. Get the files from https", fetch_public, "evalplus", tmp_path)
    refuses("fetched whole", fetch_public, "bfcl", tmp_path, models=["a"], error=ParameterError)
    refuses(r"a model: name them .*got 0", fetch_public, "open-llm-leaderboard-v2", tmp_path, error=ParameterError)
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
    source = public_source("open-llm-leaderboard-v2")
    assert hub_models(source, 4) == ("org/m0", "org/m2", "org/m4", "org/m6")
    refuses("must hold repositories of 9 models, got 8", hub_models, source, 9)


MOST = 10_000_000


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


def test_files_are_written_without_the_first_folder_and_none_outside(tmp_path):
    files = {"repo-main/a/x.json": b"1", "repo-main/a/y.txt": b"2", "repo-main/b/c/x.json": b"3", "lonely.json": b"4"}
    archive = make(tmp_path / "a.tar.gz", files)
    assert unpack(archive, tmp_path / "out", ("*.json",), most_bytes=MOST) == 2
    assert files_below(tmp_path / "out") == {"a/x.json": b"1", "b/c/x.json": b"3"}
    assert unpack(archive, tmp_path / "again", ("a/*",), most_bytes=MOST) == 2
    files = {"r/../../out.json": b"1", "/etc/r/x.json": b"2", "r/good.json": b"3"}
    archive = make(tmp_path / "b.tar.gz", files, links=[("r/link.json", "/etc/hostname")])
    assert unpack(archive, tmp_path / "b" / "in" / "out", ("*",), most_bytes=MOST) == 1
    assert files_below(tmp_path / "b" / "in") == {"out/good.json": b"3"}


def test_too_much_too_many_nothing_and_damage_are_refused(tmp_path, monkeypatch):
    archive = make(tmp_path / "a.tar.gz", {"r/x.json": bytes(5000)})
    refuses("at most 4,000 bytes", unpack, archive, tmp_path / "out", ("*",), most_bytes=4000)
    refuses(r"must hold files named .*csv, got none", unpack, archive, tmp_path / "out", ("*.csv",), most_bytes=MOST)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(archive.read_bytes()[:-20])
    refuses("cannot be read", unpack, cut, tmp_path / "out", ("*",), most_bytes=MOST)
    whole = archive.read_bytes()
    cut.write_bytes(whole[:30] + bytes(8) + whole[38:])
    refuses("cannot be read", unpack, cut, tmp_path / "out", ("*",), most_bytes=MOST)
    cut.write_bytes(b"no archive")
    refuses("cannot be read", unpack, cut, tmp_path / "out", ("*",), most_bytes=MOST)
    monkeypatch.setattr("itembank_harnesses.public.fetch.MOST_FILES", 3)
    files = {f"r/{number}.json": b"" for number in range(4)}
    with pytest.raises(DataError, match="at most 3 files, got more"):
        unpack(make(tmp_path / "a.tar.gz", files), tmp_path / "out", ("*",), most_bytes=MOST)
    assert unpack(make(tmp_path / "b.tar.gz", files), tmp_path / "out", ("[012].json",), most_bytes=MOST) == 3


@pytest.mark.parametrize("names", [["r/" + "x" * 300], ["r/a", "r/a/b"], ["r/a/b", "r/a"]])
def test_a_name_that_no_file_can_have_is_named(tmp_path, names):
    archive = make(tmp_path / "a.tar.gz", dict.fromkeys(names, b"1"))
    with pytest.raises(DataError, match=r"a.tar.gz: every file must have a name .* got '(x{50}|a/b'|a')"):
        unpack(archive, tmp_path / "out", ("*",), most_bytes=MOST)


CONTENT = bytes(range(256)) * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def web():
    with serving() as one:
        one.files["/a.bin"] = CONTENT
        yield one


def fetched(web, folder, **choices):
    return download(f"{web.address}/a.bin", folder / "a.bin", **{"most_bytes": MOST, "sha256": SHA256, **choices})


def starts(web):
    """Where each request asked to begin."""
    return [headers.get("Range") for _, headers in web.requests]


def test_a_file_arrives_whole_also_from_this_machine(web, tmp_path):
    told = []
    path = fetched(web, tmp_path / "new", progress=lambda message, part: told.append((message, part)))
    assert (path.read_bytes(), [one.name for one in path.parent.iterdir()]) == (CONTENT, ["a.bin"])
    assert told[-1] == ("fetching a.bin (1.3 MB)", 1.0)
    (tmp_path / "b").write_bytes(b"x")
    assert download((tmp_path / "b").as_uri(), tmp_path / "c", most_bytes=9).read_bytes() == b"x"


@pytest.mark.parametrize("has_lengths", [True, False])
def test_a_broken_connection_is_made_again_where_it_ended(has_lengths, web, tmp_path):
    web.has_lengths = has_lengths
    web.breaks = [300_000, 1, 400_000] if has_lengths else []
    assert fetched(web, tmp_path).read_bytes() == CONTENT
    if has_lengths:
        assert starts(web) == [None, "bytes=300000-", "bytes=300001-", "bytes=700001-"]


def test_what_has_arrived_stays_for_the_next_call_unless_it_changed(web, tmp_path):
    web.breaks = [1000] * ATTEMPTS
    refuses(r"could not be fetched.*4,000 bytes have arrived and are kept", fetched, web, tmp_path)
    assert not (tmp_path / "a.bin").exists()
    assert (fetched(web, tmp_path).read_bytes(), starts(web)[-1]) == (CONTENT, "bytes=4000-")
    web.breaks = [1000] * ATTEMPTS
    with pytest.raises(DataError):
        fetched(web, tmp_path / "b")
    web.files["/a.bin"] = CONTENT[::-1]
    assert fetched(web, tmp_path / "b", sha256=None).read_bytes() == CONTENT[::-1]


def test_servers_without_ranges_in_trouble_or_that_lead_elsewhere(web, tmp_path):
    web.has_ranges, web.breaks = False, [1000]
    assert fetched(web, tmp_path).read_bytes() == CONTENT
    web.errors = [503, 429]
    assert fetched(web, tmp_path).read_bytes() == CONTENT
    web.leads["/a.bin"] = "/b.bin"
    web.files["/b.bin"] = CONTENT
    assert fetched(web, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_the_whole_is_taken_and_a_longer_one_thrown_away(web, tmp_path):
    for more in (b"", b"more"):
        (tmp_path / ".a.bin.part").write_bytes(CONTENT + more)
        (tmp_path / ".a.bin.tag").write_text(f'"{SHA256[:8]}"')
        assert (fetched(web, tmp_path).read_bytes(), starts(web)[0]) == (CONTENT, f"bytes={len(CONTENT)}-")


def test_a_wrong_checksum_is_refused_and_nothing_stays(web, tmp_path):
    refuses(f"SHA-256 {'0' * 64}, got {SHA256}", fetched, web, tmp_path, sha256="0" * 64, error=IntegrityError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_lengths", [True, False])
def test_a_file_too_large_is_refused(has_lengths, web, tmp_path):
    web.has_lengths = has_lengths
    refuses("at most 1,000 bytes", fetched, web, tmp_path, most_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_asked_for_once(web, tmp_path):
    refuses("404", download, f"{web.address}/b.bin", tmp_path / "b.bin", most_bytes=MOST)
    assert len(web.requests) == 1


@pytest.mark.parametrize("place", ["http://example.invalid/a.bin", "file:///etc/hostname", "ftp://example.invalid/a"])
def test_a_place_that_is_not_https_is_not_followed(place, web, tmp_path):
    web.leads["/a.bin"] = place
    with pytest.raises((ParameterError, DataError), match=r"must begin with https|not allowed"):
        fetched(web, tmp_path)
    assert len(web.requests) == 1
    assert not (tmp_path / "a.bin").exists()


@pytest.mark.parametrize("address", ["http://example.invalid/x", "ftp://x/y", "x", "http://127.0.0.1.example.invalid/"])
def test_addresses_must_be_https(address):
    refuses("https://", check_address, address, error=ParameterError)


def test_addresses_that_may_be():
    for address in ("https://example.invalid/x", "file:///x", "http://localhost:80/x", "http://[::1]/x"):
        check_address(address)
