"""`itembank simulate`: responses whose true parameters are known."""

from pathlib import Path
from typing import Annotated

import itembank as ib
import itembank_studies
from itembank.cli import options
from itembank.cli.render import note, warnings_as_notes
from itembank.cli.signatures import Choices, option, verb
from itembank.errors import shell_word
from itembank.files.atomic import check_destination
from itembank_studies.simulation.simulation_specs import SimulationSpec

_SHAPE: Choices = {
    "n_models": option("Number of models.", metavar="N", of=SimulationSpec),
    "n_items": option("Number of items, of all tasks together.", metavar="N", of=SimulationSpec),
    "n_tasks": option("Number of tasks; each is a scenario.", metavar="N", of=SimulationSpec),
    "n_dims": option("Specific abilities; the general one makes n_dims one more.", metavar="N", of=SimulationSpec),
    "guessing": option("Chance of guessing an item right.", of=SimulationSpec),
    "missing": option("Share of responses that are missing.", of=SimulationSpec),
}


@verb("simulate")
def simulate_command(
    *,
    output: Annotated[
        Path, options.output("the response file (its name must end in .parquet); the truth is written beside it")
    ],
    shape: Annotated[Choices, _SHAPE],
    seed: options.Seed,
    out: options.Out,
) -> None:
    """Simulate responses whose true parameters are known.

      itembank simulate -o responses.parquet
      itembank simulate -o small.parquet --n-models 100 --n-items 2000 --n-tasks 8 --n-dims 2
      itembank simulate -o gaps.parquet --missing 0.3

    The item model is nested: one general ability that every item needs, and specific ones that tasks need more or less.
    By default the data have the shape of a published collection of 65 models, 163 tasks and 109,564 items, whose tasks
    differ 60-fold in tokens. True parameters, abilities and task scores are written beside the response file, for
    responses.parquet into responses.truth.safetensors.
    """
    from itembank.responses.response_files import check_response_destination
    from itembank_studies.simulation.simulate import save_truth, truth_path

    check_response_destination(output)
    check_destination(truth_path(output))
    spec = SimulationSpec(**shape)
    with warnings_as_notes():
        made = itembank_studies.simulate(spec, seed)
        ib.write_responses(made.responses, output)
    save_truth(made.truth, truth_path(output))
    summary = {
        "file": str(output),
        "truth": str(truth_path(output)),
        "n_models": made.responses.n_models,
        "n_items": made.responses.n_items,
        "n_tasks": len(made.truth.task_names),
        "n_dims": made.truth.parameters.n_dims,
        "n_missing": int((~made.responses.observed).sum()),
        "mean_task_score": float(made.truth.task_scores.mean()),
        "costs": sorted(made.responses.costs),
    }
    size = f"{summary['n_models']} models to {summary['n_items']} items of {summary['n_tasks']} tasks"
    out.rows([summary], "simulate", title=f"Simulated answers of {size}")
    note(f"Next: itembank calibrate {shell_word(output)} -o bank")
