"""`itembank simulate`: responses of known truth, of the shape of WILD's data or any other."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command, gathered
from itembank.cli.options import format_option, output_option, seed_option
from itembank.cli.render import note, print_rows, warnings_as_notes
from itembank.cli.spec_options import spec_option
from itembank.studies.simulation.simulation_specs import SimulationSpec

if TYPE_CHECKING:
    from itembank.studies.simulation.simulation_results import Simulated


@click.command("simulate", cls=Command)
@output_option("the response file (its name must end in .parquet); the truth stands beside it")
@gathered(
    "shape",
    spec_option(SimulationSpec, "n_models", "Number of models.", "--models"),
    spec_option(SimulationSpec, "n_items", "Number of items, of all tasks together.", "--items"),
    spec_option(SimulationSpec, "n_tasks", "Number of tasks; each is a scenario.", "--tasks"),
    spec_option(SimulationSpec, "n_dims", "Specific abilities beside the general one.", "--dims"),
    spec_option(SimulationSpec, "guessing", "Chance of guessing an item right."),
    spec_option(SimulationSpec, "missing", "Share of responses that are missing."),
    spec_option(SimulationSpec, "has_costs", "Give each response its tokens.", "--costs/--no-costs", show_default=True),
)
@seed_option
@format_option
def command(*, output: Path, shape: Mapping[str, Any], seed: int, output_format: str) -> None:
    """Simulate responses whose true parameters are known.

    \b
      itembank simulate -o responses.parquet
      itembank simulate -o small.parquet --models 100 --items 2000 --tasks 8 --dims 2
      itembank simulate -o gaps.parquet --missing 0.3 --no-costs

    The item model is nested: one general ability, which every item asks for, and specific ones that tasks ask for more
    or less. By default the data are of the shape of a published collection of 65 models, 163 tasks and 109,564 items,
    whose tasks differ 60-fold in tokens. True parameters, abilities and task scores stand beside the response file:
    responses.parquet has responses.truth.safetensors.
    """  # noqa: D301
    from itembank.files.atomic import check_destination  # noqa: PLC0415
    from itembank.responses.response_files import check_response_destination, write_responses  # noqa: PLC0415
    from itembank.studies.simulation.simulate import simulate  # noqa: PLC0415
    from itembank.studies.simulation.simulation_results import save_truth, truth_path  # noqa: PLC0415

    check_response_destination(output)
    check_destination(truth_path(output))
    spec = SimulationSpec(**shape)
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
