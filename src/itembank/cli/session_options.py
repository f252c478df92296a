"""Options of adaptive sessions that several commands share, and the specs they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import click

from itembank.cli.command import gathered, headed
from itembank.cli.options import FILE, estimand_option, level_option, listed_ids, refuse_unused
from itembank.cli.render import note
from itembank.cli.spec_options import spec_option
from itembank.selection.criteria import CRITERIA, criterion_by_name
from itembank.selection.selector_specs import OptimalDesign
from itembank.sessions.limits import Budget, Decision, SessionInterval, Stopping

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.bank.costs import CostUnit
    from itembank.selection.constraints import Constraints
    from itembank.sessions.prior_specs import PriorSpec
    from itembank.sessions.session_spec import SessionSpec

BLIND = ("random", "uniform", "min-cost")
"""Criteria that do not look at what an item tells."""

goal_option = spec_option(
    OptimalDesign,
    "of",
    "v-optimal: make sure of the target items' logits or probabilities, or of the score.",
)
cost_option = click.option(
    "--cost", metavar="UNIT", help="Divide what an item tells by its cost: tokens, cost_usd, seconds, ..."
)
input_weight_option = spec_option(OptimalDesign, "input_weight", "--cost tokens: what an input token counts.")
randomesque_option = spec_option(
    OptimalDesign,
    "randomesque",
    "Draw items from the R best.",
    metavar="R",
)
at_least_option = click.option(
    "--at-least",
    multiple=True,
    metavar="[SCENARIO=]M",
    help="At least M items a scenario. Repeatable.",
)
at_most_option = click.option(
    "--at-most",
    multiple=True,
    metavar="[SCENARIO=]M",
    help="At most M items a scenario. Repeatable.",
)
exclude_option = click.option("--exclude", type=FILE, help="File of ids never to choose, one a line.")

_CHOOSING = headed(
    "Choosing items",
    click.option(
        "--criterion",
        type=click.Choice(CRITERIA.builtin_names),
        default="v-optimal",
        show_default=True,
        help="How to choose the next item; v-optimal for the target score.",
    ),
    goal_option,
    click.option(
        "--target",
        default="overall",
        show_default=True,
        help="The wanted score, mean_win_rate, or an external one.",
    ),
    cost_option,
    input_weight_option,
    click.option(
        "--n-start",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Choose the first N items for models of any ability.",
    ),
    at_least_option,
    at_most_option,
    exclude_option,
    randomesque_option,
)
_LIMITS = headed(
    "Limits",
    spec_option(Budget, "n_items", "Answers at most.", "--max-items", metavar="N"),
    click.option("--max-tokens", type=float, metavar="N", help="Tokens at most: the same as --max-cost tokens=N."),
    click.option(
        "--max-cost",
        multiple=True,
        metavar="UNIT=AMOUNT",
        help="Cost at most: --max-cost cost_usd=2.50. No item "
        "is asked that is expected to cost more than is left; the last one may cost more than expected. Repeatable.",
    ),
)
_STOPPING = headed(
    "When to stop",
    click.option(
        "--half-width",
        multiple=True,
        metavar="[SCORE=]W",
        help="Stop when the interval of the target, or of SCORE, is ±W. Repeatable: all must be.",
    ),
    spec_option(Stopping, "ability_error", "Stop when abilities' errors are at most E.", metavar="E"),
    spec_option(Decision, "threshold", "Is the target above T? Stop when sure.", metavar="T"),
    spec_option(
        Decision,
        "model",
        "Is MODEL's score beaten? Stop when sure.",
        "--better-than",
        metavar="MODEL",
    ),
    spec_option(Decision, "confidence", "How sure these two must be."),
    level_option,
    click.option(
        "--interval",
        type=click.Choice(get_args(SessionInterval)),
        default="calibrated",
        show_default=True,
        help="Width by errors of past sessions, or by the item model.",
    ),
    estimand_option,
    spec_option(Stopping, "min_items", "Answers before such a stop."),
)
_PRIOR = headed(
    "What is known of the model before",
    click.option(
        "--prior-group",
        metavar="COLUMN=VALUE",
        help="Start from one group of models: family=llama.",
    ),
    click.option(
        "--prior-known",
        multiple=True,
        metavar="COLUMN=VALUE",
        help="Start from a prediction by column. Repeatable.",
    ),
)

limit_options = gathered("limits", _LIMITS)
"""Adds the limits alone; the command gets one mapping, `limits`."""

session_options = gathered("choices", _CHOOSING, _LIMITS, _STOPPING, _PRIOR)
"""Adds how items are asked, when to stop and what is known before; the command gets one mapping, `choices`."""


def session_spec(choices: Mapping[str, Any], seed: int) -> "SessionSpec":
    """Turn the options of `session_options` and `--seed` into the spec that they stand for."""
    from itembank.sessions.session_spec import SessionSpec  # noqa: PLC0415

    _refuse_unused(choices)
    criterion = criterion_by_name(choices["criterion"], has_cost=choices["cost"] is not None, of=choices["of"])
    return SessionSpec(
        criterion,
        cost=_cost(choices),
        target=choices["target"],
        budget=budget_of(choices),
        stopping=_stopping(choices),
        constraints=_constraints(choices),
        prior=_prior(choices["prior_group"], choices["prior_known"]),
        n_start=choices["n_start"],
        interval=choices["interval"],
        estimand=choices["estimand"],
        seed=seed,
    )


def of_published(bank: "Bank", spec: "SessionSpec", choices: Mapping[str, Any]) -> "SessionSpec":
    """Keep a session to the items that a bank was published with, where it was and no items are left out by name."""
    from itembank.estimation.published_errors import selection_or_published  # noqa: PLC0415

    published = selection_or_published(bank, None)
    if published is None or choices["exclude"] is not None:
        return spec
    own = set(published.item_ids)
    others = tuple(item for item in bank.item_ids if item not in own)
    note(
        f"Asked are items among the {len(own)} that the bank was published with. With --exclude FILE, which may be "
        "empty, among all others, too."
    )
    return replace(spec, constraints=replace(spec.constraints, excluded=others))


def _refuse_unused(choices: Mapping[str, Any]) -> None:
    """Refuse options that have no say beside the others."""
    criterion = choices["criterion"]
    is_decided = choices["threshold"] is not None or choices["model"] is not None
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


def _cost(choices: Mapping[str, Any]) -> "CostUnit | None":
    from itembank.bank.costs import CostUnit  # noqa: PLC0415

    return None if choices["cost"] is None else CostUnit(choices["cost"], choices["input_weight"])


def budget_of(choices: Mapping[str, Any]) -> Budget:
    """Return the hard limits among the options."""
    costs = amounts("--max-cost", choices["max_cost"])
    if choices["max_tokens"] is not None:
        if "tokens" in costs:
            raise click.UsageError("--max-tokens N is the same as --max-cost tokens=N; give one of them.")
        costs["tokens"] = choices["max_tokens"]
    return Budget(choices["n_items"], costs)


def _stopping(choices: Mapping[str, Any]) -> Stopping:
    """Return the rules of precision."""
    return Stopping(
        choices["ability_error"],
        amounts("--half-width", choices["half_width"], unnamed=choices["target"]),
        _decision(choices),
        choices["level"],
        choices["min_items"],
    )


def _decision(choices: Mapping[str, Any]) -> Decision | None:
    if choices["threshold"] is None and choices["model"] is None:
        return None
    if choices["threshold"] is not None and choices["model"] is not None:
        raise click.UsageError("--threshold and --better-than are two questions; give one of them.")
    return Decision(choices["target"], choices["threshold"], choices["model"], choices["confidence"])


def _constraints(choices: Mapping[str, Any]) -> "Constraints":
    """Return what the chosen items must keep to."""
    from itembank.selection.constraints import Constraints  # noqa: PLC0415

    return Constraints(
        counts("--at-least", choices["at_least"]) or 0,
        counts("--at-most", choices["at_most"]),
        () if choices["exclude"] is None else listed_ids(choices["exclude"]),
        choices["randomesque"],
    )


def _prior(group: str | None, known: Sequence[str]) -> "PriorSpec":
    """Return what is known of the model before."""
    from itembank.sessions.prior_specs import GroupPrior, RegressionPrior  # noqa: PLC0415

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
