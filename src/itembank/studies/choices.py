"""`MethodChoice`: a method by its short name and options, as a study file writes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar

from itembank.errors import ParameterError, did_you_mean, shown
from itembank.methods import MethodTable

Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """A method, its options where they differ from the defaults, and what tables call it.

    Attributes
    ----------
    method : str
        Short name.
    options : mapping of name to value
    label : str
        Name in results; made of the method and its options when empty.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        """Make a label where none is given."""
        if not self.label:
            listed = ", ".join(f"{name}={value}" for name, value in self.options.items())
            object.__setattr__(self, "label", f"{self.method} ({listed})" if listed else self.method)

    @classmethod
    def of(cls, choice: Any, table: MethodTable[Any], *, purpose: str) -> Self:
        """Make one of a short name, a mapping ``{method, name, **options}``, a spec, or another choice.

        Raises
        ------
        ParameterError
            For anything else.
        """
        if isinstance(choice, cls):
            return choice
        if isinstance(choice, str):
            return cls(choice)
        if isinstance(choice, Mapping):
            options = dict(choice)
            method, label = options.pop("method", None), options.pop("name", "")
            if not isinstance(method, str) or not isinstance(label, str):
                raise ParameterError(f"{purpose} must have a text 'method' (and may have a 'name'), got {choice!r}.")
            return cls(method, options, label)
        if isinstance(choice, tuple(table.kinds.values())):
            return cls(table.name_of(choice), _differing(choice))
        raise ParameterError(f"{purpose} must be a short name, a table with 'method', or a spec, got {choice!r}.")


def resolve_choice(choice: MethodChoice, table: MethodTable[Spec]) -> Spec:
    """Return the spec of a choice.

    Raises
    ------
    ParameterError
        For an unknown method, an unknown option, or a value the method refuses.
    """
    if choice.method not in table.kinds:
        table.resolve(choice.method)  # says which names there are
    kind = table.kinds[choice.method]
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    unknown = [name for name in choice.options if name not in known]
    if unknown:
        raise ParameterError(
            f"options of {table.purpose} method {choice.method!r} must be among {shown(known, len(known)) or 'none'}, "
            f"got {shown(unknown)}.{did_you_mean(unknown, known)}"
        )
    try:
        return kind(**{name: _as_tuple(value) for name, value in choice.options.items()})
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{table.purpose} method {choice.label!r}: {error}") from error


def _differing(spec: Any) -> dict[str, Any]:
    """Options of a spec that are not its class's defaults."""
    default = type(spec)()
    values = {one.name: getattr(spec, one.name) for one in fields(spec)}
    return {name: value for name, value in values.items() if value != getattr(default, name)}


def _as_tuple(value: Any) -> Any:
    """Specs hold tuples where files hold lists."""
    return tuple(_as_tuple(one) for one in value) if isinstance(value, list) else value
