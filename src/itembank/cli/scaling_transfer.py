"""`itembank scaling transfer` and `itembank scaling validity`: what some items say of others, and whether they may."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from itembank.cli.options import format_option, gathered, refuse_unused, seed_option
from itembank.cli.render import note, print_object, print_record, print_rows, progress, warnings_as_notes
from itembank.cli.scaling_options import (
    level_option,
    numbers_of_samples,
    read_responses_or_builtin,
    responses_or_builtin,
)

if TYPE_CHECKING:
    from itembank.data.compute import TrainingCompute
    from itembank.data.responses import ResponseMatrix
    from itembank.scaling.transfers.transfer_results import Transfer
    from itembank.scaling.transfers.transfer_specs import TransferSpec

METHODS = ("calibrated", "common-scale", "scores")
LEAST = {
    "methods": ("log_error", "width", "error_standard_error", "validity_lower", "bias", "coverage"),
    "models": (
        *("predicted_scores", "predicted_common-scale", "predicted_calibrated"),
        *("flops", "standard_error", "ability", "group", "validity_lower", "validity"),
    ),
}
"""Columns of each table that give way in a narrow terminal, the least needed first."""
TABLES = ("observed", "disattenuated", "beyond_compute")

_group_option = click.option(
    "--group",
    metavar="COLUMN",
    help="Column of the model table: its models are relatives (recipe, family, run) and stay together.",
)
_figure_option = click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Also draw it: a PNG, SVG or PDF file."
)

_OPTIONS = (
    click.option(
        "--source", metavar="SCENARIO", help="Whose ability is used.  [default: the easy items of every scenario]"
    ),
    click.option("--target", metavar="SCENARIO", help="What is predicted.  [default: the source's hard items]"),
    click.option(
        "--k", metavar="K,K,...", default="1", show_default=True, help="1 is the score; more are pass@k of counts."
    ),
    click.option(
        "--method",
        "methods",
        multiple=True,
        type=click.Choice(METHODS),
        help="The first predicts, others stand beside it. Repeatable.  [default: calibrated, scores]",
    ),
    click.option(
        "--bank",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Past models that calibrate; RESPONSES are of new models.  [default: leave out parts of RESPONSES]",
    ),
    click.option(
        "--calibration-model", "calibration_models", multiple=True, metavar="MODEL_ID",
        help="Calibrate on these models, predict all others. Repeatable.",
    ),
    click.option(
        "--share-easy", type=float, default=0.5, show_default=True, help="Share of a scenario's items that are easy."
    ),
    click.option(
        "--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Parts of the models left out."
    ),
    click.option(
        "--warn-below", type=float, default=0.7, show_default=True, help="Warn of a lower correlation of abilities."
    ),
    click.option("--force", is_flag=True, help="Transfer also where no correlation is shown."),
)  # fmt: skip
_NAMES = (
    "source", "target", "k", "methods", "bank", "calibration_models", "share_easy", "folds", "warn_below", "force",
)  # fmt: skip


def _transfer_options(function: Any) -> Any:
    return gathered(function, _OPTIONS, _NAMES, into="choices")


@click.command("transfer")
@responses_or_builtin
@_transfer_options
@_group_option
@level_option
@_figure_option
@click.option("--show", type=click.Choice(["methods", "models"]), default="methods", show_default=True,
              help="Which table; JSON has both.")  # fmt: skip
@seed_option
@format_option
def transfer_command(
    *,
    responses: tuple[Path, ...],
    builtin: str | None,
    reading: dict[str, Any],
    choices: dict[str, Any],
    group: str | None,
    level: float,
    output: Path | None,
    show: str,
    seed: int,
    output_format: str,
) -> None:
    """Predict scores, or pass@k, on some items from the ability that others give.

    First comes the convergent validity: the correlation, over the models that calibrate, of both abilities. Without any
    sign of it the transfer is refused, a weak one is warned of. Without --source, every scenario's easy items predict
    its hard ones. Training compute in the table of models (flops) is put beside each prediction.

    \b
      itembank scaling transfer responses.parquet -o easy-to-hard.png
      itembank scaling transfer responses.parquet --source arc_easy --target arc_challenge --group recipe
      itembank scaling transfer samples.parquet --source gsm8k --k 1,10,100 --group family
    """  # noqa: D301
    from itembank.reports.canvas import check_figure_destination, save_figure  # noqa: PLC0415
    from itembank.reports.transfer_figures import figure_transfer, figure_transfer_errors  # noqa: PLC0415

    if output is not None:
        check_figure_destination(output)  # complains before the long work, not after
    is_in_turn = choices["bank"] is None and not choices["calibration_models"]
    refuse_unused(
        ("share_easy", choices["target"] is None, "easy and hard items of one scenario, not with --target"),
        ("folds", is_in_turn, "parts left out in turn, not with --bank or --calibration-model"),
    )
    if choices["target"] is not None and choices["source"] is None:
        raise click.UsageError("--target needs --source.")
    if choices["bank"] is not None and choices["calibration_models"]:
        raise click.UsageError("give --bank or --calibration-model, one of the two.")
    spec = _spec(choices, level)
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin, reading)
        known = _known_of_models(matrix, group)
        with progress("transfer") as report:
            found = _transfers(matrix, choices, spec, known=known, seed=seed, report=report)
        if output is not None:
            drawn = figure_transfer(found[0]) if choices["source"] is not None else figure_transfer_errors(found)
            note(f"Figure: {save_figure(drawn, output)}")
    _print(found, show, output_format, is_single=choices["source"] is not None)


def _transfers(
    matrix: "ResponseMatrix",
    choices: Mapping[str, Any],
    spec: "TransferSpec",
    *,
    known: "KnownOfModels",
    seed: int,
    report: Any,
) -> "list[Transfer]":
    """One transfer, or one within every scenario; of these, such as cannot be made are told and left out."""
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.errors import DataError, DataWarning, warn  # noqa: PLC0415
    from itembank.scaling.transfers.transfers import transfer  # noqa: PLC0415

    calibration: Any = choices["calibration_models"] or None
    if choices["bank"] is not None:
        calibration = load_bank(choices["bank"])
    options: dict[str, Any] = {
        "spec": spec, "calibration": calibration, "rng": seed, "progress": report, **known,
    }  # fmt: skip
    if choices["source"] is not None:
        return [transfer(matrix, choices["source"], choices["target"], **options)]
    found = []
    for scenario in dict.fromkeys(matrix.items["scenario"].to_list()):
        try:
            found.append(transfer(matrix, scenario, **options))
        except DataError as error:
            warn(f"scenario {scenario!r} is left out: {error}", DataWarning)
    if not found:
        raise DataError("no scenario allows a transfer from its easy to its hard items; the notes above say why.")
    return found


def _print(found: "list[Transfer]", show: str, output_format: str, *, is_single: bool) -> None:
    if output_format == "json":
        records = [{**one.to_dict(), "methods": one.method_rows(), "models": one.rows()} for one in found]
        print_object(records[0] if is_single else {"transfers": records})
    elif is_single:
        rows = found[0].method_rows() if show == "methods" else found[0].rows()
        print_record(
            found[0].to_dict(), show, rows, output_format, title="Transfer; scores from 0 to 1", least=LEAST[show]
        )
    else:
        names = {"target": "target", "correlation": "validity", "correlation_lower": "validity_lower"}
        rows = [  # the rows of methods have a correlation of their own
            {**{shown_as: one.to_dict()[name] for name, shown_as in names.items()}, **row}
            for one in found
            for row in (one.method_rows() if show == "methods" else one.rows())
        ]
        print_rows(rows, output_format, title="Easy to hard; scores from 0 to 1", least=LEAST[show])


@click.command("validity")
@responses_or_builtin
@_group_option
@level_option
@click.option("--table", type=click.Choice(TABLES), default="observed", show_default=True, help="What is drawn.")
@_figure_option
@seed_option
@format_option
def validity_command(
    *,
    responses: tuple[Path, ...],
    builtin: str | None,
    reading: dict[str, Any],
    group: str | None,
    level: float,
    table: str,
    output: Path | None,
    seed: int,
    output_format: str,
) -> None:
    """Correlate the abilities that each scenario's own items give (convergent validity).

    Intervals are by Fisher's z over models, or with --group by drawing whole groups anew. Disattenuated correlations
    are those of the abilities without the errors of their estimates. With training compute in the table of models
    (flops), the correlation beyond compute is that of what compute does not tell.

    \b
      itembank scaling validity responses.parquet -o validity.png
      itembank scaling validity responses.parquet --models models.csv --group recipe --table beyond_compute
    """  # noqa: D301
    from itembank.reports.canvas import check_figure_destination, save_figure  # noqa: PLC0415
    from itembank.reports.validity_figures import figure_validity  # noqa: PLC0415
    from itembank.scaling.transfers.convergent import CorrelationInterval, convergent_validity  # noqa: PLC0415

    refuse_unused(("table", output is not None, "-o FILE, which draws it"))
    if output is not None:
        check_figure_destination(output)  # complains before the long work, not after
    interval = CorrelationInterval(level=level)
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin, reading)
        known = _known_of_models(matrix, group)
        with progress("validity") as report:
            found = convergent_validity(matrix, interval=interval, rng=seed, progress=report, **known)
        if output is not None:
            note(f"Figure: {save_figure(figure_validity(found, table=table), output)}")
    rows = found.rows()
    print_record(
        found.to_dict(),
        "pairs",
        [_with_intervals(row) for row in rows] if output_format == "table" else rows,
        output_format,
        title="Convergent validity",
        least=("disattenuated_interval", "disattenuated", "n_models", "beyond_compute_interval", "beyond_compute"),
    )


def _with_intervals(row: Mapping[str, Any]) -> dict[str, Any]:
    """Put each correlation and its interval in two cells in place of three, which a terminal has room for."""
    short = {name: row[name] for name in ("first", "second", "n_models")}
    for name in ("correlation", "disattenuated", "beyond_compute"):
        if name in row:
            prefix = "" if name == "correlation" else f"{name}_"
            low, high = row[f"{prefix}lower"], row[f"{prefix}upper"]
            short[name] = row[name]
            is_known = math.isfinite(low) and math.isfinite(high)
            short["interval" if not prefix else f"{prefix}interval"] = f"{low:.2f} to {high:.2f}" if is_known else "-"
    return short


def _spec(choices: Mapping[str, Any], level: float) -> "TransferSpec":
    from itembank.scaling.transfers.transfer_specs import TransferSpec  # noqa: PLC0415

    given: dict[str, Any] = {"methods": choices["methods"]} if choices["methods"] else {}
    return TransferSpec(
        k=numbers_of_samples(choices["k"]),
        share_easy=choices["share_easy"],
        n_folds=choices["folds"],
        level=level,
        warn_below=choices["warn_below"],
        is_forced=choices["force"],
        **given,
    )


class KnownOfModels(TypedDict):
    """What is known of the models: their groups, and their training compute."""

    groups: list[str] | None
    compute: "TrainingCompute | None"


def _known_of_models(matrix: "ResponseMatrix", group: str | None) -> KnownOfModels:
    """Take groups and training compute from the table of models; refuse a table that has neither."""
    groups, compute = _groups(matrix, group), _compute(matrix)
    has_say = groups is not None or compute is not None
    refuse_unused(("models", has_say, "--group COLUMN, or with a column flops that is known of every model"))
    return {"groups": groups, "compute": compute}


def _groups(matrix: "ResponseMatrix", column: str | None) -> list[str] | None:
    """Values of a column of the model table; a model without one is a group of its own."""
    from itembank.errors import DataError, shown  # noqa: PLC0415

    if column is None:
        return None
    if column not in matrix.models.columns:
        raise DataError(f"--group must be a column of the model table, got {column!r}; it has "
                        f"{shown(matrix.models.columns)}. Give the table with --models.")  # fmt: skip
    names = zip(matrix.models[column].to_list(), matrix.model_ids, strict=True)
    return [f"model {model_id}" if name is None else str(name) for name, model_id in names]


def _compute(matrix: "ResponseMatrix") -> "TrainingCompute | None":
    """Training compute, where the table of models has it for every model."""
    from itembank.data.compute import training_compute  # noqa: PLC0415

    if "flops" not in matrix.models.columns or matrix.models["flops"].null_count():
        return None
    return training_compute(matrix.models, matrix.model_ids)
