"""Options of choosing items by a criterion of optimal design, and the spec they stand for."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from itembank.cli.command import gathered, headed
from itembank.cli.options import refuse_unused
from itembank.cli.session_options import amounts, cost_option
from itembank.cli.spec_options import spec_option, typed
from itembank.selection.criteria import CRITERIA
from itembank.selection.selector_specs import OptimalDesign

METHOD = "optimal-design"

design_options = gathered(
    "design",
    headed(
        f"With --criterion (or --method {METHOD})",
        click.option(
            "--criterion",
            type=click.Choice(CRITERIA.builtin_names),
            help=f"Choose for a model of average ability by this criterion; implies --method {METHOD}.",
        ),
        spec_option(
            OptimalDesign,
            "of",
            "v-optimal: make sure of the target items' logits or probabilities, or of the score.",
        ),
        spec_option(
            OptimalDesign,
            "target",
            "v-optimal: the score that is wanted, overall or a scenario. Without --criterion: mean_win_rate or an "
            "external score, which --method auto then aims at.",
        ),
        cost_option,
        spec_option(OptimalDesign, "input_weight", "--cost tokens: what an input token counts."),
        click.option(
            "--at-least",
            multiple=True,
            metavar="[SCENARIO=]M",
            help="At least M items of this scenario, or of every scenario. Repeatable.  [default: 1]",
        ),
        click.option(
            "--at-most",
            multiple=True,
            metavar="[SCENARIO=]M",
            help="At most M items a scenario. Repeatable.",
        ),
        spec_option(OptimalDesign, "randomesque", "Draw items from the R best.", metavar="R"),
    ),
)
"""Adds the options of optimal design; the command gets one mapping, `design`."""


def method_of_options(method: str, design: Mapping[str, Any]) -> OptimalDesign | str:
    """Return the spec of optimal design where the options ask for it, else the name of the method."""
    given = typed(design)
    if method != METHOD and design["criterion"] is None:
        if given:
            raise click.UsageError(
                f"--{next(iter(given)).replace('_', '-')} goes with --criterion, or --method {METHOD}."
            )
        return method
    if method not in {"auto", METHOD}:
        raise click.UsageError(f"--criterion is for --method {METHOD}, got --method {method}. Leave one of them out.")
    return _spec(given)


def _spec(given: dict[str, Any]) -> OptimalDesign:
    criterion = given.get("criterion", "v-optimal")
    is_in_tokens = given.get("cost", "tokens" if criterion == "min-cost" else None) == "tokens"
    rules = (
        ("of", criterion == "v-optimal", "--criterion v-optimal"),
        ("target", criterion == "v-optimal", "--criterion v-optimal; the others do not look at scores"),
        ("cost", criterion not in {"random", "uniform"}, f"a criterion that looks at costs, not with {criterion}"),
        ("input_weight", is_in_tokens, "--cost tokens"),
    )
    refuse_unused(*rules)
    given = {name: value for name, value in given.items() if (name, False) not in {rule[:2] for rule in rules}}
    for name in ("at_least", "at_most"):
        if name in given:
            given[name] = counts(f"--{name.replace('_', '-')}", given[name])
    if "cost" in given:
        given["per_cost"] = given.get("criterion") != "min-cost"  # whose unit it is
    return OptimalDesign(**given)


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
