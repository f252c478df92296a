"""`itembank plan`: how many items a question needs."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.option_types import MethodName
from itembank.cli.options import (
    bank_argument,
    estimand_option,
    format_option,
    level_option,
    method_option,
    parallel_option,
    seed_option,
)
from itembank.cli.render import note, print_record, progress, warnings_as_notes
from itembank.cli.spec_options import spec_option
from itembank.estimation.estimand_names import Estimand
from itembank.estimation.estimator_specs import METHODS
from itembank.planning.plan_spec import PlanSpec
from itembank.selection.selector_specs import METHODS as SELECTORS


@click.command("plan", cls=Command)
@bank_argument
@click.option("--half-width", type=float, help="Wanted half-width of the interval of a model's score, between 0 and 1.")
@click.option(
    "--difference",
    type=float,
    help="Or: difference between two models on the same items that must show as significant, between 0 and 1.",
)
@click.option(
    "--target",
    default="overall",
    show_default=True,
    help="Score to plan for: 'overall', a scenario, mean_win_rate, or an external score.",
)
@estimand_option
@level_option
@spec_option(PlanSpec, "power", "Probability of finding --difference to be significant, between 0 and 1.")
@click.option(
    "--selector",
    type=MethodName(SELECTORS, "auto"),
    default="auto",
    show_default=True,
    help="How items will be chosen.",
)
@method_option(MethodName(METHODS), "How scores will be estimated.")
@click.option("--max-items", type=click.IntRange(min=1), help="Plan for no more items than these.")
@parallel_option
@seed_option
@format_option
def command(
    *,
    bank: Path,
    half_width: float | None,
    difference: float | None,
    target: str,
    estimand: Estimand,
    level: float,
    power: float,
    selector: str,
    method: str,
    max_items: int | None,
    seed: int,
    output_format: str,
) -> None:
    """Find how many items a question needs, from the bank alone.

    Each of the bank's models takes the part of a new model in turn. The table shows how precise each number of items
    is; with --half-width or --difference one line above it answers the question.

    \b
      itembank plan bank --half-width 0.02
      itembank plan bank --difference 0.03 --power 0.9
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.planning.plan import plan  # noqa: PLC0415

    loaded = load_bank(bank)
    with warnings_as_notes(), progress("plan") as advance:
        made = plan(
            loaded,
            half_width=half_width,
            difference=difference,
            target=target,
            selector=selector,
            method=method,
            max_items=max_items,
            spec=PlanSpec(level, power, seed, estimand),
            progress=advance,
        )
    print_record(
        made.to_dict(),
        "sizes",
        made.rows(),
        output_format,
        title=f"Plan for bank {bank}; scores from 0 to 1",
        heading="How precise each number of items is",
        least=("mean_absolute_error",),
    )
    for text in (made.message, made.stages_advice):
        if text:
            note(text)
