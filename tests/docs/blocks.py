"""Runs the blocks of a page in their order: Python in one namespace, our commands as their entry point does."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from itembank.cli.main import main

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
WIDTH = 120
"""Columns of the terminal that pages show."""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def blocks(text):
    """Language and code of every block of a page."""
    return FENCE.findall(text)


def run_page(text, name):
    """Run `python` and `sh` blocks in the working folder; return the page with its `text` blocks as printed today.

    A `text` block shows what the block above it printed on standard output. The folder gets the checkout's `examples`.
    """
    namespace, printed = {"__name__": "example"}, ""
    Path("examples").symlink_to(EXAMPLES)

    def run_block(found):
        nonlocal printed
        language, code = found.groups()
        if language == "python":
            printed = _run_python(code, name, namespace)
        elif language == "sh":
            commands = _commands(code)
            is_ours = all(words[0] == "itembank" and "||" not in words for words in commands)
            printed = "".join(map(_run_command, commands)) if is_ours else in_bash(code)
        elif language == "text":
            return f"```text\n{_trimmed(printed)}```"
        return found[0]

    return FENCE.sub(run_block, text)


def in_bash(code):
    """Run a block as a reader would, with this environment's programs first and no network; return what it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    of_hub = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(Path(".hf").resolve())}
    environment = {"PATH": path, "COLUMNS": str(WIDTH), **of_hub}
    command = ["bash", "-euo", "pipefail", "-c", code]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    code, out = 0, io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    environment = mock.patch.dict("os.environ", {"COLUMNS": str(WIDTH)})
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,  # programs that ours starts write to it, too
        mock.patch("sys.argv", arguments),
        environment,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        err.seek(0)
        assert code == 0, f"{shlex.join(words)} exits with {code}: {err.read()}"
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
