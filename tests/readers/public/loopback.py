"""A server on this machine that gives files as one on the web does, and breaks off, changes or leads away when told."""

import hashlib
import re
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Web:
    """Files by path, and how they are given.

    Attributes
    ----------
    files : dict of path to bytes
    breaks : list of int
        The next answers end after so many bytes, one after the other.
    leads : dict of path to address
    errors : list of int
        The next answers are these codes.
    requests : list of (path, headers)
    has_ranges, has_lengths : bool
    """

    def __init__(self):
        self.files, self.leads = {}, {}
        self.breaks, self.errors, self.requests = [], [], []
        self.has_ranges = self.has_lengths = True
        self.address = ""


@contextmanager
def serving(handler=None):
    """Run the server; gives its `Web`."""
    web = Web()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler or Files,), {"web": web}))
    web.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Files(BaseHTTPRequestHandler):
    """Gives files, with ranges."""

    web: Web

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        web = self.web
        web.requests.append((self.path, dict(self.headers)))
        if web.errors:
            self.answer(web.errors.pop(0))
        elif self.path in web.leads:
            self.answer(302, {"Location": web.leads[self.path]})
        elif self.path in web.files:
            self.give(web.files[self.path])
        else:
            self.answer(404)

    def answer(self, code, headers=()):
        self.send_response(code)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def give(self, content):
        tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        start = self.start_of(tag)
        if start is not None and start >= len(content):
            self.answer(416, {"Content-Range": f"bytes */{len(content)}"})
            return
        self.send_response(200 if start is None else 206)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", tag)
        rest = content[start or 0 :]
        if self.web.has_lengths:
            self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        with suppress(ConnectionError):  # who asked may have gone
            self.wfile.write(rest[: self.web.breaks.pop(0)] if self.web.breaks else rest)
        self.close_connection = True

    def start_of(self, tag):
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        is_same = self.headers.get("If-Range") in {None, tag}
        return int(found[1]) if found and self.web.has_ranges and is_same else None
