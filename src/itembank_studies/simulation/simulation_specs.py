"""What simulated data is to look like: `SimulationSpec`, checked when it is made."""

import math
from dataclasses import dataclass, fields

from itembank.checks import check_whole, is_number
from itembank.errors import ParameterError


@dataclass(frozen=True, slots=True)
class SimulationSpec:
    """Shape and spread of simulated responses; the defaults are of WILD's shape (section 4 and B.1).

    The item model is WILD's nested one (eq. 7): with general ability ``theta_g`` and specific abilities ``theta``, all
    standard normal, the logit is ``slope * (theta_g + loadings . theta - difficulty)``. A task has a difficulty and
    a loading profile of its own, around which those of its items lie.

    Attributes
    ----------
    n_models, n_items, n_tasks : int
        WILD has 65 models; for its splits of 65 to calibrate and 10 to test, draw 75.
    n_dims : int
        Specific abilities beside the general one; 0 leaves the general one alone.
    size_spread : float
        Standard deviation of the tasks' log sizes, which are cut at 2.75 of them: WILD's Table 4 goes from 30 to 12,000
        items, half of the tasks below 250.
    smallest_task : int
        No task has fewer items, where there are at least twice that many for each.
    mean_difficulty, task_spread, item_spread : float
        Mean of the tasks' difficulties, their standard deviation, and that of items around their task's.
    slope_spread : float
        Standard deviation of the items' log slope; the median slope is 1.
    specific_spread, specific_item_spread : float
        Standard deviation of each entry of the tasks' loading profiles, and of items around their task's. The first
        decides which part of the variance between task scores is general.
    guessing : float
        Lower asymptote of every item; it is in the item column `chance` when it is not 0.
    missing : float
        Share of responses that are missing, at random.
    has_costs : bool
        Whether each response has `input_tokens` and `output_tokens`.
    cheapest_task_tokens, task_cost_ratio : float
        Mean tokens of a response in the cheapest task, and how many times that the dearest task takes. WILD section 1:
        some 100 tokens, and 60 times.
    item_cost_spread, response_cost_spread : float
        Standard deviation of log tokens of items within a task, and of output tokens of single responses.
    verbosity_spread : float
        Standard deviation of the models' log verbosity, which multiplies output tokens.
    difficulty_cost : float
        By how much log output tokens rise with each unit of an item's difficulty within its task.
    """

    n_models: int = 65
    n_items: int = 109_564
    n_tasks: int = 163
    n_dims: int = 3
    size_spread: float = 1.4
    smallest_task: int = 30
    mean_difficulty: float = -0.6
    task_spread: float = 1.0
    item_spread: float = 1.5
    slope_spread: float = 0.5
    specific_spread: float = 0.45
    specific_item_spread: float = 0.3
    guessing: float = 0.0
    missing: float = 0.0
    has_costs: bool = True
    cheapest_task_tokens: float = 120.0
    task_cost_ratio: float = 60.0
    item_cost_spread: float = 0.5
    response_cost_spread: float = 0.4
    verbosity_spread: float = 0.5
    difficulty_cost: float = 0.25

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            check_whole(name, getattr(self, name), least=least)
        if self.n_items < self.n_tasks:
            raise ParameterError(
                f"every task must have an item: n_items must be at least n_tasks = {self.n_tasks}, got {self.n_items}."
            )
        for name in (field.name for field in fields(self) if field.type is float):
            value = getattr(self, name)
            if not is_number(value) or not math.isfinite(value):
                raise ParameterError(f"{name} must be a finite number, got {value!r}.")
            if name in SHARES and not 0.0 <= value < 1.0:
                raise ParameterError(f"{name} must be at least 0 and below 1, got {value!r}.")
            if name in AT_LEAST_ONE and value < 1.0:
                raise ParameterError(f"{name} must be at least 1, got {value!r}.")
            if name.endswith("_spread") and value < 0.0:
                raise ParameterError(f"{name} must be at least 0, got {value!r}.")


LEAST = {"n_models": 1, "n_items": 1, "n_tasks": 1, "n_dims": 0, "smallest_task": 1}
SHARES = ("guessing", "missing")
AT_LEAST_ONE = ("cheapest_task_tokens", "task_cost_ratio")
