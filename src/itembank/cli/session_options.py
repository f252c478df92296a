"""Options of adaptive sessions that several commands share, and the specs they stand for."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from itembank.cli.options import gathered, listed_ids, refuse_unused

if TYPE_CHECKING:
    from itembank.adaptive.limits import Budget, Decision, Stopping
    from itembank.adaptive.prior_specs import PriorSpec
    from itembank.adaptive.session_spec import SessionSpec
    from itembank.data.costs import CostUnit
    from itembank.selection.constraints import Constraints
    from itembank.selection.criteria import Criterion

Function = TypeVar("Function", bound=Callable[..., Any])

CRITERIA = ("fisher", "trace", "d-optimal", "a-optimal", "v-optimal", "kl", "random", "uniform", "min-cost")
GOALS = ("logits", "probabilities", "score")
BLIND = ("random", "uniform", "min-cost")
"""Criteria that do not look at what an item tells."""
INTERVALS = ("calibrated", "model-based")

_CHOOSING = (
    click.option(
        "--criterion",
        type=click.Choice(CRITERIA),
        default="v-optimal",
        show_default=True,
        help="What the next item is chosen by; v-optimal makes the target sure the fastest.",
    ),
    click.option(
        "--of",
        type=click.Choice(GOALS),
        help="v-optimal: whose uncertainty falls, the target items' logits, their probabilities, or the score itself.",
    ),
    click.option(
        "--cost",
        metavar="UNIT",
        help="Divide what an item tells by what it is expected to cost: tokens, cost_usd, seconds, ...",
    ),
    click.option(
        "--input-weight",
        type=click.FloatRange(min=0.0),
        default=0.5,
        show_default=True,
        help="What an input token counts beside an output token, in the unit tokens.",
    ),
    click.option("--target", default="overall", show_default=True, help="The score that is wanted."),
    click.option(
        "--n-start",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Choose so many first items for abilities spread over the prior.",
    ),
)
_BUDGET = (
    click.option("--max-items", type=click.IntRange(min=1), metavar="N", help="Answers at most."),
    click.option("--max-tokens", type=float, metavar="N", help="Tokens at most: the same as --max-cost tokens=N."),
    click.option(
        "--max-cost", multiple=True, metavar="UNIT=AMOUNT", help="Cost at most: --max-cost cost_usd=2.50. Repeatable."
    ),
)
_STOPPING = (
    click.option(
        "--half-width",
        multiple=True,
        metavar="[SCORE=]W",
        help="Stop when the interval of the score (the target, unless named) is ±W or narrower. "
        "Repeat it for several scores: all must be.",
    ),
    click.option("--ability-error", type=float, metavar="E", help="Stop when no ability has a standard error above E."),
    click.option(
        "--threshold", type=float, metavar="T", help="Stop when the target is known to lie above T, or below it."
    ),
    click.option(
        "--better-than", metavar="MODEL", help="Stop when it is known whether the target is above this bank model's."
    ),
    click.option(
        "--confidence",
        type=float,
        default=0.95,
        show_default=True,
        help="How sure --threshold and --better-than must be.",
    ),
    click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals."),
    click.option(
        "--interval",
        type=click.Choice(INTERVALS),
        default="calibrated",
        show_default=True,
        help="As wide as the errors of such sessions for bank models left out ask for, or as the item model says.",
    ),
    click.option(
        "--min-items",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Answers before any precision may end the session.",
    ),
)
_CONSTRAINTS = (
    click.option(
        "--at-least",
        multiple=True,
        metavar="[SCENARIO=]M",
        help="Ask at least M items of the scenario, or of every one. Repeatable.",
    ),
    click.option(
        "--at-most",
        multiple=True,
        metavar="[SCENARIO=]M",
        help="Ask at most M items of the scenario, or of every one. Repeatable.",
    ),
    click.option(
        "--exclude",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Text file of item ids never to ask, one a line.",
    ),
    click.option(
        "--randomesque",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="R",
        help="Draw each item from the R best, so that not every model is asked the same.",
    ),
)
_PRIOR = (
    click.option(
        "--prior-group",
        metavar="COLUMN=VALUE",
        help="Begin with what is known of the bank's models of one group: --prior-group family=llama.",
    ),
    click.option(
        "--prior-known",
        multiple=True,
        metavar="COLUMN=VALUE",
        help="Begin with what columns of the bank's model table foretell, given the new model's values. Repeatable.",
    ),
)
_NAMES = (
    *("criterion", "of", "cost", "input_weight", "target", "n_start", "max_items", "max_tokens", "max_cost"),
    *("half_width", "ability_error", "threshold", "better_than", "confidence", "level", "interval", "min_items"),
    *("at_least", "at_most", "exclude", "randomesque"),
)


def session_options(function: Function) -> Function:
    """Add the options of how items are asked and when to stop; the command gets one mapping, `choices`."""
    return gathered(function, (*_CHOOSING, *_BUDGET, *_STOPPING, *_CONSTRAINTS), _NAMES, into="choices")


def prior_options(function: Function) -> Function:
    """Add the options of what is known of the model before; the command gets one mapping, `prior`."""
    return gathered(function, _PRIOR, ("prior_group", "prior_known"), into="prior")


def session_spec(choices: Mapping[str, Any], prior: Mapping[str, Any], seed: int) -> "SessionSpec":
    """Turn the options of `session_options`, `prior_options` and `--seed` into the spec that they stand for."""
    from itembank.adaptive.session_spec import SessionSpec  # noqa: PLC0415

    _refuse_unused(choices)
    return SessionSpec(
        criterion_of_options(choices),
        cost=cost_of_options(choices),
        target=choices["target"],
        budget=budget_of_options(choices),
        stopping=stopping_of_options(choices),
        constraints=constraints_of_options(choices),
        prior=prior_of_options(prior),
        n_start=choices["n_start"],
        interval=choices["interval"],
        seed=seed,
    )


def _refuse_unused(choices: Mapping[str, Any]) -> None:
    """Refuse options that have no say beside the others."""
    criterion = choices["criterion"]
    is_decided = choices["threshold"] is not None or choices["better_than"] is not None
    has_rules = is_decided or bool(choices["half_width"]) or choices["ability_error"] is not None
    names_no_score = any("=" not in width for width in choices["half_width"])
    refuse_unused(
        ("of", criterion == "v-optimal", "--criterion v-optimal"),
        ("input_weight", choices["cost"] == "tokens", "--cost tokens"),
        (
            "target",
            criterion == "v-optimal" or is_decided or names_no_score,
            "--criterion v-optimal, --half-width W, --threshold or --better-than",
        ),
        ("n_start", criterion not in BLIND, f"a criterion that looks at abilities, not with {criterion}"),
        ("randomesque", criterion not in {"random", "uniform"}, f"a criterion that ranks items, not with {criterion}"),
        ("confidence", is_decided, "--threshold or --better-than"),
        ("min_items", has_rules, "a precision: --half-width, --ability-error, --threshold or --better-than"),
    )


def criterion_of_options(choices: Mapping[str, Any]) -> "Criterion":
    """Return the criterion; one of information is divided by cost when a unit is given."""
    from itembank.selection.criteria import criterion_by_name  # noqa: PLC0415

    return criterion_by_name(choices["criterion"], has_cost=choices["cost"] is not None, of=choices["of"])


def cost_of_options(choices: Mapping[str, Any]) -> "CostUnit | None":
    """Return the unit of cost."""
    from itembank.data.costs import CostUnit  # noqa: PLC0415

    return None if choices["cost"] is None else CostUnit(choices["cost"], choices["input_weight"])


def budget_of_options(choices: Mapping[str, Any]) -> "Budget":
    """Return the hard limits."""
    from itembank.adaptive.limits import Budget  # noqa: PLC0415

    costs = amounts("--max-cost", choices["max_cost"])
    if choices["max_tokens"] is not None:
        if "tokens" in costs:
            raise click.UsageError("--max-tokens N is the same as --max-cost tokens=N; give one of them.")
        costs["tokens"] = choices["max_tokens"]
    return Budget(choices["max_items"], costs)


def stopping_of_options(choices: Mapping[str, Any]) -> "Stopping":
    """Return the rules of precision."""
    from itembank.adaptive.limits import Stopping  # noqa: PLC0415

    return Stopping(
        choices["ability_error"],
        amounts("--half-width", choices["half_width"], unnamed=choices["target"]),
        _decision(choices),
        choices["level"],
        choices["min_items"],
    )


def constraints_of_options(choices: Mapping[str, Any]) -> "Constraints":
    """Return what the chosen items must keep to."""
    from itembank.selection.constraints import Constraints  # noqa: PLC0415

    return Constraints(
        counts("--at-least", choices["at_least"]) or 0,
        counts("--at-most", choices["at_most"]),
        () if choices["exclude"] is None else listed_ids(choices["exclude"]),
        choices["randomesque"],
    )


def prior_of_options(prior: Mapping[str, Any]) -> "PriorSpec":
    """Return what is known of the model before."""
    from itembank.adaptive.prior_specs import GroupPrior, RegressionPrior  # noqa: PLC0415

    group, known = prior["prior_group"], prior["prior_known"]
    if group and known:
        raise click.UsageError("--prior-group and --prior-known are two ways to begin; give one of them.")
    if group:
        return GroupPrior(*_pair("--prior-group", group))
    if known:
        pairs = dict(_pair("--prior-known", one) for one in known)
        return RegressionPrior(tuple(pairs), pairs)
    return "bank"


def amounts(option: str, given: Sequence[str], *, unnamed: str | None = None) -> dict[str, float]:
    """Turn NAME=AMOUNT into a mapping; an amount alone is that of `unnamed`, where there is one."""
    result: dict[str, float] = {}
    for text in given:
        name, equals, amount = text.rpartition("=")
        name = name if equals else unnamed or ""
        number = _number(amount)
        if not name or number is None:
            raise click.BadParameter(f"must be NAME=NUMBER, got {text!r}.", param_hint=option)
        if name in result:
            raise click.BadParameter(f"must be given once for {name!r}, got {text!r} too.", param_hint=option)
        result[name] = number
    return result


def counts(option: str, given: Sequence[str]) -> int | dict[str, int] | None:
    """Turn SCENARIO=M into a mapping, or a single M into a number; None where nothing is given."""
    if len(given) == 1 and "=" not in given[0]:
        given = [f"every={given[0]}"]
        return _whole(option, amounts(option, given))["every"]
    return _whole(option, amounts(option, given)) or None


def _whole(option: str, given: Mapping[str, float]) -> dict[str, int]:
    bad = [number for number in given.values() if not (number.is_integer() and number >= 0)]
    if bad:
        raise click.BadParameter(f"must be a whole number >= 0, got {bad[0]:g}.", param_hint=option)
    return {name: int(number) for name, number in given.items()}


def _decision(choices: Mapping[str, Any]) -> "Decision | None":
    from itembank.adaptive.limits import Decision  # noqa: PLC0415

    if choices["threshold"] is None and choices["better_than"] is None:
        return None
    if choices["threshold"] is not None and choices["better_than"] is not None:
        raise click.UsageError("--threshold and --better-than are two questions; give one of them.")
    return Decision(choices["target"], choices["threshold"], choices["better_than"], choices["confidence"])


def _pair(option: str, text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not (column and equals):
        raise click.BadParameter(f"must be COLUMN=VALUE, got {text!r}.", param_hint=option)
    return column, value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
