"""What depends on the release of the harness: whether it fits, the functions a run takes the place of, loaded tasks."""

import copy
import functools
import inspect
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any, Protocol

from itembank.errors import ItembankError, missing_package, shown

RELEASES = "0.4.5 or newer, below 0.6"
PACKAGE = "'lm_eval>=0.4.5,<0.6'"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "Task.build_all_requests": ("rank", "world_size", "limit"),
    "Task.doc_iterator": ("rank", "world_size", "limit"),
    "evaluate": ("lm", "task_dict", "limit", "log_samples", "bootstrap_iters"),
}
"""Arguments that are used, by function."""
Original = Callable[..., Any]
_lock = Lock()
_restore: list[Callable[[], None]] = []
_n_inside = 0


class HarnessError(ItembankError):
    """A harness of a release that these runs do not fit, or a run that it cannot do."""


def check_release() -> None:
    """Import lm_eval, and check that its functions take the arguments that are used."""
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
    unlike = [
        name
        for name, function in functions.items()
        if not (function is not None and set(NEEDED[name]) <= set(inspect.signature(function).parameters))
    ]
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


def task_names(loaded: Any) -> dict[str, Any]:
    """Return every task of what was loaded, by name."""
    if "tasks" in loaded:  # since 0.4.12: {"tasks": ..., "groups": ...}
        return dict(loaded["tasks"])
    found: dict[str, Any] = {}
    for key, value in loaded.items():
        found.update(task_names(value) if isinstance(value, dict) else {key: value})
    return found


def group_tasks(loaded: Any) -> dict[str, set[str]]:
    """Return the names of the tasks of every group of what was loaded, at any depth, by the group's name."""
    if "tasks" in loaded:
        return {name: _leaves(group) for name, group in loaded.get("groups", {}).items()}
    found: dict[str, set[str]] = {}
    for key, value in loaded.items():
        if isinstance(value, dict):
            found |= group_tasks(value) | {str(getattr(key, "group", key)): set(task_names(value))}
    return found


def _leaves(group: Any) -> set[str]:
    return {name for one in group for name in (_leaves(one) if hasattr(one, "child_names") else {one.config.task})}


def renamed(loaded: Any, names: Mapping[str, str]) -> Any:
    """Return what was loaded with tasks called as these names say; the tasks themselves are called so, too."""
    if not names:
        return loaded
    for name, task in task_names(loaded).items():
        if name in names:
            task.set_config(key="task", value=names[name])
    return {**loaded, "tasks": _renamed(loaded["tasks"], names)} if "tasks" in loaded else _renamed(loaded, names)


def _renamed(tasks: Mapping[Any, Any], names: Mapping[str, str]) -> dict[Any, Any]:
    """Rename tasks at every depth; another task that has one of the new names is left out."""
    taken = set(names.values()) - set(names)
    return {
        names.get(key, key): _renamed(value, names) if isinstance(value, dict) else value
        for key, value in tasks.items()
        if key not in taken
    }


def narrowed(loaded: Any, wanted: Container[str]) -> Any:
    """Return what was loaded with the wanted tasks only, and groups that hold any of them; nothing is changed."""
    if "tasks" not in loaded:
        return _nested(loaded, wanted)
    tasks = {name: task for name, task in loaded["tasks"].items() if name in wanted}
    groups = {name: _group(group, wanted) for name, group in loaded.get("groups", {}).items()}
    kept = {name: group for name, group in groups.items() if len(group)}
    return {"tasks": tasks, "groups": kept, "group_map": {name: one.child_names for name, one in kept.items()}}


def _group(group: Any, wanted: Container[str]) -> Any:
    """Return a copy of a group, and of those in it, with the wanted tasks."""
    made = copy.copy(group)
    made._children = {}
    for child in group:
        if hasattr(child, "child_names"):
            inner = _group(child, wanted)
            if len(inner):
                made.add(inner)
        elif child.config.task in wanted:
            made.add(child)
    return made


def _nested(loaded: dict[Any, Any], wanted: Container[str]) -> dict[Any, Any]:
    """Narrow the nested form of releases before 0.4.12: {group: {task name: task}}."""
    kept: dict[Any, Any] = {}
    for key, value in loaded.items():
        if isinstance(value, dict):
            inner = _nested(value, wanted)
            if inner:
                kept[key] = inner
        elif key in wanted:
            kept[key] = value
    return kept


class Hooks(Protocol):
    """What a run does instead of the harness; each is given the harness's own function."""

    def build(self, original: Original, task: Any, arguments: dict[str, Any]) -> None:
        """Build the requests of a task."""

    def documents(self, original: Original, task: Any, arguments: dict[str, Any]) -> Iterator[tuple[int, Any]]:
        """Walk through the documents of a task."""

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Evaluate a model on tasks."""


_hooks: ContextVar[Hooks | None] = ContextVar("itembank_lm_eval_hooks", default=None)


@contextmanager
def hooked(hooks: Hooks) -> Iterator[None]:
    """Replace functions of the harness by `hooks` in this thread; other threads are served as before.

    The functions are put in place unless another run has, and put back when the last run is over.
    """
    global _n_inside  # noqa: PLW0603 (one process has one harness)
    with _lock:
        if _n_inside == 0:
            check_release()
            _install()
        _n_inside += 1
    token = _hooks.set(hooks)
    try:
        yield
    finally:
        _hooks.reset(token)
        with _lock:
            _n_inside -= 1
            while _n_inside == 0 and _restore:
                _restore.pop()()


def is_overridden(task: Any) -> bool:
    """Whether a task has methods of its own where ours were to be."""
    from lm_eval.api.task import Task  # noqa: PLC0415

    names = ("build_all_requests", "doc_iterator")
    return any(getattr(type(task), name) is not getattr(Task, name) for name in names)


def _install() -> None:
    import lm_eval  # noqa: PLC0415
    from lm_eval import evaluator  # noqa: PLC0415
    from lm_eval.api.task import Task  # noqa: PLC0415

    build, walk, evaluate = Task.build_all_requests, Task.doc_iterator, evaluator.evaluate

    @functools.wraps(build)
    def build_all_requests(self: Any, **arguments: Any) -> Any:
        hooks = _hooks.get()
        return build(self, **arguments) if hooks is None else hooks.build(build, self, arguments)

    @functools.wraps(walk)
    def doc_iterator(self: Any, **arguments: Any) -> Any:
        hooks = _hooks.get()
        return walk(self, **arguments) if hooks is None else hooks.documents(walk, self, arguments)

    @functools.wraps(evaluate)
    def evaluate_chosen(*given: Any, **named: Any) -> Any:
        hooks = _hooks.get()
        if hooks is None:
            return evaluate(*given, **named)
        return hooks.evaluate(evaluate, dict(inspect.signature(evaluate).bind(*given, **named).arguments))

    for owner, name, function in (
        (Task, "build_all_requests", build_all_requests),
        (Task, "doc_iterator", doc_iterator),
        (evaluator, "evaluate", evaluate_chosen),
        (lm_eval, "evaluate", evaluate_chosen),
    ):
        if name in vars(owner):  # some releases offer evaluate in one place only
            _restore.append(functools.partial(setattr, owner, name, vars(owner)[name]))
            setattr(owner, name, function)
