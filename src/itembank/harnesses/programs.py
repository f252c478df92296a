"""Programs that run beside this process, each in a process group of its own, all of which can be ended."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Final

GRACE = 3.0
"""Seconds that programs which were asked to end have for it, before they are killed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two looks at a program that runs."""
MOST_OUTPUT: Final = 2**20
"""Bytes, of the end of what a program prints, that are looked at."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program left."""

    status: int  # Its exit status; the number of a signal that ended it, negative
    is_late: bool  # Whether it was ended because its time was up
    output: str  # The end of what it printed on standard output and on standard error
    errors: str


class Programs:
    """Runs programs, and ends those that run.

    What a program prints goes to files, so that no program that it started, and that goes on, keeps anybody waiting.
    """

    def __init__(self) -> None:
        self._is_ending = threading.Event()
        self._is_killing = threading.Event()

    def run(self, words: Sequence[str], environment: Mapping[str, str], timeout: float) -> Ended:
        """Run a program to its end, which comes after `timeout` seconds at the latest.

        Parameters
        ----------
        words : sequence of str
            The program and its arguments.
        environment : mapping of str to str
            Added to that of this process.
        timeout : float

        Raises
        ------
        OSError, ValueError
            When it cannot be started.
        """
        with TemporaryFile() as output, TemporaryFile() as errors:
            process = subprocess.Popen(  # noqa: S603 (words, not a line for a shell)
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**os.environ, **environment},
                start_new_session=True,
            )
            is_late = False
            if not self._has_ended(process, timeout, self._is_ending):
                is_late = not self._is_ending.is_set()
                self._end(process)
            return Ended(process.returncode, is_late, _end_of(output), _end_of(errors))

    def interrupt(self) -> None:
        """Ask all programs to end; the second time, kill them."""
        if self._is_ending.is_set():
            self._is_killing.set()
        self._is_ending.set()

    def _has_ended(self, process: subprocess.Popen[bytes], seconds: float, unless: threading.Event) -> bool:
        """Wait until a program has ended, its seconds are over, or an event comes before that."""
        until, pause = time.monotonic() + seconds, FIRST_PAUSE
        while process.poll() is None:
            left = until - time.monotonic()
            if left <= 0.0 or unless.wait(min(pause, left)):
                return process.poll() is not None
            pause = min(2.0 * pause, LONGEST_PAUSE)
        return True

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ask a program and all it started to end, and kill what does not."""
        _signal_group(process, signal.SIGTERM)
        self._has_ended(process, GRACE, self._is_killing)
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of them have ended
        os.killpg(process.pid, number)


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_OUTPUT))
    return file.read().decode("utf-8", errors="replace")
