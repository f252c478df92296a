"""`StudySpec`: what a study compares, on what, and how often."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypeVar, get_args

from itembank.calibration.calibration_specs import METHODS as CALIBRATIONS
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.checks import check_fraction, check_one_of, check_whole, is_number, is_whole
from itembank.errors import ParameterError, did_you_mean, shown
from itembank.estimation.estimator_specs import METHODS as ESTIMATIONS
from itembank.estimation.estimator_specs import Auto, EstimationSpec, IntervalChoice
from itembank.methods import MethodTable
from itembank.responses.score_names import Across, Within
from itembank.selection.selector_specs import METHODS as SELECTIONS
from itembank.selection.selector_specs import SelectionSpec
from itembank_studies.split_specs import SPLITS, SplitSpec

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
            spec: Any = choice
            default, values = type(spec)(), {one.name: getattr(spec, one.name) for one in fields(spec)}
            differing = {name: value for name, value in values.items() if value != getattr(default, name)}
            return cls(table.name_of(spec), differing)
        raise ParameterError(f"{purpose} must be a short name, a table with 'method', or a spec, got {choice!r}.")


def resolve_choice(choice: MethodChoice, table: MethodTable[Spec]) -> Spec:
    """Return the spec of a choice."""
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


def _as_tuple(value: Any) -> Any:
    """Specs hold tuples where files hold lists."""
    return tuple(_as_tuple(one) for one in value) if isinstance(value, list) else value


AUTO: Final = "auto"
CALIBRATED: Final = "calibrated"
DRAWN = ("random", "stratified")
"""Selectors whose items come by chance with known probabilities, as design-based intervals need."""
Filter: TypeAlias = Mapping[str, Any]
"""``{"column": name, "value": value}``: the rows where the column has this value (or one of a list)."""

FILTERS = ("drop_models", "keep_models", "drop_items", "keep_items")


@dataclass(frozen=True, slots=True)
class DataSpec:
    """Where the responses come from.

    Attributes
    ----------
    builtin : str
        Name of a built-in data set, instead of files.
    response : str
        Of a built-in data set: 'correct' or 'probability'.
    responses : tuple of str
        Files or folders, as `read_responses` takes them. Relative to `folder`; ``${NAME}`` stands for an
        environment variable.
    models, items : str
        Tables of what else is known, likewise; empty for none.
    response_column : str
    columns : mapping of our name to the files'
        For cost columns that are called otherwise, such as ``{"seconds": "latency_s"}``.
    prefix_scenario : bool
        Put the scenario before each item id, for files whose scenarios share ids.
    drop_models, keep_models, drop_items, keep_items : mapping or None
        ``{"column": ..., "value": ...}`` of the model or item table; the value may be a list.
    folder : Path
        Where relative paths start; not a part of what the study is.
    """

    builtin: str = ""
    response: str = "correct"
    responses: tuple[str, ...] = ()
    models: str = ""
    items: str = ""
    response_column: str = "response"
    columns: Mapping[str, str] = field(default_factory=dict)
    prefix_scenario: bool = False
    drop_models: Filter | None = None
    keep_models: Filter | None = None
    drop_items: Filter | None = None
    keep_items: Filter | None = None
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        responses: Any = self.responses
        if not isinstance(responses, tuple | list) or not all(isinstance(one, str) for one in responses):
            raise ParameterError(f"responses must be a list of files or folders, got {responses!r}.")
        if bool(self.builtin) == bool(self.responses):
            raise ParameterError("the data of a study are either builtin = a name, or responses = files; give one.")
        for name in FILTERS:
            one = getattr(self, name)
            if one is not None and (not isinstance(one, Mapping) or set(one) != {"column", "value"}):
                raise ParameterError(f"{name} must be {{column = ..., value = ...}}, got {one!r}.")
        if not isinstance(self.prefix_scenario, bool):
            raise ParameterError(f"prefix_scenario must be true or false, got {self.prefix_scenario!r}.")
        if not isinstance(self.columns, Mapping):
            raise ParameterError(f"columns must be a table of names, got {self.columns!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        content = {name: value for name, value in asdict(self).items() if name != "folder"}
        for name in ("columns", "prefix_scenario"):  # left out, so that folders made before there was a choice go on
            if not content[name]:
                del content[name]
        return content


@dataclass(frozen=True, slots=True)
class CalibrationChoice:
    """How the bank of each split is made.

    Attributes
    ----------
    method : str
        Short name of a calibration.
    n_dims : int or 'auto'
        'auto' chooses it on the past models of each split, as `choose_n_dims` does (below ten models one, or
        two of 'nested', which counts the general one).
    item_model : str
        By the number of dimensions when empty: '2pl' for one, 'mirt' for more.
    within, across : str
        How items make scores, as for `ScoreTargets.create`.
    options : mapping
        Further options of the calibration's spec.
    """

    method: str = "variational"
    n_dims: int | str = AUTO
    item_model: str = ""
    within: Within = "micro"
    across: Across = "scenarios"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.method, str):
            raise ParameterError(f"method of a calibration must be a short name, got {self.method!r}.")
        if self.n_dims != AUTO and not is_whole(self.n_dims):
            raise ParameterError(f"n_dims must be a whole number or 'auto', got {self.n_dims!r}.")
        if self.n_dims == AUTO and self.item_model in {"1pl", "2pl"}:
            raise ParameterError(f"n_dims = 'auto' chooses among several abilities; {self.item_model} has one.")
        for word, value, allowed in (
            ("within", self.within, get_args(Within)),
            ("across", self.across, get_args(Across)),
        ):
            check_one_of(word, value, allowed)
        self.spec(self.least_dims if self.n_dims == AUTO else int(self.n_dims))

    @property
    def least_dims(self) -> int:
        """Fewest dimensions of the item model."""
        return 2 if self.item_model == "nested" else 1

    def spec(self, n_dims: int) -> CalibrationSpec:
        """Return the calibration's spec with this number of dimensions."""
        item_model = self.item_model or ("2pl" if n_dims == 1 else "mirt")
        options = {**self.options, "n_dims": n_dims, "item_model": item_model}
        return resolve_choice(MethodChoice(self.method, options), CALIBRATIONS)


@dataclass(frozen=True, slots=True)
class CostBudget:
    """Budgets in cost instead of in items.

    Of each selector the largest selection is taken whose expected cost is within the amount: the sum over its items
    of their mean cost over the past models.

    Attributes
    ----------
    cost : str
        Unit: a cost of the responses (`output_tokens`, `cost_usd`, `seconds`, ...).
    amounts : tuple of float
    """

    cost: str
    amounts: tuple[float, ...]

    def __post_init__(self) -> None:
        amounts: Any = self.amounts
        is_list = isinstance(amounts, tuple | list) and len(amounts) > 0
        if not is_list or not all(is_number(one) and one > 0.0 for one in amounts):
            raise ParameterError(f"amounts of a budget must be a list of numbers > 0, got {amounts!r}.")
        object.__setattr__(self, "amounts", tuple(amounts))


@dataclass(frozen=True, slots=True)
class StudySpec:
    """A comparison of selections and estimates on models that the bank has not seen; `run_study` runs it.

    Attributes
    ----------
    name : str
    splits : tuple of SplitSpec
        With different names.
    selectors, estimators : tuple
        Short names, mappings ``{"method": name, **options}`` (an entry ``name`` labels it in results), or specs;
        kept as `MethodChoice`.
    n_items : tuple of int
        Items in all; empty with a `budget`.
    budget : CostBudget or None
    pairs : tuple of (selector label, estimator label)
        Which go together; every selector with every estimator when empty.
    data : DataSpec or None
        None when `run_study` is given the responses.
    calibration : CalibrationChoice
    n_draws : int
        Selections of each selector and size within a repeat.
    repeats : int
        Random splits are drawn anew in each; those that are not random draw only new items.
    level : float
        Of the intervals.
    interval : {'auto', 'calibrated', 'model-based', 'design'}
        Kind of the intervals, as for `estimate`. 'design' goes with the estimator 'auto' alone, since it brings its
        own estimate, and with selectors that draw: 'random', 'stratified'.
    cost : str
        Unit in which results tell the expected cost of a selection; that of the budget if empty.
    targets : tuple of str
        Scores to estimate besides every scenario's and the overall one: 'mean_win_rate', against the past models
        of a split, or a column of the model table that holds an external score of each model.
    seed : int

    Examples
    --------
    >>> spec = StudySpec("mine", splits=(KFold(k=4),), selectors=("random", "anchor-irt"),
    ...                  estimators=("weighted", "gp-irt"), n_items=(30, 100))  # doctest: +SKIP
    >>> result = run_study(spec, "mine", responses=load_builtin())  # doctest: +SKIP
    """

    name: str
    splits: tuple[SplitSpec, ...]
    selectors: tuple[Any, ...]
    estimators: tuple[Any, ...]
    n_items: tuple[int, ...] = ()
    budget: CostBudget | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    data: DataSpec | None = None
    calibration: CalibrationChoice = field(default_factory=CalibrationChoice)
    n_draws: int = 1
    repeats: int = 1
    level: float = 0.95
    interval: IntervalChoice = AUTO
    cost: str = ""
    targets: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        set_field = object.__setattr__
        for name, table in (("selectors", SELECTIONS), ("estimators", ESTIMATIONS)):
            word = name.removesuffix("s")
            set_field(self, name, tuple(MethodChoice.of(one, table, purpose=word) for one in _listed(self, name)))
        for name in ("splits", "n_items", "pairs", "targets"):
            set_field(self, name, tuple(_listed(self, name)))
        bad = [pair for pair in self.pairs if not isinstance(pair, tuple | list) or len(pair) != 2]
        if bad:
            raise ParameterError(f"a pair must be [selector, estimator], got {bad[0]!r}.")
        set_field(self, "pairs", tuple((one, other) for one, other in self.pairs))
        _check_methods(self)
        if not self.splits:
            raise ParameterError("a study needs at least one of splits, got none.")
        for one in self.splits:
            check_split(one)
        check_unique([one.name for one in self.splits], "splits")
        _check_sizes(self)
        _check_interval(self)

    @property
    def budgets(self) -> tuple[float, ...]:
        """Numbers of items, or amounts of cost."""
        return tuple(map(float, self.n_items)) if self.budget is None else self.budget.amounts

    @property
    def cost_unit(self) -> str:
        """Unit of the costs in the results; empty for none."""
        return self.cost or (self.budget.cost if self.budget is not None else "")

    def estimators_of(self, selector: str) -> tuple[MethodChoice, ...]:
        """Return the estimators that go with a selector, by its label."""
        if not self.pairs:
            return self.estimators
        wanted = {estimator for one, estimator in self.pairs if one == selector}
        return tuple(choice for choice in self.estimators if choice.label in wanted)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: all that the numbers depend on, but the responses themselves."""
        content = plain_study(self)
        content["splits"] = [SPLITS.to_plain(one, "kind") for one in self.splits]
        if self.interval == CALIBRATED:  # left out, so that folders made before there was a choice go on
            del content["interval"]
        if not self.targets:
            del content["targets"]
        return content


def plain_study(spec: Any) -> dict[str, Any]:
    """Return the fields of a study's spec as plain values; `data` only where it names some."""
    content = asdict(replace(spec, data=None))
    if spec.data is None:
        del content["data"]
    else:
        content["data"] = spec.data.to_dict()
    return content


def selection_spec(choice: MethodChoice) -> SelectionSpec | None:
    """Return the spec of a selector; None for 'auto' where it is no method of its own, but a choice among them."""
    if choice.method == AUTO and AUTO not in SELECTIONS.kinds and not choice.options:
        return None
    return resolve_choice(choice, SELECTIONS)


def estimation_spec(choice: MethodChoice) -> EstimationSpec:
    """Return the spec of an estimator."""
    return resolve_choice(choice, ESTIMATIONS)


def _listed(spec: StudySpec, name: str) -> Any:
    value = getattr(spec, name)
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise ParameterError(f"{name} must be a list, got {value!r}.")
    return value


def _check_methods(spec: StudySpec) -> None:
    for name, resolve in (("selectors", selection_spec), ("estimators", estimation_spec)):
        choices: tuple[MethodChoice, ...] = getattr(spec, name)
        if not choices:
            raise ParameterError(f"a study needs at least one of {name}, got none.")
        for choice in choices:
            resolve(choice)
        check_unique([choice.label for choice in choices], name)
    for pair in spec.pairs:
        for label, name in zip(pair, ("selectors", "estimators"), strict=True):
            labels = [choice.label for choice in getattr(spec, name)]
            if label not in labels:
                raise ParameterError(f"pairs must take their {name} from {shown(labels, len(labels))}, got {label!r}.")


def check_split(split: object) -> None:
    """Refuse what is no split."""
    kinds = tuple(SPLITS.kinds.values())
    if not isinstance(split, kinds):
        raise ParameterError(f"a split must be one of {shown([k.__name__ for k in kinds], len(kinds))}, got {split!r}.")


def _check_sizes(spec: StudySpec) -> None:
    if bool(spec.n_items) == (spec.budget is not None):
        raise ParameterError("a study takes either n_items, a list of numbers, or a budget; give one.")
    check_name(spec.name)
    check_fraction("level", spec.level)
    counts = [("n_draws", spec.n_draws, 1), ("repeats", spec.repeats, 1), ("seed", spec.seed, 0)]
    # splits by chance, and draws of items: each is a unit of work, or many
    most = {"n_draws": 100_000, "repeats": 100_000, "n_items": 10**9}
    for name, value, least in (*counts, *(("n_items", n, 1) for n in spec.n_items)):
        check_whole(name, value, least=least)
        if value > most.get(name, value):
            raise ParameterError(f"{name} must be at most {most[name]:,}, got {shown([value])}.")
    check_unique([f"{amount:g}" for amount in spec.budgets], "n_items or amounts")


def _check_interval(spec: StudySpec) -> None:
    """Refuse a kind of interval that is none, and methods that design-based ones do not go with."""
    kinds = get_args(IntervalChoice)
    check_one_of("interval of a study", spec.interval, kinds)
    check_unique(list(spec.targets), "targets")
    if spec.targets and spec.interval not in {AUTO, CALIBRATED}:
        raise ParameterError(
            f"targets of a study, {shown(spec.targets)}, have calibrated intervals alone, got {spec.interval!r}. Leave "
            "the interval out."
        )
    if spec.interval != "design":
        return
    other = [choice.label for choice in spec.estimators if not isinstance(estimation_spec(choice), Auto)]
    if other:
        raise ParameterError(
            f"interval = 'design' brings its own estimate and goes with the estimator 'auto' alone, got {shown(other)}."
        )
    fixed = [choice.label for choice in spec.selectors if choice.method not in DRAWN]
    if fixed:
        raise ParameterError(
            f"interval = 'design' needs items drawn by chance, by {shown(DRAWN)}, got the selectors {shown(fixed)}."
        )


def check_name(name: object) -> None:
    """Refuse a study without a name."""
    if not isinstance(name, str) or not name:
        raise ParameterError(f"name of a study must be a text, got {name!r}.")


def check_unique(names: list[str], what: str) -> None:
    """Refuse two of one name, which results could not tell apart."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ParameterError(f"names of {what} must differ, got {shown(repeated)} more than once. Give each a 'name'.")
