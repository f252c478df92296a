"""`itembank info`: what a bank holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.options import bank_argument, format_option, refuse_unused
from itembank.cli.render import note, print_record

if TYPE_CHECKING:
    from itembank.data.banks import Bank


@click.command("info")
@bank_argument
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the test information, where on the ability scale the items tell models apart (png, svg or pdf).",
)
@click.option(
    "--selection",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Draw the information of these chosen items too.",
)
@format_option
def command(*, bank: Path, plot: Path | None, selection: Path | None, output_format: str) -> None:
    """Say what a bank holds: models, items, item model, scores by scenario.

    JSON is one object with a list 'scenarios'; CSV holds the scenarios alone.

    \b
      itembank info bank
      itembank info bank --format json
      itembank info bank --plot information.png --selection selection.json
    """  # noqa: D301
    from itembank.data.bank_files import load_bank  # noqa: PLC0415

    refuse_unused(("selection", plot is not None, "--plot FILE, which draws it"))
    if plot is not None:
        from itembank.reports.canvas import check_figure_destination  # noqa: PLC0415

        check_figure_destination(plot)
    loaded = load_bank(bank)
    if plot is not None:
        _draw(loaded, selection, plot)
    print_record(
        _about(loaded),
        "scenarios",
        _scenario_rows(loaded),
        output_format,
        title=f"Bank {bank}",
        heading="Scores of the calibration models, from 0 to 1",
        least=("precision", "item_model_bias", "weight"),
    )


def _draw(bank: "Bank", selection: Path | None, path: Path) -> None:
    """Write the test information figure."""
    from itembank.data.selections import Selection  # noqa: PLC0415
    from itembank.reports.canvas import save_figure  # noqa: PLC0415
    from itembank.reports.information import figure_test_information  # noqa: PLC0415

    chosen = None if selection is None else Selection.load(selection)
    save_figure(figure_test_information(bank, selection=chosen), path)
    note(f"Test information drawn in {path}.")


def _about(bank: "Bank") -> dict[str, Any]:
    """Facts on the whole bank."""
    import numpy as np  # noqa: PLC0415

    calibration = bank.calibration
    loadings = calibration.parameters.loadings
    return {
        "bank": bank.bank_id,
        "n_models": bank.n_models,
        "n_items": bank.n_items,
        "density": float(bank.responses.observed.mean()),
        "binary": bank.responses.is_binary,
        "method": calibration.method,
        "item_model": calibration.item_model,
        "family": calibration.parameters.family,
        "n_dims": calibration.n_dims,
        "converged": calibration.converged,
        "message": calibration.message,
        "n_degenerate_items": int(calibration.is_degenerate.sum()),
        # Items that models stronger on the whole tend to fail: their loadings point against the mean direction.
        "n_negative_items": int(np.sum(loadings @ loadings.mean(axis=0) < 0.0)),
        "score_within_scenarios": bank.targets.within,
        "overall_score_over": bank.targets.across,
        "costs": sorted(bank.responses.costs),
    }


def _precision_by_target(bank: "Bank") -> list[float] | None:
    """Geometric mean of the items' precision in each scenario and over all; None where the family has none."""
    import numpy as np  # noqa: PLC0415

    if bank.parameters.precision is None:
        return None
    logs = np.log(bank.parameters.precision)
    counts = np.bincount(bank.targets.scenario_index)
    means = np.bincount(bank.targets.scenario_index, logs) / counts
    return [*np.exp(means).tolist(), float(np.exp(logs.mean()))]


def _scenario_rows(bank: "Bank") -> list[dict[str, Any]]:
    """One row a scenario, and one for the overall score."""
    import numpy as np  # noqa: PLC0415

    scores = bank.targets.with_overall(bank.scenario_scores)
    sizes = [*bank.targets.scenario_sizes.tolist(), bank.n_items]
    weights = [*bank.targets.scenario_weights.tolist(), 1.0]
    biases = [*bank.item_model_bias.tolist(), float("nan")]
    precision = _precision_by_target(bank)
    return [
        {
            "target": name,
            "n_items": sizes[j],
            "weight": weights[j],
            "mean_score": float(np.nanmean(scores[:, j])),
            "lowest_score": float(np.nanmin(scores[:, j])),
            "highest_score": float(np.nanmax(scores[:, j])),
            "item_model_bias": biases[j],
            **({} if precision is None else {"precision": precision[j]}),
        }
        for j, name in enumerate(bank.targets.names)
    ]
