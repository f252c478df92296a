"""`itembank simulate`: responses of known truth, of the shape of WILD's data or any other."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.options import format_option, output_option, seed_option
from itembank.cli.render import note, print_rows, warnings_as_notes

if TYPE_CHECKING:
    from itembank.simulation.results import Simulated

COUNT = click.IntRange(min=1)


@click.command("simulate")
@output_option("the response file (its name must end in .parquet); the truth stands beside it")
@click.option("--models", type=COUNT, default=65, show_default=True, help="Number of models.")
@click.option("--items", type=COUNT, default=109_564, show_default=True, help="Number of items, of all tasks together.")
@click.option("--tasks", type=COUNT, default=163, show_default=True, help="Number of tasks; each is a scenario.")
@click.option(
    "--dims",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Specific abilities beside the general one.",
)
@click.option("--guessing", type=float, default=0.0, show_default=True, help="Chance of guessing an item right.")
@click.option("--missing", type=float, default=0.0, show_default=True, help="Share of responses that are missing.")
@click.option("--costs/--no-costs", default=True, show_default=True, help="Tokens of each response.")
@seed_option
@format_option
def command(
    *,
    output: Path,
    models: int,
    items: int,
    tasks: int,
    dims: int,
    guessing: float,
    missing: float,
    costs: bool,
    seed: int,
    output_format: str,
) -> None:
    """Make responses of known truth.

    \b
      itembank simulate -o responses.parquet
      itembank simulate -o small.parquet --models 100 --items 2000 --tasks 8 --dims 2
      itembank simulate -o gaps.parquet --missing 0.3 --no-costs

    The item model is nested: one general ability, which every item asks for, and specific ones that tasks ask for more
    or less. By default the data are of the shape of a published collection of 65 models, 163 tasks and 109,564 items,
    whose tasks differ 60-fold in tokens. True parameters, abilities and task scores stand beside the response file:
    responses.parquet has responses.truth.safetensors.
    """  # noqa: D301
    from itembank.data.atomic import check_destination  # noqa: PLC0415
    from itembank.data.response_files import check_response_destination, write_responses  # noqa: PLC0415
    from itembank.simulation.simulate import simulate  # noqa: PLC0415
    from itembank.simulation.specs import SimulationSpec  # noqa: PLC0415
    from itembank.simulation.truth_files import save_truth, truth_path  # noqa: PLC0415

    check_response_destination(output)
    check_destination(truth_path(output))
    spec = SimulationSpec(models, items, tasks, dims, guessing=guessing, missing=missing, has_costs=costs)
    with warnings_as_notes():
        made = simulate(spec, seed)
        write_responses(made.responses, output)
    save_truth(made.truth, truth_path(output))
    print_rows([_summary(output, truth_path(output), made)], output_format)
    note(f"Next: itembank calibrate {output} -o bank")


def _summary(output: Path, truth: Path, made: "Simulated") -> dict[str, Any]:
    """Say in one row what was made."""
    responses = made.responses
    return {
        "file": str(output),
        "truth": str(truth),
        "n_models": responses.n_models,
        "n_items": responses.n_items,
        "n_tasks": len(made.truth.task_names),
        "n_dims": made.truth.parameters.n_dims,
        "n_missing": int((~responses.observed).sum()),
        "mean_task_score": float(made.truth.task_scores.mean()),
        "costs": sorted(responses.costs),
    }
