"""Options of adaptive sessions that several commands share, and the spec that they and a file stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import gathered, headed
from itembank.cli.options import FILE, level_option, refuse_unused
from itembank.cli.render import note
from itembank.cli.spec_options import spec_option, typed
from itembank.responses.score_names import OVERALL
from itembank.sessions.limits import Budget, Decision, Stopping

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.sessions.session_spec import SessionSpec

session_file_option = click.option(
    "--session",
    "session_file",
    type=FILE,
    metavar="FILE.toml",
    help="Rarer choices, such as the criterion, constraints and what is known of the model: fields of SessionSpec. "
    "An option takes the place of the same field.",
)
cost_option = click.option(
    "--cost", metavar="UNIT", help="Divide what an item tells by its cost: tokens, cost_usd, seconds, ..."
)

_CHOOSING = headed(
    "Choosing items",
    session_file_option,
    click.option(
        "--target",
        default=OVERALL,
        show_default=True,
        help="The wanted score, mean_win_rate, or an external one.",
    ),
    cost_option,
)
_LIMITS = headed(
    "Limits",
    spec_option(Budget, "n_items", "Answers at most.", "--max-items", metavar="N"),
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
    spec_option(Decision, "threshold", "Is the target above T? Stop when sure.", metavar="T"),
    spec_option(
        Decision,
        "model",
        "Is MODEL's score beaten? Stop when sure.",
        "--better-than",
        metavar="MODEL",
    ),
    level_option,
)

limit_options = gathered("limits", _LIMITS)
"""Adds the limits alone; the command gets one mapping, `limits`."""

session_options = gathered("choices", _CHOOSING, _LIMITS, _STOPPING)
"""Adds how items are asked and when to stop; the command gets one mapping, `choices`."""


def session_spec(choices: Mapping[str, Any], seed: int) -> "SessionSpec":
    """Make the spec that `session_options` and `--seed` stand for: the file's, and over it what options say."""
    from itembank.sessions.session_spec import SessionSpec, read_session_fields  # noqa: PLC0415

    given = typed({**choices, "seed": seed})
    path = choices["session_file"]
    found = {} if path is None else read_session_fields(path)
    found |= {name: given[name] for name in ("target", "seed") if name in given}
    if "cost" in given:
        found |= _per_cost(found, given["cost"])
    budget, limits = found.get("budget", Budget()), budget_of(choices)
    found["budget"] = Budget(limits.n_items or budget.n_items, limits.costs or budget.costs)
    found["stopping"] = _stopping(found, given)
    spec = SessionSpec(**found)
    _refuse_unused_target(spec, choices)
    return spec


def of_published(bank: "Bank", spec: "SessionSpec", choices: Mapping[str, Any]) -> "SessionSpec":
    """Keep a session to the items that a bank was published with, where it was and no items are left out by name."""
    from itembank.estimation.past_errors import selection_or_published  # noqa: PLC0415
    from itembank.files.documents import read_toml  # noqa: PLC0415

    published = selection_or_published(bank, None)
    content = {} if choices["session_file"] is None else read_toml(choices["session_file"])
    if published is None or "excluded" in content.get("constraints", {}):
        return spec
    own = set(published.item_ids)
    others = tuple(item for item in bank.item_ids if item not in own)
    note(
        f"Asked are items among the {len(own)} that the bank was published with. With constraints.excluded in the file "
        "of --session, which may be empty, among all others, too."
    )
    return replace(spec, constraints=replace(spec.constraints, excluded=others))


def _refuse_unused_target(spec: "SessionSpec", choices: Mapping[str, Any]) -> None:
    """Refuse a target that steers nothing."""
    from itembank.selection.criteria import VOptimality  # noqa: PLC0415

    names_no_score = any("=" not in width for width in choices["half_width"])
    is_used = isinstance(spec.criterion, VOptimality) or spec.stopping.decision is not None or names_no_score
    refuse_unused(("target", is_used, "criterion v-optimal, --half-width W, --threshold or --better-than"))


def _per_cost(found: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """Return the unit, and a criterion that is given with its choices divided by it where it is one of information."""
    from itembank.bank.costs import CostUnit, as_cost_unit  # noqa: PLC0415
    from itembank.selection.criteria import criterion_of, uses_information  # noqa: PLC0415

    criterion = found.get("criterion", "v-optimal")
    if not isinstance(criterion, str) and uses_information(criterion):
        criterion = criterion_of(criterion, per_cost=True)
    return {"criterion": criterion, "cost": replace(as_cost_unit(found.get("cost", CostUnit())), name=unit)}


def budget_of(choices: Mapping[str, Any]) -> Budget:
    """Return the hard limits among the options."""
    return Budget(choices["n_items"], amounts("--max-cost", choices["max_cost"]))


def _stopping(found: Mapping[str, Any], given: Mapping[str, Any]) -> Stopping:
    """Return the rules of precision."""
    from itembank.sessions.session_spec import CUSTOM  # noqa: PLC0415

    stopping: Stopping = found.get("stopping", Stopping())
    target = found.get("target", OVERALL)
    score = target if isinstance(target, str) else CUSTOM
    changed: dict[str, Any] = {"level": given["level"]} if "level" in given else {}
    if "half_width" in given:
        changed["half_width"] = amounts("--half-width", given["half_width"], unnamed=score)
    question: dict[str, Any] = {name: given.get(name) for name in ("threshold", "model")}
    if all(name in given for name in question):
        raise click.UsageError("--threshold and --better-than are two questions; give one of them.")
    if any(name in given for name in question):
        own = stopping.decision
        changed["decision"] = Decision(score, **question) if own is None else replace(own, **question)
    return replace(stopping, **changed)


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


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
