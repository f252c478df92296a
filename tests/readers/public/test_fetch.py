"""Sources fetched from a server on this machine, and read."""

import io
import tarfile
from dataclasses import replace

import pytest

from itembank.errors import DataError, ParameterError
from itembank.readers.public import fetch, sources
from itembank.readers.public.fetch import fetch_public, public_folder
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
        source = sources.SOURCES["bfcl"]
        local = replace(source, download=replace(source.download, url=f"{one.address}/repo.tar.gz"))
        monkeypatch.setattr(sources, "SOURCES", {**sources.SOURCES, "bfcl": local})
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
    assert {path.name for path in folder.iterdir()} == {"2024-07-06"}


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
    monkeypatch.setattr(fetch, "fetch_repository", lambda *given, **more: asked.append((given, more)))
    fetch_public("open-llm-leaderboard-v1", tmp_path, models=["org/a", "org/b"])
    assert [given[0] for given, _ in asked] == [f"open-llm-leaderboard-old/details_org__{name}" for name in "ab"]
    assert {given[2] for given, _ in asked} == {("**/details_harness*.parquet",)}
