"""`itembank scaling transfer` and `itembank scaling validity`: what some items say of others, and whether they may."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from itembank.calibration.calibration_specs import METHODS as CALIBRATIONS
from itembank.cli.command import Command, gathered
from itembank.cli.option_types import WholeNumbers
from itembank.cli.options import BankPath, format_option, level_option, refuse_unused, seed_option
from itembank.cli.render import print_object, print_record, print_rows, progress, warnings_as_notes
from itembank.cli.report_options import figure_option, report_option, report_result, write_figure
from itembank.cli.scaling_options import read_responses_or_builtin, responses_or_builtin
from itembank.cli.spec_options import file_choices, spec_file_option, spec_option, typed
from itembank.scaling.transfers.transfer_specs import METHODS, TransferSpec

if TYPE_CHECKING:
    from itembank.pages.render import Page
    from itembank.readers.compute import TrainingCompute
    from itembank.responses.responses import ResponseMatrix
    from itembank.scaling.transfers.convergent import ConvergentValidity
    from itembank.scaling.transfers.transfers import Transfer

LEAST = {
    "methods": ("log_error", "width", "error_standard_error", "validity_lower", "bias", "coverage"),
    "models": (
        *("predicted_scores", "predicted_common-scale", "predicted_calibrated"),
        *("flops", "standard_error", "ability", "group", "validity_lower", "validity"),
    ),
}
"""Columns of each table that give way in a narrow terminal, the least needed first."""
KINDS = ("observed", "disattenuated", "beyond_compute")

_group_option = click.option(
    "--group",
    metavar="COLUMN",
    help="Column of the model table: its models are relatives (recipe, family, run) and stay together.",
)
_SPEC = (
    spec_option(
        TransferSpec,
        "methods",
        "The first predicts, others stand beside it. Repeatable.",
        "--method",
        type=click.Choice(METHODS.builtin_names),
        show_default=True,
    ),
    spec_option(
        TransferSpec,
        "k",
        "1 is the score; more are pass@k of counts.",
        type=WholeNumbers(),
        multiple=False,
        default="1",
        show_default=True,
    ),
    level_option,
    spec_option(TransferSpec, "is_forced", "Transfer also where no correlation is shown.", "--force"),
)


@click.command("transfer", cls=Command)
@responses_or_builtin
@click.option(
    "--source", metavar="SCENARIO", help="Whose ability is used.  [default: the easy items of every scenario]"
)
@click.option("--target", metavar="SCENARIO", help="What is predicted.  [default: the source's hard items]")
@click.option(
    "--bank",
    type=BankPath(),
    help="Past models that calibrate; RESPONSES are of new models.  [default: leave out parts of RESPONSES]",
)
@click.option(
    "--calibration-model",
    "calibration_models",
    multiple=True,
    metavar="MODEL_ID",
    help="Calibrate on these models, predict all others. Repeatable.",
)
@_group_option
@spec_file_option("TransferSpec", "easy_fraction, n_folds or warn_below")
@gathered("choices", *_SPEC)
@click.option(
    "--show",
    type=click.Choice(["methods", "models"]),
    default="methods",
    show_default=True,
    help="Which table; JSON has both.",
)
@figure_option()
@report_option
@seed_option
@format_option
def transfer_command(
    *,
    responses: tuple[Path, ...],
    builtin: str | None,
    source: str | None,
    target: str | None,
    bank: Path | None,
    calibration_models: tuple[str, ...],
    group: str | None,
    spec_file: Path | None,
    choices: dict[str, Any],
    show: str,
    figure: Path | None,
    report: Path | None,
    seed: int,
    output_format: str,
) -> None:
    """Predict scores, or pass@k, on some items from the ability that others give.

    First comes the convergent validity: the correlation, over the models that calibrate, of both abilities. Without any
    sign of it the transfer is refused, a weak one is warned of. Without --source, every scenario's easy items predict
    its hard ones. Training compute in the table of models (flops) is put beside each prediction.

    \b
      itembank scaling transfer responses.parquet --report easy-to-hard.html
      itembank scaling transfer responses.parquet --source arc_easy --target arc_challenge --group recipe
      itembank scaling transfer samples.parquet --source gsm8k --k 1,10,100 --group family
    """  # noqa: D301
    from itembank.pages.transfer_page import agreement_chart, transfer_curves_chart, transfer_errors_chart  # noqa: PLC0415

    if target is not None and source is None:
        raise click.UsageError("--target needs --source.")
    if bank is not None and calibration_models:
        raise click.UsageError("give --bank or --calibration-model, one of the two.")
    options: dict[str, Any] = {"spec": _spec(spec_file, choices), "rng": seed}
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin)
        options |= {**_known_of_models(matrix, group), "calibration": _calibration(bank, calibration_models)}
        with progress("transfer") as said:
            found = _transfers(matrix, source, target, {**options, "progress": said})
        if figure is not None:
            one = transfer_curves_chart if len(found[0].k) > 1 else agreement_chart
            write_figure((transfer_errors_chart if source is None else one)(found), figure)
    _print(found, show, output_format, is_single=source is not None)
    report_result(report, output_format, partial(_transfer_page, found))


def _spec(spec_file: Path | None, choices: Mapping[str, Any]) -> TransferSpec:
    """Make the spec of the file and the options."""
    found = file_choices(spec_file, TransferSpec, {"item_model": (CALIBRATIONS, "name")})
    return TransferSpec(**{**found, **typed(choices)})


def _transfer_page(found: "list[Transfer]", typed: str) -> "Page":
    from itembank.pages.transfer_page import transfer_page  # noqa: PLC0415

    return transfer_page(found, command=typed)


def _calibration(bank: Path | None, models: tuple[str, ...]) -> Any:
    """Return what calibrates: a bank, some of the models, or None for all but those left out in turn."""
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415

    return models or None if bank is None else load_bank(bank)


def _transfers(
    matrix: "ResponseMatrix", source: str | None, target: str | None, options: Mapping[str, Any]
) -> "list[Transfer]":
    """One transfer, or one within every scenario; those that cannot be made are left out with a warning."""
    from itembank.errors import DataError, DataWarning, warn  # noqa: PLC0415
    from itembank.scaling.transfers.transfers import transfer  # noqa: PLC0415

    if source is not None:
        return [transfer(matrix, source, target, **options)]
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


@click.command("validity", cls=Command)
@responses_or_builtin
@_group_option
@level_option
@figure_option()
@click.option("--kind", type=click.Choice(KINDS), default="observed", show_default=True, help="What to draw.")
@click.option(
    "--pair",
    nargs=2,
    metavar="SCENARIO SCENARIO",
    help="--figure: draw the models' abilities on these two instead.",
)
@report_option
@seed_option
@format_option
def validity_command(
    *,
    responses: tuple[Path, ...],
    builtin: str | None,
    group: str | None,
    level: float,
    figure: Path | None,
    kind: str,
    pair: tuple[str, str] | None,
    report: Path | None,
    seed: int,
    output_format: str,
) -> None:
    """Correlate the abilities that each scenario's own items give (convergent validity).

    Intervals are by Fisher's z over models, or with --group by drawing whole groups anew. Disattenuated correlations
    are those of the abilities without the errors of their estimates. With training compute in the table of models
    (flops), the correlation beyond compute is that of what compute does not tell.

    \b
      itembank scaling validity responses.parquet --report validity.html
      itembank scaling validity responses.parquet --figure f.png --kind beyond_compute
      itembank scaling validity responses.parquet --figure pair.png --pair arc_easy arc_challenge
    """  # noqa: D301
    from itembank.pages.validity_page import ability_pair_chart, validity_chart  # noqa: PLC0415
    from itembank.scaling.transfers.convergent import CorrelationInterval, convergent_validity  # noqa: PLC0415

    refuse_unused(
        *((name, figure is not None, "--figure FILE") for name in ("kind", "pair")),
        ("kind", pair is None, "correlations of all scenarios, not with --pair"),
    )
    interval = CorrelationInterval(level=level)
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin)
        known = _known_of_models(matrix, group)
        with progress("validity") as said:
            found = convergent_validity(matrix, interval=interval, rng=seed, progress=said, **known)
        if figure is not None:
            drawn = validity_chart(found, table=kind) if pair is None else ability_pair_chart(found, *pair)
            write_figure(drawn, figure)
    rows = found.rows()
    print_record(
        found.to_dict(),
        "pairs",
        [_with_intervals(row) for row in rows] if output_format == "table" else rows,
        output_format,
        title="Convergent validity",
        least=("disattenuated_interval", "disattenuated", "n_models", "beyond_compute_interval", "beyond_compute"),
    )
    report_result(report, output_format, partial(_validity_page, found))


def _validity_page(found: "ConvergentValidity", typed: str) -> "Page":
    from itembank.pages.validity_page import validity_page  # noqa: PLC0415

    return validity_page(found, command=typed)


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


class KnownOfModels(TypedDict):
    """What is known of the models: their groups, and their training compute."""

    groups: list[str] | None
    compute: "TrainingCompute | None"


def _known_of_models(matrix: "ResponseMatrix", group: str | None) -> KnownOfModels:
    """Take groups and training compute from the table of models."""
    return {"groups": _groups(matrix, group), "compute": _compute(matrix)}


def _groups(matrix: "ResponseMatrix", column: str | None) -> list[str] | None:
    """Values of a column of the model table; a model without one is a group of its own."""
    from itembank.errors import DataError, shown  # noqa: PLC0415

    if column is None:
        return None
    if column not in matrix.models.columns:
        raise DataError(f"--group must be a column of the model table, got {column!r}; it has "
                        f"{shown(matrix.models.columns)}. Give the table to itembank import --models.")  # fmt: skip
    names = zip(matrix.models[column].to_list(), matrix.model_ids, strict=True)
    return [f"model {model_id}" if name is None else str(name) for name, model_id in names]


def _compute(matrix: "ResponseMatrix") -> "TrainingCompute | None":
    """Training compute, where the table of models has it for every model."""
    from itembank.readers.compute import training_compute  # noqa: PLC0415

    if "flops" not in matrix.models.columns or matrix.models["flops"].null_count():
        return None
    return training_compute(matrix.models, matrix.model_ids)
