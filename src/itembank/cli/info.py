"""`itembank info`: what a bank, or a file of responses, holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.options import FILE, BankPath, format_option, refuse_unused
from itembank.cli.render import note, print_record, warnings_as_notes
from itembank.cli.report_options import figure_option, write_figure

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.numerics.arrays import FloatArray
    from itembank.responses.responses import ResponseMatrix


WORDS = {
    "density": "share of responses that are there",
    "n_degenerate_items": "all models answered alike",
    "n_negative_items": "stronger models fail more often; check their keys",
}
"""What numbers count, in a few words."""


@click.command("info", cls=Command)
@click.argument("bank", type=BankPath(file_okay=True))
@figure_option("where on the ability scale the items tell models apart")
@click.option("--selection", type=FILE, help="--figure: draw it for these chosen items too.")
@format_option
def command(*, bank: Path, figure: Path | None, selection: Path | None, output_format: str) -> None:
    """Show what a bank holds: models, items, item model, scores by scenario.

    In its place a file of responses may stand: models, items, share answered, kind of responses. JSON is one object
    with a list 'scenarios'; CSV holds the scenarios alone.

    \b
      itembank info bank
      itembank info responses.parquet
      itembank info bank --format json
      itembank info bank --figure information.png --selection selection.json
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415

    refuse_unused(("selection", figure is not None, "--figure FILE"), ("figure", not bank.is_file(), "a bank"))
    if bank.is_file():
        _show_responses(bank, output_format)
        return
    loaded = load_bank(bank)
    if figure is not None:
        _draw(loaded, selection, figure)
    about = _about(loaded)
    print_record(
        _explained(about) if output_format == "table" else about,
        "scenarios",
        _scenario_rows(loaded),
        output_format,
        title=f"Bank {bank}",
        heading="Scores of the bank's models, from 0 to 1. item_model_bias: mean error of the scores that the item "
        "model predicts for models left out",
        least=("precision", "item_model_bias", "weight"),
    )
    if output_format == "table":
        note(f"To see more as a page: itembank report {bank} -o bank.html")


def _show_responses(path: Path, output_format: str) -> None:
    """Print what a file of responses holds."""
    from itembank.cli.import_results import about_responses  # noqa: PLC0415
    from itembank.readers.read import read_responses  # noqa: PLC0415

    with warnings_as_notes():
        responses = read_responses(path)
    about = about_responses(responses, path)
    about["responses"] = _kind(responses, is_binary=about.pop("is_binary"))
    print_record(
        {**about, "density": f"{about['density']:.4g} ({WORDS['density']})"} if output_format == "table" else about,
        "scenarios",
        _response_rows(responses),
        output_format,
        title="Responses",
        heading="Scenarios; responses from 0 to 1",
    )


def _kind(responses: "ResponseMatrix", *, is_binary: bool) -> str:
    """Say what responses are, and the family that an item model takes for such."""
    if any(part.n_trials is not None and part.n_trials.max() > 1 for part in responses.parts()):
        return "shares of several attempts (family binomial or beta-binomial)"
    return "right or wrong (family bernoulli)" if is_binary else "from 0 to 1 (family beta)"


def _response_rows(responses: "ResponseMatrix") -> list[dict[str, Any]]:
    """One row a scenario."""
    import numpy as np  # noqa: PLC0415

    scenario = responses.items["scenario"].to_numpy()
    names = list(dict.fromkeys(scenario.tolist()))
    n_models, n_responses, total = (np.zeros(len(names)) for _ in range(3))
    for part in responses.parts():
        values = part.responses
        for number, name in enumerate(names):
            own = values[:, scenario == name]
            is_there = ~np.isnan(own)
            n_models[number] += is_there.any(axis=1).sum()
            n_responses[number] += is_there.sum()
            total[number] += np.nansum(own)
    n_items = [int(np.sum(scenario == name)) for name in names]
    return [
        {
            "scenario": name,
            "n_items": n_items[number],
            "n_models": int(n_models[number]),
            "density": float(n_responses[number] / (responses.n_models * n_items[number])),
            "mean_response": float(total[number] / n_responses[number]) if n_responses[number] else None,
        }
        for number, name in enumerate(names)
    ]


def _draw(bank: "Bank", selection: Path | None, path: Path) -> None:
    """Write the test information figure."""
    from itembank.bank.selections import Selection  # noqa: PLC0415
    from itembank.pages.bank_items import information_chart  # noqa: PLC0415

    chosen = None if selection is None else Selection.load(selection)
    write_figure(information_chart(bank, selection=chosen), path)


def _about(bank: "Bank") -> dict[str, Any]:
    """Facts on the whole bank."""
    from itembank.pages.bank_items import AbilityAxis  # noqa: PLC0415
    from itembank.responses.prompts import prompts_in_words  # noqa: PLC0415

    calibration, asked = bank.calibration, prompts_in_words(bank.responses.items)
    n_negative = int((AbilityAxis.of(bank).slopes(calibration) < 0.0).sum())  # along the axis of the bank's page
    return {
        "bank": bank.bank_id,
        **_about_versions(bank),
        "n_models": bank.n_models,
        "n_items": bank.n_items,
        **_about_responses(bank),
        **({"prompts": asked} if asked else {}),
        "method": calibration.method,
        "item_model": calibration.item_model,
        "family": calibration.parameters.family,
        "n_dims": calibration.n_dims,
        "converged": calibration.converged,
        "message": calibration.message,
        "n_degenerate_items": int(calibration.is_degenerate.sum()),
        "n_negative_items": n_negative,
        "score_within_scenarios": bank.targets.within,
        "overall_score_over": bank.targets.across,
        "costs": sorted(bank.responses.costs),
    }


def _about_versions(bank: "Bank") -> dict[str, Any]:
    """Name, version, parent and score of a bank that has a history."""
    if bank.history is None:
        return {}
    changes = bank.history.changes
    return {
        "name": bank.name or None,
        "version": bank.version,
        "parent": changes[-1].parents[0] if changes and changes[-1].parents else None,
        "target_id": bank.target_id,
        "n_items_aside": bank.n_aside,
    }


def _about_responses(bank: "Bank") -> dict[str, Any]:
    """Facts on the past models' responses, or what is there without them."""
    from itembank.bank.headlines import external_names  # noqa: PLC0415

    if not (bank.published or bank.n_models):
        return {}
    if bank.published is None:
        external = list(external_names(bank.responses.models))
        return {
            "density": float(bank.responses.observed.mean()),
            "binary": bank.responses.is_binary,
            **({"external_scores": external} if external else {}),
        }
    about, subset = bank.published, bank.published.subset
    return {
        "without_responses_of": f"{about.n_models} models of bank {about.whole_bank}",
        "items_to_run": None if subset is None else subset.selection.n_items,
    }


def _explained(about: dict[str, Any]) -> dict[str, Any]:
    """Say beside a number in a few words what it counts."""
    rows = {name: f"{value:.4g} ({WORDS[name]})" if name in WORDS else value for name, value in about.items()}
    if "prompts" in about:
        rows["prompts"] = "; ".join(about["prompts"])
    if "version" in about:
        parent = rows.pop("parent")
        came_from = f", from bank {parent}" if parent else ""
        rows["version"] = f"{rows.pop('name') or ''} {rows['version']}{came_from}".strip()
    return rows


def _precision_by_target(bank: "Bank") -> list[float] | None:
    """Geometric mean of the items' precision in each scenario and over all; None where the family has none."""
    import numpy as np  # noqa: PLC0415

    if bank.parameters.precision is None:
        return None
    logs = np.log(bank.parameters.precision)
    counts = np.bincount(bank.targets.scenario_index)
    means = np.bincount(bank.targets.scenario_index, logs) / counts
    return [*np.exp(means).tolist(), float(np.exp(logs.mean()))]


def _range(scores: "FloatArray") -> dict[str, float]:
    """Where the scores of the bank's models lie; NaN where none is known."""
    import numpy as np  # noqa: PLC0415

    known = scores[~np.isnan(scores)]
    values = (known.mean(), known.min(), known.max()) if known.size else (np.nan,) * 3
    return dict(zip(("mean_score", "lowest_score", "highest_score"), map(float, values), strict=True))


def _scenario_rows(bank: "Bank") -> list[dict[str, Any]]:
    """One row a scenario, and one for the overall score."""
    scores = bank.best_known_scores
    sizes = [*bank.targets.scenario_sizes.tolist(), bank.n_items]
    weights = [*bank.targets.scenario_weights.tolist(), 1.0]
    biases = [*bank.item_model_bias.tolist(), float("nan")]
    precision = _precision_by_target(bank)
    return [
        {
            "target": name,
            "n_items": sizes[j],
            "weight": weights[j],
            **(_range(scores[:, j]) if bank.n_models else {}),
            "item_model_bias": biases[j],
            **({} if precision is None else {"precision": precision[j]}),
        }
        for j, name in enumerate(bank.targets.names)
    ]
