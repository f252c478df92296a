"""How long work tells its caller how far it has come, and how it is stopped."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

ProgressCallback: TypeAlias = Callable[[str, float], None]
"""Called with what is being done and the share of it done, in [0, 1]."""


def silent(message: str, share: float) -> None:
    """Tell nobody."""


def part_of(progress: ProgressCallback, low: float, high: float, label: str = "") -> ProgressCallback:
    """Return what a part of the work tells its progress to: from share `low` to `high` of the whole, after a label."""

    def tell(message: str, share: float) -> None:
        progress(f"{label}{message}", low + (high - low) * share)

    return tell


@contextmanager
def interrupts_to(handler: Any) -> Iterator[None]:
    """Let Ctrl-C do something else than raise `KeyboardInterrupt`, unless that was somebody's choice already."""
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if is_ours:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
