"""Whether the installed lm_eval is one whose methods these runs can take the place of."""

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from itembank.errors import ItembankError, missing_package, shown

RELEASES = "0.4.5 or newer, below 0.6"
PACKAGE = "'lm_eval>=0.4.5,<0.6'"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "Task.build_all_requests": ("rank", "world_size", "limit"),
    "Task.doc_iterator": ("rank", "world_size", "limit"),
    "evaluate": ("lm", "task_dict", "limit", "log_samples", "bootstrap_iters"),
}
"""Arguments that are used, by function."""


class HarnessError(ItembankError):
    """A harness of a release that these runs do not fit, or a run that it cannot do."""


def check_release() -> None:
    """Import lm_eval, and check that its functions take the arguments that are used.

    Raises
    ------
    MissingDependencyError
        When it is not installed; the message names the package.
    HarnessError
        When its functions are other ones.
    """
    try:
        from lm_eval import evaluator  # noqa: PLC0415
        from lm_eval.api.task import Task  # noqa: PLC0415
    except ImportError as error:
        raise missing_package("a run inside lm-evaluation-harness needs lm_eval", PACKAGE, error) from error
    functions: dict[str, Callable[..., Any] | None] = {
        "Task.build_all_requests": getattr(Task, "build_all_requests", None),
        "Task.doc_iterator": getattr(Task, "doc_iterator", None),
        "evaluate": getattr(evaluator, "evaluate", None),
    }
    unlike = [name for name, function in functions.items() if not _takes(function, NEEDED[name])]
    if unlike:
        raise HarnessError(
            f"lm_eval must be {RELEASES}, whose {shown(unlike)} takes the arguments that chosen items are run with; "
            f"got {release()}. Install another: pip install {PACKAGE}."
        )


def release() -> str:
    """Version of the installed lm_eval."""
    try:
        return version("lm_eval")
    except PackageNotFoundError:
        return "unknown"


def _takes(function: Callable[..., Any] | None, names: tuple[str, ...]) -> bool:
    return function is not None and set(names) <= set(inspect.signature(function).parameters)
