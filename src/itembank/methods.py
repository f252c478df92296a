"""Tables of methods: a choice of method is a spec, or the short name of its defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar, cast

from itembank.errors import ParameterError, did_you_mean, shown

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True)
class MethodTable(Generic[Spec]):
    """The methods of one purpose, by short name.

    Attributes
    ----------
    purpose : str
        What the methods are for, as error messages say it.
    kinds : mapping of short name to spec class
        Every class can be made without arguments.
    """

    purpose: str
    kinds: Mapping[str, type[Spec]]

    def resolve(self, method: Spec | str) -> Spec:
        """Return the spec itself, or the default one of a method's short name.

        Raises
        ------
        ParameterError
            For a name that is not in the table, or something that is not one of its specs.
        """
        if isinstance(method, str) and method in self.kinds:
            return self.kinds[method]()
        if isinstance(method, str) or not isinstance(method, tuple(self.kinds.values())):
            raise ParameterError(self.refusal(method))
        return method

    def refusal(self, method: object, others: Sequence[str] = ()) -> str:
        """Say which methods there are, with the names of `others` before them, instead of this one."""
        names = [*others, *self.kinds]
        near = did_you_mean(method, names) if isinstance(method, str) else ""
        return f"{self.purpose} method must be one of {shown(names, limit=len(names))}, got {method!r}.{near}"

    def name_of(self, spec: Spec) -> str:
        """Return the short name of a spec's method."""
        return next(name for name, kind in self.kinds.items() if isinstance(spec, kind))

    def label(self, spec: Spec) -> str:
        """Return the short name of a spec's method, with the choices that differ from its defaults."""
        default = type(spec)()
        names = [field.name for field in fields(cast("Any", spec))]
        changed = [f"{name} {getattr(spec, name)}" for name in names if getattr(spec, name) != getattr(default, name)]
        return self.name_of(spec) + (f" ({', '.join(changed)})" if changed else "")
