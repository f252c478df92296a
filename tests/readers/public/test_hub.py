"""The Hub's own client against a stand-in on this machine."""

import hashlib
import json

import pytest

from itembank_harnesses.public.fetch import fetch_repository
from tests.readers.public.loopback import Files, serving
from tests.readers.reading import refuses

pytestmark = pytest.mark.harness
hub = pytest.importorskip("huggingface_hub")

SHA = "0123456789abcdef0123456789abcdef01234567"
FILES = {"data/a_samples.jsonl": b'{"x": 1}\n' * 50, "data/a.json": b"{}", "big.bin": b"0" * 9000}


class Hub(Files):
    """Gives one data-set repository."""

    def do_HEAD(self):  # noqa: N802
        self.do_GET()

    def do_GET(self):  # noqa: N802
        path = self.path.partition("?")[0]
        self.web.requests.append((path, dict(self.headers)))
        name = path.partition(f"/resolve/{SHA}/")[2].replace("%2F", "/")
        if path.startswith("/api/datasets/me/store/tree/"):
            tree = [{"type": "file", "path": one, "oid": one, "size": len(content)} for one, content in FILES.items()]
            self.give_json(tree)
        elif path.startswith("/api/datasets/me/store"):
            siblings = [{"rfilename": one, "size": len(content)} for one, content in FILES.items()]
            self.give_json({"id": "me/store", "sha": SHA, "siblings": siblings})
        elif name in FILES:
            self.give_bytes(FILES[name], "application/octet-stream")
        else:
            self.answer(404, {"X-Error-Code": "RepoNotFound"})

    def give_json(self, content):
        self.give_bytes(json.dumps(content).encode(), "application/json")

    def give_bytes(self, content, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", SHA)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def web(monkeypatch, tmp_path):
    with serving(Hub) as one:
        # tests of lm_eval may have imported the client while they were offline
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", one.address)
        monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", one.address)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            one.address + "/{repo_id}/resolve/{revision}/{filename}",
        )
        yield one


def test_files_that_match_are_fetched(web, tmp_path):
    folder, commit = fetch_repository("me/store", tmp_path, ("data/**",), most_bytes=10_000)
    assert commit == SHA
    found = {str(one.relative_to(folder)): one.read_bytes() for one in (folder / "data").iterdir() if one.is_file()}
    assert found == {name: content for name, content in FILES.items() if name.startswith("data")}
    assert not (folder / "big.bin").exists()
    n_before = len([path for path, _ in web.requests if "resolve" in path])
    fetch_repository("me/store", tmp_path, ("data/**",), most_bytes=10_000)
    assert len([path for path, _ in web.requests if "resolve" in path]) <= 2 * n_before


def test_too_much_nothing_and_no_repository_are_refused(web, tmp_path):
    refuses("at most 1,000 bytes, got 9,452", fetch_repository, "me/store", tmp_path, ("*",), most_bytes=1000)
    refuses(r"files named .*parquet, got none", fetch_repository, "me/store", tmp_path, ("*.parquet",), most_bytes=1000)
    refuses("me/other cannot be fetched", fetch_repository, "me/other", tmp_path, ("*",), most_bytes=1000)


def test_a_hub_that_cannot_be_reached_is_said(web, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", "http://127.0.0.1:9")
    refuses("me/store cannot be fetched", fetch_repository, "me/store", tmp_path, ("*",), most_bytes=1000)
