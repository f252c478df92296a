"""Runs the blocks of a page in their order: Python in one namespace, commands as their entry point does."""

import contextlib
import io
import re
import shlex
from pathlib import Path
from unittest import mock

from itembank.cli.main import main

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
WIDTH = 120
"""Columns of the terminal that pages show."""


def blocks(text):
    """Language and code of every block of a page."""
    return FENCE.findall(text)


def run_page(text, name):
    """Run `python` and `sh` blocks in the working folder; return the page with its `text` blocks as printed today.

    A `text` block shows what the block above it printed on standard output.
    """
    namespace, printed = {"__name__": "example"}, ""

    def run_block(found):
        nonlocal printed
        language, code = found.groups()
        if language == "python":
            printed = _run_python(code, name, namespace)
        elif language == "sh":
            printed = "".join(map(_run_command, _commands(code)))
        elif language == "text":
            return f"```text\n{_trimmed(printed)}```"
        return found[0]

    return FENCE.sub(run_block, text)


def _run_python(code, name, namespace):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, name, "exec"), namespace)  # noqa: S102
    return out.getvalue()


def _commands(code):
    """One command a line, without comments; `\\` at the end of a line continues it."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def _run_command(words):
    """Run `itembank ...` or `itembank ... > file` in this process."""
    target = words[words.index(">") + 1] if ">" in words else None
    arguments = words[: words.index(">")] if target else words
    code, out, err = 0, io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    environment = mock.patch.dict("os.environ", {"COLUMNS": str(WIDTH)})
    with (
        mock.patch("sys.argv", arguments),
        environment,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    assert code == 0, f"{shlex.join(words)} exits with {code}: {err.getvalue()}"
    out.flush()
    printed = out.buffer.getvalue()
    if target:
        Path(target).write_bytes(printed)
        return ""
    return printed.decode("utf-8")


def _trimmed(printed):
    """Without blank lines at the ends and blanks at the ends of lines."""
    lines = [line.rstrip() for line in printed.splitlines()]
    return "\n".join(lines).strip("\n") + "\n"
