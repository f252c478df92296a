"""Tables of methods: a method is a name, a spec with its choices, and the kernel that does the work."""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from itembank.errors import ParameterError, did_you_mean, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True)
class Method:
    """A spec and its kernel: one line of a table, or the entry point of another package."""

    spec: type  # Frozen dataclass that can be made without arguments
    # Of the signature that all kernels of the table share. 'module:function' is imported when it is first needed, so
    # that a table does not load what its methods need.
    kernel: str | Callable[..., Any]


class MethodTable(Generic[Spec]):
    """The methods of one purpose, by short name.

    Parameters
    ----------
    purpose : str
        What the methods are for, as error messages say it.
    methods : mapping of short name to Method or spec class
        A spec class alone where specs are no methods but choices without a kernel.
    base : class
        What the spec of a method that is added must be derived from.
    group : str, optional
        Entry points of installed packages that add methods: names of methods, each with a `Method` as its object.
    reserved : sequence of str
        Names that mean something else where a method is asked for.

    Attributes
    ----------
    kinds : mapping of short name to spec class
        Installed methods are imported when they are looked up.
    """

    def __init__(
        self,
        purpose: str,
        methods: Mapping[str, Method | type],
        *,
        base: type = object,
        group: str | None = None,
        reserved: Sequence[str] = (),
    ) -> None:
        self.purpose = purpose
        self.kinds: Mapping[str, type[Spec]] = _Kinds(self)
        self.builtin_names = tuple(methods)
        self._base = base
        self._group = group
        self._taken = (*methods, *reserved)
        self._methods = dict(methods)

    def names(self) -> tuple[str, ...]:
        """Return the names of all methods: itembank's, those that were registered, and those of installed packages."""
        return tuple(dict.fromkeys([*self._methods, *self._installed()]))

    def register(self, name: str, spec: type[Spec], kernel: str | Callable[..., Any]) -> None:
        """Add a method to this process; an entry point adds it to every process, and to the command line.

        Raises
        ------
        ParameterError
            For a name that is taken, or a spec that is not one of the table's kind.
        """
        if name in {*self.names(), *self._taken}:
            raise ParameterError(f"the name of a new {self.purpose} method must be free, got {name!r}, which is taken.")
        self._methods[name] = self._checked(name, Method(spec, kernel))

    def find(self, name: str) -> Method | type | None:
        """Return the method of a short name, imported if a package brings it; None if there is none."""
        if name not in self._methods and name in self._installed():
            self._methods[name] = self._loaded(name, self._installed()[name])
        return self._methods.get(name)

    def resolve(self, method: Spec | str) -> Spec:
        """Return the spec itself, or the default one of a method's short name."""
        if isinstance(method, str):
            if method not in self.kinds:
                raise ParameterError(self.refusal(method))
            return self.kinds[method]()
        if self._name(method) is None:
            raise ParameterError(self.refusal(method))
        return method

    def kernel(self, spec: Spec) -> Callable[..., Any]:
        """Return the function that does the work of a spec's method."""
        kernel = cast("Method", self._methods[self.name_of(spec)]).kernel
        if isinstance(kernel, str):
            module, _, name = kernel.partition(":")
            kernel = cast("Callable[..., Any]", getattr(importlib.import_module(module), name))
        return kernel

    def refusal(self, method: object, others: Sequence[str] = (), *, purpose: str | None = None) -> str:
        """Say which methods there are, with the names of `others` before them, instead of this one."""
        names = [*others, *self.names()]
        near = did_you_mean(method, names) if isinstance(method, str) else ""
        allowed = shown(names, limit=len(names))
        return f"{purpose or self.purpose} method must be one of {allowed}, got {method!r}.{near}"

    def name_of(self, spec: Spec) -> str:
        """Return the short name of a spec's method."""
        name = self._name(spec)
        if name is None:
            raise ParameterError(self.refusal(spec))
        return name

    def to_plain(self, spec: Spec, key: str) -> dict[str, Any]:
        """Return a spec's choices as plain data, with its method's short name under a key; so of specs within it."""
        choices = {one.name: getattr(spec, one.name) for one in fields(cast("Any", spec))}
        return {key: self.name_of(spec), **{name: self._plain(value, key) for name, value in choices.items()}}

    def label(self, spec: Spec) -> str:
        """Return the short name of a spec's method, with the choices that differ from its defaults."""
        default = type(spec)()
        names = [field.name for field in fields(cast("Any", spec))]
        changed = [f"{name} {getattr(spec, name)}" for name in names if getattr(spec, name) != getattr(default, name)]
        return self.name_of(spec) + (f" ({', '.join(changed)})" if changed else "")

    def _plain(self, value: Any, key: str) -> Any:
        if isinstance(value, tuple):
            return tuple(self._plain(one, key) for one in value)
        if not is_dataclass(value):
            return value
        return asdict(cast("Any", value)) if self._name(value) is None else self.to_plain(cast("Spec", value), key)

    def _name(self, spec: object) -> str | None:
        """Find a spec's name, first among the methods that are loaded, so that packages are seldom asked."""
        loaded = next((name for name in self._methods if type(spec) is self.kinds[name]), None)
        return loaded or next((name for name in self.names() if type(spec) is self.kinds[name]), None)

    def _installed(self) -> Mapping[str, "EntryPoint"]:
        """Return the entry points of installed packages, none of which may have a name of itembank's own."""
        if self._group is None:
            return {}
        found = entry_points_of(self._group)
        for name in self._taken:
            if name in found:
                raise ParameterError(
                    f"methods of installed packages must have names of their own: {_package(found[name])} brings "
                    f"{name!r} ({self._group}), which is itembank's. Uninstall the package, or rename its method."
                )
        return found

    def _loaded(self, name: str, entry: "EntryPoint") -> Method:
        """Import the method of an installed package."""
        try:
            return self._checked(name, entry.load())
        except Exception as error:  # whatever a stranger's module raises
            cause = f"{type(error).__name__}: {error}".rstrip(".")
            raise ParameterError(
                f"{self.purpose} method {name!r} of the installed package {_package(entry)} could not be loaded from "
                f"{entry.value!r} ({cause}). Repair the package, or uninstall it."
            ) from error

    def _checked(self, name: str, method: object) -> Method:
        if not isinstance(method, Method):
            raise ParameterError(f"method {name!r} must be an itembank.methods.Method, got {method!r}.")
        kind: object = method.spec
        if not (isinstance(kind, type) and is_dataclass(kind) and issubclass(kind, self._base)):
            raise ParameterError(
                f"the spec of method {name!r} must be a dataclass derived from {self._base.__module__}."
                f"{self._base.__name__}, got {kind!r}."
            )
        try:
            kind()
        except TypeError as error:
            raise ParameterError(
                f"the spec of method {name!r} must have a default for every choice: {error}."
            ) from error
        return method


class _Kinds(Mapping[str, Any]):
    """Spec classes of a table by name."""

    def __init__(self, table: MethodTable[Any]) -> None:
        self._table = table

    def __getitem__(self, name: str) -> type:
        found = self._table.find(name) if isinstance(name, str) else None
        if found is None:
            raise KeyError(name)
        return found.spec if isinstance(found, Method) else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.names())

    def __len__(self) -> int:
        return len(self._table.names())


@cache
def entry_points_of(group: str) -> Mapping[str, "EntryPoint"]:
    """Return a group's entry points by name; ask only where a name is not itembank's own, since it takes a while.

    Other packages add methods (`MethodTable`), commands, pages of results and reports on folders.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 (slow to import, and seldom needed)

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        other = found.setdefault(entry.name, entry)
        if other != entry:
            raise ParameterError(
                f"what installed packages add must have names of their own: {_package(other)} and {_package(entry)} "
                f"both bring {entry.name!r} ({group}). Uninstall one of them."
            )
    return found


def _package(entry: "EntryPoint") -> str:
    return "of unknown name" if entry.dist is None else repr(entry.dist.name)
