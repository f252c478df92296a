"""Ways for a process to die without warning: at a moment, before a step of its input and output, within a write."""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

STEPS = {
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "os.truncate"),
    *("shutil.rmtree", "ctypes.dlsym"),
}
"""Events of Python's audit that change the disk; `open` counts too where it is for writing."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def before_step(step: int) -> Callable[[], int]:
    """Let this process die before its step of input and output of this number (from 1; 0 never); return a counter."""
    n_steps = 0

    def count() -> None:
        nonlocal n_steps
        n_steps += 1
        if n_steps == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def listen(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STEPS or (event == "open" and _is_for_writing(arguments)):
            count()

    def counted(function: Callable[..., Any], *arguments: Any) -> Any:
        count()
        return function(*arguments)

    sys.addaudithook(listen)
    for name in ("pwrite", "fsync", "ftruncate"):  # of the journal; no events of the audit
        setattr(os, name, partial(counted, getattr(os, name)))
    return lambda: n_steps


def _is_for_writing(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = (*arguments, None, 0)[:3]
    return any(letter in str(mode or "") for letter in "wax+") or bool(int(flags or 0) & _WRITING)


def within_write(n_bytes: int) -> None:
    """Let this process die as soon as a file of its grows beyond so many bytes, with the bytes up to there written."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def within_journal_write(rng: np.random.Generator) -> None:
    """Let this process die in the next write to a journal, with a part of the line on the disk."""
    write = os.pwrite

    def write_and_die(handle: int, content: bytes, offset: int) -> int:
        write(handle, content[: int(rng.integers(len(content) + 1))], offset)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    os.pwrite = write_and_die


def ended(process: int, *, after: float | None = None, most: float = 120.0) -> int:
    """Wait for a process, or kill it after so many seconds; return its exit code, negative for a signal."""
    started = time.monotonic()
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - started > (most if after is None else after):
            os.kill(process, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        time.sleep(0.0005)
