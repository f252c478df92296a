"""`PredictionSpec` and `Assessor`: what a prediction study compares, on what, and how often."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from itembank.checks import check_fraction, check_not_negative, check_one_of, check_whole, is_number
from itembank.errors import ParameterError, shown
from itembank_studies.split_specs import SPLITS, SplitSpec
from itembank_studies.study_specs import (
    AUTO,
    CalibrationChoice,
    DataSpec,
    check_name,
    check_split,
    check_unique,
    plain_study,
)

Paradigm = Literal["prediction", "selection", "adaptation"]

BASELINES = ("task-mean", "task-mean-eb", "ridge")
"""Predictors without an item model."""
CRITERIA = ("fisher", "d-optimal", "a-optimal", "v-optimal")
"""Selectors that rank items by what their answers would tell of ability."""
ANCHORS = ("anchor-binary", "anchor-irt")
UNINFORMED = ("random", "uniform", "min-cost")
"""Selectors that no item model enters."""
STATIC = (*UNINFORMED, *CRITERIA, *ANCHORS)


@dataclass(frozen=True, slots=True)
class Assessor:
    """A way to choose items and a way to predict from the answers (WILD 6.2).

    Attributes
    ----------
    predictor : str
        Name of one of the study's item models, or 'task-mean', 'task-mean-eb', 'ridge'.
    paradigm : {'prediction', 'selection', 'adaptation'}
        Random items; items chosen at once, the same for all new models; items chosen one at a time for each.
    selector : str
        Which items: 'random', 'uniform', 'min-cost', a criterion, 'anchor-binary' or 'anchor-irt'.
    per_cost : bool
        Divide a criterion by the item's expected cost (WILD 5.3, "-tau").
    design : str
        Item model that the selector looks at; the predictor's if empty.
    name : str
        In results; made of the rest when empty.
    """

    predictor: str
    paradigm: Paradigm = "prediction"
    selector: str = "random"
    per_cost: bool = False
    design: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        """Check what can be checked without the study, and make a name."""
        for one in ("predictor", "selector", "design", "name"):
            if not isinstance(getattr(self, one), str):
                raise ParameterError(f"{one} of an assessor must be a text, got {getattr(self, one)!r}.")
        check_one_of("paradigm of an assessor", self.paradigm, get_args(Paradigm))
        known = {"prediction": ("random",), "selection": STATIC, "adaptation": CRITERIA}[self.paradigm]
        check_one_of(f"selector of {self.paradigm}", self.selector, known)
        if self.per_cost and self.selector not in CRITERIA:
            raise ParameterError(f"per_cost divides a criterion by cost, which {self.selector!r} is not.")
        if self.is_designed and not self.design_model:
            raise ParameterError(
                f"{self.selector!r} looks at an item model, and {self.predictor!r} has none: give it a design, "
                "the name of an item model."
            )
        if not self.name:
            cost = "/cost" if self.per_cost else ""
            how = "adaptive " if self.paradigm == "adaptation" else ""
            object.__setattr__(self, "name", f"{self.predictor}, {how}{self.selector}{cost}")

    @property
    def is_designed(self) -> bool:
        """Whether the selector looks at an item model."""
        return self.selector in (*CRITERIA, "anchor-irt")

    @property
    def design_model(self) -> str:
        """Item model that the selector looks at; empty for none."""
        if not self.is_designed:
            return ""
        return self.design or ("" if self.predictor in BASELINES else self.predictor)

    @property
    def selection_key(self) -> tuple[str, str, bool, str]:
        """What the choice of items depends on: assessors that agree here are given the same items."""
        kind = "adaptation" if self.paradigm == "adaptation" else "selection"
        return kind, self.selector, self.per_cost, self.design_model


BUDGETS = tuple(2**power for power in range(11))


@dataclass(frozen=True, slots=True)
class PredictionSpec:
    """A study of predicting tasks from few responses; `run_prediction` runs it.

    Attributes
    ----------
    name : str
    item_models : mapping of name to CalibrationChoice
        Each is calibrated once a partition, on the training models and all items.
    assessors : tuple of Assessor
    data : DataSpec or None
        None when `run_prediction` is given the responses.
    task : str
        Column of the item table that says which task an item belongs to.
    task_pattern : str
        Regular expression: the part of that column it matches is the task; all of it if empty.
    cost : str
        'tokens' (output, and input by `input_weight`), or any cost of the responses; empty for none.
    input_weight : float
        What an input token counts of an output token (WILD 6.3).
    n_partitions : int
        Random divisions of the models into training and test.
    n_test : int
        Test models of each.
    n_train : int or None
        Training models; all others if None.
    split : SplitSpec or None
        Which models may be test models: any by default. With `Ahead` or `Beyond` they are drawn from the newest or the
        best ones, and only older or worse ones train. Of a split of several folds the first counts.
    n_calibration_tasks : tuple of int
        Numbers of interpolation tasks: those whose items may be chosen. All other tasks are extrapolation. At most
        half of the tasks.
    n_held_out : int
        Items of each task that are predicted, and never shown.
    largest_held_out_share : float
        Of a task's items, if it is small.
    smallest_task : int
        Smaller tasks are calibrated on, but neither chosen from nor predicted.
    n_items : tuple of int
        Budgets, rising; those that exceed the items there are, are left out.
    levels : tuple of float
        Errors; results give the cost of reaching each.
    reference : str
        Name of an assessor; results also say what reaching its error at some budgets costs. The first of random items
        if empty, else the first.
    seed : int

    Examples
    --------
    >>> spec = load_prediction("prediction.toml")  # doctest: +SKIP
    >>> result = run_prediction(spec, "prediction", n_jobs=-1)  # doctest: +SKIP
    """

    name: str
    item_models: Mapping[str, CalibrationChoice]
    assessors: tuple[Assessor, ...]
    data: DataSpec | None = None
    task: str = "scenario"
    task_pattern: str = ""
    cost: str = ""
    input_weight: float = 0.5
    n_partitions: int = 20
    n_test: int = 10
    n_train: int | None = None
    split: SplitSpec | None = None
    n_calibration_tasks: tuple[int, ...] = (1, 4, 16)
    n_held_out: int = 128
    largest_held_out_share: float = 0.5
    smallest_task: int = 16
    n_items: tuple[int, ...] = BUDGETS
    levels: tuple[float, ...] = (0.07,)
    reference: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        for name in ("n_calibration_tasks", "n_items", "levels"):
            value = getattr(self, name)
            if not isinstance(value, tuple | list) or (not value and name != "levels"):
                raise ParameterError(f"{name} must be a list of at least one number, got {value!r}.")
            object.__setattr__(self, name, tuple(value))
        _check_numbers(self)
        try:
            re.compile(self.task_pattern)
        except (re.error, TypeError) as error:
            raise ParameterError(
                f"task_pattern must be a regular expression, got {self.task_pattern!r}: {error}."
            ) from error
        item_models = self.item_models
        if not isinstance(item_models, Mapping) or not all(
            isinstance(one, CalibrationChoice) for one in item_models.values()
        ):
            raise ParameterError(f"item_models must be calibrations by name, got {item_models!r}.")
        taken = [name for name in item_models if name in BASELINES]
        if taken:
            raise ParameterError(f"an item model must have another name than {shown(BASELINES)}, got {shown(taken)}.")
        automatic = [name for name, one in item_models.items() if one.n_dims == AUTO]
        if automatic:
            raise ParameterError(
                f"n_dims of an item model must be a whole number here, got 'auto' for {shown(automatic)}."
            )
        _check_assessors(self)

    @property
    def reference_name(self) -> str:
        """Name of the reference."""
        random = [one.name for one in self.assessors if one.paradigm == "prediction"]
        return self.reference or (random or [self.assessors[0].name])[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: all that the numbers depend on, but the responses themselves."""
        content = plain_study(self)
        content["split"] = self.split and SPLITS.to_plain(self.split, "kind")
        return content


def _check_numbers(spec: PredictionSpec) -> None:
    check_name(spec.name)
    counts = [
        ("n_partitions", spec.n_partitions, 1),
        ("n_test", spec.n_test, 1),
        ("n_held_out", spec.n_held_out, 1),
        ("smallest_task", spec.smallest_task, 2),
        ("seed", spec.seed, 0),
        *(("n_items", n, 1) for n in spec.n_items),
        *(("n_calibration_tasks", n, 1) for n in spec.n_calibration_tasks),
    ]
    if spec.n_train is not None:
        counts.append(("n_train", spec.n_train, 3))
    for name, value, least in counts:
        check_whole(name, value, least=least)
    most_partitions = 10_000
    if spec.n_partitions > most_partitions:
        raise ParameterError(f"n_partitions must be at most {most_partitions:,}, got {spec.n_partitions}.")
    if list(spec.n_items) != sorted(set(spec.n_items)):
        raise ParameterError(f"n_items must rise, got {shown(spec.n_items)}.")
    if len(set(spec.n_calibration_tasks)) < len(spec.n_calibration_tasks):
        raise ParameterError(f"n_calibration_tasks must differ, got {shown(spec.n_calibration_tasks)}.")
    if spec.split is not None:
        check_split(spec.split)
    check_fraction("largest_held_out_share", spec.largest_held_out_share)
    check_not_negative("input_weight", spec.input_weight)
    bad = [level for level in spec.levels if not is_number(level) or not 0.0 < level < 1.0]
    if bad:
        raise ParameterError(f"levels must be errors between 0 and 1, got {shown(bad)}.")


def _check_assessors(spec: PredictionSpec) -> None:
    if not isinstance(spec.assessors, tuple | list) or not spec.assessors:
        raise ParameterError("a study needs at least one of assessors, got none.")
    known = (*spec.item_models, *BASELINES)
    for one in spec.assessors:
        if not isinstance(one, Assessor):
            raise ParameterError(f"assessors must be Assessor, got {one!r}.")
        if one.predictor not in known:
            raise ParameterError(
                f"predictor of an assessor must be one of {shown(known, len(known))}, got {one.predictor!r}."
            )
        if one.design_model and one.design_model not in spec.item_models:
            raise ParameterError(
                f"design of assessor {one.name!r} must be an item model, one of "
                f"{shown(list(spec.item_models))}, got {one.design_model!r}."
            )
        if (one.per_cost or one.selector == "min-cost") and not spec.cost:
            raise ParameterError(f"assessor {one.name!r} needs the study to name a cost.")
    names = [one.name for one in spec.assessors]
    check_unique(names, "assessors")
    if spec.reference and spec.reference not in names:
        raise ParameterError(f"reference must be one of {shown(names, len(names))}, got {spec.reference!r}.")
