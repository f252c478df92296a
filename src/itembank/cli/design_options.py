"""Options of choosing items by a criterion of optimal design, and the spec they stand for."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from itembank.cli.options import gathered, refuse_unused
from itembank.cli.session_options import CRITERIA, GOALS, counts

if TYPE_CHECKING:
    from itembank.selection.specs import OptimalDesign

Function = TypeVar("Function", bound=Callable[..., Any])

METHOD = "optimal-design"

_OPTIONS = (
    click.option(
        "--criterion",
        type=click.Choice(CRITERIA),
        help="Choose for a model of average ability by this criterion; implies --method optimal-design.",
    ),
    click.option(
        "--of",
        type=click.Choice(GOALS),
        help="--criterion v-optimal: whose uncertainty falls, the target items' logits, their probabilities, or the "
        "score itself.",
    ),
    click.option("--target", help="--criterion v-optimal: the score that is wanted, overall or a scenario."),
    click.option(
        "--cost",
        metavar="UNIT",
        help="With --criterion: divide what an item tells by what it is expected to cost: tokens, cost_usd, ...",
    ),
    click.option(
        "--input-weight",
        type=click.FloatRange(min=0.0),
        help="With --cost tokens: what an input token counts beside an output token; half unless given.",
    ),
    click.option(
        "--at-least",
        multiple=True,
        metavar="[SCENARIO=]M",
        help="With --criterion: at least M items of the scenario, or of every one; one of every unless given. "
        "Repeatable.",
    ),
    click.option(
        "--at-most",
        multiple=True,
        metavar="[SCENARIO=]M",
        help="With --criterion: at most M items of the scenario, or of every one. Repeatable.",
    ),
    click.option(
        "--randomesque",
        type=click.IntRange(min=1),
        metavar="R",
        help="With --criterion: draw each item from the R best, so that not every model is asked the same.",
    ),
)
_NAMES = ("criterion", "of", "target", "cost", "input_weight", "at_least", "at_most", "randomesque")


def design_options(function: Function) -> Function:
    """Add the options of optimal design; the command gets one mapping, `design`."""
    return gathered(function, _OPTIONS, _NAMES, into="design")


def method_of_options(method: str, design: Mapping[str, Any]) -> "OptimalDesign | str":
    """Return the spec of optimal design where the options ask for it, else the name of the method."""
    given = [name for name in _NAMES if design[name] not in (None, ())]
    if method != METHOD and design["criterion"] is None:
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-')} goes with --criterion, or --method {METHOD}.")
        return method
    if method not in {"auto", METHOD}:
        raise click.UsageError(f"--criterion is for --method {METHOD}, got --method {method}. Leave one of them out.")
    return _spec({name: design[name] for name in given})


def _spec(given: dict[str, Any]) -> "OptimalDesign":
    from itembank.selection.specs import OptimalDesign  # noqa: PLC0415

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
