"""Loaded tasks without those of which nothing was chosen, in the forms that releases of the harness load them."""

import copy
from collections.abc import Container, Mapping
from typing import Any


def task_names(loaded: Any) -> dict[str, Any]:
    """Return every task of what was loaded, by name."""
    if "tasks" in loaded:  # since 0.4.12: {"tasks": ..., "groups": ...}
        return dict(loaded["tasks"])
    found: dict[str, Any] = {}
    for key, value in loaded.items():
        found.update(task_names(value) if isinstance(value, dict) else {key: value})
    return found


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
