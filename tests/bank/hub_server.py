"""A stand-in for the Hugging Face Hub on this machine: serves folders as datasets, and records what is pushed."""

import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "c" * 40
"""Of everything that is pushed."""


_port = {}


def digest(content):
    """Name content as git and the Hub do."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


@dataclass
class Hub:
    """What the stand-in holds and was asked.

    `repositories` has the bytes of files by name of the data set, revision (`main` is the newest) and path; the listing
    says `sizes` of files instead of their own; those `held_back` are listed and not sent. `asked` are pairs of method
    and path, `posted` of path and content. `close` takes it off the net.
    """

    repositories: dict = field(default_factory=dict)
    sizes: dict = field(default_factory=dict)
    held_back: set = field(default_factory=set)
    asked: list = field(default_factory=list)
    posted: list = field(default_factory=list)
    address: str = ""
    close: object = None

    def put(self, name, folder, revision="main", **extra):
        """Hold a folder's files, and more by name."""
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.repositories.setdefault(name, {})[revision] = {**files, **extra}

    def commit_of(self, name, revision):
        """The commit that a revision is."""
        for known in self.repositories[name]:
            commit = digest(f"{name}@{known}".encode())
            if revision in {known, commit}:
                return known, commit
        return None, None

    def fetched(self):
        """Paths of the files that were sent."""
        sent = [path.split("/resolve/")[1] for how, path in self.asked if how == "GET" and "/resolve/" in path]
        return [path.split("/", 1)[1] for path in sent]


@contextmanager
def serving(hub):
    """Answer in a thread at `hub.address`, the same in every test: clients keep the address they once read."""
    server = ThreadingHTTPServer(("127.0.0.1", _port.get("known", 0)), type("Handler", (_Handler,), {"hub": hub}))
    _port["known"] = server.server_port
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()

    def close():
        if thread.is_alive():
            server.shutdown()
            server.server_close()
            thread.join()

    hub.close = close
    try:
        yield hub
    finally:
        close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Stay silent."""

    def do_HEAD(self):
        self._answer("HEAD")

    def do_GET(self):
        self._answer("GET")

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = urlsplit(self.path).path
        self.hub.posted.append((path, content.decode()))
        if path == "/api/repos/create":
            asked = json.loads(content)
            self._send_json({"url": f"{self.hub.address}/datasets/{asked.get('organization', 'me')}/{asked['name']}"})
        elif "/preupload/" in path:
            names = [one["path"] for one in json.loads(content)["files"]]
            self._send_json({"files": [{"path": one, "uploadMode": "regular", "shouldIgnore": False} for one in names]})
        elif "/commit/" in path:
            self._send_json(
                {
                    "commitOid": COMMIT,
                    "commitUrl": f"{self.hub.address}/{'/'.join(path.split('/')[2:5])}/commit/{COMMIT}",
                    "success": True,
                }
            )
        else:
            self._send_json({})

    def _answer(self, method):
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((method, path))
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            return self._describe("/".join(parts[2:4]), parts[4:])
        if parts[0] == "datasets" and "resolve" in parts:
            return self._send_file("/".join(parts[1:3]), parts[4], "/".join(parts[5:]), method)
        if parts[:2] == ["api", "whoami-v2"]:
            return self._send_json({"name": "me", "type": "user", "orgs": []})
        return self._refuse("EntryNotFound")

    def _describe(self, name, rest):
        if name not in self.hub.repositories:
            return self._refuse("RepoNotFound")
        revision = rest[1] if len(rest) > 1 else "main"
        known, commit = self.hub.commit_of(name, revision)
        if known is None:
            return self._refuse("RevisionNotFound")
        files = self.hub.repositories[name][known]
        size = {one: self.hub.sizes.get(one, len(content)) for one, content in files.items()}
        if rest[:1] == ["tree"]:
            entries = [{"type": "file", "path": one, "size": size[one], "oid": digest(files[one])} for one in files]
            return self._send_json(entries)
        siblings = [{"rfilename": one, "size": size[one]} for one in files]
        return self._send_json({"id": name, "sha": commit, "siblings": siblings, "private": False, "tags": []})

    def _send_file(self, name, revision, path, method):
        known, commit = self.hub.commit_of(name, revision)
        content = self.hub.repositories[name].get(known, {}).get(path)
        if content is None or path in self.hub.held_back:
            return self._refuse("EntryNotFound")
        headers = {"X-Repo-Commit": commit, "ETag": f'"{digest(content)}"'}
        return self._send(200, content, headers, has_body=method == "GET")

    def _send_json(self, content):
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _refuse(self, code):
        self._send(404, b"{}", {"X-Error-Code": code, "X-Error-Message": code}, has_body=self.command != "HEAD")

    def _send(self, status, content, headers, *, has_body=True):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content)), "Connection": "close"}.items():
            self.send_header(key, value)
        self.end_headers()
        self.close_connection = True  # a kept connection would be answered after the server is gone
        if has_body:
            self.wfile.write(content)
